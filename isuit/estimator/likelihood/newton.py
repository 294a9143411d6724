"""What keeps Newton's steps safe far from a maximum: steps that are not too long.

Each function answers for one step and changes nothing itself; whoever takes the step multiplies it by the share.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isuit.domain import FloatArray

_LEAST_LEFT = 0.2  # of the discrimination after one step: at zero its gradient vanishes, whatever the data say
_TINY = 1e-12
_ARMIJO = 1e-4  # share of the promised gain that a step must bring
_ROUNDING = 1e-12  # relative, of a sum over outcomes
_SHORTEST = 2.0**-60


def uphill(beta: FloatArray, move: FloatArray, gain: float, height: Callable[[FloatArray], float]) -> FloatArray:
    """Newton's step, halved until it climbs: the way to the maximum of a strictly concave function, from anywhere.

    `gain` is what the slope promises. A bound on the change of log odds would not do: one outcome far out has room for
    a change of a thousand, and steps of four would take hundreds.
    """
    here, length = height(beta), 1.0
    if gain < _ROUNDING * (1.0 + abs(here)):  # too little to tell from rounding, so Newton's step is as good as exact
        return np.asarray(beta + move)
    while height(beta + length * move) < here + _ARMIJO * length * gain and length > _SHORTEST:
        length /= 2
    return np.asarray(beta + length * move)


def share_within(reach: float, longest: float) -> float:
    """The share of a step to take, so that the log odds move by at most `longest`; all of it moves them by `reach`."""
    return min(1.0, longest / max(reach, _TINY))


def share_that_keeps_skill(discrimination: float, change: float) -> float:
    """The share of a step to take, so that a fifth of the discrimination is left; the whole step adds `change`."""
    if discrimination + change < _LEAST_LEFT * discrimination:
        return (1 - _LEAST_LEFT) * discrimination / -change
    return 1.0
