"""Costs add up, and what is claimed for a cost holds for the Gaussian, whose exact delta is known."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from isuit.release.private.accounting import UNIT, budget, delta_of, epsilon_of, variance


def exact_delta(rho: float, epsilon: float) -> float:
    """Of Gaussian noise with that cost (Balle and Wang 2018, theorem 8)."""
    mu = math.sqrt(2 * rho)
    normal = stats.norm.cdf
    return float(normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.09, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
def test_a_proved_delta_is_above_the_exact_one_and_not_far(rho: float, epsilon: float) -> None:
    exact = exact_delta(rho, epsilon)
    assert delta_of(rho, epsilon) >= exact
    if 1e-9 < exact < 0.01:
        assert delta_of(rho, epsilon) < 12 * exact


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-6), (4.0, 1e-9)])
def test_a_budget_is_the_largest_that_keeps_the_promise(epsilon: float, delta: float) -> None:
    whole = budget(epsilon, delta)
    assert delta_of(whole / UNIT, epsilon) <= delta < delta_of((whole + 1) / UNIT, epsilon)
    assert epsilon_of(whole / UNIT, delta) == pytest.approx(epsilon, rel=1e-6)


def test_epsilon_2_is_known_by_number() -> None:
    """0.088: noise of 2.38 times a person's length, where the exact Gaussian would need 2.16."""
    assert budget(2.0, 1e-6) / UNIT == pytest.approx(0.08815, abs=1e-5)
    sigma = math.sqrt(variance(1, budget(2.0, 1e-6)))
    assert sigma == pytest.approx(2.3816, abs=1e-3)
    assert exact_delta(1 / (2 * sigma**2), 2.0) < 1e-6


def test_half_of_the_cost_takes_twice_the_variance() -> None:
    assert variance(1 << 20, 500) == 2 * variance(1 << 20, 1000)
