"""A discrimination that changes with conditions: the likelihood against plain sums, and its derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FloatArray
from isuit.estimator.likelihood import grids
from isuit.estimator.likelihood.latent import LatentFit, _problem, fit_latent, let_discrimination_vary
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.solver import Problem, evaluate, with_curvature
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import Counts, count, count_conditions
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.population import Units, largest_clientele
from isuit.estimator.model.slopes import Slopes
from isuit.estimator.model.smoothing import FIXED
from isuit.estimator.model.surface import surface_for

RIDERS, EACH = 40, 12


def small(sites: int, metrics: int = 1) -> tuple[Counts, CurveSpace]:
    """A few riders, half of whom stay at one site; every metric is cut to thirty values, so that riders share some."""
    rng = np.random.default_rng(7)
    rider = np.repeat(np.arange(RIDERS, dtype=np.int32), EACH)
    columns = tuple(np.round(rng.uniform(3, 33, rider.size)) for _ in range(metrics))
    hard = ((columns[0] - 18) / 9) ** 2 - 1
    steep = 1.4 * np.exp(0.03 * (columns[0] - 18))
    outcome = (rng.random(rider.size) < expit(steep * (rng.standard_normal(RIDERS)[rider] - hard))).astype(np.int8)
    site = rng.integers(0, sites, rider.size).astype(np.int32) if sites else None
    slopes = Slopes.for_conditions(columns)
    if metrics > 1:
        surface = surface_for(tuple("ab"), columns)
        counts = count_conditions(rider, columns, outcome, surface.splines, RIDERS, site)
        return counts, replace(CurveSpace.for_outcomes(rider.size, surface, sites), slopes=slopes)
    spline = spline_for(columns[0])
    counts = count(rider, columns[0], outcome, spline, RIDERS, site)
    space = CurveSpace.for_outcomes(rider.size, spline, sites)
    if sites:
        space = replace(space, origin=largest_clientele(counts, sites))
    return counts, replace(space, slopes=slopes)


def somewhere(problem: Problem) -> FloatArray:
    """Parameters that are nowhere near a maximum."""
    phi = 0.2 * np.random.default_rng(3).standard_normal(problem.shape.size)
    phi[0] = 1.3
    phi[problem.groups == -3] = 0.0
    return phi


def brute(problem: Problem, phi: FloatArray) -> float:
    """The log-likelihood by a plain sum over a fine grid of skill, one rider after the other."""
    likelihood, p = problem.likelihood, problem.parameters(phi)
    counts, slopes = likelihood.counts, problem.curve.space.slopes
    assert slopes is not None
    a = p.a * slopes.relative(counts.item_metric, p.slopes)
    f = problem.curve.plain.apply(np.concatenate([p.shared, p.slopes]), p.own)
    mean = likelihood.population.apply(p.regression, p.clientele)
    u = np.linspace(-9, 9, 1201)
    total = 0.0
    for r in range(counts.riders):
        trials, successes = counts.trials[[r]].toarray().ravel(), counts.successes[[r]].toarray().ravel()
        eta = a[:, None] * (mean[r] + u) - f[:, None]
        log = successes @ -np.logaddexp(0, -eta) + (trials - successes) @ -np.logaddexp(0, eta)
        total += float(np.log(np.trapezoid(np.exp(log - u**2 / 2), u) / np.sqrt(2 * np.pi)))
    return total


@pytest.mark.parametrize(
    ("sites", "metrics", "correlated"), [(0, 1, True), (3, 1, False), (6, 1, False), (0, 2, False)]
)
def test_the_likelihood_and_its_derivatives_are_exact(sites: int, metrics: int, correlated: bool) -> None:
    problem = _problem(*small(sites, metrics), correlated)
    phi = somewhere(problem)
    at, _ = evaluate(problem, phi, None, True)
    assert at.exact
    assert at.log_likelihood == pytest.approx(brute(problem, phi), abs=1e-7)
    information = with_curvature(problem, phi, at).dense()
    estimated = np.flatnonzero(problem.groups != -3)
    rng, step = np.random.default_rng(5), 1e-5
    slopes = range(1 + problem.curve.plain.shared_size - problem.curve.slopes, 1 + problem.curve.plain.shared_size)
    for k in {0, *slopes, *rng.choice(estimated, 8, replace=False).tolist()}:
        move = np.zeros(phi.size)
        move[k] = step
        above, below = (evaluate(problem, phi + sign * move, None, False)[0] for sign in (1, -1))
        assert at.gradient[k] == pytest.approx((above.log_likelihood - below.log_likelihood) / (2 * step), abs=2e-6)
        bend = -(above.gradient - below.gradient) / (2 * step)
        np.testing.assert_allclose(information[k][estimated], bend[estimated], atol=2e-5)


def test_riders_scores_add_up_to_the_gradient() -> None:
    problem = _problem(*small(6), False)
    phi = somewhere(problem)
    at, curve = evaluate(problem, phi, None, False)
    likelihood = problem.likelihood
    scores = likelihood.rider_scores(curve, at.posterior, likelihood.expected_by_entry(at.posterior))
    np.testing.assert_allclose(np.asarray(scores.sum(axis=0)).ravel(), at.gradient, atol=2e-6)


@pytest.fixture(scope="module", params=[(0, 1), (6, 1), (0, 2)], ids=["alone", "sites", "surface"])
def varied(request: pytest.FixtureRequest) -> LatentFit:
    counts, space = small(*request.param)
    constant = replace(space, slopes=None)
    fit = fit_latent(counts, constant, Prepared(counts, constant).single)
    assert space.slopes is not None
    return let_discrimination_vary(fit, space.slopes)


def moved(fit: LatentFit, phi: FloatArray) -> LatentFit:
    """The fit with other parameters, and the units that they give."""
    p = fit.problem.parameters(phi)
    units = Units.of(fit.problem.likelihood.population, p.regression, p.clientele, p.density)
    return LatentFit(fit.space, fit.problem, replace(fit.solution, phi=phi), units)


def test_errors_of_difficulty_and_discrimination_are_those_of_every_parameter(varied: LatentFit) -> None:
    metric = np.array([6.0, 18.0, 30.0])
    if varied.problem.likelihood.counts.item_metric.ndim > 1:
        metric = np.column_stack([metric, metric[::-1]])
    site, phi = (2 if varied.space.places else -1), varied.solution.phi
    estimated = np.flatnonzero(varied.problem.groups != FIXED)
    by_difficulty, by_discrimination = np.zeros((2, 3, phi.size))
    for k in estimated:
        move = np.zeros(phi.size)
        move[k] = 1e-5
        above, below = moved(varied, phi + move), moved(varied, phi - move)
        by_difficulty[:, k] = (above.difficulty_slope(metric, site)[0] - below.difficulty_slope(metric, site)[0]) / 2e-5
        by_discrimination[:, k] = (
            above.discrimination * above.relative(metric) - below.discrimination * below.relative(metric)
        ) / 2e-5
    covariance = varied.solution.covariance.inverse()
    band, steep = varied.difficulty(metric, site), varied.discrimination_at(metric)
    expected = np.sqrt(np.diag(by_difficulty @ covariance @ by_difficulty.T))
    np.testing.assert_allclose(band.se, expected, rtol=1e-4)
    together = np.diag(by_difficulty @ covariance @ by_discrimination.T)
    np.testing.assert_allclose(band.with_discrimination, together, rtol=1e-3, atol=1e-6)
    expected = np.sqrt(np.diag(by_discrimination @ covariance @ by_discrimination.T))
    np.testing.assert_allclose(steep.se, expected, rtol=1e-4)


def test_the_slope_of_difficulty_has_its_error(varied: LatentFit) -> None:
    """Of one metric: where difficulty is least is told by the slope of f over a, and not of f."""
    if varied.problem.likelihood.counts.item_metric.ndim > 1:
        return
    metric, step = np.array([8.0, 15.0, 27.0]), 1e-4
    relative = varied.relative(metric)
    above, below = (varied.log_odds(metric + by, -1) / varied.relative(metric + by) for by in (step, -step))
    np.testing.assert_allclose(varied.slope_band(metric).value / relative, (above - below) / (2 * step), rtol=1e-5)


def test_predictions_integrate_over_the_posterior(varied: LatentFit) -> None:
    """At a rider's own items they are what the pass expects there."""
    counts, posterior = varied.problem.likelihood.counts, varied.solution.at.posterior
    expected = varied.problem.likelihood.expected_by_entry(posterior).expected
    entries = counts.trials.tocoo()
    site = counts.item_site[entries.col] if varied.space.sites else np.full(entries.col.size, -1)
    found = varied.predict(entries.row.astype(np.int64), counts.item_metric[entries.col], site)
    np.testing.assert_allclose(found * entries.data, expected.tocoo().data, atol=1e-9)


