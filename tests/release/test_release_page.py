"""A release as a page: its rows and metadata and nothing else, and checked like its other files."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import h3
import pytest

from isuit import __version__
from isuit.pages import data_of
from isuit.pages.packing import rows_of, unpacked
from isuit.published import ReleaseMetadata, ReleaseRow
from isuit.release.checking import check_file
from isuit.release.files import files
from isuit.release.format import lines_digest

CELL = "87386d2eaffffff"


def released(cell: str = CELL) -> tuple[list[str], str]:
    rows = [
        ReleaseRow(
            release="2025-01-01", activity="kite </script>", dimension="wind_kn", h3=cell,
            h3_resolution=None if cell == "global" else 7, latitude=None if cell == "global" else 37.873651,
            longitude=None if cell == "global" else 12.443447, metric=metric, metric_lower=metric - 2,
            metric_upper=metric + 2, units="knot", difficulty=0.25, difficulty_se=0.2, expert_difficulty=None,
            contributors="50-99", status="estimated",
        )
        for metric in (6.0, 10.0, 14.0)
    ]  # fmt: skip
    lines = [row.line() for row in rows]
    about = ReleaseMetadata(
        release="2025-01-01", rows=3, cells=1, digest=lines_digest(lines), observed_before=date(2024, 10, 3),
        policy={"k": 10}, weaker_than_default=[], metrics=[], citation="-", estimator_version="1", tool_version="0",
    )  # fmt: skip
    return lines, about.line()


@pytest.mark.parametrize("cell", [CELL, "global"])
def test_a_page_holds_the_release_and_nothing_else(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "atlas.html"
    lines, about = released(cell)
    content = files(path, "html", lines, about)
    assert list(content) == [path]
    assert content == files(path, "html", lines, about)
    path.write_bytes(content[path])
    data = data_of(path.read_text())
    assert data.keys() == {"rows", "metadata", "shapes", "topics", "series"}
    assert rows_of(data["rows"]) == [json.loads(line) for line in lines]
    assert data["metadata"] == json.loads(about)
    assert data["shapes"]["cells"] == [cell]
    corners = unpacked(data["shapes"]["offsets"]) * data["shapes"]["unit"]
    assert corners.size == (0 if cell == "global" else 12)
    for (north, east), (x, y) in zip(
        h3.cell_to_boundary(cell) if corners.size else [], corners.reshape(-1, 2), strict=True
    ):
        assert (37.873651 + y, 12.443447 + x) == pytest.approx((north, east), abs=2e-6)
    check = check_file(path)
    assert check.ok
    assert check.digest == json.loads(about)["digest"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            '"difficulty":{"codes":{"type":"u1","values":"AAAA"},"distinct":[0.25]',
            '"difficulty":{"codes":{"type":"u1","values":"AAAA"},"distinct":[0.5]',
        ),
        ('"distinct":[6.0,', '"distinct":[7.0,'),
        ('"rows":3', '"rows":4'),
        ('"number":3', '"number":2'),
        (CELL, "8739601aeffffff"),
        ('id="data"', 'id="date"'),
        ('"unit":1e-06', '"unit":2e-06'),
        ('"unit":"kn"', '"unit":"m/s"'),
    ],
)
def test_a_changed_page_is_noticed(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "atlas.html"
    text = files(path, "html", *released())[path].decode()
    begin = text.rindex('<script type="application/json"')
    assert old in text[begin:]
    path.write_text(text[:begin] + text[begin:].replace(old, new, 1))
    assert not check_file(path).ok


def test_a_page_cut_short_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "atlas.html"
    text = files(path, "html", *released())[path].decode()
    path.write_text(text[: text.rindex('"topics"')])
    assert not check_file(path).ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</head>", '<script type="application/json" id="data">{}</script></head>'),
        ("</head>", "<script type=application/json id=data>{}</script></head>"),
        ("</body>", "<p>difficulty 9</p></body>"),
        ('"use strict"', '"use strict";'),
    ],
)
def test_a_page_that_would_draw_something_else_is_noticed(tmp_path: Path, old: str, new: str) -> None:
    """The rows are those of the release, and a browser would show others."""
    path = tmp_path / "atlas.html"
    lines, about = released()
    about = json.dumps(json.loads(about) | {"tool_version": __version__})
    text = files(path, "html", lines, about)[path].decode()
    path.write_text(text)
    assert check_file(path).ok
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert not check_file(path).ok
