"""Factors, solutions and inverses against numpy, small and large."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from isuit.estimator.model import cholesky


@pytest.mark.parametrize("size", [1, 24, 230])
def test_it_solves_and_inverts(size: int) -> None:
    root = np.random.default_rng(size).normal(size=(size + 5, size))
    matrix = root.T @ root + np.eye(size)
    right = np.arange(1.0, size + 1)
    lower = cholesky.factor(matrix)
    np.testing.assert_allclose(cholesky.solve(lower, right), np.linalg.solve(matrix, right), rtol=1e-8)
    np.testing.assert_allclose(cholesky.inverse(lower), np.linalg.inv(matrix), atol=1e-10)


def test_an_indefinite_matrix_is_refused() -> None:
    with pytest.raises(LinAlgError):
        cholesky.factor(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_a_curvature_that_is_positive_stays() -> None:
    matrix = np.array([[4.0, 1.0], [1.0, 900.0]])
    assert cholesky.positive(matrix) == pytest.approx(matrix, rel=1e-9)


def test_negative_curvature_is_turned_round() -> None:
    matrix = np.array([[1.0, 3.0], [3.0, 1.0]])  # eigenvalues 4 and -2
    assert cholesky.positive(matrix) == pytest.approx(np.array([[3.0, 1.0], [1.0, 3.0]]))
