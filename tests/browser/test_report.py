"""`isuit report` in a real browser: it draws, the slider moves suitability only, sites can be chosen."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from isuit.domain import FitConfig
from isuit.service.fitting import fit
from isuit.service.reports import report

pytestmark = pytest.mark.long

HOSTILE = "<img src=x onerror=alert(1)> </script>"  # a site's name is text, whatever it says


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, cohort_table: Callable[..., pa.Table]) -> Path:
    folder = tmp_path_factory.mktemp("report")
    cohort = cohort_table(7, riders=40, outcomes=25, sites=("north", HOSTILE))
    summary = fit(folder / "store", cohort, FitConfig(activity="kitesurfing", dimension="wind"))
    assert summary.kind == "latent"
    report(folder / "store", summary.fit_id, folder / "report.html")
    return folder / "report.html"


def drawn(browser: Any, chart: str) -> list[dict[str, Any]]:
    """Names and values of a chart's lines, as the browser holds them."""
    script = (
        f"return document.getElementById('{chart}').data"
        ".filter(t => t.fill !== 'toself').map(t => ({name: t.name, y: Array.from(t.y)}))"
    )
    return list(browser.execute_script(script))


def move(browser: Any, value: float) -> None:
    """What a hand on the slider does: the value, then the event."""
    browser.execute_script(
        "const s = document.getElementById('skill'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', {bubbles: true}))",
        value,
    )


def assert_not_blank(picture: bytes) -> None:
    """Many colours, and lines in the colours of the sites."""
    from matplotlib.image import imread

    pixels = (imread(io.BytesIO(picture))[..., :3] * 255).round().astype(int).reshape(-1, 3)
    assert len(np.unique(pixels, axis=0)) > 50
    assert (np.abs(pixels - [255, 255, 255]).sum(axis=1) > 60).mean() > 0.01


def test_the_slider_moves_suitability_and_leaves_difficulty(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    difficulty, before = drawn(browser, "difficulty"), drawn(browser, "suitability")
    assert [line["name"] for line in difficulty] == ["&lt;img src=x onerror=alert(1)&gt; &lt;/script&gt;", "north"]
    move(browser, 1.5)
    after = drawn(browser, "suitability")
    assert drawn(browser, "difficulty") == difficulty
    for old, new in zip(before, after, strict=True):
        if old["name"] == "the population":
            assert new == old
        else:
            assert all(b > a for a, b in zip(old["y"], new["y"], strict=True))
    assert "+1.5" in browser.find_element("id", "skill-value").text
    assert_not_blank(browser.get_screenshot_as_png())


def test_a_site_can_be_put_away(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    browser.find_element("css selector", "#sites input[value=north]").click()
    assert "north" not in [line["name"] for line in drawn(browser, "difficulty")]
    assert "north" not in [line["name"] for line in drawn(browser, "suitability")]


def test_a_line_tells_its_value_under_the_mouse(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    script = "Plotly.Fx.hover('difficulty', [{curveNumber: 3, pointNumber: 10}])"
    browser.execute_script(script)
    assert "±" in browser.find_element("css selector", "#difficulty .hoverlayer").text


def test_the_page_asks_the_network_for_nothing(browser: Any, page: Path) -> None:
    browser.get_log("performance")
    browser.get(page.as_uri())
    move(browser, -1)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
