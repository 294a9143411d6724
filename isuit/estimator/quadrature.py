"""The marginal likelihood: each rider's skill integrated out on nodes of their own.

For a rider with posterior mode m and curvature 1/s^2 the integral over skill runs over Gauss-Hermite nodes m + s z.
A shared grid fails for riders with hundreds of outcomes, whose posterior falls between two of its nodes; nodes
that move with the rider are right for 3 outcomes and for 3,000.

With f = a * delta the linear predictor is `a * theta - f[item]`, and up to a sum without theta

    log L_r(theta) = a theta (k_r - n_r) - sum_i n_ri log(1 + exp(f_i - a theta)).

One pass over the counts gives the log-likelihood, its exact gradient (with the nodes held), and, when asked,
the observed information by Louis' identity: complete-data information minus the posterior variance of the
complete-data score. Riders are taken in fixed blocks whose sums are added in the order of the blocks, so no
result depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack

from isuit.domain import FloatArray, IntArray

from . import narrow
from .counts import Counts
from .design import Design, gram

NODES = 11
# Terms of the posterior variance of the score, in polynomials of skill orthonormal under the rider's posterior:
# five leave a relative error below 1e-4 in the information even for riders with one outcome.
VARIANCE_TERMS = 6
_BLOCK_ENTRIES = 12_000  # sparse entries in a block: its arrays (entries x nodes) stay in the cache
_THREADS = 2
_LARGEST = 300.0  # exponent: two of them multiplied are still finite, and no probability is that small

_T = TypeVar("_T")
_z, _w = np.polynomial.hermite_e.hermegauss(NODES)
NODE: FloatArray = _z
LOG_WEIGHT: FloatArray = np.log(_w / _w.sum()) + _z**2 / 2


@dataclass(frozen=True)
class Curve:
    """f at each item, its design, and its derivative with respect to the discrimination.

    `by_a` is zero unless an anchor curve, which depends on the discrimination, is part of f.
    """

    value: FloatArray
    design: Design
    by_a: FloatArray


@dataclass(frozen=True)
class Nodes:
    """Where each rider's quadrature stands."""

    centre: FloatArray
    scale: FloatArray


@dataclass(frozen=True)
class Posterior:
    """Each rider's skill posterior on its nodes; rows of `weight` sum to one."""

    theta: FloatArray
    weight: FloatArray

    @property
    def mean(self) -> FloatArray:
        return np.asarray((self.weight * self.theta).sum(axis=1))

    @property
    def sd(self) -> FloatArray:
        centred = self.theta - self.mean[:, None]
        return np.asarray(np.sqrt((self.weight * centred**2).sum(axis=1)))


@dataclass(frozen=True)
class Pass:
    """What one pass found; vectors and matrices run over (a, curve coefficients, population coefficients)."""

    log_likelihood: float
    gradient: FloatArray
    information: FloatArray | None
    item_residual: FloatArray  # successes minus expected successes
    posterior: Posterior


@dataclass(frozen=True)
class _Block:
    riders: slice
    indptr: IntArray
    rows: IntArray  # rider of each entry, counted from the block's first
    item: IntArray
    trials: FloatArray
    rider_trials: FloatArray
    summing: csr_matrix  # sums entries, weighted by their trials, by rider


