"""The spline space: what it spans, what it penalises, and that units do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from isuit.estimator.model.basis import Spline, spline_for

METRIC = np.random.default_rng(0).uniform(3, 35, 500)


def test_smooth_coordinates_span_the_same_functions() -> None:
    spline = spline_for(METRIC)
    plain, smooth = spline.design(METRIC), spline.smooth_design(METRIC)
    assert plain.shape == smooth.shape == (500, 23)
    back = smooth @ np.linalg.lstsq(smooth, plain, rcond=None)[0]
    assert back == pytest.approx(plain, abs=1e-8)


def test_rows_of_the_basis_sum_to_one() -> None:
    assert spline_for(METRIC).design(METRIC).sum(axis=1) == pytest.approx(np.ones(500))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_penalty_is_the_integral_of_the_squared_derivative(order: int) -> None:
    spline = spline_for(METRIC, penalty_order=order)
    coefficients = np.random.default_rng(1).normal(size=(spline.size, 2))
    # A midpoint rule: the third derivative jumps at the knots.
    unit = (np.arange(200_000) + 0.5) / 200_000
    rough = BSpline(spline.knots, coefficients, 3)(unit, nu=order)
    integral = rough.T @ rough / unit.size
    penalty = coefficients.T @ spline.penalty @ coefficients
    assert np.trace(spline.penalty) == pytest.approx(1)
    # The same up to the one factor that makes the trace one.
    assert penalty / penalty[0, 0] == pytest.approx(integral / integral[0, 0], rel=1e-3)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polynomials_below_the_order_cost_nothing(order: int) -> None:
    spline = spline_for(METRIC, penalty_order=order)
    design = spline.design(METRIC)
    for power in range(order + 1):
        coefficients = np.linalg.lstsq(design, (METRIC / 35) ** power, rcond=None)[0]
        cost = coefficients @ spline.penalty @ coefficients
        assert cost < 1e-12 if power < order else cost > 1e-9


def test_derivatives_against_finite_differences() -> None:
    spline = spline_for(METRIC)
    metric, step = np.linspace(4, 34, 50), 1e-5
    for design in (spline.design, spline.smooth_design):
        difference = (design(metric + step) - design(metric - step)) / (2 * step)
        assert design(metric, derivative=1) == pytest.approx(difference, abs=1e-6)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1000.0), (1e-12, 0.0), (1e12, -5e11), (-1.0, 0.0)])
def test_units_do_not_matter(scale: float, shift: float) -> None:
    moved = METRIC * scale + shift
    own, other = spline_for(METRIC), spline_for(moved)
    if scale > 0:
        assert other.inner_knots == pytest.approx(own.inner_knots, abs=1 / 2048)
    assert own.design(METRIC).shape == other.design(moved).shape


def test_an_outlier_does_not_take_the_knots_with_it() -> None:
    """Half of the knots stay among the data when one metric lies a thousand ranges away."""
    spline = spline_for(np.append(METRIC, 32_000.0))
    assert sum(knot < 0.002 for knot in spline.inner_knots) >= 9


@pytest.mark.parametrize(("distinct", "degree", "size"), [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4), (10, 3, 10)])
def test_few_distinct_metrics_get_a_smaller_space(distinct: int, degree: int, size: int) -> None:
    metric = np.arange(200.0) % distinct
    spline = spline_for(metric)
    assert (spline.degree, spline.size) == (degree, size)
    for design in (spline.design(metric), spline.smooth_design(metric)):
        assert design.shape == (200, size)
        assert np.isfinite(design).all()


def test_beyond_the_range_the_last_value_holds() -> None:
    spline = Spline(0.0, 1.0, (0.5,))
    assert np.array_equal(spline.design(np.array([-5.0, 7.0])), spline.design(np.array([0.0, 1.0])))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_any_metrics_give_a_finite_space(values: list[float]) -> None:
    metric = np.array(values)
    if 0 < np.ptp(metric) < 1e-100:
        return  # refused before
    spline = spline_for(metric)
    assert np.all(np.diff([0.0, *spline.inner_knots, 1.0]) > 0)
    assert np.isfinite(spline.smooth_design(metric)).all()
    assert np.isfinite(spline.penalty).all()
