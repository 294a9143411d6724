"""A series of releases as a folder of static files, for any web server, object storage, or a disk.

    site/index.html            what is there, newest first
    site/collection.json       the same for machines: a STAC collection
    site/2025-01-01/           one folder for each release: atlas.html, atlas.jsonl, atlas.parquet
    site/SHA256SUMS            of every file, for `sha256sum --check`

Nothing here reads a store: the folder follows from the published lines, so the same releases give the same folder.
docs/adr/0027-releases-are-static-files.md says why nothing is served.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from isuit.pages import listing
from isuit.release.cells import shape
from isuit.release.timeline import Published, timeline

STAC_VERSION = "1.1.0"
# Name, media type and what it is; GeoParquet has no registered type, this is the one in use.
ASSETS = {
    "atlas.html": ("text/html", "The release as a page"),
    "atlas.jsonl": ("application/jsonl", "The rows as JSON Lines, metadata last"),
    "atlas.parquet": ("application/vnd.apache.parquet", "The rows as GeoParquet"),
}
Renderer = Callable[[str, Published, Sequence[Published]], bytes]


def site(releases: Sequence[Published], render: Renderer) -> dict[PurePosixPath, bytes]:
    """Every file by its path in the folder; `render` gives one file of a release from those before it."""
    found: dict[PurePosixPath, bytes] = {}
    for number, release in enumerate(releases):
        folder = PurePosixPath(release.metadata["release"])
        for name in ASSETS:
            found[folder / name] = render(name, release, releases[:number])
    found[PurePosixPath("collection.json")] = _document(collection(releases))
    found[PurePosixPath("index.html")] = _index(releases)
    sums = "".join(f"{hashlib.sha256(found[path]).hexdigest()}  {path}\n" for path in sorted(found))
    return found | {PurePosixPath("SHA256SUMS"): sums.encode()}


def collection(releases: Sequence[Published]) -> dict[str, Any]:
    """The STAC collection: where, until when, under which licence, and the files of every release."""
    newest = releases[-1].metadata
    assets = {}
    for release in releases:
        name = release.metadata["release"]
        for file, (media, title) in ASSETS.items():
            key = f"{name}-{file.rpartition('.')[2]}"
            assets[key] = {"href": f"./{name}/{file}", "type": media, "title": f"{title}, {name}", "roles": ["data"]}
        assets[f"{name}-html"]["roles"] = ["overview"]
    return {
        "type": "Collection",
        "stac_version": STAC_VERSION,
        "id": "isuit-atlas",
        "title": "Inverse Suitability atlas",
        "description": "How hard conditions are, net of who faced them, by H3 cell and bin of a metric. "
        f"{newest['identification']}.",
        "license": newest["licence"] or "other",
        "keywords": sorted({row["activity"] for row in releases[-1].rows}),
        "extent": {
            "spatial": {"bbox": [_bounds(releases[-1].rows)]},
            # Nothing says when observation began; no outcome of that day or later is in the newest release.
            "temporal": {"interval": [[None, f"{newest['observed_before']}T00:00:00Z"]]},
        },
        "summaries": {"release": [release.metadata["release"] for release in releases]},
        "links": [
            {"rel": "root", "href": "./collection.json", "type": "application/json"},
            {"rel": "alternate", "href": "./index.html", "type": "text/html"},
        ],
        "assets": assets,
    }


def _bounds(rows: list[dict[str, Any]]) -> list[float]:
    """West, south, east, north of all cells; the whole world where one row holds everywhere."""
    outlines = [shape(cell) for cell in sorted({row["h3"] for row in rows})]
    boxes = [outline.bounds() for outline in outlines if outline is not None]
    if len(boxes) < len(outlines):
        return [-180.0, -90.0, 180.0, 90.0]
    west, south, east, north = zip(*boxes, strict=True)
    return [min(west), min(south), max(east), max(north)]


def _document(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def _index(releases: Sequence[Published]) -> bytes:
    entries = []
    for each in reversed(timeline(releases)):
        name = html.escape(each["release"])
        others = [file for file in ASSETS if file != "atlas.html"]
        files = ", ".join(f'<a href="{name}/{file}">{file.rpartition(".")[2]}</a>' for file in others)
        first = each["release"] == releases[0].metadata["release"]
        change = "" if first else f"{each['added']} new, {each['changed']} changed, {each['withdrawn']} withdrawn"
        entries.append(
            f'<tr><th scope="row"><a href="{name}/atlas.html">{name}</a></th><td>{each["rows"]:,}</td>'
            f"<td>{each['cells']:,}</td><td>{change}</td><td>{files}</td>"
            f"<td><code>{each['digest'][:16]}</code></td></tr>"
        )
    licence = html.escape(releases[-1].metadata["licence"] or "not declared")
    return listing(
        "Inverse Suitability atlas",
        "How hard conditions are, net of who faced them. Each release says which rules protect the riders.",
        ["release", "rows", "cells", "since the one before", "files", "digest"],
        entries,
        f'Licence {licence}. For machines: <a href="collection.json">collection.json</a> (STAC), '
        '<a href="SHA256SUMS">SHA256SUMS</a>.',
    ).encode()
