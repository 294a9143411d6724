"""The marginal likelihood against brute-force integration and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from isuit.domain import FloatArray, IntArray, Observations
from isuit.estimator.likelihood import grids, quadrature
from isuit.estimator.likelihood.quadrature import MarginalLikelihood
from isuit.estimator.likelihood.solver import Problem, split
from isuit.estimator.model.anchor import Anchor
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import Counts, count
from isuit.estimator.model.curves import Curve, CurveSpace, ItemCurve, plain_population
from isuit.estimator.model.population import population_design

from ..cohorts import of_rows, parabola, simulate

ANCHOR = Anchor(np.array([3.0, 10.0, 18.0, 35.0]), np.array([0.1, 0.6, 0.9, 0.05]))


def cohort(riders: int, outcomes: int, a: float, seed: int = 5) -> tuple[Counts, FloatArray, Curve]:
    """Counts, f at the items under the true parabola, and its curve."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), outcomes)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(riders), parabola(metric), a)
    outcome[rider == 0] = 1  # a rider who never fails
    outcome[rider == 1] = 0  # and one who never succeeds
    spline = spline_for(metric)
    counts = count(rider, metric, outcome, spline, riders)
    f = a * parabola(counts.item_metric)
    return counts, f, Curve(f, CurveSpace(spline, 0).design(counts.item_metric, counts.item_site, a), np.zeros(f.size))


