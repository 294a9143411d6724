"""What a fit says about itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isuit.domain import Estimate, FitConfig, Observations
from isuit.estimator import fit
from isuit.estimator.diagnostics.exposure import marginal_tolerance
from isuit.estimator.diagnostics.forecasts import calibration
from isuit.record import as_json
from isuit.record.diagnostics import OutsideCore

from ..cohorts import observations, of_rows, parabola, simulate


def test_the_tolerance_of_the_marginal_identity_grows_for_few_riders() -> None:
    assert marginal_tolerance(20) == pytest.approx(0.1118, abs=1e-4)
    assert marginal_tolerance(80) == pytest.approx(0.0559, abs=1e-4)
    assert marginal_tolerance(1000) == 0.05


def test_exposure_by_skill_is_told_and_breaks_the_marginal_identity() -> None:
    """The single curve is that of those who went out: where only the strong go, it is too high."""
    generator = np.random.default_rng(0)
    rider = np.repeat(np.arange(200), 25)
    skill = generator.standard_normal(200)
    metric = np.clip(19 + 5 * skill[rider] + generator.normal(0, 6, rider.size), 3, 35)
    estimate = fit(observations(rider, metric, simulate(generator, rider, skill, parabola(metric))))
    exposure, marginal = estimate.diagnostics.exposure, estimate.diagnostics.marginal
    assert exposure.correlation_of_mean_metric_with_skill > 0.8
    assert "--exposure correlated" in exposure.sentence
    assert not marginal.matches
    assert marginal.largest_difference > 2 * marginal.tolerance


def test_the_share_outside_the_core_is_told(reference: Observations, estimate: Estimate) -> None:
    assert estimate.diagnostics.outside_core == OutsideCore(riders=0.0, outcomes=0.0)
    more = observations(
        np.append(reference.rider, [80, 81]),
        np.append(reference.metric, [20.0, 4.0]),
        np.append(reference.outcome, [1, 1]),
    )
    outside = fit(more).diagnostics.outside_core
    assert outside.riders == pytest.approx(2 / 82)
    assert outside.outcomes == pytest.approx(2 / 2402)


def test_no_diagnostic_depends_on_the_order_of_rows() -> None:
    """With everything there is to say: sites enough to keep some back, and times."""
    generator = np.random.default_rng(2)
    rider = np.repeat(np.arange(60), 30)
    metric, site = generator.uniform(3, 35, rider.size), generator.integers(0, 6, rider.size)
    time = generator.integers(0, 200, rider.size) * 3_600_000_000
    outcome = simulate(generator, rider, generator.standard_normal(60), parabola(metric))
    data = observations(rider, metric, outcome, site, time)
    found = fit(data, FitConfig(split="occasion")).diagnostics
    assert found.scores.left_out == {}
    assert "fifth of each rider's days at a site" in found.scores.held_out.rule
    assert found.scores.new_sites.intervals.day_and_site is not None
    assert found.exposure.past_outcomes.correlation is not None
    order = generator.permutation(len(data))
    again = fit(of_rows(data, order), FitConfig(split="occasion")).diagnostics
    assert json.dumps(as_json(again)) == json.dumps(as_json(found))


def test_a_cohort_without_such_exposure_is_told_nothing(estimate: Estimate) -> None:
    assert estimate.diagnostics.exposure.sentence is None
    assert abs(estimate.diagnostics.exposure.correlation_of_mean_metric_with_skill) < 0.2


def test_calibration_and_item_fit_add_up(estimate: Estimate) -> None:
    groups, bands = estimate.diagnostics.calibration, estimate.diagnostics.item_fit
    assert estimate.held_out is not None
    assert sum(group.outcomes for group in groups) == estimate.held_out.outcomes
    assert np.all(np.diff([group.predicted for group in groups]) >= 0)
    assert sum(band.outcomes for band in bands) == 2400
    assert sum(band.observed for band in bands) == 1146
    # At the maximum, expected and observed successes agree over all outcomes.
    assert sum(band.expected for band in bands) == pytest.approx(1146, abs=1e-3)
    assert 0.8 < estimate.diagnostics.marginal_reliability < 1


def test_calibration_of_a_few_outcomes() -> None:
    low, high = calibration(np.array([0.9, 0.1]), np.array([1, 0]))
    assert (low.outcomes, low.predicted, low.observed) == (1, pytest.approx(0.1), 0.0)
    assert (high.outcomes, high.predicted, high.observed) == (1, pytest.approx(0.9), 1.0)
