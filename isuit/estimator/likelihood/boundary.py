"""Likelihood-ratio tests of something that is zero under the null and cannot be less: a, or the rate of a walk."""

from __future__ import annotations

from scipy.special import chdtrc  # chi-square's tail; scipy.stats would take a second to import


def boundary_p_value(ratio: float, extra: int) -> float:
    """How probable a larger ratio is under the null: half chi-square with `extra` degrees of freedom, half one more.

    `extra` is what the other model has besides the value on the boundary. With none, half of the ratios are zero.
    """
    return 0.5 * float(chdtrc(extra + 1, ratio)) + (0.5 * float(chdtrc(extra, ratio)) if extra else 0.0)
