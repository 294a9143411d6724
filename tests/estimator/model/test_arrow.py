"""Arrows against plain matrices: products, solutions, blocks of the inverse, and what is not positive definite."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from isuit.domain import FloatArray
from isuit.estimator.model import cholesky, own_part
from isuit.estimator.model.arrow import Arrow, Factor
from isuit.estimator.model.own_part import Coupled


def made(places: int, width: int = 4, border: int = 5, riders: int = 400, seed: int = 1) -> Arrow:
    """The information of a regression of riders' outcomes at two or three places each, skill not known.

    A rider's level is a random effect: that is what couples places, as in a fit.
    """
    generator = np.random.default_rng(seed)
    size = border + places * width
    whole = np.zeros((size, size))
    for _ in range(riders):
        visited = np.sort(generator.choice(places, generator.integers(1, 4), replace=False))
        rows = np.zeros((8 * visited.size, size))
        rows[:, :border] = generator.normal(size=(len(rows), border))
        for k, place in enumerate(visited):
            own = generator.normal(size=(8, width))
            own[:, 0] = 1.0
            rows[8 * k : 8 * k + 8, border + place * width : border + (place + 1) * width] = own
        known = rows - rows.mean(axis=0) * 0.9
        whole += known.T @ known
    whole += 0.5 * np.eye(size)
    return of_dense(whole, places, width, border)


def of_dense(whole: FloatArray, places: int, width: int, border: int) -> Arrow:
    own = whole[border:, border:].reshape(places, width, places, width)
    first, second = np.triu_indices(places, 1)
    linked = np.abs(own[first, :, second, :]).max(axis=(1, 2)) > 0
    first, second = first[linked], second[linked]
    every = np.arange(places)
    return Arrow(
        whole[:border, :border],
        whole[border:, :border].reshape(places, width, border),
        own[every, :, every, :],
        own[first, :, second, :],
        first,
        second,
    )


def test_an_arrow_is_its_plain_matrix() -> None:
    matrix = made(6)
    plain, x = matrix.dense(), np.random.default_rng(0).normal(size=(matrix.shape.size, 2))
    assert np.array_equal(plain, plain.T)
    assert matrix.times(x) == pytest.approx(plain @ x)
    assert matrix.times(x[:, 0]) == pytest.approx(plain @ x[:, 0])
    assert matrix.diagonal() == pytest.approx(np.diag(plain))
    assert matrix.plus(np.arange(30.0)[: matrix.shape.size]).dense() == pytest.approx(
        plain + np.diag(np.arange(30.0)[: matrix.shape.size])
    )


@pytest.mark.parametrize("dense", [True, False])
def test_solutions_are_those_of_the_plain_matrix(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_part, "DENSE", 10**6 if dense else 0)
    matrix = made(30)
    factor = Factor(matrix, tolerance=1e-12)
    assert isinstance(factor.own, Coupled) != dense
    right = np.random.default_rng(0).normal(size=(matrix.shape.size, 3))
    assert factor.solve(right, 1e-12) == pytest.approx(np.linalg.solve(matrix.dense(), right), abs=1e-9)
    inverse = np.linalg.inv(matrix.dense())
    n = matrix.shape.border
    assert factor.border == pytest.approx(inverse[:n, :n], abs=1e-9)
    assert factor.cross.reshape(-1, n) == pytest.approx(inverse[n:, :n], abs=1e-9)
    if dense:
        assert factor.inverse() == pytest.approx(inverse, abs=1e-9)
        assert factor.diagonal() == pytest.approx(np.diag(inverse), abs=1e-9)
        assert factor.log_determinant == pytest.approx(np.linalg.slogdet(matrix.dense())[1])


def test_columns_that_have_arrived_go_on_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a solution that is right in all columns but one, only that one is iterated."""
    monkeypatch.setattr(own_part, "DENSE", 0)
    matrix = made(30)
    solver = Coupled(matrix)
    right = np.random.default_rng(0).normal(size=(30, 4, 6))
    solution = solver.solve(right, None, 1e-12)
    start = solution.copy()
    start[:, :, 2] = 0.0
    columns: list[int] = []
    times = Arrow.own_times
    monkeypatch.setattr(Arrow, "own_times", lambda arrow, x: columns.append(x.shape[2]) or times(arrow, x))
    assert solver.solve(right, start, 1e-9) == pytest.approx(solution, abs=1e-8)
    assert columns[0] == 6
    assert set(columns[1:]) == {1}