class MarginalLikelihood:
    """The likelihood of a cohort's counts with skill integrated out.

    The prior of skill is normal with variance one about the population's design applied to its coefficients.
    """

    def __init__(self, counts: Counts, population: Design) -> None:
        self.counts = counts
        self.population = population
        self._blocks = _blocks(counts)

    def locate(self, a: float, f: FloatArray, population: FloatArray, start: FloatArray, steps: int) -> Nodes:
        """Mode and curvature of each rider's log posterior, by Newton steps from a start."""
        prior_mean = self.population.apply(population)

        def of_block(block: _Block) -> tuple[FloatArray, FloatArray]:
            centre = start[block.riders].copy()
            successes = self.counts.rider_successes[block.riders]
            f_entry = f[block.item]
            for _ in range(steps):
                p = 1.0 / (1.0 + np.exp(np.minimum(f_entry - a * centre[block.rows], _LARGEST)))
                gradient = a * (successes - block.summing @ p) - (centre - prior_mean[block.riders])
                curvature = 1.0 + a * a * (block.summing @ (p * (1.0 - p)))
                # The posterior is log-concave, so a bound on the step is all the safeguard that is needed.
                centre += np.clip(gradient / curvature, -1.0, 1.0)
            p = 1.0 / (1.0 + np.exp(np.minimum(f_entry - a * centre[block.rows], _LARGEST)))
            return centre, 1.0 / np.sqrt(1.0 + a * a * (block.summing @ (p * (1.0 - p))))

        parts = list(self._over_blocks(of_block))
        return Nodes(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))

    def evaluate(self, a: float, curve: Curve, population: FloatArray, nodes: Nodes, information: bool = False) -> Pass:
        """Log-likelihood and gradient with the nodes held, and the observed information when asked for."""
        counts, f = self.counts, curve.value
        prior_mean = self.population.apply(population)
        odds = np.exp(np.clip(f, -_LARGEST, _LARGEST))
        log_likelihood = float((counts.item_trials - counts.item_successes) @ f)
        expected = np.zeros(counts.items)
        score_a = 0.0
        gaps, thetas, weights = [], [], []
        moments = np.zeros((3, counts.items))
        missing = _SecondMoments()

        def of_block(block: _Block) -> tuple[Any, ...]:
            successes = counts.rider_successes[block.riders][:, None]
            mean = prior_mean[block.riders]
            scale = nodes.scale[block.riders]
            theta = nodes.centre[block.riders][:, None] + scale[:, None] * NODE
            # exp(f - a theta) as a product: one exponential per item and per node instead of one per entry and node.
            ratio = np.exp(np.clip(-a * theta, -_LARGEST, _LARGEST))[block.rows]
            ratio *= odds[block.item][:, None]
            ratio += 1.0
            log_joint = a * theta * (successes - block.rider_trials[:, None]) - block.summing @ np.log(ratio)
            log_joint += LOG_WEIGHT - 0.5 * (theta - mean[:, None]) ** 2
            top = log_joint.max(axis=1)
            weight = np.exp(log_joint - top[:, None])
            total = weight.sum(axis=1)
            weight /= total[:, None]
            value = float(np.sum(top + np.log(total) + np.log(scale)))
            p = np.divide(1.0, ratio, out=ratio)
            entry_weight = weight[block.rows]
            by_entry = block.trials * np.einsum("eq,eq->e", entry_weight, p)
            by_item = np.bincount(block.item, weights=by_entry, minlength=counts.items)
            shortfall = theta * (successes - block.summing @ p)
            in_a = float(np.einsum("rq,rq->", weight, shortfall))
            gap = np.einsum("rq,rq->r", weight, theta) - mean
            result = (value, by_item, in_a, gap, theta, weight)
            if not information:
                return result
            return (
                *result,
                _complete_moments(block, theta, entry_weight, p, counts.items),
                [
                    self._score(block, theta, weight * polynomial, p, shortfall, curve)
                    for polynomial in _orthonormal_polynomials(weight)
                ],
            )

        for part in self._over_blocks(of_block):
            log_likelihood += part[0]
            expected += part[1]
            score_a += part[2]
            gaps.append(part[3])
            thetas.append(part[4])
            weights.append(part[5])
            if information:
                moments += part[6]
                missing.add(part[7])

        residual = counts.item_successes - expected
        gradient = np.concatenate(
            [
                [score_a - float(residual @ curve.by_a)],
                -curve.design.pull_back(residual),
                self.population.pull_back(np.concatenate(gaps)),
            ]
        )
        posterior = Posterior(np.concatenate(thetas), np.concatenate(weights))
        observed = None
        if information:
            observed = self._complete(curve, moments) - self._in_order_of_parameters(missing.total(), curve)
        return Pass(log_likelihood, gradient, observed, residual, posterior)

    def skill_variance(self, a: float, curve: Curve, posterior: Posterior, covariance: FloatArray) -> FloatArray:
        """What the parameters' uncertainty adds to the variance of each rider's posterior mean (delta method)."""
        centred = posterior.weight * (posterior.theta - posterior.mean[:, None])
        order = self._parameter_of_column(curve)
        ordered = covariance[np.ix_(order, order)]

        def of_block(block: _Block) -> FloatArray:
            theta = posterior.theta[block.riders]
            c = centred[block.riders]
            p = 1.0 / (1.0 + np.exp(curve.value[block.item][:, None] - (a * theta)[block.rows]))
            shortfall = theta * (self.counts.rider_successes[block.riders][:, None] - block.summing @ p)
            dense, local = self._score(block, theta, c, p, shortfall, curve)
            slope = dense if local is None else np.hstack([dense, local.toarray()])
            return np.asarray(np.einsum("rm,rm->r", narrow.product(slope, ordered), slope))

        return np.concatenate(list(self._over_blocks(of_block)))

    def _score(
        self,
        block: _Block,
        theta: FloatArray,
        coefficient: FloatArray,
        p: FloatArray,
        shortfall: FloatArray,
        curve: Curve,
    ) -> tuple[FloatArray, csr_matrix | None]:
        """Each rider's complete-data score summed over nodes with the given coefficients, which sum to zero.

        Terms of the score that do not vary with skill drop out. Dense columns: a, curve, population; local
        columns: curve, population.
        """
        by_entry = block.trials * np.einsum("eq,eq->e", coefficient[block.rows], p)
        weighted = csr_matrix((by_entry, block.item, block.indptr), shape=(block.rider_trials.size, self.counts.items))
        in_a = np.einsum("rq,rq->r", coefficient, shortfall) + weighted @ curve.by_a
        drift = np.einsum("rq,rq->r", coefficient, theta)[:, None]
        riders = self.population.of_rows(block.riders)
        dense = np.hstack([in_a[:, None], weighted @ curve.design.dense, drift * riders.dense])
        local = []
        if curve.design.local is not None:
            local.append(weighted @ curve.design.local)
        if riders.local is not None:
            local.append(riders.local.multiply(drift).tocsr())
        return dense, hstack(local, format="csr") if local else None

    def _parameter_of_column(self, curve: Curve) -> IntArray:
        """For each column of `_score`, the place of its parameter in (a, curve, population)."""
        inner, outer = curve.design, self.population
        first, second = inner.dense.shape[1], outer.dense.shape[1]
        shift = 1 + inner.size
        return np.concatenate(
            [
                np.arange(1 + first),
                shift + np.arange(second),
                1 + np.arange(first, inner.size),
                shift + np.arange(second, outer.size),
            ]
        )

    def _in_order_of_parameters(self, by_column: FloatArray, curve: Curve) -> FloatArray:
        order = self._parameter_of_column(curve)
        result = np.empty_like(by_column)
        result[np.ix_(order, order)] = by_column
        return result

    def _complete(self, curve: Curve, moments: FloatArray) -> FloatArray:
        """The information if skills were known: a logistic regression on (theta - df/da, -design)."""
        v0, v1, v2 = moments
        columns = 1 + curve.design.size
        size = columns + self.population.size
        total = np.zeros((size, size))
        total[0, 0] = float(np.sum(v2 - 2 * curve.by_a * v1 + curve.by_a**2 * v0))
        total[0, 1:columns] = total[1:columns, 0] = curve.design.pull_back(curve.by_a * v0 - v1)
        total[1:columns, 1:columns] = curve.design.gram(v0)
        total[columns:, columns:] = self.population.gram(np.ones(self.population.rows))
        return total

    def _over_blocks(self, task: Callable[[_Block], _T]) -> Iterator[_T]:
        """Run the task over all blocks, on both cores where that pays; results come in the order of the blocks."""
        if len(self._blocks) < 4:
            yield from map(task, self._blocks)
            return
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(task, self._blocks)


