"""The likelihood of skill that moves, against brute force: dense grids, differences, and skill that stands still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_expit

from isuit.estimator.likelihood import moving_kernels as kernels
from isuit.estimator.likelihood.grids import AtItems
from isuit.estimator.likelihood.moving import Chain, MovingLikelihood, MovingParameters, MovingPosterior, MovingProblem
from isuit.estimator.likelihood.quadrature import MarginalLikelihood, Parameters
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace, ItemCurve
from isuit.estimator.model.population import plain_population


class Cohort:
    """A few riders with occasions at irregular times, two regressors and a curve."""

    def __init__(self, riders: int = 6, occasions: int = 4, each: int = 3, seed: int = 1, gap: float = 0.5) -> None:
        rng = np.random.default_rng(seed)
        self.starts = np.arange(riders + 1) * occasions
        self.occasion = np.repeat(np.arange(riders * occasions), each)
        self.metric = rng.uniform(0, 10, self.occasion.size)
        skill = rng.standard_normal(riders)[self.occasion // occasions]
        self.outcome = (rng.uniform(size=self.occasion.size) < expit(skill)).astype(np.int64)
        self.gap = rng.exponential(gap, riders * occasions)
        self.gap[self.starts[:-1]] = 0.0
        self.regressors = rng.standard_normal((riders * occasions, 2))
        self.rider = self.occasion // occasions
        self.spline = spline_for(self.metric)
        self.space = CurveSpace(self.spline, 0)
        counted = [
            count(code, self.metric, self.outcome, self.spline, number)
            for code, number in ((self.rider, riders), (self.occasion, riders * occasions))
        ]
        self.counts = counted[0]
        self.curve = ItemCurve.of(self.space, self.counts.item_metric, self.counts.item_site)
        self.likelihood = MovingLikelihood(
            self.counts, plain_population(self.counts), self.starts, counted[1], self.gap, self.regressors
        )
        shared = 0.5 * rng.standard_normal(self.curve.plain.shared_size)
        self.p = MovingParameters(1.3, shared, np.zeros((0, 0)), np.array([0.4, -0.3]), np.zeros(0), walk=0.6)

    def at(self, p: MovingParameters, information: bool = False):
        return self.likelihood.evaluate(p, self.curve.at(p.a, p.shared, p.own), None, information)

    def brute_force(self, p: MovingParameters, reach: float) -> tuple[float, np.ndarray]:
        """The log-likelihood, and posterior means at each occasion: normal transitions on a very fine grid."""
        fine = np.linspace(-reach, reach, 3001)
        f = self.curve.at(p.a, p.shared, p.own)
        value = dict(zip(self.counts.item_metric.tolist(), f.value.tolist(), strict=True))
        step, total, means = fine[1] - fine[0], 0.0, []
        prior_mean = self.regressors @ p.regression
        for r in range(self.starts.size - 1):
            inside = range(self.starts[r], self.starts[r + 1])
            told = []
            for o in inside:
                rows = np.flatnonzero(self.occasion == o)
                x = p.a * (prior_mean[o] + fine[:, None]) - np.array([value[m] for m in self.metric[rows].tolist()])
                told.append(np.where(self.outcome[rows] == 1, log_expit(x), log_expit(-x)).sum(axis=1))
            moves = [
                np.exp(-0.5 * (fine[:, None] - fine) ** 2 / (p.walk**2 * self.gap[o]))
                / np.sqrt(2 * np.pi * p.walk**2 * self.gap[o])
                * step
                for o in inside[1:]
            ]
            forward = [np.exp(told[0] - fine**2 / 2) * step / np.sqrt(2 * np.pi)]
            for move, here in zip(moves, told[1:], strict=True):
                forward.append((move @ forward[-1]) * np.exp(here))
            backward = [np.ones(fine.size)]
            for move, here in zip(moves[::-1], told[:0:-1], strict=True):
                backward.insert(0, move @ (backward[0] * np.exp(here)))
            total += float(np.log(forward[-1].sum()))
            for k, o in enumerate(inside):
                weight = forward[k] * backward[k]
                means.append(prior_mean[o] + float(weight @ fine / weight.sum()))
        return total, np.array(means)


@pytest.mark.parametrize(
    ("gap", "walk", "reach"), [(0.5, 0.6, 9.0), (2.0, 1.5, 26.0), (0.02, 0.4, 7.0), (0.3, 0.1, 7.0)]
)
def test_it_is_the_integral_over_paths(gap: float, walk: float, reach: float) -> None:
    cohort = Cohort(riders=2, gap=gap)
    p = replace(cohort.p, walk=walk)
    found = cohort.at(p)
    total, means = cohort.brute_force(p, reach)
    assert found.exact
    assert found.log_likelihood == pytest.approx(total, abs=2e-7)
    assert isinstance(found.posterior, MovingPosterior)
    np.testing.assert_allclose(found.posterior.occasion_mean, means, atol=2e-7)


@pytest.mark.parametrize("walk", [0.6, 0.05])
def test_its_gradient_and_information_are_its_derivatives(walk: float) -> None:
    cohort = Cohort(riders=8)
    p = replace(cohort.p, walk=walk)
    flat = np.concatenate([[p.a], p.shared, p.regression, [p.walk]])
    n = 1 + p.shared.size

    def at(phi: np.ndarray):
        return cohort.at(MovingParameters(phi[0], phi[1:n], p.own, phi[n:-1], p.clientele, walk=phi[-1]))

    found, gradient, bend = cohort.at(p, True), np.empty(flat.size), np.empty((flat.size, flat.size))
    for k in range(flat.size):
        step = np.eye(flat.size)[k] * 1e-4
        before, after = at(flat - step), at(flat + step)
        gradient[k] = (after.log_likelihood - before.log_likelihood) / 2e-4
        bend[k] = (before.gradient - after.gradient) / 2e-4
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-5, atol=1e-5)
    assert found.information is not None
    np.testing.assert_allclose(found.information.border, bend, rtol=5e-3, atol=5e-3 * np.abs(bend).max())


def test_skill_that_does_not_move_has_the_likelihood_of_skill_that_stands_still() -> None:
    cohort = Cohort(riders=10)
    still = replace(cohort.p, walk=0.0, regression=np.zeros(2))
    found = cohort.at(still)
    static = MarginalLikelihood(cohort.counts, plain_population(cohort.counts)).evaluate(
        Parameters(still.a, still.shared, still.own, np.zeros(0), np.zeros(0)),
        cohort.curve.at(still.a, still.shared, still.own),
    )
    assert found.log_likelihood == pytest.approx(static.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(found.posterior.mean, static.posterior.mean, atol=1e-6)
    np.testing.assert_allclose(found.posterior.sd, static.posterior.sd, atol=1e-6)


def test_predictions_are_means_over_the_posterior_of_that_occasion() -> None:
    cohort = Cohort(riders=3)
    p = cohort.p
    curve = cohort.curve.at(p.a, p.shared, p.own)
    occasion = np.array([7, 0, 7, 11])
    f = np.array([0.3, -1.0, 2.0, 0.0])
    predicted = cohort.likelihood.predict(p, curve, occasion, f)
    posterior = cohort.at(p).posterior
    assert isinstance(posterior, MovingPosterior)
    # A posterior of an occasion is close to normal, and its mean probability to that of a normal.
    z, weight = np.polynomial.hermite_e.hermegauss(40)
    theta = posterior.occasion_mean[occasion][:, None] + posterior.occasion_sd[occasion][:, None] * z
    np.testing.assert_allclose(predicted, expit(p.a * theta - f[:, None]) @ weight / weight.sum(), atol=0.01)


def test_some_riders_have_the_chains_that_they_have_among_all() -> None:
    cohort = Cohort(riders=9)
    whole = cohort.at(cohort.p).posterior
    chosen = slice(1, None, 3)
    part = cohort.likelihood.of_riders(chosen)
    found = part.evaluate(cohort.p, cohort.curve.at(cohort.p.a, cohort.p.shared, cohort.p.own)).posterior
    np.testing.assert_allclose(found.mean, whole.mean[chosen], atol=1e-12)


def test_information_from_some_riders_is_near_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort(riders=300, seed=3)
    exact = cohort.at(cohort.p, True).information
    monkeypatch.setattr("isuit.estimator.likelihood.moving.EXACT", 1_800)
    again = MovingLikelihood(
        cohort.counts, plain_population(cohort.counts), cohort.starts, cohort.likelihood.by_occasion, cohort.gap,
        cohort.regressors,
    )  # fmt: skip
    some = again.evaluate(cohort.p, cohort.curve.at(cohort.p.a, cohort.p.shared, cohort.p.own), None, True).information
    assert exact is not None
    assert some is not None
    well_known = np.diag(exact.border) > 0.05 * np.diag(exact.border).max()
    ratio = np.diag(some.border)[well_known] / np.diag(exact.border)[well_known]
    np.testing.assert_allclose(ratio, 1.0, atol=0.35)


def test_a_rider_may_have_ten_thousand_occasions() -> None:
    cohort = Cohort(riders=1, occasions=10_000, each=1, gap=1e-4)
    found = cohort.at(replace(cohort.p, regression=np.zeros(2)))
    assert found.exact
    assert np.isfinite(found.gradient).all()


def test_a_walk_of_none_is_no_start() -> None:
    """There the gradient vanishes whatever the outcomes say: of 2,500 riders whose skill moves, an eighth gave it."""
    cohort = Cohort()
    shape = cohort.likelihood.shape(cohort.curve.at(1.0, cohort.p.shared, cohort.p.own))
    problem = MovingProblem(cohort.likelihood, cohort.curve, np.zeros(shape.size, np.int64), shape)
    phi = np.arange(shape.size, dtype=float)
    for walk, start in ((0.0, 0.1), (-1e-4, 0.1), (-0.7, 0.7)):
        phi[-1] = walk
        assert problem.roused(phi)[-1] == start
        np.testing.assert_array_equal(problem.roused(phi)[:-1], phi[:-1])
    phi[-1] = 0.0
    p = problem.parameters(phi)
    assert cohort.at(replace(cohort.p, walk=0.0)).gradient[-1] == 0.0
    assert p.walk == 0.0


def test_large_and_small_likelihoods_are_told_alike() -> None:
    """An occasion of a few outcomes is a product of odds, one of many is a sum of logarithms: the same in both."""
    table = kernels.kernel_table()
    u = 0.25 * np.arange(-30.0, 31.0)
    for outcomes, successes in ((1, 0), (1, 1), (5, 2), (9, 0), (60, 17)):
        won = np.repeat([1.0, 0.0], [successes, outcomes - successes])
        metric = np.arange(outcomes)
        chain = kernels_chain(outcomes, won)
        odds = np.exp(0.1 * metric - 1.0)
        at = AtItems.of(np.log(odds), np.zeros(outcomes))
        value, product = np.empty(u.size), np.empty(u.size)
        a, mean = 1.3, 0.4
        shift, scale = np.exp(-a * mean), np.exp(-a * u)
        top = kernels._likelihood(0, chain, at, a, shift, scale, u, value, product)
        x = a * (mean + u[:, None]) - np.log(odds)
        told = np.where(won == 1, log_expit(x), log_expit(-x)).sum(axis=1)
        without_skill = -(np.log(odds) * (1 - won)).sum()  # what does not go with skill is added elsewhere
        np.testing.assert_allclose(np.log(value) + top, told + without_skill, rtol=1e-10, atol=1e-10)
    assert table.shape[1:] == (3, kernels.TAPS + 1)


def kernels_chain(outcomes: int, won: np.ndarray) -> Chain:
    """One rider with one occasion of so many outcomes, each an item of its own."""
    one = np.array([0, 1])
    return Chain(
        one, np.array([0, outcomes]), np.arange(outcomes, dtype=np.int32), np.ones(outcomes), won,
        np.array([float(outcomes)]), np.array([won.sum()]), np.zeros(1), np.full(1, 0.4),
    )  # fmt: skip


def test_its_smoothing_has_no_bounds() -> None:
    """The walk stands where coefficients of a density would, and the bounds of a density's precisions are not its own:
    they once kept the curve of moving skill from being smooth, and exposure from being shrunk."""
    cohort = Cohort()
    shape = cohort.likelihood.shape(cohort.curve.at(1.0, cohort.p.shared, cohort.p.own))
    problem = MovingProblem(cohort.likelihood, cohort.curve, np.zeros(shape.size, np.int64), shape)
    rho = np.array([19.0, 12.0, -11.0])
    np.testing.assert_array_equal(problem.limited(rho), rho)
