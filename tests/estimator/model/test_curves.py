"""Anchors: what an expert's curve gives, and what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from isuit.domain import FitConfig, FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.diagnostics.minimum import least_difficulty
from isuit.estimator.model.anchor import SUITABILITY_RANGE, Anchor
from isuit.experiment.cohort import Truth, draw

from ..cohorts import latent_fit, of_rows, parabola

_z, _w = np.polynomial.hermite_e.hermegauss(61)


def expert(difficulty: FloatArray, metric: FloatArray) -> Anchor:
    """The anchor of an expert who knows the population's success at each metric."""
    p = expit(2 * (_z - difficulty[:, None])) @ (_w / _w.sum())
    return Anchor(metric, p)


KNOTS = np.linspace(3, 35, 65)
RIGHT = expert(parabola(KNOTS), KNOTS)
WRONG = expert(parabola(KNOTS - 8), KNOTS)  # easiest at 26 knots


def test_log_odds_give_the_suitability_back_and_differentiate() -> None:
    metric = np.linspace(3, 35, 40)
    f0, first, second = RIGHT.log_odds(metric, 1.7)
    p = expit(1.7 * _z - f0[:, None]) @ (_w / _w.sum())
    assert p == pytest.approx(RIGHT.suitability_at(metric), abs=1e-6)
    assert p == pytest.approx(np.interp(metric, RIGHT.metric, RIGHT.suitability), abs=0.015)
    above, below = RIGHT.log_odds(metric, 1.7001), RIGHT.log_odds(metric, 1.6999)
    assert first == pytest.approx((above[0] - below[0]) / 2e-4, abs=1e-5)
    assert second == pytest.approx((above[1] - below[1]) / 2e-4, abs=1e-4)
    inside = metric[1:-1]
    after, before = (RIGHT.log_odds(inside + step, 1.7)[0] for step in (1e-5, -1e-5))
    assert RIGHT.slope(inside, 1.7) == pytest.approx((after - before) / 2e-5, abs=1e-5)
    assert RIGHT.slope(np.array([1.0, 50.0]), 1.7).tolist() == [0.0, 0.0]


suitabilities = st.floats(0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.tuples(st.floats(0.1, 20.0), suitabilities), min_size=2, max_size=12),
    spacing=st.floats(0.0, 15.0),
)
def test_an_anchor_rises_and_falls_only_where_its_points_do(points: list[tuple[float, float]], spacing: float) -> None:
    gap, suitability = np.array(points).T
    anchor = Anchor(np.cumsum(gap), suitability, spacing)
    metric = np.linspace(anchor.metric[0] - 1, anchor.metric[-1] + 1, 2_000)
    found = anchor.suitability_at(metric)

    def turns(values: FloatArray) -> int:
        steps = np.diff(values)
        return int(np.count_nonzero(np.diff(np.sign(steps[np.abs(steps) > 1e-9]))))

    assert turns(found) <= turns(np.clip(suitability, *SUITABILITY_RANGE))
    assert found.min() >= suitability.min().clip(*SUITABILITY_RANGE) - 1e-9
    assert found.max() <= suitability.max().clip(*SUITABILITY_RANGE) + 1e-9
    assert found[[0, -1]] == pytest.approx(np.clip(suitability[[0, -1]], *SUITABILITY_RANGE))


def test_an_anchor_has_no_corner_and_keeps_a_parabola() -> None:
    metric = np.linspace(0, 40, 11)
    anchor = Anchor(metric, expit(2 - ((metric - 18) / 8) ** 2))  # the best point is 20
    fine = np.linspace(12, 28, 801)
    log_odds = logit(anchor.suitability_at(fine))
    assert fine[log_odds.argmax()] == pytest.approx(18, abs=0.05)
    assert np.diff(log_odds, 2) == pytest.approx(-2 / 64 * 0.02**2, rel=1e-5)
    dense = Anchor(np.linspace(0, 40, 401), 0.9 - np.abs(np.linspace(0, 40, 401) - 20) / 25, 4.0)
    bend = np.abs(np.diff(dense.log_odds(np.linspace(1, 39, 381), 1.0)[0], 2))
    assert bend.max() < 0.01, "a corner that many points tell is rounded as well"


