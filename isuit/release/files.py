"""Files of a release: JSON Lines, CSV and its metadata file, GeoParquet, GeoJSON, HTML, a site.

Every format carries the same rows, and reading any of them back gives the same lines: so one digest covers all.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from isuit.published.releases import Format, ReleaseRow
from isuit.release.cells import shape
from isuit.release.names import FLOATS, INTEGERS, METADATA_KEY, format_of, metadata_path
from isuit.release.page import release_page
from isuit.release.site import site
from isuit.release.timeline import Published

COLUMNS = tuple(ReleaseRow.model_fields)
_ARROW = dict.fromkeys(INTEGERS, pa.int8()) | dict.fromkeys(FLOATS, pa.float64())
GEO_VERSION = "1.1.0"


def files(
    path: Path, kind: Format, lines: list[str], metadata: str, before: Sequence[Published] = ()
) -> dict[Path, bytes]:
    """The content of every file of a release, by path: two for a CSV, a folder for a site, one otherwise.

    `before` are the releases of the series that were made earlier; the page tells what changed since.
    """
    if kind == "jsonl":
        return {path: "".join(f"{line}\n" for line in [*lines, metadata]).encode()}
    rows = [json.loads(line) for line in lines]
    if kind == "csv":
        return {path: _csv(rows), metadata_path(path): f"{metadata}\n".encode()}
    if kind == "geojson":
        return {path: _geojson(rows, metadata)}
    if kind == "html":
        return {path: release_page(rows, metadata, before)}
    if kind == "site":
        found = site([*before, Published.of(lines, metadata)], _rendered)
        return {path / name: content for name, content in found.items()}
    return {path: _geoparquet(rows, metadata)}


def _rendered(name: str, release: Published, before: Sequence[Published]) -> bytes:
    """One file of a release in a site; a parsed line written again is the line."""
    lines, metadata = [_line(row) for row in release.rows], _line(release.metadata)
    (content,) = files(Path(name), format_of(Path(name)), lines, metadata, before).values()
    return content


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([row[name] for name in COLUMNS])  # a null is an empty cell
    return text.getvalue().encode()


def _geojson(rows: list[dict[str, Any]], metadata: str) -> bytes:
    features = []
    for row in rows:
        outline = shape(row["h3"])
        geometry = None if outline is None else outline.geojson()
        features.append({"type": "Feature", "geometry": geometry, "properties": row})
    document = {"type": "FeatureCollection", "features": features, "metadata": json.loads(metadata)}
    return (json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n").encode()


def _geoparquet(rows: list[dict[str, Any]], metadata: str) -> bytes:
    """GeoParquet 1.1: WKB polygons in longitude and latitude (OGC:CRS84, the default), and the `geo` footer."""
    outlines = [shape(row["h3"]) for row in rows]
    columns: dict[str, pa.Array] = {
        name: pa.array([row[name] for row in rows], _ARROW.get(name, pa.string())) for name in COLUMNS
    }
    columns["geometry"] = pa.array([None if outline is None else outline.wkb() for outline in outlines], pa.binary())
    known = [outline for outline in outlines if outline is not None]
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted({"Polygon" if len(outline.rings) == 1 else "MultiPolygon" for outline in known}),
        "orientation": "counterclockwise",
        "edges": "planar",
    }
    if known:
        west, south, east, north = zip(*(outline.bounds() for outline in known), strict=True)
        column["bbox"] = [min(west), min(south), max(east), max(north)]
    geo = {"version": GEO_VERSION, "primary_column": "geometry", "columns": {"geometry": column}}
    footer = {b"geo": json.dumps(geo).encode(), METADATA_KEY: metadata.encode()}
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    return bytes(sink.getvalue())
