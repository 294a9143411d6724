"""The marginal likelihood against brute-force integration and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit, logsumexp

from isuit.domain import FloatArray, IntArray, Observations
from isuit.estimator.likelihood import grids, latent
from isuit.estimator.likelihood.grids import kernels
from isuit.estimator.likelihood.quadrature import MarginalLikelihood, Parameters, Pass
from isuit.estimator.likelihood.solver import Problem, evaluate, with_curvature
from isuit.estimator.model.anchor import Anchor
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.bend import FUNCTIONS
from isuit.estimator.model.counts import Counts, count
from isuit.estimator.model.curves import Curve, CurveSpace
from isuit.estimator.model.density import NORMAL, Density
from isuit.estimator.model.population import plain_population
from isuit.estimator.model.smoothing import FIXED

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


def passed(
    counts: Counts,
    curve: Curve,
    a: float,
    windows: IntArray | None = None,
    information: bool = False,
    density: Density = NORMAL,
) -> Pass:
    """A pass with skill of mean 0 and variance 1; f is what the curve says, whatever its coefficients."""
    none = np.zeros(0)
    parameters = Parameters(a, none, np.zeros((0, 0)), none, none, density)
    likelihood = MarginalLikelihood(counts, plain_population(counts), density.size)
    return likelihood.evaluate(parameters, curve, windows, information)


def brute_force(
    counts: Counts, f: FloatArray, a: float, density: Density = NORMAL
) -> tuple[float, FloatArray, FloatArray]:
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
        return values - theta**2 / 2 - np.log(2 * np.pi) / 2 + departure(theta)

    def departure(theta: FloatArray) -> FloatArray:
        if not density.size:
            return np.zeros_like(theta)
        t = density.tables
        points = t.lower + t.step * np.arange(len(t.log))
        inside = np.clip(theta, points[0], points[-1])
        ends = np.where(theta < 0, t.log[0, 1], t.log[-1, 1]) / t.step  # straight beyond
        found = CubicHermiteSpline(points, t.log[:, 0], t.log[:, 1] / t.step)(inside)
        return np.asarray(found + ends * (theta - inside))

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
    at = passed(counts, curve, a)
    log_likelihood, mean, sd = brute_force(counts, f, a)
    assert at.log_likelihood == pytest.approx(log_likelihood, abs=1e-7 * riders)
    assert np.max(np.abs(at.posterior.mean - mean) / sd) < close
    assert np.max(np.abs(at.posterior.sd / sd - 1)) < 2 * close


@pytest.mark.parametrize(("riders", "outcomes", "a"), [(60, 1, 2.0), (60, 3, 0.3), (40, 30, 2.0), (12, 300, 2.0)])
@pytest.mark.parametrize("size", [0.3, 1.0])
def test_grids_agree_with_brute_force_under_a_density_that_bends(
    riders: int, outcomes: int, a: float, size: float
) -> None:
    counts, f, curve = cohort(riders, outcomes, a)
    density = Density(size * np.random.default_rng(8).normal(size=FUNCTIONS) / np.arange(1, FUNCTIONS + 1))
    at = passed(counts, curve, a, density=density)
    log_likelihood, mean, sd = brute_force(counts, f, a, density)
    assert at.exact
    assert at.log_likelihood == pytest.approx(log_likelihood, abs=1e-5 * riders)
    assert np.max(np.abs(at.posterior.mean - mean) / sd) < 1e-4  # between the points of the tables
    assert np.max(np.abs(at.posterior.sd / sd - 1)) < 1e-3


def problem_of(
    data: Observations, site: IntArray | None, correlated: bool, anchor: Anchor | None, density: bool = False
) -> tuple[Problem, FloatArray]:
    """A problem and parameters far from its maximum, where gradients are not small."""
    spline = spline_for(data.metric, intervals=6)
    sites = 0 if site is None else int(site.max()) + 1
    riders = len(data.riders)
    counts = count(data.rider, data.metric, data.outcome, spline, riders, site)
    problem = latent._problem(counts, CurveSpace(spline, sites, anchor), correlated)
    if density:
        problem = latent._with_density(problem, FUNCTIONS)
    phi = 0.3 * np.random.default_rng(1).normal(size=problem.shape.size)
    phi[0] = 1.5
    if density:  # the finer a function, the less of it there is
        border, _ = problem.shape.split(phi)
        border[-FUNCTIONS:] /= np.arange(1, FUNCTIONS + 1)
    return problem, np.where(problem.groups == FIXED, 0.0, phi)


MODELS = {
    "plain": (0, False, None, False),
    "sites": (2, False, None, False),
    "many sites": (6, False, None, False),
    "correlated exposure": (0, True, None, False),
    "anchor": (0, False, ANCHOR, False),
    "all at once": (3, True, ANCHOR, False),
    "density": (0, False, None, True),
    "density beside exposure": (0, True, None, True),
    "density at many sites": (6, True, None, True),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradient_and_information_are_the_derivatives(name: str, reference: Observations) -> None:
    sites, correlated, anchor, density = MODELS[name]
    data = of_rows(reference, reference.rider < 40)
    site = np.random.default_rng(2).integers(0, sites, len(data)) if sites else None
    problem, phi = problem_of(data, site, correlated, anchor, density)
    here = evaluate(problem, phi, None, True)[0]
    windows = here.posterior.windows
    information = with_curvature(problem, phi, here).dense()
    slope, curvature = np.zeros_like(phi), np.eye(phi.size)
    for k in np.flatnonzero(problem.groups != FIXED):
        step = np.zeros_like(phi)
        step[k] = 1e-5
        above, below = (evaluate(problem, phi + s * step, windows, False)[0] for s in (1, -1))
        slope[k] = (above.log_likelihood - below.log_likelihood) / 2e-5
        curvature[k] = -(above.gradient - below.gradient) / 2e-5
    assert np.max(np.abs(here.gradient - slope) / np.maximum(1, np.abs(slope))) < 1e-5
    scale = np.sqrt(np.maximum(np.abs(np.diag(curvature)), 1.0))  # a clientele that nobody is of has no information
    assert np.max(np.abs(information - curvature) / np.outer(scale, scale)) < (
        1e-2 if density else 1e-6
    )  # riders' posteriors are shared out between the points of the density's tables


@pytest.mark.parametrize("sites", [0, 6])
def test_a_table_changes_nothing(sites: int, reference: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities that riders share are read off a table or computed on the spot: the same to the last digits."""
    site = np.random.default_rng(2).integers(0, sites, len(reference)) if sites else None
    problem, phi = problem_of(reference, site, False, None)
    windows = evaluate(problem, phi, None, False)[0].posterior.windows
    found = []
    for shared in (0, 10**9):
        monkeypatch.setattr(grids, "_SHARED", shared)
        monkeypatch.setattr(grids, "_WORTH", 0)
        table = grids.Table.of(
            grids.Spans.of(windows), problem.likelihood.entries.item.size, len(windows), 1.5, at_zero(problem)
        )
        assert (table.widths.sum() > 0) == (shared == 0), "the table is used in one case and not in the other"
        found.append(evaluate(problem, phi, windows, True)[0])
    one, other = found
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    assert one.gradient == pytest.approx(other.gradient, abs=1e-9)
    assert one.information is not None
    assert other.information is not None
    assert one.information.dense() == pytest.approx(other.information.dense(), abs=1e-8)


