"""Noise on released difficulties, drawn from the store's secret and from what went into a cell.

Somebody who knows every other row can compute a release with a person and without, and see which of the two was
published. Noise makes the two hard to tell apart. It is no sampling: the same outcomes in the same store give the same
noise, so that a release can be derived again and asking often gains nothing; any change of what goes in draws anew, so
that two releases do not differ by the change alone. It moves a curve as a person does, by a level, a tilt, a bend and
a twist, more at the ends than in the middle: noise of each point for itself would leave smooth differences readable at
the same error (measured at 24 riders and an sd of 0.25: an AUC of 0.64 and 0.84 for an expert, against 0.61 and 0.79).
The shares of the four shapes follow how far a person moves a curve in each: of 24 riders an ordinary one moves level,
tilt, bend and twist by 0.053, 0.025, 0.057 and 0.023 where curves are bent, and tilt in the place of bend where they
are straight.

Everything else in a row that follows from outcomes goes through noise as well. Without it the first digit of an error
told who is there at 24 riders in half of all cases, and a number of riders beside the edge of its band in most: the
logarithm of a published error and the number behind a band have draws of their own, and whether a point is saturated
is read off the value with noise. An error is smoothed to the shapes before: what it has beside them, a jump from one
point to the next, has no noise and would be read off two digits. A topic's discrimination, which is published once, has
noise as an error of a cell with all its riders would: without, its digits differed without a rider of 24 in a third of
all cases. What the noise costs readers is less where there are many cells (`pooling`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from isuit.domain import Z95, FloatArray
from isuit.release.policy import Policy

TAG = b"isuit/release-noise/2"
# Of all that a row goes through after the fit. It rises with any change of that, and a release records it: one that was
# made by others cannot be derived again.
RULES = 2
ERRORS = 0.25  # sd of the logarithm of a published error, falling with the riders as the noise on difficulty does
RIDERS = 6.0  # sd of the noise on the number of riders that a band is told of
SHARES = (0.25, 0.3, 0.35, 0.1)  # of the variance, by level, tilt, bend and twist
PLACES = 0.5  # of the noise of a curve, for each number of a surface and the root of how many these are


def scale(riders: int, policy: Policy) -> float:
    """The sd of the noise in a cell of so many riders: one of many moves a curve less."""
    return policy.noise * min(1.0, policy.noise_riders / max(riders, 1))


def spread(points: int) -> FloatArray:
    """The sd of `draw` at each point of a curve; its mean square is about one."""
    return np.asarray(np.sqrt(np.square(shapes(points)).sum(axis=0)))


def of_places(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]], places: int, told: int, riders: int, policy: Policy
) -> Noise:
    """The noise of a cell of a surface, of which so many places may be told.

    Bins of a surface are few and far between, so each place has noise of its own. It grows with the root of how many
    are told: what all of them together tell of a person stays what a curve tells (docs/disclosure.md).
    """
    few = min(1.0, policy.noise_riders / max(riders, 1)) if policy.noise > 0 else 0.0
    size = PLACES * math.sqrt(told) * scale(riders, policy)
    difficulty, error, number = (
        np.array(_normal(secret, [*about, *what], went_in, places)) for what in ([], ["error"], ["riders"])
    )
    return Noise(
        size * difficulty,
        size,
        np.full(places, size),
        np.exp(ERRORS * few * error),
        RIDERS * number if policy.noise > 0 else np.zeros(places),
    )


def draw(secret: bytes, about: list[str], went_in: list[tuple[int, int]], points: int) -> FloatArray:
    """Noise for the points of a curve.

    `about` names the curve; `went_in` are the bin and a number for the weighted outcomes of each rider (`carrying`).
    """
    return np.asarray(np.array(_normal(secret, about, went_in, len(SHARES))) @ shapes(points))


def _normal(secret: bytes, about: list[str], went_in: list[tuple[int, int]], numbers: int) -> list[float]:
    text = json.dumps([about, sorted(went_in)], ensure_ascii=True, separators=(",", ":")).encode()
    keyed = hmac.new(secret, TAG + b"\0" + text, hashlib.sha256).digest()
    return [NormalDist().inv_cdf(_uniform(keyed, number)) for number in range(numbers)]


@dataclass(frozen=True)
class Noise:
    """Of one cell, by bin: what is added to difficulties, what errors are multiplied by, what is added to riders."""

    difficulty: FloatArray
    size: float  # of `difficulty`
    sd: FloatArray  # of `difficulty`, by bin
    error: FloatArray
    riders: FloatArray


def of_cell(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]], points: int, riders: int, policy: Policy
) -> Noise:
    """The noise of a cell with so many riders; a policy without noise has none of any kind."""
    size, of_errors = scale(riders, policy), error_scale(riders, policy)
    difficulty, error, number = (draw(secret, [*about, *what], went_in, points) for what in ([], ["error"], ["riders"]))
    return Noise(
        size * difficulty,
        size,
        size * spread(points),
        widening(of_errors, points) * np.exp(of_errors * error),
        RIDERS * number if policy.noise > 0 else np.zeros(points),
    )


def of_discrimination(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]], riders: int, policy: Policy
) -> tuple[float, int]:
    """A factor for a topic's discrimination, and its number of riders with noise, from which its rounding follows."""
    if policy.noise == 0:
        return 1.0, riders
    drawn = [float(draw(secret, [*about, "topic", what], went_in, 1)[0] / spread(1)[0]) for what in ("", "riders")]
    return float(np.exp(error_scale(riders, policy) * drawn[0])), round(riders + RIDERS * drawn[1])


def error_scale(riders: int, policy: Policy) -> float:
    """The sd of the noise on the logarithm of a published error, and of a discrimination."""
    return ERRORS * min(1.0, policy.noise_riders / max(riders, 1)) if policy.noise > 0 else 0.0


def widening(size: float, points: int) -> FloatArray:
    """What errors with noise of this size are multiplied by at each point, so that they cover as often as without.

    Where z is normal and log f normal with sd s, |z| < 1.96 c f is as likely as |z| < 1.96 if log c is
    (1.96^2 - 1) / 2 s^2, up to the fourth power of s.
    """
    return np.asarray(np.exp((Z95**2 - 1) / 2 * (size * spread(points)) ** 2))


def smoothed(errors: FloatArray) -> FloatArray:
    """Errors (cells by points) without what no noise can hide: their logarithm, in the shapes that noise has."""
    of_points = shapes(errors.shape[1])
    # A product of arrays would depend on the number of threads in its last bits.
    parts = np.einsum("cp,ps->cs", np.log(errors), np.linalg.pinv(of_points))
    return np.asarray(np.exp(np.einsum("cs,sp->cp", parts, of_points)))


def shapes(points: int) -> FloatArray:
    """Legendre polynomials over the points, each with its share of the variance."""
    x = np.linspace(-1.0, 1.0, points) if points > 1 else np.zeros(1)
    degree = np.arange(len(SHARES))
    size = np.sqrt(np.array(SHARES) * (2 * degree + 1))
    return np.asarray(size[:, None] * np.polynomial.legendre.legvander(x, len(SHARES) - 1).T)


def _uniform(keyed: bytes, number: int) -> float:
    """Strictly between zero and one."""
    bits = int.from_bytes(hmac.new(keyed, number.to_bytes(8, "big"), hashlib.sha256).digest()[:8], "big")
    # The half is rounded away in the upper half, and the last number upwards.
    return min(((bits >> 11) + 0.5) / 2.0**53, 1 - 2.0**-53)
