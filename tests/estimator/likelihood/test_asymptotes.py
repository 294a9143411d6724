"""Scores of asymptotes against the likelihood of a model that has them, integrated by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FloatArray
from isuit.estimator.likelihood.asymptotes import SOFTNESS, asymptote_scores
from isuit.estimator.likelihood.latent import LatentFit

from ..cohorts import latent_fit, observations, parabola, simulate

RIDERS, OUTCOMES = 60, 20


@pytest.fixture(scope="module")
def fit() -> LatentFit:
    generator = np.random.default_rng(3)
    rider = np.repeat(np.arange(RIDERS), OUTCOMES)
    metric = np.round(generator.uniform(5, 31, rider.size))  # riders have several outcomes at some items
    outcome = simulate(generator, rider, generator.standard_normal(RIDERS), parabola(metric), 1.5)
    return latent_fit(observations(rider, metric, outcome))


def by_brute_force(fit: LatentFit, lower: float, upper: float) -> FloatArray:
    """Each rider's log-likelihood where P = p + lower p (1 - p) / (p + s) - upper p (1 - p) / (1 - p + s)."""
    counts, at = fit.problem.likelihood.counts, fit.solution.at.posterior.at
    theta = np.linspace(-9, 9, 2001)
    p = expit(fit.solution.discrimination * theta - at.f[:, None])
    mixed = p + lower * p * (1 - p) / (p + SOFTNESS) - upper * p * (1 - p) / (1 - p + SOFTNESS)
    won, lost = counts.successes.toarray(), (counts.trials - counts.successes).toarray()
    log = won @ np.log(mixed) + lost @ np.log1p(-mixed) - 0.5 * theta**2
    top = log.max(axis=1)
    return np.asarray(top + np.log(np.exp(log - top[:, None]).sum(axis=1)))


def test_scores_are_derivatives_of_the_likelihood(fit: LatentFit) -> None:
    scores, step = asymptote_scores(fit.solution.at.posterior), 1e-5
    for k, (lower, upper) in enumerate(((step, 0.0), (0.0, step))):
        slope = (by_brute_force(fit, lower, upper) - by_brute_force(fit, -lower, -upper)) / (2 * step)
        np.testing.assert_allclose(scores[:, k], slope, rtol=1e-5, atol=1e-5)
