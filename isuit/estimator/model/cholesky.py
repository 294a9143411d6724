"""Cholesky factors by LAPACK's own routines.

scipy's `cho_factor` and `cho_solve` check and copy their arguments; on matrices of twenty rows, factored a hundred
times in a fit, that costs more than the factor.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from isuit.domain import FloatArray

_BLOCK = 128  # rows that are mirrored at a time
_TINY = 1e-12


def factor(matrix: FloatArray) -> FloatArray:
    """The lower factor of a symmetric positive definite matrix; what is above the diagonal is of no meaning."""
    lower, info = dpotrf(matrix, lower=1, clean=0)
    if info != 0:
        raise LinAlgError("the matrix is not positive definite")
    return np.asarray(lower)


def solve(lower: FloatArray, right: FloatArray) -> FloatArray:
    """The solution x of `matrix @ x = right`, for a vector or for the columns of a matrix, from the lower factor."""
    solution, _ = dpotrs(lower, right, lower=1)
    return np.asarray(solution)


def inverse(lower: FloatArray) -> FloatArray:
    """The inverse of the matrix that was factored."""
    return _mirrored(dpotri(lower, lower=1)[0])


def inverted(matrix: FloatArray) -> FloatArray:
    """The inverse of a symmetric positive definite matrix in its own room, which is then lost."""
    lower, info = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)  # LAPACK counts columns first
    if info != 0:
        raise LinAlgError("the matrix is not positive definite")
    return _mirrored(dpotri(lower, lower=1, overwrite_c=1)[0])


def _mirrored(whole: FloatArray) -> FloatArray:
    """With what is below the diagonal also above it."""
    for start in range(0, len(whole), _BLOCK):
        end = start + _BLOCK
        square = whole[start:end, start:end]
        square[:] = np.tril(square) + np.tril(square, -1).T
        whole[start:end, end:] = whole[end:, start:end].T
    return np.asarray(whole)


def positive(matrix: FloatArray) -> FloatArray:
    """The matrix, with negative curvature turned round where there is any.

    Far from the maximum an information can be indefinite; steps then go uphill along every direction.
    """
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), _TINY))
    unit = matrix / np.outer(scale, scale)
    # Directions that only a precision identifies are zero up to rounding.
    try:
        factor(unit + _TINY * np.eye(len(unit)))
    except LinAlgError:
        values, vectors = np.linalg.eigh(unit)
        unit = (vectors * np.maximum(np.abs(values), _TINY)) @ vectors.T
    return np.asarray((unit + _TINY * np.eye(len(unit))) * np.outer(scale, scale))
