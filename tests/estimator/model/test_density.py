"""The density of skill: normal without coefficients, of location 0 and scale 1 with any, and its derivatives by eta."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from isuit.domain import FloatArray
from isuit.estimator.model.bend import FUNCTIONS, LEAST, REACH, TAIL, the_basis
from isuit.estimator.model.density import NORMAL, Density

U = np.linspace(-20, 20, 160_001)


def coefficients(seed: int, size: float = 0.5) -> FloatArray:
    return size * np.random.default_rng(seed).normal(size=FUNCTIONS)


def location_and_scale(u: FloatArray, p: FloatArray) -> tuple[float, float]:
    """Mean and sd with everybody beyond the percentiles counted as if they stood there; the sd over a normal's."""
    lower, upper = np.interp([TAIL, 1 - TAIL], np.cumsum(p) - p / 2, u)
    inside = np.clip(u, lower, upper)
    mean = float(p @ inside)
    z = np.clip(ndtri((np.arange(100_000) + 0.5) / 100_000), ndtri(TAIL), -ndtri(TAIL))
    return mean, float(np.sqrt(p @ (inside - mean) ** 2) / z.std())


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0])
def test_location_and_scale_are_imposed_whatever_the_coefficients(size: float) -> None:
    density = Density(coefficients(1, size))
    p = np.exp(density.log_density(U)) * (U[1] - U[0])
    assert p.sum() == pytest.approx(1, abs=2e-3)  # log_density joins the table's points by lines
    assert location_and_scale(U, p / p.sum()) == pytest.approx((0, 1), abs=2e-3)
    assert density.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (density.nodes < 0.7) @ density.weights == pytest.approx(p[U < 0.7].sum(), abs=0.02)


def test_of_a_normal_they_are_mean_and_sd() -> None:
    p = np.exp(NORMAL.log_density(U)) * (U[1] - U[0])
    assert location_and_scale(U, p) == pytest.approx((0, 1), abs=1e-5)


def test_a_density_that_no_table_follows_has_no_likelihood() -> None:
    """A fit that stepped there goes back."""
    assert np.max(Density(coefficients(1, 40.0)).log_density(U)) < -500


def test_without_coefficients_and_with_zeros_it_is_normal() -> None:
    u = np.arange(-6, 6.1, 0.25)
    expected = -0.5 * u**2 - 0.5 * np.log(2 * np.pi)
    assert NORMAL.log_density(u) == pytest.approx(expected)
    assert Density(np.zeros(FUNCTIONS)).log_density(u) == pytest.approx(expected, abs=1e-9)
    assert np.exp(-NORMAL.nodes) @ NORMAL.weights == pytest.approx(np.exp(0.5))
    assert NORMAL.share_below(u) == pytest.approx(ndtr(u))
    assert Density(np.zeros(FUNCTIONS)).share_below(u) == pytest.approx(ndtr(u), abs=1e-9)


def test_only_the_normal_has_no_penalty() -> None:
    """The penalty is that of w's first and second derivative, one for every function; a constant is not among them."""
    splines, step = the_basis().splines, 1 / 256
    z = np.arange(-REACH, REACH, step)
    one, two = splines(z, 1), splines(z, 2)
    assert step * (two.T @ two + 0.3 * one.T @ one) == pytest.approx(np.eye(FUNCTIONS), abs=1e-2)
    assert splines(np.array([REACH, REACH + 3.0])) == pytest.approx(np.tile(splines(REACH), (2, 1)), abs=1e-9)


def test_scores_are_the_derivatives_and_their_variance_is_the_information() -> None:
    eta, u = coefficients(3), np.arange(-3, 3.1, 0.25)
    density, step = Density(eta), 1e-5
    p = np.exp(density.log_density(U)) * (U[1] - U[0])
    curvature = np.zeros((FUNCTIONS, FUNCTIONS))
    for k in range(FUNCTIONS):
        move = np.zeros(FUNCTIONS)
        move[k] = step
        above, below = Density(eta + move), Density(eta - move)
        slope = (above.log_density(u) - below.log_density(u)) / (2 * step)
        assert density.log_density_slope(u)[:, k] == pytest.approx(slope, abs=1e-6)
        curvature[k] = -p @ (above.log_density_slope(U) - below.log_density_slope(U)) / (2 * step)
    assert density.expected_information == pytest.approx(curvature, abs=2e-2)


def test_tables_are_the_density_and_its_derivatives() -> None:
    tables = Density(coefficients(5)).tables
    for value, slope in ((tables.log, tables.slope), (tables.slope, tables.bend), (tables.functions, tables.slopes)):
        between = (value[2:, 0] - value[:-2, 0]) / (2 * tables.step)
        assert np.max(np.abs(between - slope[1:-1, 0])) < 0.05 * np.max(np.abs(slope[:, 0]))
        assert value[:, 1] / tables.step == pytest.approx(slope[:, 0])


def test_skewed_heavy_tailed_and_divided_populations_can_be_told() -> None:
    """The functions reach what riders may have: quantiles within a tenth of an sd from the 1st to the 99th."""
    z = np.linspace(-3, 3, 241)
    weight = np.exp(-0.25 * z**2)
    truths = {
        "lognormal": np.exp(z),
        "exponential": -np.log(ndtr(-z)),
        "t with 3 degrees of freedom": student.ppf(ndtr(z), 3),
        "two groups": z + 1.1 * np.tanh(2.0 * z),
    }
    for name, skill in truths.items():
        inside = np.abs(z) < 1.6449
        steep = np.gradient(skill, z) / np.std(skill[inside])
        w = np.log(np.maximum(steep - LEAST, 0.05) / (1 - LEAST))
        columns = np.column_stack([np.ones_like(z), the_basis().splines(z)])
        eta = np.linalg.lstsq(columns * weight[:, None], w * weight, rcond=None)[0][1:]
        density = Density(eta)
        levels = ndtr(np.array([-2.3, -1.6, -0.8, 0.0, 0.8, 1.6, 2.3]))
        found = np.interp(levels, np.cumsum(density.weights) - density.weights / 2, density.nodes)
        mean = float(np.interp(0.0, z, skill))
        expected = np.interp(ndtri(levels), z, skill) - mean
        scale = (found[5] - found[1]) / (expected[5] - expected[1])
        assert np.max(np.abs(found - found[3] - scale * expected)[1:-1]) < 0.15, name
