"""Where skill is integrated: riders whose posteriors lie close together share a grid.

On an even grid the trapezoid rule is exact for a bell-shaped integrand to far more digits than anybody needs, as soon
as the step is below the narrowest posterior's sd and below the distance at which the logistic curve bends (its
singularities are at pi / a from the real axis). A grid that several riders share turns their likelihoods into one
product of sparse counts with a small dense matrix: no exponential is taken per outcome. A grid for the whole cohort
would have to be as fine as its most active rider needs and as wide as all; so riders are sorted by the width and the
place of their posterior and cut into blocks, each with a grid of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from isuit import columns
from isuit.domain import FloatArray, IntArray

from ..model.counts import Counts
from .threads import CORES

STEP = 0.95  # of the narrowest sd in a block: the rule's error is then below 1e-9
STRIP = 0.75  # over a: the step that the logistic curve needs, for an error of about 1e-8
_LARGEST = 300.0  # exponent: two of them multiplied are still finite
_REACH = 6.0  # sds on either side that a grid first covers; it grows where that is too few
MOST_POINTS = 800
_COARSE = 0.5  # step of the first look
_FAR = 7.0  # sds of the prior that the first look covers on either side
_BLOCK_ENTRIES = 16_000  # at least so many sparse entries in a block, so that the grid's own cost is small beside them
_SMALL_BLOCK = 1_200
_BLOCKS = 8  # and about so many blocks of a large cohort
_LARGEST_BLOCK = 64_000  # entries; what a block makes stays in the cache

_S = TypeVar("_S")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Block:
    """Riders that share a grid, with their counts over the items that any of them has."""

    riders: IntArray
    items: IntArray | slice
    trials: csr_matrix  # riders x items of the block
    outcomes: FloatArray
    successes: FloatArray


@dataclass(frozen=True)
class Grid:
    """Evenly spaced skills."""

    lower: float
    upper: float
    step: float

    @property
    def points(self) -> FloatArray:
        count = min(int(np.ceil((self.upper - self.lower) / self.step)) + 1, MOST_POINTS)
        return np.linspace(self.lower, self.upper, max(count, 3))

    @classmethod
    def over(cls, lower: float, upper: float, sd: FloatArray, a: float) -> Grid:
        """Fine enough for posteriors of these sds at this discrimination."""
        return cls(lower, upper, min(STEP * float(sd.min()), STRIP / a))


@dataclass(frozen=True)
class Nodes:
    """The blocks of a cohort and the grid of each."""

    blocks: tuple[Block, ...]
    grids: tuple[Grid, ...]


def place(counts: Counts, a: float, f: FloatArray, prior_mean: FloatArray) -> Nodes:
    """Blocks and grids for these parameters, from one look at all riders on a coarse grid."""
    mean, sd = _first_look(counts, a, f, prior_mean)
    blocks = tuple(_blocks(counts, mean))
    grids = []
    for block in blocks:
        m, s = mean[block.riders], sd[block.riders]
        grids.append(Grid.over(float((m - _REACH * s).min()), float((m + _REACH * s).max()), 0.9 * s, a))
    return Nodes(blocks, tuple(grids))


def _first_look(counts: Counts, a: float, f: FloatArray, prior_mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mode and width of every rider's posterior: the parabola through the three highest points of a coarse grid."""
    lower, upper = float(prior_mean.min()) - _FAR, float(prior_mean.max()) + _FAR
    theta = np.linspace(lower, upper, int(np.ceil((upper - lower) / _COARSE)) + 1)
    step = float(theta[1] - theta[0])
    log_ratio = failure(a, f, theta)[0]
    failures = counts.rider_trials - counts.rider_successes
    entries = counts.trials.indptr

    def of_riders(part: slice) -> tuple[FloatArray, FloatArray]:
        log_joint = counts.trials[part] @ log_ratio
        log_joint += np.outer(failures[part], a * theta)
        np.negative(log_joint, out=log_joint)
        log_joint -= 0.5 * (theta - prior_mean[part, None]) ** 2
        top = np.clip(log_joint.argmax(axis=1), 1, theta.size - 2)
        rows = np.arange(top.size)
        left, middle, right = (log_joint[rows, top + k] for k in (-1, 0, 1))
        bend = 2 * middle - left - right  # at least that of the prior, because the likelihood is log-concave
        shift = np.clip((right - left) / (2 * bend), -1.0, 1.0)
        return theta[top] + step * shift, step / np.sqrt(bend)

    starts = np.searchsorted(entries, np.arange(0, entries[-1], _LARGEST_BLOCK))
    cuts = np.unique(np.append(starts, counts.riders))
    parts = [slice(first, last) for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]
    found = over(parts, of_riders)
    return np.concatenate([mode for mode, _ in found]), np.concatenate([width for _, width in found])