@pytest.mark.parametrize("points", [3, 9, 200])
def test_an_anchor_of_few_points_leaves_the_easiest_condition_to_the_data(points: int, reference: Observations) -> None:
    """Three and nine points have their best one at 19 knots, where lines between them have a corner."""
    metric = np.linspace(3, 35, points)
    right = expert(parabola(metric), metric)
    anchored, free = latent_fit(reference, replace(right, spacing=3.2)), latent_fit(reference)
    found, expected = least_difficulty(anchored), least_difficulty(free)
    assert found.location == pytest.approx(expected.location, abs=0.4)
    assert found.lower < 18 < found.upper
    band, fine = anchored.slope_band(np.linspace(4, 34, 50)), 1e-4
    after, before = (anchored.log_odds(np.linspace(4, 34, 50) + step, -1) for step in (fine, -fine))
    assert band.value == pytest.approx((after - before) / (2 * fine), abs=1e-5)


def without_strong_wind(data: Observations) -> Observations:
    """No outcome above 22 knots but one at the very end, so that the range is the same."""
    kept = (data.metric < 22) | (np.arange(len(data)) == int(data.metric.argmax()))
    return of_rows(data, kept)


def test_where_data_are_sparse_the_anchor_gives_the_shape(reference: Observations) -> None:
    data = without_strong_wind(reference)
    metric = np.linspace(23, 33, 20)
    truth = parabola(metric)
    right, none = latent_fit(data, anchor=RIGHT), latent_fit(data)

    def shape_error(found: FloatArray) -> float:
        return float(np.sqrt(np.mean((found - truth) ** 2)))

    assert shape_error(right.difficulty(metric).value) < 0.4
    assert right.difficulty(metric).se.mean() < none.difficulty(metric).se.mean()
    # With a wrong expert the sparse region follows the expert: that is what shrinking means, and why bands matter.
    wrong = latent_fit(data, anchor=WRONG)
    assert wrong.difficulty(metric).value.mean() < right.difficulty(metric).value.mean() - 0.5


def test_a_wrong_anchor_does_not_ruin_a_rich_cohort() -> None:
    data, _ = draw(Truth(riders=150, outcomes=60), 5)
    metric = np.linspace(5, 33, 50)
    truth = parabola(metric)
    none, wrong = latent_fit(data), latent_fit(data, anchor=WRONG)
    error = [float(np.sqrt(np.mean((found.difficulty(metric).value - truth) ** 2))) for found in (none, wrong)]
    assert error[1] < error[0] + 0.1
    assert wrong.discrimination == pytest.approx(none.discrimination, abs=0.1)


def test_a_right_anchor_keeps_what_the_data_say(reference: Observations) -> None:
    points = tuple(zip(RIGHT.metric.tolist(), RIGHT.suitability.tolist(), strict=True))
    anchored, free = fit(reference, FitConfig(anchor=points)), fit(reference)
    assert anchored.kind == "latent"
    assert anchored.discrimination == pytest.approx(free.discrimination, abs=0.1)
    here, there = anchored.curves[0], free.curves[0]
    assert here.difficulty is not None
    assert there.difficulty is not None
    assert there.difficulty_se is not None
    inside = here.metric < 30  # beyond, an expert's suitability below 0.02 is told as 0.02
    assert np.max((np.abs(here.difficulty - there.difficulty) / there.difficulty_se)[inside]) < 1.0


def test_units_of_an_anchored_metric_do_not_matter(reference: Observations) -> None:
    moved = replace(reference, metric=reference.metric * 0.5 + 100)
    own = latent_fit(reference, anchor=RIGHT)
    other = latent_fit(moved, anchor=Anchor(RIGHT.metric * 0.5 + 100, RIGHT.suitability))
    metric = np.linspace(4, 34, 20)
    assert other.discrimination == pytest.approx(own.discrimination, abs=1e-5)
    assert other.difficulty(metric * 0.5 + 100).value == pytest.approx(own.difficulty(metric).value, abs=1e-4)
