"""The report of several metrics in a real browser: the map, its readout, slices by slider, the address, no request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import isuit
from isuit.look import signed
from isuit.service.reports import report
from isuit.service.surface_maps import SurfaceMap, surface_of

from .conftest import Seen

pytestmark = pytest.mark.long
Open = Callable[..., Seen]
HOSTILE = "<b>wave</b></script>"  # a metric's name is text, whatever it says


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SurfaceMap]]:
    rng = np.random.default_rng(4)
    rider = np.repeat(np.arange(60), 20)
    wave, wind = rng.uniform(0, 3, rider.size), rng.uniform(3, 35, rider.size)
    wind = np.where((wave > 2) & (wind < 12), wind + 15, wind)  # nobody meets high waves in light wind
    water = rng.uniform(5, 25, rider.size)
    hard = ((wind - 18) / 8) ** 2 - 1 + 0.8 * (wave - 1.5) + 0.4 * (wave - 1.5) * (wind - 18) / 8
    outcome = (rng.random(rider.size) < expit(2 * (rng.standard_normal(60)[rider] - hard))).astype(np.int8)
    names = [f"xq{number * 7919:06x}" for number in rider]
    table = pa.table({"rider": names, "wind_kn": wind, HOSTILE: wave, "water_c": water, "outcome": outcome})
    folder = tmp_path_factory.mktemp("surface")
    made = isuit.open(folder / "store").fit(table, metrics=["wind_kn", HOSTILE, "water_c"], activity="kite")
    report(folder / "store", made.fit_id, folder / "page.html")
    found = surface_of(folder / "store", made.fit_id)
    assert found is not None
    assert found.metrics == (HOSTILE, "water_c", "wind_kn")
    return folder / "page.html", found.maps


def told(value: float) -> str:
    return signed(value)


def test_sliders_move_the_readout_and_the_slices(opened: Open, drawn: tuple[Path, list[SurfaceMap]]) -> None:
    page, maps = drawn
    seen = opened(page)
    assert seen.script("return chosen") == 1  # of wave and wind, which act together
    seen.slide("slice-0", 10)
    seen.slide("slice-1", 25)
    value, se = maps[1].difficulty[10, 25], maps[1].se[10, 25]
    assert maps[1].supported[10, 25]
    assert f"{told(value)} ({told(value - 1.96 * se)} to {told(value + 1.96 * se)})" in seen.text("#contour-readout")
    along = seen.script("return slices[1].shown.series[0].y")
    known = [np.nan if y is None else y for y in along]
    np.testing.assert_allclose(known, np.where(maps[1].supported[10], maps[1].difficulty[10], np.nan), atol=2e-3)
    assert "x=10" in seen.address
    assert "y=25" in seen.address
    again = opened(page, seen.address)
    assert again.script("return at[chosen]") == [10, 25]
    assert seen.complaints() == []


def test_where_nobody_was_there_is_no_number(opened: Open, drawn: tuple[Path, list[SurfaceMap]]) -> None:
    page, maps = drawn
    seen = opened(page)
    i, j = (int(found[0]) for found in np.nonzero(~maps[1].supported))
    seen.slide("slice-0", i)
    seen.slide("slice-1", j)
    assert "no number here" in seen.text("#contour-readout")
    assert len(seen.script("return document.getElementById('unsupported').getAttribute('d')")) > 100
    assert seen.script("return document.querySelectorAll('.isoline').length") > 3


def test_every_pair_has_a_map_and_the_page_asks_for_nothing(opened: Open, drawn: tuple[Path, list[SurfaceMap]]) -> None:
    page, maps = drawn
    seen = opened(page)
    for k, found in enumerate(maps):
        seen.click(f".pair[data-pair='{k}']")
        i, j = seen.script("return at[chosen]")
        assert told(found.difficulty[i, j]) in seen.text("#contour-readout")
    assert HOSTILE in seen.text("h1")
    assert seen.requests() == set()
    assert seen.complaints() == []


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_no_barrier_and_nothing_wider_than_the_screen(
    opened: Open, drawn: tuple[Path, list[SurfaceMap]], width: int, dark: bool
) -> None:
    seen = opened(drawn[0])
    seen.emulate(width, dark)
    assert seen.violations() == []
    assert seen.script("return document.documentElement.scrollWidth <= window.innerWidth")
