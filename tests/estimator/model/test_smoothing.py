"""The choice of smoothing maximises the approximate marginal likelihood that its module states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from isuit.domain import FloatArray, IntArray
from isuit.estimator.model.arrow import Arrow
from isuit.estimator.model.smoothing import FREE, HIGHEST, LOWEST, STEP, WEAK, choose, precisions


def border_alone(matrix: FloatArray) -> Arrow:
    size = len(matrix)
    return Arrow.uncoupled(matrix, np.zeros((0, 0, size)), np.zeros((0, 0, 0)))


def value(information: FloatArray, b: FloatArray, groups: IntArray, rho: FloatArray) -> float:
    """V of the module's docstring, written out."""
    A = information + np.diag(precisions(rho, groups))
    sizes = np.array([np.sum(groups == m) for m in range(rho.size)])
    return float(b @ np.linalg.solve(A, b) / 2 - np.linalg.slogdet(A)[1] / 2 + sizes @ rho / 2)


def ridge_problem(seed: int, spreads: tuple[float, ...]) -> tuple[FloatArray, FloatArray, IntArray]:
    """A regression whose coefficients have the given sds by group, two of them free."""
    generator = np.random.default_rng(seed)
    groups = np.array([FREE, FREE] + [m for m in range(len(spreads)) for _ in range(12)])
    X = generator.normal(size=(300, groups.size))
    beta = np.where(groups == FREE, 1.0, np.array([*spreads, 0.0])[groups]) * generator.normal(size=groups.size)
    y = X @ beta + generator.normal(size=300)
    return X.T @ X, X.T @ y, groups


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spreads", [(0.3,), (0.5, 0.05), (1.0, 0.2, 0.1)])
def test_choice_is_where_a_general_optimiser_ends(seed: int, spreads: tuple[float, ...]) -> None:
    information, b, groups = ridge_problem(seed, spreads)
    chosen = choose(border_alone(information), b, groups, np.zeros(len(spreads)))
    best = minimize(
        lambda rho: -value(information, b, groups, rho),
        chosen,
        bounds=[(LOWEST, HIGHEST)] * len(spreads),
        method="L-BFGS-B",
    )
    assert value(information, b, groups, chosen) >= -best.fun - 1e-3


def test_choice_is_in_whole_steps_and_does_not_depend_on_the_start() -> None:
    information, b, groups = ridge_problem(1, (0.3, 0.1))
    first = choose(border_alone(information), b, groups, np.array([0.0, 0.0]))
    second = choose(border_alone(information), b, groups, np.array([6.0, -3.0]))
    assert np.abs(first - second).max() <= STEP + 1e-9
    assert first / STEP == pytest.approx(np.round(first / STEP), abs=1e-6)


def test_a_group_of_zeros_is_smoothed_away() -> None:
    information, b, groups = ridge_problem(2, (0.0,))
    b = information @ np.where(groups == FREE, 1.0, 0.0)
    chosen = choose(border_alone(information), b, groups, np.zeros(1))
    coefficients = np.linalg.solve(information + np.diag(precisions(chosen, groups)), b)
    assert np.abs(coefficients[2:]).max() < 1e-3


def test_free_and_weak_coefficients_have_no_precision_to_choose() -> None:
    groups = np.array([FREE, WEAK, 0, 1])
    weight = precisions(np.array([np.log(3.0), np.log(5.0)]), groups)
    assert weight[0] == 0
    assert 0 < weight[1] < 0.1
    assert weight[2:] == pytest.approx([3.0, 5.0])
    assert choose(border_alone(np.eye(2)), np.ones(2), np.array([FREE, FREE]), np.zeros(0)).size == 0