def _blocks(counts: Counts, mean: FloatArray) -> list[Block]:
    """Cut the riders into blocks whose posteriors have about the same width and lie close together.

    Riders are sorted by their number of outcomes, in classes, because it decides how wide a posterior is; and within a
    class by their mean, upwards in one class and downwards in the next, so that neighbours are alike across classes.
    Sorting by the width itself would not do: posteriors are wide at both ends of the skills, which would then share a
    grid.
    """
    known = np.floor(np.log2(np.maximum(counts.rider_trials, 1.0)) / 2)  # widths differ by up to two in each
    order = np.lexsort((np.where(known % 2 == 0, mean, -mean), known))
    indptr = counts.trials.indptr
    entries = np.cumsum((indptr[1:] - indptr[:-1])[order])
    # Where hardly two riders share an item, blocks share no work, and small ones have the shorter grids.
    least = _BLOCK_ENTRIES if entries[-1] > 2 * counts.items else _SMALL_BLOCK
    quota = min(max(least, int(entries[-1]) // _BLOCKS), _LARGEST_BLOCK)
    cuts = np.searchsorted(entries, np.arange(quota, int(entries[-1]), quota)) + 1
    # What passes read is written in the order in which they read it, and to a file where it is long.
    data, indices = columns.Column(np.float64), columns.Column(np.int32)
    made = []
    for riders in np.split(order, np.unique(cuts)):
        if riders.size:
            trials = counts.trials[riders]
            items, item = _items(counts, trials)
            data.append(trials.data)
            indices.append(item)
            made.append((riders, items, trials.indptr))
    every, each = data.array(), indices.array()
    blocks, start = [], 0
    for riders, items, ends in made:
        here = slice(start, start + int(ends[-1]))
        width = counts.items if isinstance(items, slice) else items.size
        trials = csr_matrix((every[here], each[here], ends), shape=(riders.size, width))
        blocks.append(Block(riders, items, trials, counts.rider_trials[riders], counts.rider_successes[riders]))
        start = here.stop
    return blocks


def _items(counts: Counts, trials: csr_matrix) -> tuple[IntArray | slice, IntArray]:
    """The items that these riders have, and each entry's place among them; all items where these are most."""
    if trials.nnz >= 2 * counts.items:
        return slice(None), trials.indices
    return np.unique(trials.indices, return_inverse=True)


def failure(a: float, f: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + exp(f - a theta)) and the probability of success, both items x points."""
    ratio = _odds(a, f, theta)
    if ratio is None:
        eta = a * theta - f[:, None]
        return np.logaddexp(0.0, -eta), expit(eta)
    ratio += 1.0
    logarithm = np.log(ratio)
    return logarithm, np.divide(1.0, ratio, out=ratio)


def success(a: float, f: FloatArray, theta: FloatArray) -> FloatArray:
    """The probability of success alone."""
    ratio = _odds(a, f, theta)
    if ratio is None:
        return np.asarray(expit(a * theta - f[:, None]))
    ratio += 1.0
    return np.divide(1.0, ratio, out=ratio)


def _odds(a: float, f: FloatArray, theta: FloatArray) -> FloatArray | None:
    """exp(f - a theta) as a product: one exponential per item and one per point; None where that would overflow."""
    u = a * theta
    middle = float(u[u.size // 2])
    if max(np.abs(f - middle).max(initial=0.0), np.abs(u - middle).max()) > _LARGEST:
        return None
    return np.outer(np.exp(f - middle), np.exp(middle - u))


def over(parts: Sequence[_S], task: Callable[[_S], _T]) -> list[_T]:
    """The task's results in the order of the parts; on both cores where that pays."""
    if len(parts) < 4:
        return [task(part) for part in parts]
    with ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(task, parts))
