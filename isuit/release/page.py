"""A release as a page to look at: its rows and metadata, the outlines of their cells, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isuit.documents import read_text
from isuit.pages import data_of, page
from isuit.release.cells import shape


def release_page(rows: list[dict[str, Any]], metadata: str) -> bytes:
    """The page of a release, built from its lines only: what is not published cannot be in it."""
    about = json.loads(metadata)
    data = {"rows": rows, "metadata": about, "shapes": _shapes(rows)}
    return page(f"Atlas, release {about['release']}", "atlas", data).encode()


def read_page(path: Path) -> tuple[list[Any], Any]:
    """The rows and metadata that a page carries; ValueError where a cell's outline is not the cell's."""
    data = data_of(read_text(path, "the release"))
    if data["shapes"] != _shapes(data["rows"]):
        raise ValueError("an outline is not its cell's")
    return data["rows"], data["metadata"]


def _shapes(rows: list[dict[str, Any]]) -> dict[str, list[list[list[float]]]]:
    outlines = {cell: shape(cell) for cell in sorted({row["h3"] for row in rows})}
    return {
        cell: [[list(point) for point in ring] for ring in outline.rings]
        for cell, outline in outlines.items()
        if outline is not None
    }
