"""The marginal likelihood when skill moves: each rider's whole path is integrated out.

    theta_r(t) = regressors_r(t)' gamma + u_r(t),   u_r N(0, 1) at the first occasion and a random walk from there,

whose variance grows by walk^2 in a unit of time. The sums over a rider's occasions are in `moving_kernels.py`. It has
the interface of `MarginalLikelihood`, with one more parameter at the end of the border: the walk, an sd. The likelihood
is even in it, so that a cohort whose skill stands still has its maximum at zero, with a curvature there.

The gradient is exact (Fisher's identity). Of the information, the observed one of every rider would take a pass for
each parameter. It is the sum over all riders of squared scores, corrected by what the exact information of some riders,
found by differences of their exact gradient, is more or less than their squared scores. With `EXACT` outcomes or fewer
these are all riders, and it is the observed information itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray, IntArray

from ..model.arrow import Arrow, Factor, Shape
from ..model.counts import Counts
from ..model.curves import Curve
from ..model.density import NORMAL
from ..model.population import Population
from . import moving_kernels as compiled_loops
from .far import Near, windows_of
from .grids import AtItems, added, lanes, over
from .quadrature import MarginalLikelihood, Parameters, Pass, Posterior
from .solver import Problem

kernels: Any = compiled_loops
EXACT = 40_000  # outcomes whose information is had by differences
_LEAST_SHARE = 4  # so much less is enough where some riders only give a start
_SHORT, _SHORTEST = 0.02, 1e-3  # of a standard error, and at most: the differences' step
_MOST = 300.0  # log odds: further out nothing can be told, and products of odds would overflow
_LEAST_START = 0.1  # of the walk
_OCCASION = 3  # entries that an occasion costs as much as


@dataclass(frozen=True)
class MovingParameters(Parameters):
    """With the sd by which skill moves in a unit of time."""

    walk: float = 0.0


class Chain(NamedTuple):
    """Riders' occasions and their outcomes, as the loops read them."""

    riders: IntArray  # of rider r: occasions riders[r] to riders[r + 1]
    entries: IntArray  # of occasion o: entries[o] to entries[o + 1]
    item: NDArray[np.int32]
    trials: FloatArray
    won: FloatArray
    outcomes: FloatArray  # of each occasion
    successes: FloatArray
    gap: FloatArray  # time since the occasion before
    mean: FloatArray  # prior mean

    @classmethod
    def of(cls, riders: IntArray, counts: Counts, gap: FloatArray) -> Chain:
        return cls(
            np.ascontiguousarray(riders, np.int64),
            counts.trials.indptr.astype(np.int64),
            counts.trials.indices,
            counts.trials.data,
            counts.successes.data.astype(np.float64),
            np.ascontiguousarray(counts.rider_trials),
            np.ascontiguousarray(counts.rider_successes),
            np.ascontiguousarray(gap),
            np.zeros(gap.size),
        )


@dataclass(frozen=True)
class MovingPosterior(Posterior):
    """Each rider's posterior at the last occasion, as that of a fit, and at every occasion."""

    walk: float
    occasion_mean: FloatArray  # of theta
    occasion_sd: FloatArray


