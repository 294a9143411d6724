"""How much of a cell's noise the other cells give away, to the reader's gain.

Noise has four shapes (`noise.shapes`), and its size is known. Cells differ from one another in these shapes too, by an
amount that their curves with noise tell: what they differ by beyond the noise. So each cell's part in a shape is drawn
towards the mean of all cells, by the share that noise has in their differences (parametric empirical Bayes with unequal
variances: Morris 1983, JASA 78, 47-55; his variance holds that the amount is estimated too). Where cells have one form
and differ in level, nearly all noise of tilt, bend and twist goes. Nobody learns more by it: it is made of curves that
have their noise already, and of its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import FloatArray
from isuit.release.noise import SHARES, shapes, spread

FEWEST = 4  # cells: the spread of fewer is not told well enough to gain by it
STEPS = 100


@dataclass(frozen=True)
class Pooled:
    """Cells by points: the curves, and the sd of what is left of the noise in them."""

    value: FloatArray
    sd: FloatArray


def pooled(curves: FloatArray, sizes: FloatArray) -> Pooled:
    """`curves` (cells by points) have noise of a size for each cell (`noise.scale`)."""
    cells, points = curves.shape
    if cells < FEWEST or points < len(SHARES) or not sizes.all():
        return Pooled(curves, sizes[:, None] * spread(points))
    all_shapes = shapes(points)
    # A product of arrays would depend on the number of threads in its last bits.
    parts = np.einsum("cp,ps->cs", curves, np.linalg.pinv(all_shapes))
    drawn = [_towards_the_mean(part, sizes**2) for part in parts.T]
    moved = np.column_stack([value for value, _ in drawn]) - parts
    variance = np.column_stack([left for _, left in drawn])
    return Pooled(
        curves + np.einsum("cs,sp->cp", moved, all_shapes), np.sqrt(np.einsum("cs,sp->cp", variance, all_shapes**2))
    )


def _towards_the_mean(part: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By cell, the part in one shape without the noise that the others tell of, and the variance of what is left."""
    cells = part.size
    weight = 1 / (_between(part, variance) + variance)
    share = weight / weight.sum()
    mean = np.sum(share * part)
    noise = (cells - 3) / (cells - 1) * variance * weight
    left = variance * (1 - (1 - share) * noise) + 2 / (cells - 3) * (noise * (part - mean)) ** 2
    return mean + (1 - noise) * (part - mean), left


def _between(part: FloatArray, variance: FloatArray) -> float:
    """The variance of cells beyond their noise: that at which their weighted squares are what is expected.

    Paule and Mandel 1982. The squares fall and are convex in it, so that Newton's steps from zero do not overshoot.
    """
    found = 0.0
    for _ in range(STEPS):
        weight = 1 / (found + variance)
        square = weight * (part - np.sum(weight * part) / weight.sum()) ** 2
        excess = float(square.sum()) - (part.size - 1)
        if excess <= 1e-12 * part.size:
            break
        found += excess / float(np.sum(weight * square))
    return found
