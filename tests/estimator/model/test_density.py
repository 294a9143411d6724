"""The density of skill: normal without coefficients, of mean 0 and variance 1 with any, and its derivatives by eta."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.domain import FloatArray
from isuit.estimator.model.density import FUNCTIONS, NORMAL, REACH, Density, _functions

U = np.linspace(-20, 20, 160_001)


def coefficients(seed: int, size: float = 0.5) -> FloatArray:
    return size * np.random.default_rng(seed).normal(size=FUNCTIONS)


def moments(density: Density) -> tuple[float, float, float]:
    p = np.exp(density.log_density(U)) * (U[1] - U[0])
    return float(p.sum()), float(p @ U), float(p @ U**2)


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0])
def test_mean_and_variance_are_imposed_whatever_the_coefficients(size: float) -> None:
    density = Density(coefficients(1, size))
    assert moments(density) == pytest.approx((1, 0, 1), abs=2e-3)  # log_density joins the table's points by lines
    assert density.weights.sum() == pytest.approx(1, abs=1e-12)
    assert density.nodes @ density.weights == pytest.approx(0, abs=1e-10)
    assert density.nodes**2 @ density.weights == pytest.approx(1, abs=1e-10)


def test_a_density_that_would_rise_where_nobody_is_has_no_likelihood() -> None:
    """Beyond the tables it could not be integrated, and a fit would climb there for ever."""
    assert np.max(Density(coefficients(1, 5.0)).log_density(U)) < -500


def test_without_coefficients_and_with_zeros_it_is_normal() -> None:
    u = np.linspace(-6, 6, 49)
    expected = -0.5 * u**2 - 0.5 * np.log(2 * np.pi)
    assert NORMAL.log_density(u) == pytest.approx(expected)
    assert Density(np.zeros(FUNCTIONS)).log_density(u) == pytest.approx(expected, abs=1e-9)
    assert np.exp(-NORMAL.nodes) @ NORMAL.weights == pytest.approx(np.exp(0.5))


def test_a_normal_density_has_no_penalty_and_every_function_has_one() -> None:
    """The penalty is the integral of the squared third derivative; 1, u and u^2 are left out of the functions."""
    f = _functions()
    step = f.points[1] - f.points[0]
    assert step * f.third.T @ f.third == pytest.approx(np.eye(FUNCTIONS), abs=1e-5)
    phi = np.exp(-0.5 * f.points**2)
    for power in range(3):
        assert (phi * f.points**power) @ f.value == pytest.approx(np.zeros(FUNCTIONS), abs=1e-8)


def test_scores_and_information_are_the_derivatives() -> None:
    eta, u = coefficients(3), np.linspace(-4, 4, 33)
    density, step = Density(eta), 1e-5
    skill = np.random.default_rng(4).normal(0.3, 1.4, 50)  # not the density's mean and variance
    information = density.information(skill, skill**2)
    for k in range(FUNCTIONS):
        move = np.zeros(FUNCTIONS)
        move[k] = step
        above, below = Density(eta + move), Density(eta - move)
        slope = (above.log_density(u) - below.log_density(u)) / (2 * step)
        assert density.log_density_slope(u)[:, k] == pytest.approx(slope, abs=1e-6)
        change = above.log_density_slope(skill).sum(axis=0) - below.log_density_slope(skill).sum(axis=0)
        assert information[k] == pytest.approx(-change / (2 * step), rel=1e-3, abs=1e-3)


def test_tables_are_the_density_and_its_derivatives() -> None:
    tables = Density(coefficients(5)).tables
    for value, slope in ((tables.log, tables.slope), (tables.slope, tables.bend), (tables.functions, tables.slopes)):
        between = (value[2:, 0] - value[:-2, 0]) / (2 * tables.step)
        inside = np.abs(_functions().points[1:-1]) < REACH - tables.step  # where the second derivative has no jump
        assert np.max(np.abs(between - slope[1:-1, 0])[inside]) < 0.02 * np.max(np.abs(slope[:, 0]))
        assert value[:, 1] / tables.step == pytest.approx(slope[:, 0])


def test_heavy_and_light_tails_and_two_groups_can_be_told() -> None:
    """The functions reach what riders may have: within a few per cent wherever there is any density to speak of."""
    f = _functions()
    u = f.points
    truths = {
        "t with 3 degrees of freedom": -2 * np.log1p(u**2),
        "two groups": np.logaddexp(-0.5 * (u - 0.8) ** 2 / 0.36, -0.5 * (u + 0.8) ** 2 / 0.36),
        "exponential tails": -np.sqrt(2) * np.sqrt(u**2 + 0.1),
    }
    for name, log in truths.items():
        weight = np.sqrt(np.exp(log) + 1e-5)
        columns = np.column_stack([np.ones_like(u), u, u**2, f.value])
        found = columns @ np.linalg.lstsq(columns * weight[:, None], log * weight, rcond=None)[0]
        somewhere = log > log.max() - 6
        assert np.max(np.abs(found - log)[somewhere]) < 0.35, name
