"""Many places in one fit, and places of which there is little to tell: bands as wide as must be, and no failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isuit.domain import DifficultyCurve, Estimate, FitConfig, FloatArray, IntArray, Observations
from isuit.estimator import fit
from isuit.estimator.likelihood import grids
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.solver import evaluate, with_curvature
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.smoothing import precisions

from .cohorts import assert_finite, numbers, observations, parabola, simulate

RIDERS, SITES = 150, 12


def cohort(
    riders: int = RIDERS, each: int = 30, sites: int = SITES, visits: int = 4, seed: int = 3
) -> tuple[Observations, FloatArray, FloatArray]:
    """Riders who each divide their days between a few sites, which differ in level; skills, and the levels."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), each)
    visited = generator.integers(0, sites, (riders, visits))
    site = visited[rider, generator.integers(0, visits, rider.size)]
    site[:sites] = np.arange(sites)
    level, skill = generator.normal(0, 0.5, sites), generator.standard_normal(riders)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, skill, parabola(metric) + level[site])
    return observations(rider, metric, outcome, site), skill, level


def joined(data: Observations, rider: Any, metric: Any, outcome: Any, site: Any) -> Observations:
    """The cohort with more rows."""
    return observations(
        np.concatenate([data.rider, rider]),
        np.concatenate([data.metric, metric]),
        np.concatenate([data.outcome, outcome]),
        np.concatenate([data.site, site]),
    )


def curve_of(estimate: Estimate, site: int) -> DifficultyCurve:
    return next(curve for curve in estimate.curves if curve.site == f"site-{site:03d}")


def width(estimate: Estimate, site: int) -> float:
    se = curve_of(estimate, site).difficulty_se
    assert se is not None
    return float(se[20:80].mean())


NEW = np.full(40, SITES)
ODD: dict[str, tuple[IntArray, FloatArray, IntArray, IntArray]] = {
    "one outcome": (np.array([5]), np.array([18.0]), np.array([0]), NEW[:1]),
    "one rider": (np.full(40, 7), np.linspace(4, 34, 40), np.arange(40) % 2, NEW),
    "all succeed": (np.arange(40), np.linspace(4, 34, 40), np.ones(40, np.int64), NEW),
    "all fail": (np.arange(40), np.linspace(4, 34, 40), np.zeros(40, np.int64), NEW),
    "a constant metric": (np.arange(40), np.full(40, 12.0), np.arange(40) % 2, NEW),
}


@pytest.mark.parametrize("name", ODD)
def test_a_site_of_which_there_is_little_to_tell(name: str) -> None:
    """It is fitted beside the others, and its band is wider than that of sites with hundreds of outcomes."""
    data, _, level = cohort()
    estimate = fit(joined(data, *ODD[name]), FitConfig())
    assert estimate.kind == "latent"
    assert_finite(estimate)
    usual = float(np.median([width(estimate, site) for site in range(SITES)]))
    assert width(estimate, SITES) > 1.2 * usual
    if name == "one outcome":
        # Next to nothing is known of it, so its level is uncertain by what sites differ.
        assert width(estimate, SITES) > 0.6 * float(np.std(level))
    others, without = [curve_of(found, 0).difficulty for found in (estimate, fit(data, FitConfig()))]
    assert others is not None
    assert without is not None
    assert np.abs(others[20:80] - without[20:80]).max() < 0.1


def test_a_site_that_nobody_else_visits_has_no_difficulty_and_a_sentence_says_so() -> None:
    data, _, _ = cohort()
    generator = np.random.default_rng(8)
    rider = np.repeat(np.arange(RIDERS, RIDERS + 20), 10)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(RIDERS + 20), parabola(metric))
    estimate = fit(joined(data, rider, metric, outcome, np.full(rider.size, SITES)), FitConfig())
    assert estimate.kind == "latent"
    alone = curve_of(estimate, SITES)
    assert alone.difficulty is None
    assert np.all((alone.suitability > 0) & (alone.suitability < 1))
    assert all(curve_of(estimate, site).difficulty is not None for site in range(SITES))
    assert estimate.diagnostics.incomparable_sites == (f"site-{SITES:03d}",)


def latent_of(data: Observations) -> LatentFit:
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders), data.site)
    space = CurveSpace.for_outcomes(len(data), spline, len(data.sites))
    return fit_latent(counts, space, Prepared(counts, space).single)


@pytest.mark.long
def test_the_solution_is_that_of_the_plain_matrix() -> None:
    """At 150 sites: a step with the whole information as one matrix moves nothing, and its inverse gives the errors."""
    data, _, _ = cohort(riders=600, each=30, sites=150)
    found = latent_of(data)
    problem, solution = found.problem, found.solution
    weight = precisions(solution.rho, problem.groups)
    at, _ = evaluate(problem, solution.phi, None, True)
    inverse = np.linalg.inv(with_curvature(problem, solution.phi, at).plus(weight).dense())
    moved = np.abs(inverse @ (at.gradient - weight * solution.phi))
    assert moved.max() < 1e-5
    metric = np.linspace(4, 34, 15)
    directions, border = found.directions, problem.shape.border
    for site in (0, 70, 149):
        _, slope = found.difficulty_slope(metric, site)
        whole = slope.along @ directions.T
        whole[:, :border] += slope.border
        first = border + site * problem.shape.width
        whole[:, first : first + problem.shape.width] += slope.own
        expected = np.sqrt(np.einsum("xi,ij,xj->x", whole, inverse, whole))
        assert found.difficulty(metric, site).se == pytest.approx(expected, abs=1e-5)
    along = directions[:, 2]
    assert found.discrimination_se == pytest.approx(float(np.sqrt(along @ inverse @ along)), abs=1e-5)


@pytest.mark.parametrize("riders", [100, 2_000])
def test_without_sites_errors_are_those_of_the_maximum(riders: int) -> None:
    """Of some riders the information is computed there, of many one from nearby is near enough."""
    data, _, _ = cohort(riders=riders, each=20)
    found = latent_of(replace(data, site=None, sites=()))
    problem, solution = found.problem, found.solution
    at, _ = evaluate(problem, solution.phi, None, True)
    weight = precisions(solution.rho, problem.groups)
    inverse = np.linalg.inv(with_curvature(problem, solution.phi, at).plus(weight).dense())
    metric = np.linspace(4, 34, 15)
    slope = found.difficulty_slope(metric, -1)[1].border
    expected = np.sqrt(np.einsum("xi,ij,xj->x", slope, inverse, slope))
    assert found.difficulty(metric).se == pytest.approx(expected, abs=1e-5)
    assert found.discrimination_se == pytest.approx(float(np.sqrt(inverse[0, 0])), abs=1e-5)


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_change_no_bit(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _, _ = cohort()
    monkeypatch.setattr(grids, "CORES", 1)
    alone = dict(numbers(fit(data, FitConfig())))
    monkeypatch.setattr(grids, "CORES", threads)
    assert dict(numbers(fit(data, FitConfig()))) == alone


@pytest.mark.parametrize("seed", range(5))
def test_metrics_with_heavy_tails_converge(seed: int) -> None:
    """t with two degrees of freedom: a few outcomes lie hundreds of spreads out."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(100), 20)
    metric = 18 + 5 * generator.standard_t(2, rider.size)
    skill = generator.standard_normal(100)
    data = observations(rider, metric, simulate(generator, rider, skill, 0.1 * (metric - 18)))
    assert_finite(fit(data, FitConfig()))
    assert_finite(fit(replace(data, outcome=1 - data.outcome), FitConfig()))
