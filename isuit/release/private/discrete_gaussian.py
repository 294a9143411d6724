"""Exact draws from the discrete Gaussian on whole numbers, from the system's randomness.

Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020), algorithms 1 to 3. Every number is
whole or a fraction, so no rounding of floating point is in the distribution for anybody to read (Mironov 2012).
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from math import isqrt


def _bernoulli(chance: Fraction) -> bool:
    return secrets.randbelow(chance.denominator) < chance.numerator


def _bernoulli_exp(exponent: Fraction) -> bool:
    """True with probability exp(-exponent), for an exponent of zero or more."""
    while exponent > 1:
        if not _bernoulli_exp(Fraction(1)):
            return False
        exponent -= 1
    step = 1
    while _bernoulli(exponent / step):
        step += 1
    return step % 2 == 1


def _laplace(scale: int) -> int:
    """Discrete Laplace: n with probability proportional to exp(-|n| / scale)."""
    while True:
        low = secrets.randbelow(scale)
        if not _bernoulli_exp(Fraction(low, scale)):
            continue
        high = 0
        while _bernoulli_exp(Fraction(1)):
            high += 1
        size, negative = low + scale * high, bool(secrets.randbits(1))
        if not (negative and size == 0):
            return -size if negative else size


def draw(variance: Fraction) -> int:
    """n with probability proportional to exp(-n² / (2 variance))."""
    scale = isqrt(variance.numerator // variance.denominator) + 1
    while True:
        found = _laplace(scale)
        if _bernoulli_exp((abs(found) - variance / scale) ** 2 / (2 * variance)):
            return found
