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
from isuit.estimator.likelihood.solver import split
from isuit.record.diagnostics import Minimum

from ..cohorts import latent_fit, observations, simulate


def test_difficulty_band_is_the_delta_method(reference_fit: LatentFit) -> None:
    """f / a as a function of all parameters: without the uncertainty of a, bands cover 90 to 93 %."""
    metric = np.array([5.0, 18.0, 33.0])
    phi, covariance = reference_fit.solution.phi, reference_fit.solution.covariance

    def difficulty(at: np.ndarray) -> np.ndarray:
        a, coefficients, _ = split(reference_fit.problem, at)
        return reference_fit.space.design(metric, np.full(3, -1), a).apply(coefficients) / a

    slope = np.array([(difficulty(phi + s) - difficulty(phi - s)) / 2e-6 for s in 1e-6 * np.eye(phi.size)])
    band = reference_fit.difficulty(metric)
    assert band.value == pytest.approx(difficulty(phi), abs=1e-12)
    assert band.se == pytest.approx(np.sqrt(np.diag(slope.T @ covariance @ slope)), rel=1e-5)
    held = covariance.copy()
    held[0, :] = held[:, 0] = 0
    assert np.any(np.sqrt(np.diag(slope.T @ held @ slope)) != pytest.approx(band.se, rel=0.02))


def test_skill_sd_adds_the_uncertainty_of_the_parameters(reference_fit: LatentFit) -> None:
    """The slope of each posterior mean with respect to every parameter, by finite differences."""
    likelihood, problem = reference_fit.problem.likelihood, reference_fit.problem
    phi, covariance = reference_fit.solution.phi, reference_fit.solution.covariance

    def means(at: np.ndarray) -> np.ndarray:
        a, coefficients, population = split(problem, at)
        curve = problem.curve.at(a, coefficients)
        nodes = likelihood.place(a, curve.value, population)
        return likelihood.evaluate(a, curve, population, nodes).posterior.mean

    slope = np.array([(means(phi + s) - means(phi - s)) / 2e-5 for s in 1e-5 * np.eye(phi.size)])
    added = np.einsum("mr,mn,nr->r", slope, covariance, slope)
    expected = np.sqrt(reference_fit.solution.at.posterior.sd**2 + added)
    assert reference_fit.skills()[1] == pytest.approx(expected, rel=2e-3)


def test_predictions_are_integrated_and_not_plugged_in(reference_fit: LatentFit, reference: Observations) -> None:
    rider, metric = np.array([0, 0, 7]), np.array([5.0, 18.0, 30.0])
    predicted = reference_fit.predict(rider, metric, np.full(3, -1))
    posterior = reference_fit.solution.at.posterior
    f = reference_fit.log_odds(metric, -1)
    for r, x, value in zip(rider, f, predicted, strict=True):
        (part,) = (part for part in posterior.parts if r in part.block.riders)
        weight = part.weight[part.block.riders.tolist().index(r)]
        assert value == pytest.approx(float(weight @ expit(reference_fit.discrimination * part.theta - x)))
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
