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
from scipy.sparse import csr_matrix, hstack, issparse

from isuit.domain import FloatArray, IntArray

from .counts import Counts

NODES = 11
# Terms of the posterior variance of the score, in polynomials of skill orthonormal under the rider's posterior:
# five leave a relative error below 1e-4 in the information even for riders with one outcome.
VARIANCE_TERMS = 5
_BLOCK_ENTRIES = 12_000  # sparse entries in a block: its arrays (entries x nodes) stay in the cache
_THREADS = 2

_T = TypeVar("_T")
_z, _w = np.polynomial.hermite_e.hermegauss(NODES)
NODE: FloatArray = _z
LOG_WEIGHT: FloatArray = np.log(_w / _w.sum()) + _z**2 / 2

Matrix = Any  # a numpy array or a scipy.sparse.csr_matrix; designs with sites are sparse


@dataclass(frozen=True)
class Curve:
    """f at each item, its design (items x coefficients), and its derivative with respect to the discrimination.

    `by_a` is zero unless an anchor curve, which depends on the discrimination, is part of f.
    """

    value: FloatArray
    design: Matrix
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

    The prior of skill is normal with variance one about `regressors @ population coefficients`, or about zero.
    """

    def __init__(self, counts: Counts, regressors: Matrix | None = None) -> None:
        self.counts = counts
        self.regressors = regressors
        self._blocks = _blocks(counts)

    def prior_mean(self, population: FloatArray) -> FloatArray:
        if self.regressors is None:
            return np.zeros(self.counts.riders)
        return np.asarray(self.regressors @ population)

    def locate(self, a: float, f: FloatArray, population: FloatArray, start: FloatArray, steps: int) -> Nodes:
        """Mode and curvature of each rider's log posterior, by Newton steps from a start."""
        prior_mean = self.prior_mean(population)

        def of_block(block: _Block) -> tuple[FloatArray, FloatArray]:
            centre = start[block.riders].copy()
            successes = self.counts.rider_successes[block.riders]
            f_entry = f[block.item]
            for _ in range(steps):
                p = 1.0 / (1.0 + np.exp(f_entry - a * centre[block.rows]))
                gradient = a * (successes - block.summing @ p) - (centre - prior_mean[block.riders])
                curvature = 1.0 + a * a * (block.summing @ (p * (1.0 - p)))
                # The posterior is log-concave, so a bound on the step is all the safeguard that is needed.
                centre += np.clip(gradient / curvature, -1.0, 1.0)
            p = 1.0 / (1.0 + np.exp(f_entry - a * centre[block.rows]))
            return centre, 1.0 / np.sqrt(1.0 + a * a * (block.summing @ (p * (1.0 - p))))

        parts = list(self._over_blocks(of_block))
        return Nodes(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))

    def evaluate(self, a: float, curve: Curve, population: FloatArray, nodes: Nodes, information: bool = False) -> Pass:
        """Log-likelihood and gradient with the nodes held, and the observed information when asked for."""
        counts, f = self.counts, curve.value
        prior_mean = self.prior_mean(population)
        odds = np.exp(np.clip(f, -300.0, 300.0))
        log_likelihood = float((counts.item_trials - counts.item_successes) @ f)
        expected = np.zeros(counts.items)
        score_a = 0.0
        gaps, thetas, weights = [], [], []
        moments = np.zeros((3, counts.items))
        missing: Matrix = 0.0

        def of_block(block: _Block) -> tuple[Any, ...]:
            successes = counts.rider_successes[block.riders][:, None]
            mean = prior_mean[block.riders]
            scale = nodes.scale[block.riders]
            theta = nodes.centre[block.riders][:, None] + scale[:, None] * NODE
            # exp(f - a theta) as a product: one exponential per item and per node instead of one per entry and node.
            ratio = np.exp(-a * theta)[block.rows]
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
                self._score_variance(block, theta, weight, p, shortfall, curve),
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
                missing = missing + part[7]

        residual = counts.item_successes - expected
        in_population = [] if self.regressors is None else self.regressors.T @ np.concatenate(gaps)
        gradient = np.concatenate(
            [[score_a - float(residual @ curve.by_a)], -(curve.design.T @ residual), in_population]
        )
        posterior = Posterior(np.concatenate(thetas), np.concatenate(weights))
        observed = self._complete(curve, moments) - _dense(missing) if information else None
        return Pass(log_likelihood, gradient, observed, residual, posterior)

    def skill_variance(
        self, a: float, curve: Curve, nodes: Nodes, posterior: Posterior, covariance: FloatArray
    ) -> FloatArray:
        """What the parameters' uncertainty adds to the variance of each rider's posterior mean (delta method)."""
        centred = posterior.weight * (posterior.theta - posterior.mean[:, None])

        def of_block(block: _Block) -> FloatArray:
            theta = posterior.theta[block.riders]
            c = centred[block.riders]
            p = 1.0 / (1.0 + np.exp(curve.value[block.item][:, None] - (a * theta)[block.rows]))
            shortfall = theta * (self.counts.rider_successes[block.riders][:, None] - block.summing @ p)
            slope = _dense(self._score_column(block, theta, c, p, shortfall, curve))
            return np.asarray(np.einsum("rm,rm->r", slope @ covariance, slope))

        return np.concatenate(list(self._over_blocks(of_block)))

    def _score_variance(
        self,
        block: _Block,
        theta: FloatArray,
        weight: FloatArray,
        p: FloatArray,
        shortfall: FloatArray,
        curve: Curve,
    ) -> Matrix:
        """The sum over the block's riders of the posterior variance of the complete-data score."""
        total: Matrix = 0.0
        for polynomial in _orthonormal_polynomials(weight):
            column = self._score_column(block, theta, weight * polynomial, p, shortfall, curve)
            total = total + column.T @ column
        return total

    def _score_column(
        self,
        block: _Block,
        theta: FloatArray,
        coefficient: FloatArray,
        p: FloatArray,
        shortfall: FloatArray,
        curve: Curve,
    ) -> Matrix:
        """Each rider's complete-data score summed over nodes with the given coefficients, which sum to zero.

        Terms of the score that do not vary with skill drop out.
        """
        by_entry = block.trials * np.einsum("eq,eq->e", coefficient[block.rows], p)
        weighted = csr_matrix((by_entry, block.item, block.indptr), shape=(block.rider_trials.size, self.counts.items))
        in_a = np.einsum("rq,rq->r", coefficient, shortfall) + weighted @ curve.by_a
        parts = [in_a[:, None], weighted @ curve.design]
        if self.regressors is not None:
            drift = np.einsum("rq,rq->r", coefficient, theta)
            parts.append(_scale_rows(self.regressors[block.riders], drift))
        return hstack(parts, format="csr") if any(map(issparse, parts)) else np.hstack(parts)

    def _complete(self, curve: Curve, moments: FloatArray) -> FloatArray:
        """The information if skills were known: a logistic regression on (theta - df/da, -design)."""
        v0, v1, v2 = moments
        columns = 1 + curve.design.shape[1]
        size = columns + (0 if self.regressors is None else self.regressors.shape[1])
        total = np.zeros((size, size))
        total[0, 0] = float(np.sum(v2 - 2 * curve.by_a * v1 + curve.by_a**2 * v0))
        total[0, 1:columns] = total[1:columns, 0] = curve.design.T @ (curve.by_a * v0 - v1)
        total[1:columns, 1:columns] = _dense(curve.design.T @ _scale_rows(curve.design, v0))
        if self.regressors is not None:
            total[columns:, columns:] = _dense(self.regressors.T @ self.regressors)
        return total

    def _over_blocks(self, task: Callable[[_Block], _T]) -> Iterator[_T]:
        """Run the task over all blocks, on both cores where that pays; results come in the order of the blocks."""
        if len(self._blocks) < 4:
            yield from map(task, self._blocks)
            return
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(task, self._blocks)


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
        before, now = now, following / norm[:, None]
        yield now


def _scale_rows(matrix: Matrix, by: FloatArray) -> Matrix:
    if issparse(matrix):
        return matrix.multiply(by[:, None]).tocsr()
    return matrix * by[:, None]


def _dense(matrix: Matrix) -> FloatArray:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)
