"""A fit of weighted outcomes by site, and the same fit without a rider."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FitConfig
from isuit.estimator.likelihood.leaving_out import FEW_RIDERS, AllParameters, OwnParameters
from isuit.estimator.likelihood.quadrature import MarginalLikelihood
from isuit.estimator.likelihood.solver import evaluate
from isuit.estimator.model.smoothing import precisions
from isuit.estimator.weighted_fit import Unfit, WeightedFit, WeightedOutcomes, fit_weighted

from .cohorts import parabola, simulate

METRIC = np.linspace(6.0, 30.0, 9)


def outcomes(sites: int = 1, riders: int = 30, each: int = 18, seed: int = 1) -> WeightedOutcomes:
    """Riders at a site of their own, every third also at the next one."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), each)
    away = (rider % 3 == 0) & (generator.random(rider.size) < 0.5)
    site = (rider % sites + away) % sites
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(riders), parabola(metric) + 0.6 * np.cos(site))
    return WeightedOutcomes(rider, riders, site, sites, metric, outcome, np.ones(rider.size), (0.0, 38.0))


@pytest.fixture(scope="module")
def few() -> WeightedFit:
    return fit_weighted(outcomes(sites=2), FitConfig())


@pytest.fixture(scope="module")
def many() -> WeightedFit:
    return fit_weighted(outcomes(sites=6, riders=FEW_RIDERS + 8), FitConfig())


def test_a_weight_counts_as_so_many_outcomes() -> None:
    """Half of the rows twice, or with the weight two: the same fit."""
    given = outcomes()
    again = np.concatenate([np.arange(given.rider.size), np.flatnonzero(given.rider % 2)])
    columns = {name: getattr(given, name)[again] for name in ("rider", "site", "metric", "outcome")}
    copied = replace(given, **columns, weight=np.ones(again.size))
    weighted = replace(given, weight=1.0 + given.rider % 2)
    # The knots of the spline follow the rows that are there, so that the two are not the same to the last digit.
    one, two = (fit_weighted(data, FitConfig()) for data in (copied, weighted))
    assert one.discrimination == pytest.approx(two.discrimination, rel=0.02)
    assert one.difficulty(METRIC, 0).value == pytest.approx(two.difficulty(METRIC, 0).value, abs=0.05)
    plain = fit_weighted(given, FitConfig())
    assert np.abs(plain.difficulty(METRIC, 0).value - two.difficulty(METRIC, 0).value).max() > 0.06


def test_outcomes_that_tell_nothing_give_reasons() -> None:
    given = outcomes()
    with pytest.raises(Unfit) as equal:
        fit_weighted(replace(given, outcome=np.ones_like(given.outcome)), FitConfig())
    assert equal.value.reasons == ("all outcomes are equal, so nothing tells riders apart",)
    with pytest.raises(Unfit) as thin:
        fit_weighted(replace(given, metric=np.where(given.rider % 2, 10.0, 20.0)), FitConfig())
    assert any("metric bin" in reason for reason in thin.value.reasons)


def test_skill_that_explains_nothing_gives_no_difficulty() -> None:
    """Whether the discrimination goes to zero, or is not told apart from it by the likelihood-ratio test."""
    given, reasons = outcomes(), set()
    for seed in range(6):
        chance = np.random.default_rng(seed).integers(0, 2, given.rider.size)
        with pytest.raises(Unfit) as unfit:
            fit_weighted(replace(given, outcome=chance), FitConfig())
        reasons.add(unfit.value.reasons[0].split(":")[0])
    assert reasons == {"skill explains nothing", "skill does not explain outcomes"}


def test_curves_span_the_range_that_is_asked_for(few: WeightedFit) -> None:
    spline = few.latent.space.spline
    assert few.outcomes.metric.min() > 0.0
    assert (spline.lower, spline.upper) == (0.0, 38.0)


def test_the_population_succeeds_as_often_as_asked(few: WeightedFit) -> None:
    """The difficulty that belongs to a suitability is where the fit's own curves have that suitability."""
    metric = np.linspace(3, 35, 400)
    difficulty, suitability = few.difficulty(metric, 1).value, few.suitability(metric, 1)
    for probability in (0.2, 0.5, 0.8):
        at = int(np.abs(suitability - probability).argmin())
        assert few.difficulty_at(float(suitability[at])) == pytest.approx(difficulty[at], abs=1e-6)