def test_a_first_look_reads_a_table() -> None:
    """Riders of whom nothing is known begin with one grid: what is on it is computed once."""
    _, _, curve = cohort(30, 40, 1.5)
    at, mean = grids.AtItems.of(curve.value, curve.by_a), np.array([-0.4, 0.0, 0.7])
    table = grids.Table.of(grids.Spans.first(mean, 1.5), 10**6, mean.size, 1.5, at)
    level = kernels.level_for(min(kernels.STEP, kernels.STRIP / 1.5))
    step = kernels.step_at(level)
    for mu in mean.tolist():  # as `_settle` begins
        start = int(np.floor((mu - kernels.REACH) / step))
        points = int(np.ceil((mu + kernels.REACH) / step)) - start + 1
        assert kernels._tabulated(level, start, points, table) >= 0


def at_zero(problem: Problem) -> grids.AtItems:
    nothing = np.zeros(problem.likelihood.counts.items)
    return grids.AtItems.of(nothing, nothing)


def test_gradient_on_one_grid_is_that_of_the_integral(reference: Observations) -> None:
    """Moving the grids along with the parameters changes nothing: the integral does not depend on them."""
    problem, phi = problem_of(reference, None, False, None)

    def log_likelihood(at: FloatArray) -> tuple[float, FloatArray]:
        found = evaluate(problem, at, None, False)[0]
        return found.log_likelihood, found.gradient

    gradient = log_likelihood(phi)[1]
    for k in (0, 1, 3):
        step = np.zeros_like(phi)
        step[k] = 1e-4
        slope = (log_likelihood(phi + step)[0] - log_likelihood(phi - step)[0]) / 2e-4
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, _, curve = cohort(600, 200, 2.0)
    assert len(grids.lanes(counts.trials.indptr)) >= 4, "a cohort this small is not shared between threads"
    results = []
    for threads in (1, 2, 8):
        monkeypatch.setattr(grids, "CORES", threads)
        at = passed(counts, curve, 2.0, information=True)
        assert at.information is not None
        bits = at.gradient.tobytes(), at.information.dense().tobytes(), at.posterior.mean.tobytes()
        results.append((at.log_likelihood, *bits))
    assert results[0] == results[1] == results[2]


