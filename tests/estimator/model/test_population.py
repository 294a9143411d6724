"""Sites and their clienteles: gaps between sites, many unequal sites, and sites that nothing links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FloatArray, Observations
from isuit.errors import EstimationError, InputError
from isuit.estimator import fit, score
from isuit.estimator.likelihood.latent import LatentFit
from isuit.estimator.model.population import Units, plain_population, visits

from ..cohorts import latent_fit, observations, of_rows, parabola, simulate

GAP = 1.2
METRIC = np.linspace(8, 28, 50)


def wide(metric: FloatArray) -> FloatArray:
    return ((metric - 18) / 10) ** 2 - 1


def two_clienteles(seed: int, outcomes: int, away: float) -> tuple[Observations, FloatArray]:
    """A hard site with strong regulars and an easy one with average ones; a tenth divide their days between both.

    The gap in difficulty and the gap in skill are the same, so that both sites see the same share of successes.
    """
    generator = np.random.default_rng(seed)
    home = np.repeat([0, 1], 100)
    skill = generator.standard_normal(200) + np.where(home == 0, GAP, 0.0)
    both = generator.choice(200, 20, replace=False)
    rider = np.repeat(np.arange(200), outcomes)
    metric = generator.uniform(3, 35, rider.size)
    site = home[rider]
    site = np.where(np.isin(rider, both) & (generator.random(rider.size) < away), 1 - site, site)
    outcome = simulate(generator, rider, skill, wide(metric) + np.where(site == 0, GAP, 0.0))
    return observations(rider, metric, outcome, site), skill


def gap_over_truth(found: LatentFit, skill: FloatArray) -> float:
    """The gap in difficulty over the true one in units of the cohort's skill sd."""
    gap = float(np.mean(found.difficulty(METRIC, 0).value - found.difficulty(METRIC, 1).value))
    return gap * float(skill.std()) / GAP


@pytest.mark.long
@pytest.mark.parametrize("away", [0.5, 0.3])
@pytest.mark.parametrize("outcomes", [5, 10, 30])
def test_a_gap_between_two_clienteles_comes_back(outcomes: int, away: float) -> None:
    ratios, seen = [], []
    for seed in range(20):
        data, skill = two_clienteles(seed, outcomes, away)
        ratios.append(gap_over_truth(latent_fit(data), skill))
        at_site = data.site == 0
        seen.append(data.outcome[at_site].mean() - data.outcome[~at_site].mean())
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)
    # A single curve all but cannot tell the sites apart (the same gap at equal skill would be a fifth of all outcomes).
    assert abs(np.mean(seen)) < 0.06


def test_single_curves_of_the_two_sites_agree_where_difficulties_do_not() -> None:
    data, skill = two_clienteles(0, 30, 0.5)
    estimate = fit(data)
    shared, hard, easy = estimate.curves
    assert (shared.site, hard.site, easy.site) == (None, "site-000", "site-001")
    assert hard.difficulty is not None
    assert easy.difficulty is not None
    assert np.mean(hard.difficulty - easy.difficulty) > 0.5
    alone = [fit(replace(of_rows(data, data.site == s), sites=(), site=None)) for s in (0, 1)]
    middle = slice(20, 80)
    difference = alone[0].curves[0].suitability[middle] - alone[1].curves[0].suitability[middle]
    assert np.max(np.abs(difference)) < 0.12
    assert estimate.skills is not None
    assert np.corrcoef(estimate.skills.mean, skill)[0, 1] > 0.9


def test_units_are_those_of_the_mixture() -> None:
    """Mean 0 and variance 1 hold for skill over all riders, and the derivatives are those of mean and sd."""
    data, _ = two_clienteles(1, 10, 0.5)
    found = latent_fit(data)
    coefficients, none = found.parameters.regression, np.zeros(0)
    population = found.problem.likelihood.population
    prior = (population.apply(coefficients, none) - found.units.mean) / found.units.sd
    assert prior.mean() == pytest.approx(0, abs=1e-12)
    assert prior.var() + 1 / found.units.sd**2 == pytest.approx(1)
    for k in range(coefficients.size):
        step = np.zeros_like(coefficients)
        step[k] = 1e-6
        above, below = (Units.of(population, coefficients + s * step, none) for s in (1, -1))
        assert found.units.mean_slope[0][k] == pytest.approx((above.mean - below.mean) / 2e-6, abs=1e-6)
        assert found.units.sd_slope[0][k] == pytest.approx((above.sd - below.sd) / 2e-6, abs=1e-6)