class _SecondMoments:
    """Sums of squares and products of score columns; local parts wait until the end, when one product does."""

    def __init__(self) -> None:
        self._sum: FloatArray | float = 0.0
        self._dense: list[FloatArray] = []
        self._local: list[csr_matrix] = []

    def add(self, columns: list[tuple[FloatArray, csr_matrix | None]]) -> None:
        for dense, local in columns:
            if local is None:
                self._sum = self._sum + gram(dense, None)
            else:
                self._dense.append(dense)
                self._local.append(local)

    def total(self) -> FloatArray:
        if not self._local:
            return np.asarray(self._sum)
        return gram(np.concatenate(self._dense), vstack(self._local, format="csr"))


def _blocks(counts: Counts) -> list[_Block]:
    """Riders in consecutive blocks of about equal numbers of entries."""
    indptr, indices, data = counts.trials.indptr, counts.trials.indices, counts.trials.data
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], _BLOCK_ENTRIES), side="left")
    edges = np.unique(np.concatenate([cuts, [counts.riders]]))
    made = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        low, high = int(indptr[first]), int(indptr[last])
        pointers = (indptr[first : last + 1] - low).astype(np.int64)
        trials = data[low:high]
        summing = csr_matrix((trials, np.arange(high - low), pointers), shape=(last - first, high - low))
        made.append(
            _Block(
                riders=slice(first, last),
                indptr=pointers,
                rows=np.repeat(np.arange(last - first), np.diff(pointers)),
                item=indices[low:high].astype(np.int64),
                trials=trials,
                rider_trials=summing @ np.ones(high - low),
                summing=summing,
            )
        )
    return made


def _complete_moments(
    block: _Block, theta: FloatArray, entry_weight: FloatArray, p: FloatArray, items: int
) -> FloatArray:
    """Per item, the posterior means of p(1-p), theta p(1-p) and theta^2 p(1-p), summed over trials."""
    variance = 1.0 - p
    variance *= p
    variance *= entry_weight
    by_entry = [np.einsum("eq->e", variance)]
    theta_entry = theta[block.rows]
    by_entry.append(np.einsum("eq,eq->e", variance, theta_entry))
    theta_entry *= theta_entry
    by_entry.append(np.einsum("eq,eq->e", variance, theta_entry))
    return np.array([np.bincount(block.item, weights=block.trials * v, minlength=items) for v in by_entry])


def _orthonormal_polynomials(weight: FloatArray) -> Iterator[FloatArray]:
    """Polynomials of degree 1, 2, ... at the nodes, orthonormal under each rider's weights (three-term recurrence)."""
    before, now = np.zeros_like(weight), np.ones_like(weight)
    norm = np.zeros(weight.shape[0])
    for _ in range(VARIANCE_TERMS):
        shift = np.einsum("rq,rq,rq,q->r", weight, now, now, NODE)
        following = (NODE - shift[:, None]) * now - norm[:, None] * before
        norm = np.sqrt(np.einsum("rq,rq,rq->r", weight, following, following))
        # A posterior that all but stands on a few nodes has no further polynomials.
        before, now = now, following / np.where(norm > 1e-12, norm, np.inf)[:, None]
        yield now
