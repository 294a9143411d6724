"""Products of tall, narrow matrices, in pieces that BLAS takes on one thread.

OpenBLAS starts its threads above 2^18 multiply-adds in a matrix product, and above about 9,000 in a matrix-vector
product. For matrices of some thousand rows and twenty columns waking them costs more than the product itself (measured:
18 times the CPU time of a whole fit on a busy machine), and the sums would be divided by their number.
"""

from __future__ import annotations

import numpy as np

from isuit.domain import FloatArray

_ONE_THREAD = 250_000  # multiply-adds
_WIDE = 200  # from so many columns on, threads pay


def product(tall: FloatArray, square: FloatArray) -> FloatArray:
    """tall @ square."""
    rows = _rows(square.shape[0] * square.shape[1])
    if tall.shape[0] <= rows or square.shape[1] > _WIDE:
        return np.asarray(tall @ square)
    return np.concatenate([tall[k : k + rows] @ square for k in range(0, tall.shape[0], rows)])


def gram(left: FloatArray, right: FloatArray) -> FloatArray:
    """left.T @ right, summed over pieces in their order."""
    rows = _rows(left.shape[1] * right.shape[1])
    if left.shape[0] <= rows or right.shape[1] > _WIDE:
        return np.asarray(left.T @ right)
    total = np.zeros((left.shape[1], right.shape[1]))
    for k in range(0, left.shape[0], rows):
        total += left[k : k + rows].T @ right[k : k + rows]
    return total


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """matrix @ vector."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def transposed_times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """matrix.T @ vector."""
    return np.asarray(np.einsum("ij,i->j", matrix, vector))


def _rows(per_row: int) -> int:
    return max(1, _ONE_THREAD // max(1, per_row))