def test_clienteles_are_shares_of_visits_and_know_nothing_of_outcomes() -> None:
    data, _ = two_clienteles(2, 10, 0.5)
    here = latent_fit(data).problem.likelihood
    flipped = latent_fit(replace(data, outcome=1 - data.outcome)).problem.likelihood
    regressors = here.population.visits.regressors
    assert np.array_equal(regressors, flipped.population.visits.regressors)
    shares = visits(here.counts, 2).toarray()[:, :2] / 10
    assert sorted(np.unique(np.abs(regressors.ravel()))) == sorted(
        np.unique(shares[:, int(shares.sum(axis=0).argmin())])
    )
    assert plain_population(here.counts).visits.regressors.size == 0


def test_units_of_many_sites_are_those_of_the_mixture() -> None:
    found = latent_fit(unequal_sites(5, sites=8)[0])
    population, p = found.problem.likelihood.population, found.parameters
    prior = population.apply(p.regression, p.clientele)
    assert found.units.mean == pytest.approx(prior.mean())
    assert found.units.sd == pytest.approx(np.sqrt(1 + prior.var()))
    for k in np.flatnonzero(population.clientele >= 0):
        step = np.zeros_like(p.clientele)
        step[k] = 1e-6
        above, below = (Units.of(population, p.regression, p.clientele + s * step) for s in (1, -1))
        assert found.units.mean_slope[1][k] == pytest.approx((above.mean - below.mean) / 2e-6, abs=1e-6)
        assert found.units.sd_slope[1][k] == pytest.approx((above.sd - below.sd) / 2e-6, abs=1e-6)


def unequal_sites(seed: int, sites: int = 40) -> tuple[Observations, FloatArray, FloatArray]:
    """Forty sites from a few outcomes to hundreds, levels and tilts about a shared curve."""
    generator = np.random.default_rng(seed)
    riders = 250
    weight = 1 / (np.arange(sites) + 1.0)
    rider = np.repeat(np.arange(riders), 20)
    site = generator.choice(sites, rider.size, p=weight / weight.sum())
    site[:sites] = np.arange(sites)
    level, tilt = generator.normal(0, 0.5, sites), generator.normal(0, 0.2, sites)
    metric = generator.uniform(3, 35, rider.size)
    difficulty = parabola(metric) + level[site] + tilt[site] * (metric - 19) / 8
    outcome = simulate(generator, rider, generator.standard_normal(riders), difficulty)
    return observations(rider, metric, outcome, site), level, tilt


@pytest.mark.long
def test_forty_unequal_sites_are_better_than_alone_and_than_pooled() -> None:
    data, level, tilt = unequal_sites(3)
    assert data.site is not None
    metric = np.linspace(5, 33, 30)
    together = latent_fit(data)
    pooled = latent_fit(replace(data, sites=(), site=None))
    errors: dict[str, list[float]] = {"together": [], "alone": [], "pooled": []}
    fitted_alone = 0
    for s in range(40):
        truth = parabola(metric) + level[s] + tilt[s] * (metric - 19) / 8
        own = of_rows(data, data.site == s)
        pool = pooled.difficulty(metric).value
        alone = pool  # where a site alone cannot be fitted, pooling is all there is
        if len(own) >= 100:
            codes = np.unique(own.rider, return_inverse=True)[1]
            try:
                lonely = latent_fit(observations(codes, own.metric, own.outcome))
            except EstimationError:
                lonely = None
            if lonely is not None and not lonely.solution.no_skill:
                alone, fitted_alone = lonely.difficulty(metric).value, fitted_alone + 1
        for name, found in (("together", together.difficulty(metric, s).value), ("alone", alone), ("pooled", pool)):
            errors[name].append(float(np.mean((found - truth) ** 2)))
    rmse = {name: np.sqrt(np.mean(values)) for name, values in errors.items()}
    assert fitted_alone >= 5
    assert rmse["together"] < 0.9 * min(rmse["alone"], rmse["pooled"]), rmse
    # The largest sites have narrower bands than the smallest.
    bands = [together.difficulty(metric, s).se.mean() for s in (0, 39)]
    assert bands[0] < bands[1]


