"""Noise on released difficulties, drawn from the store's secret and from what went into a cell.

Somebody who knows every other row can compute a release with a person and without, and see which of the two was
published. Noise makes the two hard to tell apart. It is no sampling: the same outcomes in the same store give the same
noise, so that a release can be derived again and asking often gains nothing; any change of what goes in draws anew, so
that two releases do not differ by the change alone. It moves a curve as a person does, by a level, a tilt, a bend and
a twist, more at the ends than in the middle: noise of each point for itself would leave smooth differences readable at
the same error (measured at 24 riders and an sd of 0.25: an AUC of 0.64 and 0.84 for an expert, against 0.61 and 0.79).

Everything else in a row that follows from outcomes goes through noise as well. Without it the first digit of an error
told who is there at 24 riders in half of all cases, and a number of riders beside the edge of its band in most: the
logarithm of a published error and the number behind a band have draws of their own, and whether a point is saturated
is read off the value with noise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from isuit.domain import FloatArray
from isuit.release.policy import Policy

TAG = b"isuit/release-noise/1"
ERRORS = 0.25  # sd of the logarithm of a published error, falling with the riders as the noise on difficulty does
RIDERS = 6.0  # sd of the noise on the number of riders that a band is told of
SHARES = (0.4, 0.3, 0.2, 0.1)  # of the variance, by level, tilt, bend and twist


def scale(riders: int, policy: Policy) -> float:
    """The sd of the noise in a cell of so many riders: one of many moves a curve less."""
    return policy.noise * min(1.0, policy.noise_riders / max(riders, 1))


def spread(points: int) -> FloatArray:
    """The sd of `draw` at each point of a curve; its mean square is about one."""
    return np.asarray(np.sqrt(np.square(_shapes(points)).sum(axis=0)))


def of_places(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]], places: int, told: int, riders: int, policy: Policy
) -> Noise:
    """The noise of a cell of a surface, of which so many places may be told.

    Bins of a surface are few and far between, so each place has noise of its own. It grows with the root of how many
    are told: what all of them together tell of a person stays what a curve tells (docs/disclosure.md).
    """
    few = min(1.0, policy.noise_riders / max(riders, 1)) if policy.noise > 0 else 0.0
    size = math.sqrt(told) * scale(riders, policy)
    difficulty, error, number = (
        np.array(_normal(secret, [*about, *what], went_in, places)) for what in ([], ["error"], ["riders"])
    )
    return Noise(
        size * difficulty,
        np.full(places, size),
        np.exp(ERRORS * few * error),
        RIDERS * number if policy.noise > 0 else np.zeros(places),
    )


def draw(secret: bytes, about: list[str], went_in: list[tuple[int, int]], points: int) -> FloatArray:
    """Noise for the points of a curve.

    `about` names the curve; `went_in` are the bin and a number for the weighted outcomes of each rider (`carrying`).
    """
    return np.asarray(np.array(_normal(secret, about, went_in, len(SHARES))) @ _shapes(points))


def _normal(secret: bytes, about: list[str], went_in: list[tuple[int, int]], numbers: int) -> list[float]:
    text = json.dumps([about, sorted(went_in)], ensure_ascii=True, separators=(",", ":")).encode()
    keyed = hmac.new(secret, TAG + b"\0" + text, hashlib.sha256).digest()
    return [NormalDist().inv_cdf(_uniform(keyed, number)) for number in range(numbers)]


@dataclass(frozen=True)
class Noise:
    """Of one cell, by bin: what is added to difficulties, what errors are multiplied by, what is added to riders."""

    difficulty: FloatArray
    sd: FloatArray  # of `difficulty`
    error: FloatArray
    riders: FloatArray


def of_cell(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]], points: int, riders: int, policy: Policy
) -> Noise:
    """The noise of a cell with so many riders; a policy without noise has none of any kind."""
    size, few = scale(riders, policy), min(1.0, policy.noise_riders / max(riders, 1)) if policy.noise > 0 else 0.0
    difficulty, error, number = (draw(secret, [*about, *what], went_in, points) for what in ([], ["error"], ["riders"]))
    return Noise(
        size * difficulty,
        size * spread(points),
        np.exp(ERRORS * few * error),
        RIDERS * number if policy.noise > 0 else np.zeros(points),
    )


def _shapes(points: int) -> FloatArray:
    """Legendre polynomials over the points, each with its share of the variance."""
    x = np.linspace(-1.0, 1.0, points) if points > 1 else np.zeros(1)
    degree = np.arange(len(SHARES))
    size = np.sqrt(np.array(SHARES) * (2 * degree + 1))
    return np.asarray(size[:, None] * np.polynomial.legendre.legvander(x, len(SHARES) - 1).T)


def _uniform(keyed: bytes, number: int) -> float:
    """Strictly between zero and one."""
    bits = int.from_bytes(hmac.new(keyed, number.to_bytes(8, "big"), hashlib.sha256).digest()[:8], "big")
    return ((bits >> 11) + 0.5) / 2.0**53
