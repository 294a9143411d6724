"""`isuit report` in a real browser: every control, the address, the downloads, 5,000 sites, no request, no barrier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

from isuit import look
from isuit.domain import FitConfig
from isuit.pages import page as made_page
from isuit.published import CurvePoint, reading
from isuit.service import scoring
from isuit.service.details import detail_of
from isuit.service.fitting import fit
from isuit.service.reports import page_data, report
from isuit.service.stores import open_store
from isuit.store.fits import find_fit

from .conftest import Seen, first_picture

pytestmark = pytest.mark.long

HOSTILE = "<img src=x onerror=alert(1)> </script>"  # a site's name is text, whatever it says
SITES = ("east", "north", "south", "west", "bay", "cove", HOSTILE)
WHERE = {name: (36.0 + 2 * i, -5.0 + 3 * i) for i, name in enumerate(SITES)}
Open = Callable[..., Seen]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, cohort_table: Callable[..., pa.Table]) -> tuple[Path, str]:
    store = tmp_path_factory.mktemp("report") / "store"
    cohort = cohort_table(7, riders=80, outcomes=30, sites=SITES)
    summary = fit(store, cohort, FitConfig(activity="kitesurfing", dimension="wind_kn"), sites=WHERE)
    assert summary.kind == "latent"
    return store, summary.fit_id


@pytest.fixture(scope="module")
def page(fitted: tuple[Path, str]) -> Path:
    out = fitted[0].parent / "report.html"
    report(*fitted, out)
    return out


def test_the_slider_moves_suitability_and_leaves_difficulty(opened: Open, page: Path) -> None:
    seen = opened(page)
    difficulty, before = seen.lines("difficulty"), seen.lines("suitability")
    assert len(difficulty) == 3  # the hardest, the middle one, the easiest
    seen.slide("skill", 1.5)
    after = seen.lines("suitability")
    assert seen.lines("difficulty") == difficulty
    assert after.keys() == before.keys()
    for name, line in after.items():
        if name == look.WORDS["population"]:
            assert line == before[name]
        else:
            assert all(new > old for old, new in zip(before[name]["y"], line["y"], strict=True))
    assert "+1.5" in seen.text("#skill-value")
    assert seen.complaints() == []


def test_a_preset_says_what_it_means_here(opened: Open, page: Path) -> None:
    seen = opened(page)
    seen.click(".preset[data-skill='-1']")
    assert seen.text("#skill-value") == "beginner (−1.0 sd): more skilled than 16 % of these riders"
    assert "skill=-1" in seen.address


def test_bands_are_those_of_score(opened: Open, page: Path, fitted: tuple[Path, str]) -> None:
    """The page works with packed numbers; `isuit score` with the record."""
    seen = opened(page, "#site=north&skill=1")
    line = seen.lines("suitability")["north"]
    for at in (5, 25, 45):
        scored = scoring.score(*fitted, line["x"][at], site="north", skill=1.0)
        assert line["y"][at] == pytest.approx(scored.suitability, abs=2e-3)
        assert [line["lower"][at], line["upper"][at]] == pytest.approx([scored.lower, scored.upper], abs=4e-3)


def test_the_ranking_follows_condition_order_and_search(opened: Open, page: Path) -> None:
    seen = opened(page)
    hardest = seen.ranking()
    assert sorted(hardest) == sorted(SITES)
    seen.script(
        "const o = document.getElementById('order'); o.value = 'kind'; o.dispatchEvent(new Event('change'))"
    )  # fmt: skip
    assert seen.ranking() == hardest[::-1]
    values = seen.script("return [...document.querySelectorAll('.place b')].map((told) => told.textContent)")
    numbers = [float(text.replace("−", "-")) for text in values]
    assert numbers == sorted(numbers)
    seen.type("ove")
    assert seen.ranking() == ["cove"]
    assert "1 of 7" in seen.text("#found")


def test_up_to_six_are_compared_in_six_colours(opened: Open, page: Path) -> None:
    seen = opened(page, "#site=north")
    for name in ("east", "south", "west", "bay", "cove"):
        seen.click(f".place[data-id={name}]")
    lines = seen.lines("difficulty")
    assert list(lines) == ["north", "east", "south", "west", "bay", "cove"]
    assert len({line["colour"] for line in lines.values()}) == 6
    assert len({line["dash"] for line in lines.values()}) == 6
    seen.script("[...document.querySelectorAll('.place')].find((p) => p.dataset.id === arguments[0]).click()", HOSTILE)
    assert list(seen.lines("difficulty")) == list(lines)
    assert "6 at most" in seen.text("#notice")
    seen.click("#chosen .gone")
    assert "north" not in seen.lines("difficulty")
    assert seen.lines("difficulty")["east"]["colour"] == lines["east"]["colour"]  # who stays keeps the colour


def test_the_address_brings_back_what_was_seen(opened: Open, page: Path) -> None:
    seen = opened(page)
    seen.slide("skill", 0.7)
    seen.slide("condition", 12)
    seen.click(".mode[data-by=suitability]")
    seen.click(".place[data-id=bay]")
    address, shown = seen.script("return location.hash"), seen.lines("suitability")
    assert "site=bay" in address
    again = opened(page, address)
    assert again.lines("suitability") == shown
    assert again.script("return location.hash") == address
    assert again.script("return document.querySelector('.mode[data-by=suitability]').ariaPressed") == "true"
    assert opened(page, "#site=nowhere&metric=x&skill=1e9").complaints() == []


def test_a_click_on_the_map_compares_a_site(opened: Open, page: Path) -> None:
    from selenium.webdriver import ActionChains

    seen = opened(page, "#site=north")
    canvas = seen.browser.find_element("id", "map")
    seen.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    place = "shown.sheet.dots.find((dot) => dot.members.length === 1 && dot.members[0] === arguments[0])"
    number = sorted(SITES).index("west")
    x, y = seen.script(
        f"const dot = {place}, box = document.getElementById('map');"
        "return [dot.x - box.clientWidth / 2, dot.y - box.clientHeight / 2]",
        number,
    )
    ActionChains(seen.browser).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    assert set(seen.lines("difficulty")) == {"north", "west"}
    before = seen.script("return shown.sheet.scale")
    seen.click(".zoom button")
    assert seen.script("return shown.sheet.scale") == pytest.approx(2 * before)


def test_charts_answer_to_the_keyboard(opened: Open, page: Path) -> None:
    from selenium.webdriver import Keys

    seen = opened(page, "#site=north")
    picture = seen.browser.find_element("id", "difficulty")
    seen.script("arguments[0].focus()", picture)
    before = seen.text("#difficulty-readout")
    picture.send_keys(Keys.ARROW_RIGHT)
    after = seen.text("#difficulty-readout")
    assert "north" in after
    assert after != before
    picture.send_keys(Keys.ENTER)
    assert "metric=" in seen.address


def test_what_is_seen_can_be_downloaded(opened: Open, page: Path, tmp_path: Path) -> None:
    seen = opened(page, "#site=north&site=bay&skill=1")
    rows = seen.downloaded(tmp_path, "#download-ranking")
    assert [row["site"] for row in rows] == seen.ranking()
    assert {row["skill"] for row in rows} == {"1"}
    curves = seen.downloaded(tmp_path, "#download-curves")
    line = seen.lines("suitability")["bay"]
    found = [float(row["suitability_upper"]) for row in curves if row["site"] == "bay"]
    assert found == pytest.approx(line["upper"], rel=1e-4)
    seen.click("#table summary")
    assert seen.script("return document.querySelectorAll('#table tbody tr').length") == len(SITES)


def test_where_nobody_of_a_skill_was_out_is_shaded(opened: Open, page: Path) -> None:
    seen = opened(page, "#skill=3")
    shades = seen.script("return shown.charts.suitability.shown.shades")
    assert shades
    assert "nobody of about this skill" in seen.text("#shaded") or "no outcome" in seen.text("#shaded")
    opened(page, "#skill=0")
    assert len(seen.script("return shown.charts.suitability.shown.shades")) < 24


def test_everything_the_record_knows_is_there(opened: Open, page: Path) -> None:
    seen = opened(page)
    for name in ("gates", "scores", "calibration", "items", "minimum", "riders", "exposure", "assumptions", "rederive"):
        assert seen.text(f"#{name} .verdict span:last-child")
    seen.click("#scores summary")
    assert "new riders" in seen.text("#scores table")
    assert "p = 0 " not in seen.text("main")


@pytest.mark.parametrize(("width", "dark"), [(390, True), (820, False), (1280, True)])
def test_no_barrier_and_no_overflow(opened: Open, page: Path, width: int, dark: bool) -> None:
    seen = opened(page)
    seen.emulate(width, dark)
    seen.script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert seen.violations() == []
    assert seen.script("return document.documentElement.scrollWidth") <= width
    background = seen.script("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(15, 21, 27)" if dark else "rgb(244, 246, 248)")


def test_the_page_asks_the_network_for_nothing(opened: Open, page: Path) -> None:
    seen = opened(page)
    seen.slide("skill", -1)
    seen.click(".place[data-id=bay]")
    assert seen.requests() == set()
    assert seen.complaints() == []


def test_on_paper_everything_is_open(opened: Open, page: Path) -> None:
    seen = opened(page)
    seen.script("dispatchEvent(new Event('beforeprint'))")
    assert seen.script("return document.querySelectorAll('details:not([open])').length") == 0
    seen.script("dispatchEvent(new Event('afterprint'))")
    assert seen.script("return document.querySelectorAll('details[open]').length") == 0


def test_numbers_are_written_as_in_pictures(opened: Open, page: Path) -> None:
    seen = opened(page)
    values = [0, 22, 16.84375, -0.00012345, 12345.678, 1e-7, -3.0, 99.996]
    assert seen.script("return arguments[0].map((value) => number(value))", values) == [look.number(v) for v in values]
    assert seen.script("return arguments[0].map((value) => signed(value))", values) == [look.signed(v) for v in values]
    shares = [0, 0.001, 0.25, 0.716, 0.9999, 1]
    assert seen.script("return arguments[0].map((value) => share(value))", shares) == [look.share(v) for v in shares]


def many(fitted: tuple[Path, str], sites: int) -> dict[str, Any]:
    """The data of a page of thousands of sites: the small fit's record, with made-up curves."""
    with open_store(fitted[0]) as store:
        record = find_fit(store.connection, fitted[1])
        shown, parameters = (detail_of(store.connection, record), reading.parameters(record.parameters))
    rng = np.random.default_rng(5)
    shared = [point for point in shown.curves if point.site is None]
    names = [f"site {i:05d}" for i in range(sites)]
    points = list(shared)
    for name, level in zip(names, rng.normal(0, 0.7, sites), strict=True):
        for point in shared:
            assert point.difficulty is not None
            d = point.difficulty + level
            points.append(
                CurvePoint.model_construct(
                    site=name, metric=point.metric, difficulty=d, difficulty_se=0.3, suitability=float(expit(-d))
                )
            )
    parameters = replace(parameters, sites=tuple(names), bands=dict.fromkeys(["", *names], parameters.bands[""]))
    where = {name: (rng.uniform(-40, 60), rng.uniform(-120, 150)) for name in names}
    return page_data(shown.model_copy(update={"curves": points}), parameters, None, where)


