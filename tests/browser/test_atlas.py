"""`isuit export-atlas --format html` in a real browser: map, ranking, comparison, releases; only what is published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h3
import pytest

from isuit.release.page import release_page
from isuit.release.timeline import Published

from .conftest import Seen, first_picture

pytestmark = pytest.mark.long

Open = Callable[..., Seen]


def about(release: str, **more: Any) -> str:
    return json.dumps(
        {
            "metadata": True, "release": release, "rows": 18, "cells": 3, "digest": "00" * 32,
            "policy": {"k": 10, "lag_days": 90},
            "observed_before": "2024-10-03", "weaker_than_default": [], "identification": "-", "difficulty_units": "sd",
            "join": "-", "licence": "CC-BY-4.0", "citation": "-", "metrics": [],
        } | more
    )  # fmt: skip


def released(cells: list[str], release: str = "2025-01-01", slope: float | None = 1.8) -> Iterator[dict[str, Any]]:
    for number, cell in enumerate(cells):
        latitude, longitude = h3.cell_to_latlng(cell)
        for bin_ in range(6):
            metric = 6.0 + 4 * bin_
            status = "saturated" if bin_ == 5 else "incomparable" if number == 2 else "estimated"
            known = status == "estimated"
            yield {
                "release": release, "activity": "kitesurfing", "dimension": "wind_kn", "h3": cell,
                "h3_resolution": 7, "latitude": round(latitude, 6), "longitude": round(longitude, 6), "metric": metric,
                "metric_lower": metric - 2, "metric_upper": metric + 2, "units": "knot",
                "difficulty": ((metric - 18) / 8) ** 2 - 1 + number % 7 if known else None,
                "difficulty_se": (0.2 if number else 0.6) if known else None, "expert_difficulty": None,
                "discrimination": slope, "contributors": "50-99", "status": status,
            }  # fmt: skip


CELLS = [h3.latlng_to_cell(37.87, 12.44, 7), h3.latlng_to_cell(42.91, 3.05, 7), h3.latlng_to_cell(-20.45, 57.32, 7)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    before = [row for row in released([*CELLS, h3.latlng_to_cell(10.0, 10.0, 7)], "2024-10-01") if row["metric"] < 20]
    for row in before[:2]:
        row["difficulty"] += 0.25
    past = Published(before, json.loads(about("2024-10-01")))
    path.write_bytes(release_page(list(released(CELLS)), about("2025-01-01"), [past]))
    return path


def dot_of(seen: Seen, number: int) -> tuple[float, float]:
    x, y = seen.script(
        "const dot = shown.sheet.dots.find((dot) => dot.members.includes(arguments[0]));"
        "const box = document.getElementById('map');"
        "return [dot.x - box.clientWidth / 2, dot.y - box.clientHeight / 2]",
        number,
    )
    return x, y


def colour(seen: Seen, number: int) -> list[int]:
    """Of the map, a little below the middle of a dot, where no sign is."""
    found = seen.script(
        "const brush = document.getElementById('map').getContext('2d');"
        "const dot = shown.sheet.dots.find((dot) => dot.members[0] === arguments[0]);"
        "return [...brush.getImageData(dot.x, dot.y + 3, 1, 1).data]",
        number,
    )
    return list(found)


def test_a_click_on_the_map_compares_a_cell(opened: Open, page: Path) -> None:
    from selenium.webdriver import ActionChains

    seen = opened(page, f"#cell={CELLS[0]}")
    canvas = seen.browser.find_element("id", "map")
    seen.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y = dot_of(seen, 1)
    ActionChains(seen.browser).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    first, second = seen.lines("difficulty").values()
    assert [b - a for a, b in zip(first["y"][:5], second["y"][:5], strict=True)] == pytest.approx([1.0] * 5)
    assert f"cell={CELLS[1]}" in seen.address
    assert "near France" in seen.text("#cells") or "France" in seen.text("#cells")
    at_sea = seen.script("return [[45, -35], [40, 4.5], [-10, -120], [-62, -140]].map(([y, x]) => whereIs(y, x))")
    assert at_sea == ["North Atlantic Ocean", "near Spain", "South Pacific Ocean", "Southern Ocean"]
    every = "for (let y = -90; y <= 90; y += 5) for (let x = -180; x <= 180; x += 5) if (!seaAt(y, x)) return false"
    assert seen.script(f"{every}; return true")
    assert "nearly everyone succeeds, or nearly no one: 24 to 28" in seen.text("#cells")


def test_hexagons_near_and_dots_from_afar(opened: Open, page: Path) -> None:
    seen = opened(page)
    assert seen.script("return shown.sheet.hexagons") is False
    seen.script("shown.sheet.fit([0])")
    assert seen.script("return shown.sheet.hexagons") is True
    assert seen.script("return shown.sheet.dots.length") == 1


def test_cells_without_a_number_look_different(opened: Open, page: Path) -> None:
    seen = opened(page)
    assert seen.ranking()[-1] == CELLS[2]
    assert "not comparable" in seen.script("return document.querySelectorAll('.place')[2].textContent")
    assert colour(seen, 1) != colour(seen, 2)
    seen.slide("condition", 5)  # where all are saturated
    assert "nearly everyone succeeds" in seen.text(".place")


def test_condition_and_skill_move_map_and_ranking(opened: Open, page: Path) -> None:
    seen = opened(page, f"#cell={CELLS[0]}")
    difficulty, coloured = seen.lines("difficulty"), colour(seen, 1)
    seen.slide("condition", 0)
    assert colour(seen, 1) != coloured
    seen.click(".mode[data-by=suitability]")
    coloured, before = colour(seen, 1), seen.lines("suitability")
    seen.click(".preset[data-skill='1']")
    assert colour(seen, 1) != coloured
    assert seen.lines("difficulty") == difficulty
    (name,) = difficulty
    assert all(b > a for a, b in zip(before[name]["y"][:5], seen.lines("suitability")[name]["y"][:5], strict=True))
    assert seen.complaints() == []


def test_search_knows_countries_and_cells(opened: Open, page: Path) -> None:
    seen = opened(page)
    seen.type("ital")
    assert seen.ranking() == [CELLS[0]]
    seen.type(CELLS[2][:8])
    assert seen.ranking() == [CELLS[2]]
    seen.type("mauritius")
    assert seen.ranking() == [CELLS[2]]


def test_the_time_line_tells_what_changed(opened: Open, page: Path) -> None:
    told = opened(page).text("#timeline")
    assert "Since 2024-10-01: 6 rows new, 2 changed, by at most 0.25 sd, 4 withdrawn." in told
    assert "Cells withdrawn: 1" in told


def test_without_a_discrimination_skill_to_spare_is_told(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "atlas.html"
    path.write_bytes(release_page(list(released(CELLS, slope=None)), about("2025-01-01")))
    seen = opened(path, "#by=margin&skill=1")
    assert "−1.00" not in seen.text(".place")
    assert seen.script("return shown.charts.suitability") is None
    assert seen.complaints() == []


def test_a_discrimination_in_the_metadata_is_used(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "atlas.html"
    metric = {"activity": "kitesurfing", "dimension": "wind_kn", "discrimination": 2.0}
    path.write_bytes(release_page(list(released(CELLS, slope=None)), about("2025-01-01", metrics=[metric])))
    line = next(iter(opened(path, f"#cell={CELLS[0]}").lines("suitability").values()))
    assert line["y"][3] == pytest.approx(1 / (1 + 2.718281828 ** (-2.0)), abs=1e-6)


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_no_barrier_and_no_overflow(opened: Open, page: Path, width: int, dark: bool) -> None:
    seen = opened(page)
    seen.emulate(width, dark)
    seen.script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert seen.violations() == []
    assert seen.script("return document.documentElement.scrollWidth") <= width


def test_downloads_and_no_request(opened: Open, page: Path, tmp_path: Path) -> None:
    seen = opened(page, "#metric=14")
    rows = seen.downloaded(tmp_path, "#download-ranking")
    assert "France" in rows[0]["cell"]
    assert [row["where"] for row in rows] == seen.ranking()
    assert rows[2]["status"] == "incomparable"
    assert seen.requests() == set()


def test_five_thousand_cells(opened: Open, browser: Any, tmp_path: Path) -> None:
    cells = sorted({h3.latlng_to_cell(-40 + 1.1 * (i % 90), -170 + 0.066 * i, 7) for i in range(5000)})
    page = tmp_path / "many.html"
    page.write_bytes(release_page(list(released(cells)), about("2025-01-01", cells=len(cells))))
    assert page.stat().st_size < 2_000_000
    assert min(first_picture(browser, page) for _ in range(2)) < 1.0
    seen = opened(page)
    assert len(seen.ranking()) == 40
    assert seen.complaints() == []
