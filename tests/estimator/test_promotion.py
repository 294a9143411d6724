"""What a latent fit must show before it stands for a cohort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from isuit.domain import FitConfig, GateReport, HeldOut, Observations, PromotionReport
from isuit.estimator import fit
from isuit.estimator.likelihood.latent import penalised_log_likelihood
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.promotion import PROMOTION_LEVEL, also_predicts, candidate, skill_test

from .cohorts import observations, parabola, simulate

PASSED = GateReport(True, "core", (), 1.0, 80, 80, 10)
CORRELATED = FitConfig(exposure="correlated")


def prepared(data: Observations) -> Prepared:
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    return Prepared(counts, CurveSpace(spline, 0))


def without_skill(seed: int) -> Observations:
    generator = np.random.default_rng(seed)
    rider, metric = np.repeat(np.arange(80), 20), generator.uniform(3, 35, 1600)
    return observations(rider, metric, simulate(generator, rider, np.zeros(80), parabola(metric)))


def test_a_gate_that_did_not_pass_ends_it(reference: Observations) -> None:
    closed = replace(PASSED, ok=False, shortfalls=("too few",))
    tried = candidate(prepared(reference), closed, FitConfig())
    assert (tried.latent, tried.promotion, tried.shortfalls) == (None, None, ("too few",))


@pytest.mark.parametrize("outcome", [0, 1])
def test_equal_outcomes_tell_nothing(reference: Observations, outcome: int) -> None:
    equal = replace(reference, outcome=np.full_like(reference.outcome, outcome))
    tried = candidate(prepared(equal), PASSED, FitConfig())
    assert tried.latent is None
    assert tried.promotion == PromotionReport(
        False, None, None, ("all outcomes are equal, so nothing tells riders apart",)
    )
    almost = equal.outcome.copy()
    almost[::50] = 1 - outcome
    assert candidate(prepared(replace(equal, outcome=almost)), PASSED, FitConfig()).shortfalls != tried.shortfalls


def test_skill_that_is_there_is_found(reference: Observations) -> None:
    tried = candidate(prepared(reference), PASSED, FitConfig())
    assert tried.latent is not None
    assert tried.promotion
    assert not tried.shortfalls


def test_skill_that_is_not_there_is_refused() -> None:
    """The test's level: of forty cohorts without skill hardly any passes."""
    passed = 0
    for seed in range(40):
        tried = candidate(prepared(without_skill(seed)), PASSED, FitConfig())
        assert tried.promotion is not None
        passed += tried.promotion.ok
        assert bool(tried.shortfalls) is not tried.promotion.ok
    assert passed <= 3


@pytest.mark.parametrize("config", [FitConfig(), CORRELATED])
def test_the_p_value_is_that_of_a_boundary(config: FitConfig) -> None:
    """Half the weight on one degree of freedom more than the regressors have; the null has the fit's own smoothing."""
    for seed in range(20):
        ready = prepared(without_skill(seed))
        tried = candidate(ready, PASSED, config)
        if tried.latent is None:
            continue
        ratio, p_value = skill_test(ready, tried.latent)
        null = ready.single_with(tried.latent.solution.rho)
        assert ratio == pytest.approx(max(0.0, 2 * (penalised_log_likelihood(tried.latent) - null.penalised)))
        degrees = tried.latent.population_degrees_of_freedom
        assert (degrees > 1) is (config is CORRELATED)
        extra = int(np.ceil(degrees - 1e-9))
        expected = 0.5 * chi2.sf(ratio, extra + 1) + (0.5 * chi2.sf(ratio, extra) if extra else 0.0)
        assert p_value == pytest.approx(expected)
        assert tried.promotion is not None
        assert tried.promotion.ok is (p_value < PROMOTION_LEVEL)
        return
    raise AssertionError("no cohort without skill had a latent fit to test")


def test_the_null_has_the_smoothing_it_is_given(reference: Observations) -> None:
    ready = prepared(reference)
    rho = np.append(ready.single.rho + 2.0, 9.0)  # the last one is not of the curve
    smoother = ready.single_with(rho)
    assert np.array_equal(smoother.rho, rho[:-1])
    assert smoother.penalised < ready.single.log_likelihood
    assert np.abs(smoother.shared - ready.single.shared).max() > 1e-3


def test_held_out_outcomes_can_only_take_a_promotion_away() -> None:
    good = PromotionReport(True, 50.0, 1e-10, ())
    refused = PromotionReport(False, 0.1, 0.4, ("no skill",))
    better, worse = (HeldOut(skill, 0.02, 0.2, 0.2, 100, "rider") for skill in (-0.019, -0.021))
    assert also_predicts(good, None) == also_predicts(good, better) == good
    assert also_predicts(refused, better) == refused
    told = also_predicts(good, worse)
    assert (told.ok, told.likelihood_ratio, told.p_value) == (False, 50.0, 1e-10)
    assert told.shortfalls[0].startswith("skill predicts held-out outcomes worse than the single curve")
    assert also_predicts(refused, worse).shortfalls == ("no skill", *told.shortfalls)


def weak_skill(sites: int) -> Observations:
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
    promotion = fit(weak_skill(sites)).promotion
    assert promotion is not None
    assert promotion.likelihood_ratio is not None
    ratio = promotion.likelihood_ratio
    at_zero = chi2.sf(ratio, regressors) if regressors else 0.0
    assert promotion.p_value == pytest.approx(0.5 * at_zero + 0.5 * chi2.sf(ratio, regressors + 1), rel=1e-9)
    assert promotion.p_value > 1e-7
