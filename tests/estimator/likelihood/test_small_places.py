"""Levels of small places: their profiles against the likelihood itself, and the variance that they give."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.domain import FloatArray
from isuit.estimator.likelihood import solver
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.small_places import SMALL, Profiles, profiles_of
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace

from ..cohorts import parabola, simulate

PRECISION = 0.8


def fitted(sites: int, each: int, riders: int, seed: int = 2) -> LatentFit:
    """Sites with so many outcomes each, whose levels differ by half a skill sd."""
    generator = np.random.default_rng(seed)
    site, rider = np.repeat(np.arange(sites), each), generator.integers(0, riders, sites * each)
    order = np.lexsort((site, rider))
    site, rider = site[order], rider[order]
    metric = generator.uniform(3, 35, site.size)
    difficulty = parabola(metric) + generator.normal(0, 0.5, sites)[site]
    outcome = simulate(generator, rider, generator.standard_normal(riders), difficulty)
    spline = spline_for(metric)
    counts = count(rider, metric, outcome, spline, riders, site)
    space = CurveSpace.for_outcomes(metric.size, spline, sites)
    return fit_latent(counts, space, Prepared(counts, space).single)


def at_solution(fit: LatentFit) -> Profiles:
    assert fit.solution.information is not None
    found = profiles_of(fit.solution.at, fit.solution.information.own, fit.solution.phi, fit.problem.shape, PRECISION)
    assert found is not None
    return found


def test_a_profile_is_the_likelihood_along_the_level() -> None:
    fit = fitted(12, 6, 20)
    profiles, shape, place = at_solution(fit), fit.problem.shape, 4
    here = fit.solution.at.log_likelihood
    for j in (3, 10, 20):
        phi = fit.solution.phi.copy()
        phi[shape.border + place * shape.width] += profiles.distance[place, j]
        there = solver.evaluate(fit.problem, phi, None, False)[0].log_likelihood
        assert abs(profiles.value[place, j] - (there - here)) < 1e-8


def test_of_a_quadratic_there_is_no_excess() -> None:
    level, slope, bend = np.array([0.3, -1.0]), np.array([0.2, -0.5]), np.array([1.5, 0.1])
    distance = np.linspace(-6, 6, 49) / np.sqrt(bend + PRECISION)[:, None]
    value = slope[:, None] * distance - 0.5 * bend[:, None] * distance**2
    excess = Profiles(level, slope, bend, distance, value).excess(float(np.log(PRECISION)))
    assert abs(excess.value) < 1e-6
    assert abs(excess.square) < 1e-6


def test_the_excess_of_squares_is_the_slope_of_that_of_v() -> None:
    profiles, rho, step = at_solution(fitted(12, 6, 20)), float(np.log(PRECISION)), 1e-4
    slope = (profiles.excess(rho + step).value - profiles.excess(rho - step).value) / (2 * step)
    # V's own slope holds -exp(rho) / 2 times the sum of expected squares.
    assert abs(slope + 0.5 * PRECISION * profiles.excess(rho).square) < 1e-4 * abs(slope)


def test_places_with_many_outcomes_have_no_profile() -> None:
    fit = fitted(6, SMALL + 1, 30)
    assert fit.solution.information is not None
    own, phi = fit.solution.information.own, fit.solution.phi
    assert profiles_of(fit.solution.at, own, phi, fit.problem.shape, PRECISION) is None


@pytest.mark.long
def test_the_variance_between_places_with_two_outcomes_is_what_it_is() -> None:
    """Half a skill sd; the quadratic alone gives 0.38 of these two cohorts."""
    found: list[float] = []
    for seed in (1, 2):
        fit = fitted(600, 2, 60, seed)
        group = fit.problem.groups[fit.problem.shape.border]
        found.append(float(np.exp(-fit.solution.rho[group] / 2)) / fit.solution.discrimination)
    assert 0.42 < np.mean(found) < 0.62, _told(np.array(found))


def _told(values: FloatArray) -> str:
    return " ".join(f"{value:.3f}" for value in values)
