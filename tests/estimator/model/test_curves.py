"""Anchors: what an expert's curve gives, and what it must not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FitConfig, FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.model.curves import Anchor
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
    assert p == pytest.approx(np.clip(np.interp(metric, RIGHT.metric, RIGHT.suitability), 0.02, 0.98), abs=1e-6)
    above, below = RIGHT.log_odds(metric, 1.7001), RIGHT.log_odds(metric, 1.6999)
    assert first == pytest.approx((above[0] - below[0]) / 2e-4, abs=1e-5)
    assert second == pytest.approx((above[1] - below[1]) / 2e-4, abs=1e-4)


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

    assert shape_error(right.difficulty(metric).value) < 0.35
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