class MovingLikelihood(MarginalLikelihood):
    """Of occasions' counts, which `counts` has by rider; `regressors` are those of each occasion's prior mean."""

    def __init__(
        self, counts: Counts, population: Population, riders: IntArray, by_occasion: Counts, gap: FloatArray,
        regressors: FloatArray, exact: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(counts, population, 1)
        self._exact = EXACT if exact is None else exact
        self.by_occasion, self.regressors = by_occasion, np.ascontiguousarray(regressors)
        self.chain = Chain.of(riders, by_occasion, gap)

    def shape(self, curve: Curve) -> Shape:
        """Border: discrimination, shared curve, regressors, walk."""
        return Shape(2 + curve.design.shared_size + self.regressors.shape[1], 0, 0)

    def of_riders(self, chosen: slice | IntArray) -> MovingLikelihood:
        """The same for some of the riders."""
        who = np.arange(self.counts.riders)[chosen]
        size = np.diff(self.chain.riders)[who]
        riders = np.concatenate([[0], np.cumsum(size)])
        which = np.repeat(self.chain.riders[:-1][who] - riders[:-1], size) + np.arange(riders[-1])
        counts = self.counts.of_riders(chosen)
        exact = max(self._exact * who.size // max(1, self.counts.riders), EXACT // _LEAST_SHARE)
        return MovingLikelihood(
            counts, self.population.of_riders(counts, chosen), riders, self.by_occasion.of_riders(which),
            self.chain.gap[which], self.regressors[which], exact,
        )  # fmt: skip

    @property
    def samples_information(self) -> bool:  # type: ignore[override]
        """Whether the information is told by some riders only."""
        return self._some[0] is not self

    @cached_property
    def _lanes(self) -> list[tuple[int, int]]:
        occasions = self.chain.riders
        return lanes(self.chain.entries[occasions] + _OCCASION * occasions)

    @cached_property
    def _some(self) -> tuple[MovingLikelihood, slice]:
        """The riders whose information is had by differences: all, or every second, third and so on."""
        every = slice(None, None, max(1, int(np.ceil(self.counts.trials.sum() / self._exact))))
        return (self if every.step == 1 else self.of_riders(every)), every

    def evaluate(self, p: Parameters, curve: Curve, windows: Near | None = None, information: bool = False) -> Pass:
        """As of a `MarginalLikelihood`."""
        assert isinstance(p, MovingParameters)
        windows = None if windows is None else windows_of(windows)
        found, scores = self._pass(p, curve, windows, information)
        if scores is None:
            return found
        squares = scores.T @ scores
        some, every = self._some
        at, own = some._pass(p, curve, found.posterior.windows[every], True)
        assert own is not None
        exact = some._by_differences(p, curve, at, np.diag(squares))
        observed = squares + (self.counts.riders / some.counts.riders) * (exact - own.T @ own)
        return replace(found, information=_arrow(observed), complete=_arrow(_floored(squares)))

    def _pass(
        self, p: MovingParameters, curve: Curve, windows: IntArray | None, scored: bool
    ) -> tuple[Pass, FloatArray | None]:
        """One pass; with each rider's score where asked for."""
        chain = self.chain._replace(mean=self.regressors @ p.regression)
        riders, occasions = self.counts.riders, self.chain.gap.size
        f = np.clip(curve.value, -_MOST, _MOST)
        at, table = AtItems.of(f, curve.by_a), kernels.kernel_table()
        windows = np.zeros((riders, 3), np.int64) if windows is None else windows.copy()
        mean, sd, pull = (np.empty(occasions) for _ in range(3))
        moved, by_rider = np.empty(riders), np.empty(riders)
        design = curve.design
        scores = np.zeros((riders if scored else 0, 1 + design.shared.shape[0]))

        def of_lane(lane: tuple[int, int]) -> tuple[float, float, int, FloatArray]:
            expected = np.zeros(self.counts.items)
            found = kernels.chains(
                *lane, chain, at, p.a, p.walk**2, windows, table, mean, sd, pull, moved, by_rider, design.rows, scores,
                expected,
            )  # fmt: skip
            return (*found, expected)

        found = over(self._lanes, of_lane)
        counts = self.counts
        residual = counts.item_successes - added([expected for *_, expected in found])
        value = float((counts.item_trials - counts.item_successes) @ f) + sum(one for one, *_ in found)
        shared, _ = design.pull_back(-residual)
        gradient = np.concatenate(
            [[sum(one for _, one, *_ in found)], shared, self.regressors.T @ pull, [2.0 * p.walk * moved.sum()]]
        )
        theta = chain.mean + mean
        last = np.maximum(chain.riders[1:] - 1, 0)
        empty = np.diff(chain.riders) == 0
        posterior = MovingPosterior(
            self, p.a, at, np.where(empty, 0.0, chain.mean[last]), NORMAL, windows,
            np.where(empty, 0.0, theta[last]), np.where(empty, 1.0, sd[last]), pull, p.walk, theta, sd,
        )  # fmt: skip
        exact = not any(short for _, _, short, _ in found)
        found_pass = Pass(value, gradient, None, None, residual, posterior, exact)
        if not scored:
            return found_pass, None
        whole = np.zeros((riders, gradient.size))
        whole[:, 0] = scores[:, 0]
        whole[:, 1 : 1 + design.shared_size] = scores[:, 1:] @ design.shared
        full = ~empty
        if occasions and self.regressors.shape[1]:
            by_occasion = pull[:, None] * self.regressors
            whole[full, 1 + design.shared_size : -1] = np.add.reduceat(by_occasion, chain.riders[:-1][full], axis=0)
        whole[:, -1] = 2.0 * p.walk * moved
        return found_pass, whole

    def rate_scores(self, p: MovingParameters, curve: Curve) -> tuple[FloatArray, FloatArray]:
        """Each rider's score of the walk's squared sd, and of the other parameters; where skill stands still too."""
        small = replace(p, walk=max(abs(p.walk), 1e-4))
        _, scores = self._pass(small, curve, None, True)
        assert scores is not None
        return scores[:, -1] / (2.0 * small.walk), scores[:, :-1]

    def _by_differences(self, p: MovingParameters, curve: Curve, at: Pass, squares: FloatArray) -> FloatArray:
        """The observed information, but for second derivatives of the curve, from differences of the gradient."""
        size, n = at.gradient.size, 1 + p.shared.size
        result = np.empty((size, size))
        for k in range(size):
            by = min(_SHORTEST, _SHORT / np.sqrt(max(float(squares[k]), 1e-300)))
            moved, there = _moved(p, curve, k, n, by)
            gradient = self._pass(moved, there, at.posterior.windows, False)[0].gradient
            result[k] = (at.gradient - gradient) / by
        return np.asarray((result + result.T) / 2)

    def skill_variance(self, posterior: Posterior, curve: Curve, factor: Factor) -> FloatArray:
        """What parameters' uncertainty adds to the variance at each rider's last occasion."""
        raise NotImplementedError  # `path_variance` has it of every occasion

    def path_variance(self, p: MovingParameters, curve: Curve, at: Pass, covariance: FloatArray) -> FloatArray:
        """What parameters' uncertainty adds to the variance of skill at each occasion (delta method, by differences).

        Of a large cohort it is found for some riders, and their mean stands for all: it hardly differs, and is small.
        """
        some, every = self._some
        value, vector = np.linalg.eigh(covariance)
        windows = at.posterior.windows[every]
        here = some._pass(p, curve, windows, False)[0].posterior
        assert isinstance(here, MovingPosterior)
        result = np.zeros(here.occasion_mean.size)
        for k in range(value.size):
            direction = vector[:, k] * np.sqrt(max(float(value[k]), 0.0)) * _SHORT
            moved, there = _moved_along(p, curve, direction)
            after = some._pass(moved, there, windows, False)[0].posterior
            assert isinstance(after, MovingPosterior)
            result += ((after.occasion_mean - here.occasion_mean) / _SHORT) ** 2
        return result if some is self else np.full(self.chain.gap.size, result.mean())

    def predict(self, p: MovingParameters, curve: Curve, occasion: IntArray, f: FloatArray) -> FloatArray:
        """Posterior-predictive probabilities of success at these occasions, one each, in conditions of these f."""
        chain = self.chain._replace(mean=self.regressors @ p.regression)
        order = np.argsort(occasion, kind="stable")
        asked = np.concatenate([[0], np.cumsum(np.bincount(occasion, minlength=chain.gap.size))])
        at, table = AtItems.of(np.clip(curve.value, -_MOST, _MOST), curve.by_a), kernels.kernel_table()
        windows, ordered, found = np.zeros((self.counts.riders, 3), np.int64), f[order], np.empty(f.size)

        def of_lane(lane: tuple[int, int]) -> None:
            kernels.predictions(*lane, chain, at, p.a, p.walk**2, windows, table, asked, ordered, found)

        over(self._lanes, of_lane)
        result = np.empty(f.size)
        result[order] = found
        return result


def _arrow(border: FloatArray) -> Arrow:
    return Arrow.uncoupled(border, np.zeros((0, 0, len(border))), np.zeros((0, 0, 0)))


def _floored(squares: FloatArray) -> FloatArray:
    """Positive definite, also where skill stands still and no rider has a score of the walk."""
    floor = np.maximum(np.diag(squares), 1e-8 * float(np.max(np.diag(squares), initial=1.0)))
    result = squares.copy()
    np.fill_diagonal(result, floor)
    return result


def _moved(p: MovingParameters, curve: Curve, k: int, n: int, by: float) -> tuple[MovingParameters, Curve]:
    direction = np.zeros(n + p.regression.size + 1)
    direction[k] = by
    return _moved_along(p, curve, direction)


def _moved_along(p: MovingParameters, curve: Curve, direction: FloatArray) -> tuple[MovingParameters, Curve]:
    """The parameters a little further; the curve follows straight, its own bend is `with_curvature`'s."""
    n = 1 + p.shared.size
    moved = replace(
        p,
        a=p.a + float(direction[0]),
        shared=p.shared + direction[1:n],
        regression=p.regression + direction[n:-1],
        walk=p.walk + float(direction[-1]),
    )
    value = curve.value + curve.by_a * direction[0] + curve.design.apply(direction[1:n], np.zeros((0, 0)))
    return moved, replace(curve, value=value)


@dataclass(frozen=True)
class MovingProblem(Problem):
    """A problem whose last parameter is the walk."""

    def parameters(self, phi: FloatArray) -> MovingParameters:
        n, nothing = 1 + self.curve.plain.shared_size, np.zeros(0)
        still = (float(phi[0]), phi[1:n], np.zeros((0, 0)), phi[n:-1], nothing, NORMAL)
        return MovingParameters(*still, walk=float(phi[-1]))

    def roused(self, phi: FloatArray) -> FloatArray:
        """With a walk: at none the likelihood, which is even in it, has no slope, be it a maximum there or not."""
        awake = phi.copy()
        awake[-1] = max(abs(float(phi[-1])), _LEAST_START)
        return awake

    @property
    def estimates_density(self) -> bool:
        """No: the walk stands where coefficients of a density would."""
        return False
