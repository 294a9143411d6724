"""How many riders a cell has is known with noise, and that is part of what is not known about its difficulty.

A score is a product: riders, times what one of them says about level and tilt. With a count of 13 ± 6 the same score
means a place that is a little harder with many riders or much harder with few. So level and tilt are found for each
number that the count allows, and these posteriors are mixed by how well each number explains count and scores together.
How common small cells are is estimated from the counts of all cells. Nothing is used but sums with noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import FloatArray

FEWEST = 0.5  # riders that a cell is taken to have at least; one who visits several places counts in each by share
NUMBERS = 41  # that are tried for each cell
REACH = 4.0  # sds of a count's noise to either side
_SIZES, _WORTH, _STEPS = 10, 3.0, 40  # classes of size, what equal shares of these are worth in cells, and steps of EM


@dataclass(frozen=True)
class Counts:
    """For each cell the numbers of riders that are tried, and the logarithm of each one's weight by the count alone."""

    number: FloatArray  # cells by numbers
    log_weight: FloatArray

    @property
    def mean(self) -> FloatArray:
        return np.asarray((np.exp(self.log_weight) * self.number).sum(axis=1))


def read_counts(counted: FloatArray, variance: float) -> Counts:
    """From counts with noise of this variance; the distribution of sizes is estimated with them."""
    sd = float(np.sqrt(variance))
    high = np.maximum(counted + REACH * sd, 2 * FEWEST + sd)
    low = np.clip(counted - REACH * sd, FEWEST, high / 2)
    number = np.asarray(low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, NUMBERS))
    # Sizes in classes of equal ratio, since places differ in popularity by factors; below the noise even by number.
    edges = np.geomspace(FEWEST + sd, float(high.max()) * 1.001 + sd, _SIZES + 1) - sd
    kind = np.clip(np.searchsorted(edges, number, side="right") - 1, 0, _SIZES - 1)
    like = -((counted[:, None] - number) ** 2) / (2 * variance) - np.log(number + sd)  # even within a class
    like += np.log(high - low)[:, None]
    like = np.exp(like - like.max())
    share = np.full(_SIZES, 1 / _SIZES)
    for _ in range(_STEPS):
        weight = like * share[kind]
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        share = np.bincount(kind.ravel(), weight.ravel(), _SIZES) + _WORTH / _SIZES
        share /= share.sum()
    weight = like * share[kind]
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    return Counts(number, np.log(np.maximum(weight, 1e-300)))


@dataclass(frozen=True)
class OfARider:
    """What the scores of one rider of a cell say, on average over rounds: by level and tilt."""

    response: FloatArray  # two by two: how scores respond to level and tilt
    shared: FloatArray  # two rows: how they respond to what all cells share
    variation: FloatArray  # two by two: between riders
    noise: FloatArray  # variance of the noise, of two scores


@dataclass(frozen=True)
class Cells:
    """Level and tilt by cell, with what is not known about them while what all cells share is held."""

    mean: FloatArray  # cells by two
    covariance: FloatArray  # cells by two by two
    by_shared: FloatArray  # cells by two rows: how the mean moves with what all cells share
    riders: FloatArray


def read_cells(scores: FloatArray, offset: FloatArray, one: OfARider, prior_sds: FloatArray, counts: Counts) -> Cells:
    """Mixed over the number of riders.

    `scores` are a cell's sums; `offset` is what each of its riders is expected to add to these at level and tilt zero.
    """
    n = counts.number[..., None, None]
    prior = np.diag(1 / prior_sds**2)
    spread = n * one.variation + np.diag(one.noise)
    slope = n * one.response
    turned = np.swapaxes(slope, -1, -2) @ np.linalg.inv(spread)
    within = np.linalg.inv(turned @ slope + prior)
    gain = within @ turned  # from scores to level and tilt
    left = scores[:, None, :] - counts.number[..., None] * offset[:, None, :]
    found = (gain @ left[..., None])[..., 0]
    whole = slope @ np.diag(prior_sds**2) @ np.swapaxes(slope, -1, -2) + spread
    _, size = np.linalg.slogdet(whole)
    fit = -(left * np.linalg.solve(whole, left[..., None])[..., 0]).sum(axis=-1) / 2 - size / 2
    log_weight = counts.log_weight + fit
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight[..., None] * found).sum(axis=1)
    apart = found - mean[:, None, :]
    covariance = (weight[..., None, None] * (within + apart[..., :, None] * apart[..., None, :])).sum(axis=1)
    by_shared = -(weight[..., None, None] * (gain @ (n * one.shared))).sum(axis=1)
    return Cells(mean, covariance, by_shared, np.asarray((weight * counts.number).sum(axis=1)))