def test_places_that_share_no_rider_are_solved_apart() -> None:
    matrix = made(6)
    alone = Arrow.uncoupled(matrix.border, matrix.cross, matrix.own)
    factor = Factor(alone)
    assert factor.inverse() == pytest.approx(np.linalg.inv(alone.dense()), abs=1e-9)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(alone.dense())[1])


def test_blocks_of_many_places_are_those_of_the_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the inverse: standard errors within two thousandths, sums of variances by random signs."""
    monkeypatch.setattr(own_part, "DENSE", 0)
    matrix = made(60, riders=1_500)
    factor = Factor(matrix)
    inverse = np.linalg.inv(matrix.dense())[matrix.shape.border :, matrix.shape.border :]
    exact = inverse.reshape(60, 4, 60, 4)[np.arange(60), :, np.arange(60), :]
    error = np.sqrt(np.einsum("pww->pw", factor.blocks) / np.einsum("pww->pw", exact)) - 1
    assert np.abs(error).max() < 2e-3
    plain = np.sqrt(np.einsum("pww->pw", np.linalg.inv(matrix.own)) / np.einsum("pww->pw", exact)) - 1
    assert np.abs(plain).max() > 0.02, "without the coupling they would be off"
    assert factor.diagonal()[matrix.shape.border :].sum() == pytest.approx(np.trace(inverse), rel=0.03)


def test_of_more_places_than_fit_a_dense_matrix_those_coupled_most_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the places kept, the others with so strong a prior that they are coupled to nobody much."""
    monkeypatch.setattr(own_part, "DENSE", 0)
    matrix = made(60, riders=1_500)
    strong = np.zeros(matrix.shape.size)
    matrix.shape.split(strong)[1][1::2] = 3.0 * matrix.own[1::2, 0, 0].mean()
    matrix = matrix.plus(strong)
    inverse = np.linalg.inv(matrix.dense())[matrix.shape.border :, matrix.shape.border :]
    exact = np.einsum("pww->pw", inverse.reshape(60, 4, 60, 4)[np.arange(60), :, np.arange(60), :])
    errors = []
    for kept in (60, 30, 0):
        monkeypatch.setattr(own_part, "COARSE", kept)
        errors.append(np.abs(np.sqrt(np.einsum("pww->pw", Factor(matrix).blocks) / exact) - 1).max())
    assert errors[0] < 2e-3
    assert errors[1] < 5e-3
    assert errors[2] > 2 * errors[1], "without any it would be off"


def test_places_that_hang_on_their_prior_are_in_no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that ten times as many of them do not make a matrix of a hundred times the size; their blocks are right."""
    sizes: list[int] = []

    def inverted(matrix: FloatArray) -> FloatArray:
        sizes.append(len(matrix))
        return cholesky.inverted(matrix)

    monkeypatch.setattr(own_part, "DENSE", 0)
    monkeypatch.setattr(own_part, "cholesky", SimpleNamespace(**vars(cholesky) | {"inverted": inverted}))
    matrix = made(60, riders=1_500)
    assert Factor(matrix).blocks.shape == (60, 4, 4)
    strong = np.zeros(matrix.shape.size)
    matrix.shape.split(strong)[1][5:] = 20.0 * matrix.own[:, 0, 0].mean()
    matrix = matrix.plus(strong)
    blocks = Factor(matrix).blocks
    assert sizes[0] == 60
    assert sum(sizes[1:]) <= 5
    inverse = np.linalg.inv(matrix.dense())[matrix.shape.border :, matrix.shape.border :].reshape(60, 4, 60, 4)
    exact = inverse[np.arange(60), :, np.arange(60), :]
    assert np.abs(np.sqrt(np.einsum("pww->pw", blocks) / np.einsum("pww->pw", exact)) - 1).max() < 2e-3


@pytest.mark.parametrize("dense", [True, False])
def test_what_is_not_positive_definite_is_told(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_part, "DENSE", 10**6 if dense else 0)
    matrix = made(12)
    low = np.zeros(matrix.shape.size)
    low[-1] = -1e4
    with pytest.raises(LinAlgError):
        Factor(matrix.plus(low))
    low = np.zeros(matrix.shape.size)
    low[0] = -1e5
    with pytest.raises(LinAlgError):
        Factor(matrix.plus(low))
    # In the border it can be turned round, so that steps go uphill.
    turned = Factor(matrix.plus(low), turned=True)
    gradient = np.random.default_rng(0).normal(size=matrix.shape.size)
    assert gradient @ turned.solve(gradient) > 0