@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("information", [False, True])
def test_weights_that_are_gathered_tell_the_same(
    varied: bool, information: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over items are added up rider by rider, or at the end from riders' weights at the points of the table."""
    counts, space = small(0)
    problem = _problem(counts, space if varied else replace(space, slopes=None), False)
    phi = somewhere(problem)
    monkeypatch.setattr(grids, "_SHARED", 0)
    monkeypatch.setattr(grids, "_WORTH", 0)
    windows = evaluate(problem, phi, None, False)[0].posterior.windows
    found = []
    for gathers in (False, True):
        monkeypatch.setattr(grids.Table, "gathered", lambda table, entries, on=gathers: table.success.size * on)
        found.append(evaluate(problem, phi, windows, information)[0])
    one, other = found
    assert one.log_likelihood == other.log_likelihood
    assert one.gradient == pytest.approx(other.gradient, abs=1e-11)
    assert one.item_residual == pytest.approx(other.item_residual, abs=1e-12)
    assert one.item_tilt == pytest.approx(other.item_tilt, abs=1e-12)
    assert not np.array_equal(one.item_residual, other.item_residual), "the sums were made in the same order"
    if information:
        assert one.information is not None
        assert other.information is not None
        assert one.information.dense() == pytest.approx(other.information.dense(), abs=1e-10)
