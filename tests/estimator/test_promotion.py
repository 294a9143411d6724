"""What a likelihood ratio is held against: half a chi-square of each side of the boundary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from isuit.domain import Observations
from isuit.estimator import fit

from .cohorts import observations, parabola, simulate


def cohort(sites: int) -> Observations:
    """Weak skill, so that p-values are far from zero; every rider goes to several of the sites."""
    generator = np.random.default_rng(5)
    rider = np.repeat(np.arange(60), 20)
    metric = generator.uniform(0, 36, rider.size)
    site = (rider % sites + (generator.random(rider.size) < 0.3)) % sites if sites else None
    return observations(
        rider, metric, simulate(generator, rider, generator.standard_normal(60), parabola(metric), a=0.4), site
    )


@pytest.mark.parametrize(("sites", "regressors"), [(0, 0), (2, 1), (3, 2)])
def test_each_regressor_of_the_population_is_a_degree_of_freedom(sites: int, regressors: int) -> None:
    """Shares of visits add up to one: a cohort with three sites has two regressors, which mean nothing if a = 0."""
    promotion = fit(cohort(sites)).promotion
    assert promotion is not None
    assert promotion.likelihood_ratio is not None
    ratio = promotion.likelihood_ratio
    at_zero = chi2.sf(ratio, regressors) if regressors else 0.0
    assert promotion.p_value == pytest.approx(0.5 * at_zero + 0.5 * chi2.sf(ratio, regressors + 1), rel=1e-9)
    assert promotion.p_value > 1e-7
