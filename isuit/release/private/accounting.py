"""What a release costs and what a series may spend, in zero-concentrated differential privacy (zCDP).

Adding noise of variance s² (discrete Gaussian) to a sum that one person changes by at most D is D²/(2 s²)-zCDP, and
what several releases cost adds up (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, theorem 14). Costs are whole
numbers of billionths here: a ledger of whole numbers adds up exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction

UNIT = 10**9  # of cost in one of zCDP's rho


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest delta that is proved for an epsilon (Canonne, Kamath and Steinke 2020, corollary 13)."""

    def log_delta(order: float) -> float:
        return (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)

    if rho == 0:
        return 0.0
    # The exponent is smooth with one minimum near (epsilon + rho) / (2 rho); golden section on a generous bracket.
    low, high = 1 + 1e-9, max((epsilon + 1) / rho + 2, 4.0)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if log_delta(left) < log_delta(right):
            high = right
        else:
            low = left
    # Any order proves a delta: the one that was found need not be the best.
    return min(1.0, math.exp(min(log_delta((low + high) / 2), 0.0)))


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon that is proved for a delta."""
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(rho, middle) <= delta else (middle, high)
    return high


def budget(epsilon: float, delta: float) -> int:
    """The largest cost, in units, that is (epsilon, delta)-differentially private."""
    low, high = 0, 1
    while delta_of(high / UNIT, epsilon) <= delta:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if delta_of(middle / UNIT, epsilon) <= delta else (low, middle)
    return low


def variance(length: int, units: int) -> Fraction:
    """Of the noise that makes a sum of vectors of at most this length cost so many units."""
    return Fraction(length * length * UNIT, 2 * units)
