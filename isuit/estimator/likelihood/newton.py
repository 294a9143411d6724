"""What keeps Newton's steps safe far from a maximum: steps that are not too long.

Each function answers for one step and changes nothing itself; whoever takes the step multiplies it by the share.
"""

from __future__ import annotations

_LEAST_LEFT = 0.2  # of the discrimination after one step: at zero its gradient vanishes, whatever the data say
_TINY = 1e-12


def share_within(reach: float, longest: float) -> float:
    """The share of a step to take, so that the log odds move by at most `longest`; all of it moves them by `reach`."""
    return min(1.0, longest / max(reach, _TINY))


def share_that_keeps_skill(discrimination: float, change: float) -> float:
    """The share of a step to take, so that a fifth of the discrimination is left; the whole step adds `change`."""
    if discrimination + change < _LEAST_LEFT * discrimination:
        return (1 - _LEAST_LEFT) * discrimination / -change
    return 1.0
