"""Cholesky factors by LAPACK's own routines.

scipy's `cho_factor` and `cho_solve` check and copy their arguments; on matrices of twenty rows, factored a hundred
times in a fit, that costs more than the factor.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from isuit.domain import FloatArray


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
    half, _ = dpotri(lower, lower=1)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)
