"""Safeguards of a step."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.estimator.likelihood import newton


def test_steps_are_shortened_to_what_is_allowed_and_no_more() -> None:
    assert newton.share_within(1.0, 2.0) == 1.0
    assert newton.share_within(8.0, 2.0) == 0.25
    assert newton.share_within(0.0, 2.0) == 1.0


@pytest.mark.parametrize(("change", "share"), [(3.0, 1.0), (-1.0, 1.0), (-2.0, 0.8), (-16.0, 0.1)])
def test_a_fifth_of_the_discrimination_is_left(change: float, share: float) -> None:
    assert newton.share_that_keeps_skill(2.0, change) == pytest.approx(share)
    assert 2.0 + share * change >= 0.4 - 1e-12


def test_a_step_downhill_is_halved_until_it_climbs() -> None:
    """From 2 on log cosh Newton's step overshoots to -11.6, which is lower; every other one then climbs."""

    def height(at: np.ndarray) -> float:
        return -float(np.logaddexp(at, -at)[0])

    at = np.array([2.0])
    for _ in range(60):
        slope, curvature = -np.tanh(at), 1 / np.cosh(at) ** 2
        move = slope / curvature
        there = newton.uphill(at, move, float(slope @ move), height)
        assert height(there) >= height(at) - 1e-12
        at = there
    assert abs(at[0]) < 1e-6
