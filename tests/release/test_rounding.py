"""The rows that are published of a fit: where, along which bins, and what the expert says there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import h3
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm
from test_screening import placed

from isuit.domain import FitConfig
from isuit.published import ReleaseRow
from isuit.release.cell_curves import fit_cells
from isuit.release.eligibility import Topic
from isuit.release.policy import Policy
from isuit.release.pooling import Pooled
from isuit.release.rounding import RowMaker, published_error

ANCHOR = ((0.0, float(expit(2.0))), (36.0, float(expit(-2.0))))  # log odds fall along a straight line
SPOT = h3.latlng_to_cell(45.5, -3.25, 7)


def maker(policy: Policy | None = None) -> RowMaker:
    return RowMaker("2026-01-01", Topic("kitesurfing", "wind_speed_kn"), placed().bins, policy or Policy(), b"secret")


def rows(cell: str, config: FitConfig, seed: int = 1, making: RowMaker | None = None) -> list[ReleaseRow]:
    """Of one cell with twenty riders, for all bins but the first."""
    whole = replace(placed(seed), cells=(cell,))
    riders = {(cell, bin_): 20 for bin_ in range(1, whole.bins.number)}
    return list((making or maker()).rows(fit_cells(whole, Policy(), config), riders).values())


def test_a_row_is_where_its_cell_is_and_has_its_bins_edges() -> None:
    found = rows(SPOT, FitConfig())
    assert {(row.h3, row.h3_resolution) for row in found} == {(SPOT, 7)}
    latitude, longitude = h3.cell_to_latlng(SPOT)
    assert found[0].latitude == pytest.approx(latitude, abs=1e-6)
    assert found[0].longitude == pytest.approx(longitude, abs=1e-6)
    assert [(row.metric_lower, row.metric, row.metric_upper) for row in found] == [
        (4.0 * bin_, 4.0 * bin_ + 2, 4.0 * bin_ + 4) for bin_ in range(1, 9)
    ]
    assert {row.expert_difficulty for row in found} == {None}
    assert {row.contributors for row in rows(SPOT, FitConfig(), making=maker(Policy(noise=0.0)))} == {"20-49"}


def test_a_row_of_everywhere_has_no_place() -> None:
    for row in rows("global", FitConfig()):
        assert (row.h3, row.h3_resolution, row.latitude, row.longitude) == ("global", None, None, None)


def test_the_experts_difficulty_gives_the_experts_suitability() -> None:
    """Averaged over skill N(0, 1), at the discrimination that is published with it."""
    making = maker()
    for row in rows("global", FitConfig(anchor=ANCHOR), seed=2, making=making):
        assert making.discrimination not in (None, 1.0)  # one would hide a factor
        assert row.expert_difficulty is not None
        a, delta = making.discrimination, row.expert_difficulty
        mean = quad(lambda theta, a=a, delta=delta: norm.pdf(theta) * expit(a * (theta - delta)), -8, 8)[0]
        assert mean == pytest.approx(expit(2.0 - 4.0 * row.metric / 36.0), abs=0.005)  # difficulty has two decimals


def test_a_series_keeps_its_discrimination() -> None:
    making = replace(maker(), discrimination=0.75)
    rows("global", FitConfig(), making=making)
    assert making.discrimination == 0.75


def test_errors_are_of_the_fit_the_noise_and_the_rounding() -> None:
    assert published_error(0.1, 0.25, 0.0) == 0.12  # 0.123
    assert published_error(0.1, 0.25, 0.25) == 0.28  # 0.279
    assert published_error(0.0, 0.5, 0.0) == 0.14  # 0.144
    quiet, loud = (rows("global", FitConfig(), making=maker(Policy(noise=sd))) for sd in (0.0, 0.5))
    assert [row.difficulty for row in quiet] != [row.difficulty for row in loud]
    pairs = [(one, two) for one, two in zip(quiet, loud, strict=True) if one.difficulty_se and two.difficulty_se]
    assert len(pairs) > 4
    assert all(two.difficulty_se >= max(0.25, one.difficulty_se) for one, two in pairs)
    assert any(one.difficulty_se < 0.5 for one, _ in pairs)


def test_a_point_that_nearly_all_or_nobody_manages_has_no_difficulty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isuit.release.rounding.is_saturated", lambda suitability: suitability < 0.3)
    found = rows(SPOT, FitConfig())
    assert {row.status for row in found} == {"saturated", "estimated"}
    for row in found:
        assert ((row.difficulty, row.difficulty_se) == (None, None)) == (row.status == "saturated")


def test_the_expert_has_two_digits_and_no_sign_of_zero() -> None:
    curves = SimpleNamespace(fit=SimpleNamespace(expert_difficulty=lambda metric, a: [-0.001, 0.12345]))
    assert repr(maker()._expert(curves, 1.0)) == "[0.0, 0.12]"  # type: ignore[arg-type]


@pytest.mark.parametrize(("riders", "noise", "told"), [(20, 7.4, 27), (20, -7.4, 13), (20, -30.0, 10), (8, -30.0, 8)])
def test_bands_are_told_of_riders_with_noise_and_never_of_fewer_than_k(riders: int, noise: float, told: int) -> None:
    drawn = SimpleNamespace(riders=[0.0, noise])
    assert maker()._told(riders, drawn, 1) == told  # type: ignore[arg-type]


def test_rows_of_a_curve_are_pooled_and_their_errors_smoothed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isuit.release.rounding.pooled", lambda value, _: Pooled(0 * value + 0.5, 0 * value + 0.3))
    monkeypatch.setattr("isuit.release.noise.smoothed", lambda errors: 0 * errors + 0.4)
    found = rows(SPOT, FitConfig(), making=maker(Policy(noise=0.0)))
    assert {(row.difficulty, row.difficulty_se) for row in found} == {(0.5, 0.51)}  # 0.4, 0.3 and a step of 0.25