def test_a_site_with_three_outcomes_gets_nearly_the_shared_curve_and_a_wide_band() -> None:
    data, _, _ = unequal_sites(5, sites=8)
    assert data.site is not None
    few = np.flatnonzero(data.site == 7)[3:]
    thin = of_rows(data, np.setdiff1d(np.arange(len(data)), few))
    found = latent_fit(thin)
    metric = np.linspace(8, 30, 20)
    shared, small, large = (found.difficulty(metric, s) for s in (-1, 7, 0))
    assert np.sum(thin.site == 7) == 3
    assert np.max(np.abs(small.value - shared.value)) < np.mean(small.se)
    assert small.se.mean() > 1.5 * large.se.mean()


def test_sites_that_no_rider_links_are_named_and_have_no_difficulty() -> None:
    """Two islands: 60 riders who only went to sites 0 and 1, and 30 who only went to site 2."""
    generator = np.random.default_rng(4)
    rider = np.repeat(np.arange(90), 20)
    site = np.where(rider < 60, generator.integers(0, 2, rider.size), 2)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(90), parabola(metric))
    estimate = fit(observations(rider, metric, outcome, site))
    assert estimate.kind == "latent"
    assert estimate.diagnostics.incomparable_sites == ("site-002",)
    told = {curve.site: curve for curve in estimate.curves}
    assert told["site-002"].difficulty is None
    assert told["site-002"].difficulty_se is None
    assert np.all((told["site-002"].suitability > 0) & (told["site-002"].suitability < 1))
    assert told["site-000"].difficulty is not None
    with pytest.raises(InputError, match="another site"):
        score(estimate.parameters, 18.0, "site-002", 0.0)


def test_sites_are_compared_where_most_outcomes_are_not_where_most_sites_are() -> None:
    """30 riders share sites 0 and 1; 60 others went to site 2 alone, and have twice as many outcomes."""
    generator = np.random.default_rng(4)
    rider = np.repeat(np.arange(90), 20)
    site = np.where(rider < 30, generator.integers(0, 2, rider.size), 2)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(90), parabola(metric))
    estimate = fit(observations(rider, metric, outcome, site))
    assert list(estimate.diagnostics.incomparable_sites) == ["site-000", "site-001"]
    # One rider who went to both islands makes them one.
    linked = site.copy()
    linked[-1] = 0
    estimate = fit(observations(rider, metric, outcome, linked))
    assert list(estimate.diagnostics.incomparable_sites) == []
    assert all(curve.difficulty is not None for curve in estimate.curves)


@pytest.mark.long
def test_correlated_exposure_takes_the_bias_of_the_curve_away() -> None:
    """Stronger riders go out in stronger wind: without a regression of skill on exposure, strong wind looks easy."""
    plain, regressed = [], []
    metric = np.linspace(8, 30, 30)
    for seed in range(6):
        generator = np.random.default_rng(seed)
        rider = np.repeat(np.arange(150), 15)
        skill = generator.standard_normal(150)
        x = np.clip(19 + 5 * skill[rider] + generator.normal(0, 4, rider.size), 3, 35)
        truth = (metric - 19) / 8
        data = observations(rider, x, simulate(generator, rider, skill, (x - 19) / 8))
        for correlated, errors in ((False, plain), (True, regressed)):
            found = latent_fit(data, correlated=correlated)
            slope = np.polyfit(truth, found.difficulty(metric).value * skill.std(), 1)[0]
            errors.append(slope - 1)
    assert abs(np.mean(regressed)) < 0.15
    assert abs(np.mean(regressed)) < abs(np.mean(plain))


def test_suitability_at_a_site_is_integrated_over_the_mixture() -> None:
    data, _ = two_clienteles(3, 30, 0.5)
    found = latent_fit(data)
    prior = found.solution.at.posterior.prior_mean
    generator = np.random.default_rng(0)
    theta = (np.repeat(prior, 400) + generator.standard_normal(prior.size * 400))[:, None]
    metric = np.array([6.0, 18.0, 30.0])
    simulated = expit(found.solution.discrimination * theta - found.log_odds(metric, 1)).mean(axis=0)
    assert found.marginal(metric, 1) == pytest.approx(simulated, abs=0.01)