def test_five_thousand_sites(opened: Open, browser: Any, fitted: tuple[Path, str], tmp_path: Path) -> None:
    page = tmp_path / "many.html"
    page.write_text(made_page("many", "fit", many(fitted, 5000)))
    assert page.stat().st_size < 4_000_000
    assert min(first_picture(browser, page) for _ in range(2)) < 1.0
    seen = opened(page)
    assert len(seen.ranking()) == 40
    seen.type("site 04999")
    assert seen.ranking() == ["site 04999"]
    seen.click(".place[data-id='site 04999']")
    assert "site 04999" in seen.lines("difficulty")


def test_five_outcomes_draw_a_band_and_no_line(opened: Open, tmp_path: Path) -> None:
    cohort = {"rider": list("abacb"), "metric": [5.0, 8.0, 12.0, 20.0, 25.0], "outcome": [1, 1, 0, 0, 1]}
    made = fit(tmp_path / "store", cohort, FitConfig())
    report(tmp_path / "store", made.fit_id, tmp_path / "few.html")
    seen = opened(tmp_path / "few.html")
    assert seen.script("return document.querySelectorAll('#suitability .line').length") == 0
    assert seen.script("return document.querySelectorAll('#suitability .band').length") == 1
    assert "5 outcomes are too few to draw a curve from" in seen.text("#shaded")
    assert seen.text("#suitability-readout b") == "< 1 % to 100 %"
    assert seen.complaints() == []


def test_a_page_without_data_is_light() -> None:
    assert len(made_page("", "fit", {}).encode()) < 300_000
