"""`isuit export-atlas --format html` in a real browser: the map shows the cells, and a click chooses one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_report import assert_not_blank, drawn, move

from isuit.release.page import release_page

pytestmark = pytest.mark.long

CELLS = {"87386d2eaffffff": (37.873651, 12.443447), "8739601aeffffff": (42.91, 3.05)}
ABOUT = """{"metadata": true, "release": "2025-01-01", "rows": 12, "cells": 2, "digest": "00", "policy": {"k": 10},
"observed_before": "2024-10-03", "weaker_than_default": [], "identification": "-", "difficulty_units": "-", "join": "-",
"licence": "CC-BY-4.0", "citation": "-"}"""


def released() -> Iterator[dict[str, Any]]:
    for number, (cell, (latitude, longitude)) in enumerate(CELLS.items()):
        for bin_ in range(6):
            metric = 6.0 + 4 * bin_
            saturated = bin_ == 5
            yield {
                "release": "2025-01-01", "activity": "kitesurfing", "dimension": "wind_kn", "h3": cell,
                "h3_resolution": 7, "latitude": latitude, "longitude": longitude, "metric": metric,
                "metric_lower": metric - 2, "metric_upper": metric + 2, "units": "knot",
                "difficulty": None if saturated else ((metric - 18) / 8) ** 2 - 1 + number,
                "difficulty_se": None if saturated else 0.2, "expert_difficulty": None, "discrimination": 1.8,
                "contributors": "50-99", "status": "saturated" if saturated else "estimated",
            }  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    path.write_bytes(release_page(list(released()), ABOUT))
    return path


def click_cell(browser: Any, cell: str) -> None:
    """A click with the mouse where the map has the cell."""
    from selenium.webdriver import ActionChains

    chart = browser.find_element("id", "map")
    browser.execute_script("arguments[0].scrollIntoView()", chart)
    x, y = browser.execute_script(
        "const map = document.getElementById('map'), l = map._fullLayout, t = map.data.find(t => t.mode === 'markers');"
        "const i = t.customdata.indexOf(arguments[0]), box = map.getBoundingClientRect();"
        "return [l.xaxis._offset + l.xaxis.c2p(t.x[i]) - box.width / 2,"
        "        l.yaxis._offset + l.yaxis.c2p(t.y[i]) - box.height / 2]",
        cell,
    )
    ActionChains(browser).move_to_element_with_offset(chart, round(x), round(y)).pause(0.3).click().perform()


def test_a_click_on_the_map_chooses_a_cell(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    first, second = CELLS
    assert first in browser.find_element("id", "cell-name").text
    before = drawn(browser, "difficulty")[0]["y"]
    click_cell(browser, second)
    assert second in browser.find_element("id", "cell-name").text
    after = drawn(browser, "difficulty")[0]["y"]
    assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([1.0] * 5)
    assert "24 to 28: saturated" in browser.find_element("id", "silent").text  # named, not drawn
    assert_not_blank(browser.get_screenshot_as_png())


def test_the_slider_moves_suitability_and_leaves_difficulty(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    difficulty, before = drawn(browser, "difficulty"), drawn(browser, "suitability")[0]["y"]
    move(browser, 2)
    assert drawn(browser, "difficulty") == difficulty
    assert all(b > a for a, b in zip(before, drawn(browser, "suitability")[0]["y"], strict=True))
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
