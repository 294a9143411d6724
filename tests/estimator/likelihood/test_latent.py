"""What follows from a solution: standard errors, predictions, and where difficulty is least."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import Observations
from isuit.estimator import predict_held_out
from isuit.estimator.diagnostics.minimum import least_difficulty
from isuit.estimator.fit import FitConfig
from isuit.estimator.likelihood.latent import LatentFit
from isuit.estimator.likelihood.solver import evaluate
from isuit.estimator.model.population import Units
from isuit.record.diagnostics import Minimum

from ..cohorts import latent_fit, observations, parabola, simulate


def test_difficulty_band_is_the_delta_method(reference_fit: LatentFit) -> None:
    """f / a as a function of all parameters: without the uncertainty of a, bands cover 90 to 93 %."""
    metric = np.array([5.0, 18.0, 33.0])
    phi, covariance = reference_fit.solution.phi, reference_fit.solution.covariance.inverse()

    def difficulty(at: np.ndarray) -> np.ndarray:
        p = reference_fit.problem.parameters(at)
        return reference_fit.space.design(metric, np.full(3, -1), p.a).apply(p.shared, p.own) / p.a

    slope = np.array([(difficulty(phi + s) - difficulty(phi - s)) / 2e-6 for s in 1e-6 * np.eye(phi.size)])
    band = reference_fit.difficulty(metric)
    assert band.value == pytest.approx(difficulty(phi), abs=1e-12)
    assert band.se == pytest.approx(np.sqrt(np.diag(slope.T @ covariance @ slope)), rel=1e-5)
    held = covariance.copy()
    held[0, :] = held[:, 0] = 0
    assert np.any(np.sqrt(np.diag(slope.T @ held @ slope)) != pytest.approx(band.se, rel=0.02))


def test_skill_sd_adds_the_uncertainty_of_the_parameters(reference_fit: LatentFit) -> None:
    """The slope of each posterior mean with respect to every parameter, by finite differences."""
    phi, covariance = reference_fit.solution.phi, reference_fit.solution.covariance.inverse()

    def means(at: np.ndarray) -> np.ndarray:
        return evaluate(reference_fit.problem, at, None, False)[0].posterior.mean

    slope = np.array([(means(phi + s) - means(phi - s)) / 2e-5 for s in 1e-5 * np.eye(phi.size)])
    added = np.einsum("mr,mn,nr->r", slope, covariance, slope)
    expected = np.sqrt(reference_fit.solution.at.posterior.sd**2 + added)
    assert reference_fit.skills()[1] == pytest.approx(expected, rel=2e-3)


def test_skill_is_told_beside_the_populations_mean() -> None:
    """At three sites everybody's skill goes up and down with the sites' levels; the difference to the mean does not."""
    generator = np.random.default_rng(5)
    rider, metric = np.repeat(np.arange(60), 30), generator.uniform(3, 35, 1800)
    site = np.where(generator.random(1800) < 0.7, rider % 3, generator.integers(0, 3, 1800))
    difficulty = parabola(metric) + np.array([0.0, 0.5, -0.5])[site]
    outcome = simulate(generator, rider, generator.standard_normal(60), difficulty)
    fit = latent_fit(observations(rider, metric, outcome, site))
    phi, covariance = fit.solution.phi, fit.solution.covariance.inverse()

    def skills(at: np.ndarray) -> np.ndarray:
        p = fit.problem.parameters(at)
        units = Units.of(fit.problem.likelihood.population, p.regression, p.clientele, p.density)
        return (evaluate(fit.problem, at, None, False)[0].posterior.mean - units.mean) / units.sd

    slope = np.array([(skills(phi + s) - skills(phi - s)) / 2e-5 for s in 1e-5 * np.eye(phi.size)])
    added = np.einsum("mr,mn,nr->r", slope, covariance, slope)
    expected = np.sqrt((fit.solution.at.posterior.sd / fit.units.sd) ** 2 + added)
    mean, sd = fit.skills()
    assert mean == pytest.approx(skills(phi), abs=1e-9)
    assert sd == pytest.approx(expected, rel=5e-3)
    assert np.median(sd) < 0.5  # 0.9 with the level of all riders taken as uncertain


def test_predictions_are_integrated_and_not_plugged_in(reference_fit: LatentFit, reference: Observations) -> None:
    rider, metric = np.array([0, 0, 7]), np.array([5.0, 18.0, 30.0])
    predicted = reference_fit.predict(rider, metric, np.full(3, -1))
    posterior = reference_fit.solution.at.posterior
    f = reference_fit.log_odds(metric, -1)
    theta = np.linspace(-8, 8, 4001)
    for r, x, value in zip(rider, f, predicted, strict=True):
        own = reference.rider == r
        eta = reference_fit.discrimination * theta[:, None] - reference_fit.log_odds(reference.metric[own], -1)
        joint = np.where(reference.outcome[own] == 1, -np.logaddexp(0, -eta), -np.logaddexp(0, eta)).sum(axis=1)
        weight = np.exp(joint - theta**2 / 2)
        expected = weight @ expit(reference_fit.discrimination * theta - x) / weight.sum()
        assert value == pytest.approx(expected, abs=1e-6)
    plugged = expit(reference_fit.discrimination * posterior.mean[rider] - f)
    assert np.max(np.abs(predicted - plugged)) > 1e-3


def test_held_out_rows_do_not_enter_their_own_prediction(reference: Observations) -> None:
    test = np.arange(len(reference)) % 5 == 0
    flipped = observations(reference.rider, reference.metric, np.where(test, 1 - reference.outcome, reference.outcome))
    for here, there in zip(
        predict_held_out(reference, FitConfig(), test), predict_held_out(flipped, FitConfig(), test), strict=True
    ):
        assert np.array_equal(here, there)


def test_least_difficulty_has_an_interval(reference_fit: LatentFit) -> None:
    least = least_difficulty(reference_fit)
    assert least.location is not None
    assert least.lower is not None
    assert least.upper is not None
    assert least.lower < least.location < least.upper
    assert 0.2 < least.upper - least.lower < 2


@pytest.mark.parametrize("shape", ["rising", "falling", "flat"])
def test_least_difficulty_is_undefined_without_a_minimum(shape: str) -> None:
    generator = np.random.default_rng(1)
    rider = np.repeat(np.arange(100), 30)
    metric = generator.uniform(3, 35, rider.size)
    difficulty = {"rising": (metric - 19) / 8, "falling": (19 - metric) / 8, "flat": 0 * metric}[shape]
    found = latent_fit(
        observations(rider, metric, simulate(generator, rider, generator.standard_normal(100), difficulty))
    )
    assert least_difficulty(found) == Minimum(location=None, lower=None, upper=None)