def test_an_expert_is_told_in_the_units_of_the_fit() -> None:
    anchored = fit_weighted(outcomes(), FitConfig(anchor=((0.0, 0.2), (18.0, 0.9), (38.0, 0.2))))
    difficulty = anchored.expert_difficulty(np.array([18.0]), 2.0)
    assert difficulty is not None
    skill = np.random.default_rng(1).standard_normal(400_000)
    anchor = anchored.latent.space.anchor
    assert anchor is not None
    told = anchor.suitability_at(np.array([18.0]))[0]
    assert expit(2.0 * (skill - difficulty[0])).mean() == pytest.approx(told, abs=0.002)
    assert fit_weighted(outcomes(), FitConfig()).expert_difficulty(METRIC, 2.0) is None


def gradient_without(fit: WeightedFit, phi: np.ndarray, rider: int) -> np.ndarray:
    """Of the penalised likelihood of everybody else, at these parameters."""
    problem, solution = fit.latent.problem, fit.latent.solution
    others = np.delete(np.arange(fit.counts.riders), rider)
    counts = fit.counts.of_riders(others)
    likelihood = MarginalLikelihood(counts, problem.likelihood.population.of_riders(counts, others))
    at = evaluate(replace(problem, likelihood=likelihood), phi, None, False)[0]
    return np.asarray(at.gradient - precisions(solution.rho, problem.groups) * phi)


@pytest.mark.parametrize("rider", [0, 7])
def test_everything_is_at_its_maximum_without_the_rider(few: WeightedFit, rider: int) -> None:
    leaving = few.leaving_out()
    assert isinstance(leaving, AllParameters)
    assert leaving.sites_of(rider).tolist() == [0, 1]
    assert leaving.riders_of(0).size == 30
    left = leaving.without(rider)
    assert left is not None
    before = np.abs(gradient_without(few, leaving.nobody.phi, rider)).max()
    assert np.abs(gradient_without(few, left.phi, rider)).max() < 1e-3 * before


def test_with_many_sites_only_the_rider_s_own_are_solved_again(many: WeightedFit) -> None:
    leaving = many.leaving_out()
    assert isinstance(leaving, OwnParameters)
    given, rider = many.outcomes, 9
    sites = leaving.sites_of(rider).tolist()
    assert sites == np.unique(given.site[given.rider == rider]).tolist()
    assert len(sites) == 2
    assert leaving.riders_of(3).tolist() == np.unique(given.rider[given.site == 3]).tolist()
    left = leaving.without(rider)
    assert left is not None
    moved = [
        site for site in range(6) if np.any(left.difficulty(METRIC, site) != leaving.nobody.difficulty(METRIC, site))
    ]
    assert moved == sites
    own = np.flatnonzero(left.phi != leaving.nobody.phi)
    before = np.abs(gradient_without(many, leaving.nobody.phi, rider)[own]).max()
    assert np.abs(gradient_without(many, left.phi, rider)[own]).max() < 1e-2 * before


def test_one_step_comes_near_to_the_whole_way(many: WeightedFit) -> None:
    leaving = many.leaving_out()
    whole = leaving.nobody.difficulty(METRIC, 2)
    assert whole == pytest.approx(many.difficulty(METRIC, 2).value)
    riders = leaving.riders_of(2)
    steps = leaving.after_step(2, riders, METRIC) - whole
    truly = np.array([left.difficulty(METRIC, 2) for rider in riders if (left := leaving.without(rider))]) - whole
    assert truly.shape == steps.shape
    assert np.corrcoef(steps.ravel(), truly.ravel())[0, 1] > 0.99
    # Also for the riders who matter, of whom a step over everyone's information falls short by a fifth.
    far = np.abs(truly).max(axis=1) > 0.03
    assert far.sum() > 3
    ratio = np.abs(steps[far]).max(axis=1) / np.abs(truly[far]).max(axis=1)
    assert ratio == pytest.approx(1.0, abs=0.1)