def test_a_grid_that_is_never_enough_is_told() -> None:
    """A pass that could not widen its grids says so, and the solver does not end there."""
    counts, _, curve = cohort(40, 30, 2.0)
    assert passed(counts, curve, 2.0).exact
    short = np.tile([8, 0, 3], (40, 1))
    assert passed(counts, curve, 2.0, short).exact, "it widens until it is"
    beyond = Curve(np.full_like(curve.value, np.nan), curve.design, curve.by_a)
    assert not passed(counts, beyond, 2.0).exact


def test_posteriors_of_riders_who_always_succeed_or_fail() -> None:
    counts, _, curve = cohort(20, 10, 2.0)
    posterior = passed(counts, curve, 2.0).posterior
    assert posterior.mean[0] > 0 > posterior.mean[1]  # always succeeds, always fails
    assert np.all(posterior.sd < 1.05)


def test_a_large_discrimination_overflows_nowhere() -> None:
    counts, _, curve = cohort(20, 30, 2.0)
    f = 400 * parabola(counts.item_metric)
    at = passed(counts, Curve(f, curve.design, curve.by_a), 400.0, information=True)
    assert np.isfinite(at.log_likelihood)
    assert np.isfinite(at.gradient).all()
    assert at.information is not None
    assert np.isfinite(at.information.dense()).all()


def test_expected_successes_are_those_of_the_posterior() -> None:
    """By item, by rider and item, and for rows that are asked for: all by the same brute force."""
    counts, f, curve = cohort(30, 5, 2.0)
    at = passed(counts, curve, 2.0)
    theta = np.linspace(-9, 9, 2001)
    trials, successes = counts.trials.toarray(), counts.successes.toarray()
    eta = 2 * theta[:, None] - f
    joint = (
        -np.logaddexp(0, -eta) @ successes.T - np.logaddexp(0, eta) @ (trials - successes).T - theta[:, None] ** 2 / 2
    )
    weight = np.exp(joint - joint.max(axis=0))
    weight /= weight.sum(axis=0)
    p = weight.T @ expit(eta)
    assert at.item_residual == pytest.approx(counts.item_successes - (trials * p).sum(axis=0), abs=1e-8)
    by_entry = at.posterior.likelihood.expected_by_entry(at.posterior)
    assert by_entry.expected.toarray() == pytest.approx(trials * p, abs=1e-8)
    with_skill = trials * ((weight * theta[:, None]).T @ expit(eta))
    assert by_entry.with_skill.toarray() == pytest.approx(with_skill, abs=1e-8)
    rider, item = np.array([7, 0, 29, 7]), np.array([3, 50, 0, 3])
    assert at.posterior.expect(rider, f[item]) == pytest.approx(p[rider, item], abs=1e-8)
