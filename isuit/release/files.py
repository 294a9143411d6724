"""Files of a release: JSON Lines, CSV and its metadata file, GeoParquet, GeoJSON, HTML, a site; and their check.

Every format carries the same rows, and reading any of them back gives the same lines: so one digest covers all.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import h3
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from isuit.audit.notes import VerifierKey
from isuit.documents import UnsafeDocument, finite, from_json, from_json_lines, read_bytes
from isuit.documents.notation import Refused, integer
from isuit.documents.tables import csv_rows, read_parquet
from isuit.errors import InputError
from isuit.published import Format, ReleaseCheck, ReleaseMetadata, ReleaseRow
from isuit.release.cells import shape
from isuit.release.format import lines_digest
from isuit.release.page import read_page, release_page
from isuit.release.proof import unproved
from isuit.release.site import site
from isuit.release.timeline import Published

EXTENSIONS: dict[Format, str] = {
    "jsonl": "jsonl",
    "csv": "csv",
    "geoparquet": "parquet",
    "geojson": "geojson",
    "html": "html",
}
COLUMNS = tuple(ReleaseRow.model_fields)
# What a file may raise that holds other values than a release's. H3 takes a cell of 400 digits for an integer.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException, h3.H3BaseException)
_ARROW = {
    "h3_resolution": pa.int8(),
    **dict.fromkeys(
        ["latitude", "longitude", "metric", "metric_lower", "metric_upper", "difficulty", "difficulty_se"], pa.float64()
    ),
    "expert_difficulty": pa.float64(),
}
GEO_VERSION = "1.1.0"
METADATA_KEY = b"isuit-atlas"
RELEASE = "the release"  # how a refusal calls it
LARGEST = 256 << 20  # bytes; a row takes about 400
MOST_LISTED = 20  # rows that are named one by one


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


def metadata_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.metadata.json")


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(["" if row[name] is None else row[name] for name in COLUMNS])
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


@dataclass(frozen=True)
class ReadRelease:
    """A file as it was read: rows and metadata still unchecked."""

    rows: list[Any]
    metadata: Any  # None where it is missing


def format_of(path: Path) -> Format:
    by_extension: dict[str, Format] = {f".{extension}": kind for kind, extension in EXTENSIONS.items()}
    by_extension |= {".ndjson": "jsonl", ".json": "geojson", ".geoparquet": "geoparquet"}
    kind = by_extension.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"a release is a file that ends in {', '.join(f'.{name}' for name in EXTENSIONS.values())}; rename it so."
        )
    return kind


def check_file(path: Path, trusted: VerifierKey | None = None) -> ReleaseCheck:
    """Row count, digest, schema and proof of a release's file; every problem is listed, none quotes a value.

    With a key that is trusted the file must prove that a log under this key has the release.
    """
    kind = format_of(path)
    assert kind in get_args(Format)
    readers: dict[Format, Callable[[Path], ReadRelease]] = {
        "jsonl": _read_jsonl,
        "csv": _read_csv,
        "geojson": _read_geojson,
        "geoparquet": _read_geoparquet,
        "html": lambda page: ReadRelease(*read_page(page)),
    }
    try:
        found = readers[kind](path)
    except OSError:
        raise InputError("the release cannot be read; check its path and, for a CSV, its metadata file.") from None
    except Refused as error:
        raise UnsafeDocument(f"{RELEASE} {error}") from None
    except DAMAGE as error:
        problem = f"the file is damaged or cut short: it cannot be read as {kind} ({type(error).__name__})"
        nothing = {"release": None, "digest": None, "origin": None, "key": None}
        return ReleaseCheck(ok=False, rows=0, format=kind, trusted=False, problems=[problem], **nothing)
    problems: list[str] = []
    rows = [row for row in _validated(ReleaseRow, found.rows, "row", problems) if isinstance(row, ReleaseRow)]
    digest = lines_digest(row.line() for row in rows)
    metadata = None
    if found.metadata is None:
        problems.append("the metadata are missing: the file is cut short, or its metadata file is not beside it")
    else:
        described = list(_validated(ReleaseMetadata, [found.metadata], "metadata", problems))
        metadata = described[0] if described and isinstance(described[0], ReleaseMetadata) else None
    if metadata is not None:
        problems.extend(_disagreements(rows, len(found.rows), digest, metadata))
        problems.extend(unproved(found.metadata, metadata, digest, trusted))
    proof = None if metadata is None else metadata.proof
    return ReleaseCheck(
        ok=not problems,
        release=None if metadata is None else metadata.release,
        rows=len(found.rows),
        digest=digest,
        format=kind,
        origin=None if proof is None else proof.key.partition("+")[0],
        key=None if proof is None else proof.key,
        trusted=trusted is not None and proof is not None and not problems,
        problems=problems,
    )


def _disagreements(rows: list[ReleaseRow], number: int, digest: str, metadata: ReleaseMetadata) -> Iterator[str]:
    if number != metadata.rows:
        yield f"the file has {number} rows and its metadata speak of {metadata.rows}: rows are missing or were added"
    if digest != metadata.digest:
        yield "the rows do not have the digest in the metadata: a row was changed, added, moved or removed"
    if len({row.h3 for row in rows}) != metadata.cells:
        yield "the number of cells is not the one in the metadata"
    if any(row.release != metadata.release for row in rows):
        yield "rows and metadata name different releases"
    if [row.key for row in rows] != sorted({row.key for row in rows}):
        yield "the rows are not sorted by activity, dimension, cell and metric, or one is there twice"


def _validated(model: type[BaseModel], values: list[Any], what: str, problems: list[str]) -> Iterator[BaseModel]:
    wrong = 0
    for number, value in enumerate(values, start=1):
        try:
            yield model.model_validate(value)
        except ValidationError as error:
            wrong += 1
            if wrong <= MOST_LISTED:
                # A name that is no field is content of the file, and not repeated.
                fields = {str(part["loc"][0]) if part["loc"] else what for part in error.errors()}
                named = sorted(field if field in model.model_fields else "a name that is no field" for field in fields)
                problems.append(f"{what} {number} does not follow the schema: {', '.join(dict.fromkeys(named))}")
    if wrong > MOST_LISTED:
        problems.append(f"{wrong - MOST_LISTED} more of {what} do not follow the schema")


def _read_jsonl(path: Path) -> ReadRelease:
    content = read_bytes(path, RELEASE, LARGEST)
    if not content:
        raise ValueError("the file is empty")
    documents = from_json_lines(content, RELEASE)
    last = documents[-1] if documents else None
    if isinstance(last, dict) and last.get("metadata") is True:
        return ReadRelease(documents[:-1], last)
    return ReadRelease(documents, None)


def _read_csv(path: Path) -> ReadRelease:
    lines = csv_rows(read_bytes(path, RELEASE, LARGEST).decode("utf-8"), RELEASE)
    names = lines[0] if lines else []
    if len(set(names)) < len(names) or any(len(line) != len(names) for line in lines):
        raise ValueError("a line has not the fields of the header")
    rows = [_typed(dict(zip(names, line, strict=True))) for line in lines[1:]]
    beside = metadata_path(path)
    about = from_json(read_bytes(beside, "the metadata file of the release"), RELEASE) if beside.exists() else None
    return ReadRelease(rows, about)


def _typed(row: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in row.items():
        if name in _ARROW or name == "units":
            number = integer if name == "h3_resolution" else str if name == "units" else finite
            found[name] = number(text) if text else None
        else:
            found[name] = text
    return found


def _read_geojson(path: Path) -> ReadRelease:
    document = from_json(read_bytes(path, RELEASE, LARGEST), RELEASE)
    rows = [feature["properties"] for feature in document["features"]]
    for feature in document["features"]:
        outline = shape(feature["properties"]["h3"])
        if feature["geometry"] != (None if outline is None else outline.geojson()):
            raise ValueError("a geometry is not its cell's")
    return ReadRelease(rows, document.get("metadata"))


def _read_geoparquet(path: Path) -> ReadRelease:
    table, footer = read_parquet(path, RELEASE)
    outlines = table.column("geometry").to_pylist()
    rows = table.drop_columns(["geometry"]).to_pylist()
    for row, geometry in zip(rows, outlines, strict=True):
        outline = shape(row["h3"])
        if geometry != (None if outline is None else outline.wkb()):
            raise ValueError("a geometry is not its cell's")
    from_json(footer[b"geo"], RELEASE)
    return ReadRelease(rows, from_json(footer[METADATA_KEY], RELEASE) if METADATA_KEY in footer else None)
