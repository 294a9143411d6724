"""A release as a page to look at: its rows and metadata, the outlines of their cells, the releases before it.

Everything on the page is computed from published lines only, so what is not published cannot be in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h3
import numpy as np

from isuit import __version__, look
from isuit.documents import read_text
from isuit.pages import data_of, page
from isuit.pages.packing import packed, packed_rows, rows_of
from isuit.release.cells import centre, shape
from isuit.release.grid import metric_along
from isuit.release.timeline import Published, timeline

FINEST = 1e-6  # degrees, a tenth of a metre
LARGEST = 2**15 - 1  # what a packed offset can be, in units


def release_page(rows: list[dict[str, Any]], metadata: str, before: Sequence[Published] = ()) -> bytes:
    """The page of a release; `before` are the releases of its series that were made earlier, oldest first."""
    about = json.loads(metadata)
    return _drawn(
        {
            "rows": packed_rows(rows),
            "metadata": about,
            "shapes": _shapes(rows),
            "topics": _topics(rows),
            "series": timeline([*before, Published(rows, about)]),
        }
    )


class ChangedPage(ValueError):
    """The data are a release's, and the page around them is not as this version draws it: it may show others."""


def _drawn(data: dict[str, Any]) -> bytes:
    return page(f"Atlas, release {data['metadata']['release']}", "atlas", data).encode()


def read_page(path: Path) -> tuple[list[Any], Any]:
    """The rows and metadata that a page carries; ValueError where what is drawn does not follow from them.

    A page of this very version must be the one that its data give, script and all. Of another version's, whose script
    is not known here, the data alone are checked. The releases before, which the time line draws, are in no digest.
    """
    text = read_text(path, "the release")
    data = data_of(text)
    rows = rows_of(data["rows"])
    if data["metadata"].get("tool_version") == __version__ and _drawn(data) != text.encode():
        raise ChangedPage
    if data["shapes"] != _shapes(rows):
        raise ValueError("an outline is not its cell's")
    if data["topics"] != _topics(rows):
        raise ValueError("a topic is not the rows'")
    return rows, data["metadata"]


def _topics(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The activities and dimensions, with the words that a reader knows them by."""
    found = []
    for activity, dimension in sorted({(row["activity"], row["dimension"]) for row in rows}):
        along = metric_along(dimension)  # of a surface; what the others are held at follows it
        quantity, unit = look.quantity(along)
        words = {"quantity": f"{quantity}{dimension[len(along) :]}", "unit": unit, "axis": look.axis(along)}
        found.append({"activity": activity, "dimension": dimension} | words)
    return found


def _shapes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The corners of every cell as steps from its centre, longitude first; none for the global cell or at a pole."""
    cells = sorted({row["h3"] for row in rows})
    corners = [_corners(cell) for cell in cells]
    steps = np.array([step for ring in corners for corner in ring for step in corner], float)
    unit = max(FINEST, float(np.abs(steps).max(initial=0.0)) / LARGEST)
    return {
        "cells": cells,
        "unit": unit,
        "counts": packed([len(ring) for ring in corners], "u1"),
        "offsets": packed(np.round(steps / unit), "i2"),
    }


def _corners(cell: str) -> list[tuple[float, float]]:
    latitude, longitude = centre(cell)
    outline = shape(cell)
    if latitude is None or longitude is None or outline is None or outline.around_pole:
        return []
    boundary = h3.cell_to_boundary(cell)
    return [((east - longitude + 540) % 360 - 180, north - latitude) for north, east in boundary]
