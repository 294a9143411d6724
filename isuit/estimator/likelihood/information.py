"""The observed information by Louis' identity: what complete data would tell, minus what not knowing skill takes away.

What is taken away is, for each rider, the posterior variance of the complete-data score. For a coefficient of the curve
the score is `sum_i n_ri P_i(theta) B_ij`, a function of skill for every rider and coefficient. Over the narrow range of
a block the probabilities P_i(theta) are all but combinations of a few functions T_d(theta), so

    score_rj(theta) = sum_d T_d(theta) U_rdj,    U_rdj = sum_i n_ri C_id B_ij,

and the variance is U' Cov_r(T) U. The number of functions is chosen so that what they leave is below `PRECISION`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import block_diag, csr_matrix, vstack

from isuit.domain import FloatArray, IntArray

from ..model.design import Design
from .grids import Block

# Of the functions of skill, relative to the largest; the information is off by its square. The more outcomes a rider
# has, the more of what they would tell is taken away, and the more exact must be what is taken.
PRECISION = 1e-4
_OUTCOMES = 20.0


@dataclass(frozen=True)
class Columns:
    """Sums over dense parameters (a, curve, population) and local ones (curve, population)."""

    dense: FloatArray
    across: FloatArray | None  # local x dense
    local: FloatArray | None

    def __add__(self, other: Columns) -> Columns:
        if self.across is None or self.local is None:
            return Columns(self.dense + other.dense, None, None)
        assert other.across is not None
        assert other.local is not None
        return Columns(self.dense + other.dense, self.across + other.across, self.local + other.local)

    def whole(self) -> FloatArray:
        if self.across is None or self.local is None:
            return self.dense
        return np.block([[self.dense, self.across.T], [self.across, self.local]])


@dataclass(frozen=True)
class Slope:
    """How each rider's posterior mean moves with the parameters: its covariance with the complete-data score."""

    dense: FloatArray
    local: csr_matrix | None


def missing(
    block: Block,
    theta: FloatArray,
    weight: FloatArray,
    p: FloatArray,
    score_a: FloatArray,
    curve: Design,
    population: Design,
) -> tuple[Columns, Slope]:
    """Posterior variance of the score summed over the block's riders, and the slope of each rider's mean.

    `p` and `curve` are over the block's items, `population` and `score_a` (on the grid) over its riders.
    """
    across_items, functions = _few_functions(block, weight, p)
    count = len(functions)
    shared = np.vstack([functions, theta - theta.mean()])
    covariance = _covariance(shared, weight, score_a)

    riders, own, outer = block.riders.size, curve.dense.shape[1], population.dense.shape[1]
    expanded = (across_items[:, :, None] * curve.dense[:, None, :]).reshape(p.shape[0], count * own)
    loading = np.zeros((riders, count + 2, 1 + own + outer))  # of each function on each dense parameter
    loading[:, :count, 1 : 1 + own] = (block.trials @ expanded).reshape(riders, count, own)
    loading[:, count, 1 + own :] = population.dense
    loading[:, count + 1, 0] = 1.0
    spread = covariance @ loading
    size = loading.shape[2]
    dense = loading.reshape(-1, size).T @ spread.reshape(-1, size)
    if curve.local is None and population.local is None:
        return Columns(dense, None, None), Slope(spread[:, count], None)

    assert curve.local is not None
    assert population.local is not None
    # Rows of the local loading run over functions first, then riders.
    locally = [block.trials @ curve.local.multiply(across_items[:, d, None]).tocsr() for d in range(count)]
    local = block_diag([vstack(locally, format="csr"), population.local], format="csr")
    k = count + 1
    rows = np.arange(k * riders).reshape(k, riders)
    mixing = csr_matrix(
        (
            covariance[:, :k, :k].transpose(1, 0, 2).ravel(),
            np.broadcast_to(rows.T, (k, riders, k)).ravel(),
            np.arange(0, k * k * riders + 1, k),
        ),
        shape=(k * riders, k * riders),
    )
    mixed = (mixing @ local).tocsr()
    across = local.T @ np.ascontiguousarray(spread[:, :k].transpose(1, 0, 2)).reshape(-1, size)
    return (
        Columns(dense, np.asarray(across), (local.T @ mixed).toarray()),
        Slope(spread[:, count], mixed[count * riders :]),
    )


def _few_functions(block: Block, weight: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities, up to a constant for each item, as items x functions times functions x points."""
    by_point = weight.sum(axis=0) / weight.shape[0]
    by_item = block.trials.T @ np.ones(block.riders.size)
    varying = p - (p @ by_point)[:, None]
    scaled = varying * np.sqrt(by_item)[:, None] * np.sqrt(by_point)
    precision = PRECISION / (1.0 + float(block.outcomes.mean()) / _OUTCOMES)
    chosen, factor = _pivots((scaled.T @ scaled), precision)
    # Columns at the chosen points made orthonormal over items; the functions are the projections on them.
    across_items = solve_triangular(factor, (varying[:, chosen] * np.sqrt(by_point[chosen])).T, lower=True).T
    return across_items, ((across_items * by_item[:, None]).T @ varying)


def _pivots(gram: FloatArray, precision: float) -> tuple[IntArray, FloatArray]:
    """Columns that span the others up to a precision, and the factor of their own products: Cholesky with pivots.

    Eigenvectors would span with one or two fewer, but for matrices of this size LAPACK's routine wakes threads that
    spin: ten times the CPU time.
    """
    left = np.diag(gram).copy()
    rows: list[FloatArray] = []
    chosen: list[int] = []
    least = precision**2 * float(left.max(initial=0.0))
    while len(chosen) < len(gram):
        pivot = int(left.argmax())
        if not left[pivot] > least:
            break
        row = gram[pivot].copy()
        for before in rows:
            row -= before[pivot] * before
        row /= np.sqrt(left[pivot])
        left -= row**2
        left[pivot] = 0.0
        rows.append(row)
        chosen.append(pivot)
    factor = np.array(rows).reshape(len(rows), len(gram))[:, chosen].T
    return np.array(chosen, dtype=np.int64), np.tril(factor)


def _covariance(shared: FloatArray, weight: FloatArray, own: FloatArray) -> FloatArray:
    """Posterior covariance of the shared functions and, last, of one of the rider's own: riders x functions squared."""
    count, riders = len(shared), weight.shape[0]
    mean = weight @ shared.T
    products = (shared[:, None, :] * shared[None, :, :]).reshape(count * count, -1)
    covariance = np.empty((riders, count + 1, count + 1))
    second = (weight @ products.T).reshape(riders, count, count)
    covariance[:, :count, :count] = second - mean[:, :, None] * mean[:, None, :]
    centred = own - np.einsum("rq,rq->r", weight, own)[:, None]
    weighted = weight * centred
    covariance[:, count, :count] = covariance[:, :count, count] = weighted @ shared.T
    covariance[:, count, count] = np.einsum("rq,rq->r", weighted, centred)
    return covariance