def brute_force(counts: Counts, f: FloatArray, a: float) -> tuple[float, FloatArray, FloatArray]:
    """Log-likelihood, posterior means and sds by the trapezoid rule, finer than any rider's posterior.

    Each rider is integrated over 12 sds on either side of their mean, found by two coarser looks, so that one rule does
    for 1 and for 2,000 outcomes.
    """
    trials, successes = counts.trials.toarray(), counts.successes.toarray()

    def log_joint(theta: FloatArray) -> FloatArray:  # riders x points, each rider with points of their own
        values = np.empty(theta.shape)
        for r in range(counts.riders):
            seen = np.flatnonzero(trials[r])
            eta = a * theta[r][:, None] - f[seen]
            n, k = trials[r, seen], successes[r, seen]
            values[r] = -np.logaddexp(0, -eta) @ k - np.logaddexp(0, eta) @ (n - k)
        return values - theta**2 / 2 - np.log(2 * np.pi) / 2

    theta = np.tile(np.linspace(-8, 8, 801), (counts.riders, 1))
    for _ in range(2):
        joint = log_joint(theta)
        weight = np.exp(joint - joint.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = (weight * theta).sum(axis=1)
        step = theta[:, 1] - theta[:, 0]
        sd = np.maximum(np.sqrt((weight * (theta - mean[:, None]) ** 2).sum(axis=1)), step)
        theta = mean[:, None] + sd[:, None] * np.linspace(-12, 12, 801)
    joint = log_joint(theta)
    total = logsumexp(joint, axis=1)
    weight = np.exp(joint - total[:, None])
    mean = (weight * theta).sum(axis=1)
    sd = np.sqrt((weight * (theta - mean[:, None]) ** 2).sum(axis=1))
    return float(np.sum(total + np.log(theta[:, 1] - theta[:, 0]))), mean, sd


@pytest.mark.parametrize(
    ("riders", "outcomes", "a", "close"),
    [
        (60, 1, 2.0, 1e-7),
        (60, 3, 2.0, 1e-7),
        (40, 30, 2.0, 1e-7),
        (12, 300, 2.0, 1e-7),
        (6, 2000, 2.0, 1e-7),
        # At twice the discrimination, a rider who fails where nobody fails has a skewed posterior.
        (40, 30, 4.0, 1e-7),
        (40, 30, 0.05, 1e-7),
    ],
)
def test_grids_agree_with_brute_force(riders: int, outcomes: int, a: float, close: float) -> None:
    """Log-likelihood per rider, and posterior mean and sd in units of the posterior's sd."""
    counts, f, curve = cohort(riders, outcomes, a)
    likelihood = MarginalLikelihood(counts, plain_population(riders))
    none = np.zeros(0)
    nodes = likelihood.place(a, f, none)
    at = likelihood.evaluate(a, curve, none, nodes)
    log_likelihood, mean, sd = brute_force(counts, f, a)
    assert at.log_likelihood == pytest.approx(log_likelihood, abs=1e-7 * riders)
    assert np.max(np.abs(at.posterior.mean - mean) / sd) < close
    assert np.max(np.abs(at.posterior.sd / sd - 1)) < 2 * close


def problem_of(
    data: Observations, site: IntArray | None, correlated: bool, anchor: Anchor | None
) -> tuple[Problem, FloatArray]:
    """A problem and parameters far from its maximum, where gradients are not small."""
    spline = spline_for(data.metric, intervals=6)
    sites = 0 if site is None else int(site.max()) + 1
    riders = len(data.riders)
    counts = count(data.rider, data.metric, data.outcome, spline, riders, site)
    space = CurveSpace(spline, sites, anchor)
    items = ItemCurve.of(space, counts.item_metric, counts.item_site)
    population = population_design(counts, sites, spline, correlated, 9)
    size = 1 + items.plain.size + population.size
    problem = Problem(MarginalLikelihood(counts, population), items, np.zeros(size, dtype=np.int64), items.plain.size)
    phi = 0.3 * np.random.default_rng(1).normal(size=size)
    phi[0] = 1.5
    return problem, phi


MODELS = {
    "plain": (0, False, None),
    "sites": (2, False, None),
    "many sites": (6, False, None),
    "correlated exposure": (0, True, None),
    "anchor": (0, False, ANCHOR),
    "all at once": (3, True, ANCHOR),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradient_and_information_are_the_derivatives(name: str, reference: Observations) -> None:
    sites, correlated, anchor = MODELS[name]
    data = of_rows(reference, reference.rider < 40)
    site = np.random.default_rng(2).integers(0, sites, len(data)) if sites else None
    problem, phi = problem_of(data, site, correlated, anchor)
    likelihood, curve_model = problem.likelihood, problem.curve
    a, coefficients, population = split(problem, phi)
    nodes = likelihood.place(a, curve_model.at(a, coefficients).value, population)

    def evaluate(at: FloatArray, information: bool = False) -> quadrature.Pass:
        a, coefficients, population = split(problem, at)
        return likelihood.evaluate(a, curve_model.at(a, coefficients), population, nodes, information)

    here = evaluate(phi, information=True)
    assert here.information is not None
    information = here.information.copy()
    last = 1 + problem.curve_size
    information[:last, :last] += curve_model.curvature(a, coefficients, here.item_residual)
    slope, curvature = np.zeros_like(phi), np.zeros_like(information)
    for k in range(phi.size):
        step = np.zeros_like(phi)
        step[k] = 1e-5
        above, below = evaluate(phi + step), evaluate(phi - step)
        slope[k] = (above.log_likelihood - below.log_likelihood) / 2e-5
        curvature[k] = -(above.gradient - below.gradient) / 2e-5
    assert np.max(np.abs(here.gradient - slope) / np.maximum(1, np.abs(slope))) < 1e-5
    scale = np.sqrt(np.maximum(np.abs(np.diag(curvature)), 1.0))  # a clientele that nobody is of has no information
    # A few functions of skill stand for all (information.PRECISION).
    assert np.max(np.abs(information - curvature) / np.outer(scale, scale)) < 1e-4


def test_gradient_on_one_grid_is_that_of_the_integral(reference: Observations) -> None:
    """Moving the grids along with the parameters changes nothing: the integral does not depend on them."""
    problem, phi = problem_of(reference, None, False, None)

    def log_likelihood(at: FloatArray) -> tuple[float, FloatArray]:
        a, coefficients, population = split(problem, at)
        curve = problem.curve.at(a, coefficients)
        nodes = problem.likelihood.place(a, curve.value, population)
        found = problem.likelihood.evaluate(a, curve, population, nodes)
        return found.log_likelihood, found.gradient

    gradient = log_likelihood(phi)[1]
    for k in (0, 1, 3):
        step = np.zeros_like(phi)
        step[k] = 1e-4
        slope = (log_likelihood(phi + step)[0] - log_likelihood(phi - step)[0]) / 2e-4
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, f, curve = cohort(300, 200, 2.0)
    results = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(grids, "CORES", threads)
        likelihood = MarginalLikelihood(counts, plain_population(300))
        nodes = likelihood.place(2.0, f, np.zeros(0))
        assert len(nodes.blocks) >= 4, "a cohort this small is not shared between threads"
        at = likelihood.evaluate(2.0, curve, np.zeros(0), nodes, information=True)
        assert at.information is not None
        results.append(
            (at.log_likelihood, at.gradient.tobytes(), at.information.tobytes(), at.posterior.mean.tobytes())
        )
    assert results[0] == results[1] == results[2]


def test_a_grid_that_is_never_enough_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that could not widen its grids says so, and the solver does not end there."""
    counts, f, curve = cohort(40, 30, 2.0)
    likelihood = MarginalLikelihood(counts, plain_population(40))
    nodes = likelihood.place(2.0, f, np.zeros(0))
    assert likelihood.evaluate(2.0, curve, np.zeros(0), nodes).exact
    short = replace(nodes, grids=tuple(grids.Grid(-0.1, 0.1, 0.05) for _ in nodes.grids))
    assert likelihood.evaluate(2.0, curve, np.zeros(0), short).exact, "it widens until it is"
    monkeypatch.setattr(quadrature, "_MOST_LOOKS", 1)
    assert not likelihood.evaluate(2.0, curve, np.zeros(0), short).exact


def test_posterior_weights_are_a_distribution() -> None:
    counts, f, curve = cohort(20, 10, 2.0)
    likelihood = MarginalLikelihood(counts, plain_population(20))
    nodes = likelihood.place(2.0, f, np.zeros(0))
    posterior = likelihood.evaluate(2.0, curve, np.zeros(0), nodes).posterior
    assert np.sort(np.concatenate([part.block.riders for part in posterior.parts])).tolist() == list(range(20))
    for part in posterior.parts:
        assert part.weight.min() >= 0
        assert part.weight.sum(axis=1) == pytest.approx(np.ones(part.block.riders.size))
    assert posterior.mean[0] > 0 > posterior.mean[1]  # always succeeds, always fails
    assert np.all(posterior.sd < 1.05)


def test_a_large_discrimination_overflows_nowhere() -> None:
    counts, _, curve = cohort(20, 30, 2.0)
    f = 400 * parabola(counts.item_metric)
    likelihood = MarginalLikelihood(counts, plain_population(20))
    nodes = likelihood.place(400.0, f, np.zeros(0))
    at = likelihood.evaluate(400.0, Curve(f, curve.design, curve.by_a), np.zeros(0), nodes, information=True)
    assert np.isfinite(at.log_likelihood)
    assert np.isfinite(at.gradient).all()
    assert at.information is not None
    assert np.isfinite(at.information).all()


def test_expected_successes_are_those_of_the_posterior() -> None:
    counts, f, curve = cohort(30, 5, 2.0)
    likelihood = MarginalLikelihood(counts, plain_population(30))
    nodes = likelihood.place(2.0, f, np.zeros(0))
    at = likelihood.evaluate(2.0, curve, np.zeros(0), nodes)
    expected = np.zeros(counts.items)
    for part in at.posterior.parts:
        p = expit(2 * part.theta[:, None] - f)
        expected += np.einsum("rq,qi,ri->i", part.weight, p, counts.trials.toarray()[part.block.riders])
    assert at.item_residual == pytest.approx(counts.item_successes - expected, abs=1e-10)
