"""What one person adds to a private sum: a vector of whole numbers whose length (L2) is at most `GRID`.

A sum over persons changes by one such vector when a person joins or leaves, with everything they have in all cells.
That is the whole sensitivity of a private release, and it must hold exactly, so

- a person's vector is computed from this person's own entries and from parameters that are public already, in a loop
  that sees nobody else: not even a last digit of it depends on who else is there;
- it is clipped as a whole, and then cut towards zero to whole numbers, which lengthens no vector; what floating point
  may have lost shows in the exact sum of squares, and such a vector is halved;
- whole numbers add up exactly, in any order.

There are two kinds of vector. The *survey* says where outings are and how often they succeed: by bin over all cells the
outings and twice their successes above one half, one person, how concentrated their outings are, and their share of
outings in each cell. *Scores* are derivatives of the logarithm of a person's own likelihood, with their skill
integrated out under N(0, 1), at public parameters: by each bin's difficulty in the curve that all cells share, by the
logarithm of the discrimination, and by each cell's level and tilt; and again the share in each cell. Because a person's
skill is integrated from their own outcomes, a strong rider's success says little and a weak one's much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isuit.compiled import compiled
from isuit.domain import FloatArray, IntArray

GRID = 1 << 20  # the length of a vector that is as long as it may be, in whole numbers
LONGEST = GRID  # of any person's vector
OUTINGS = 8.0  # length of a person's outings by bin from which on they are scaled down; 20 over nine bins have about 7
CLIP = 1.5  # length of scaled scores from which on they are scaled down
# What a unit of each part weighs in the vector: more of it means less noise there and more clipping everywhere.
SURVEY_SUCCESSES, SURVEY_OUTINGS, SURVEY_PERSON, SURVEY_SHARE = 0.6, 0.45, 0.2, 0.6
SCORE_CURVE, SCORE_DISCRIMINATION, SCORE_LEVEL, SCORE_TILT, SCORE_SHARE = 0.4, 0.25, 1.0, 0.4, 0.5
# Skill is integrated by the trapezoid rule, which holds where a person's posterior is wider than the step.
_NODES = np.linspace(-5.1, 5.1, 35)
_LOG_WEIGHTS = -(_NODES**2) / 2


@dataclass(frozen=True)
class Entries:
    """Outcomes of persons, a person's together and sorted by cell.

    `start` has where each person's entries begin, and at its end their number. A difficulty between the centres of bins
    is the cubic through the four nearest: `weights` of the bins from `knot` on.
    """

    start: IntArray
    cell: IntArray
    bin: IntArray
    knot: IntArray
    weights: FloatArray  # four for each entry
    trials: FloatArray  # what the outcome weighs: a person's in a bin of a cell at most the policy's cap
    successes: FloatArray

    @property
    def persons(self) -> int:
        return int(self.start.size) - 1


@dataclass(frozen=True)
class Parameters:
    """Public: declared, or computed from what was released under the budget before."""

    curve: FloatArray  # difficulty by bin, of all cells
    log_discrimination: float
    level: FloatArray  # by cell
    tilt: FloatArray

    def difficulty(self) -> FloatArray:
        """By cell and bin."""
        return np.asarray(self.curve + self.level[:, None] + self.tilt[:, None] * across(self.curve.size))


def across(bins: int) -> FloatArray:
    """What a tilt is multiplied by: from -1 in the lowest bin to 1 in the highest."""
    return np.linspace(-1.0, 1.0, bins) if bins > 1 else np.zeros(1)


def between_bins(position: FloatArray, bins: int) -> tuple[IntArray, FloatArray]:
    """The first of the four bins whose cubic holds at a position (in bins; the lowest's centre is 0), and weights."""
    knot = np.clip(np.floor(position).astype(np.int64) - 1, 0, bins - 4)
    t = position - knot
    found = np.column_stack(
        [
            -(t - 1) * (t - 2) * (t - 3) / 6,
            t * (t - 2) * (t - 3) / 2,
            -t * (t - 1) * (t - 3) / 2,
            t * (t - 1) * (t - 2) / 6,
        ]
    )
    return knot, found


def survey_sum(entries: Entries, cells: int, bins: int) -> IntArray:
    """The sum of all persons' surveys: successes and outings by bin, persons, concentration, share by cell."""
    total = np.zeros(2 * bins + 2 + cells, np.int64)
    _survey(entries.start, entries.cell, entries.bin, entries.trials, entries.successes, bins, LONGEST, total)
    return total


def score_sum(entries: Entries, at: Parameters) -> IntArray:
    """The sum of all persons' clipped scores: by bin, the discrimination's, and level, tilt and share by cell."""
    bins, cells = at.curve.size, at.level.size
    total = np.zeros(bins + 1 + 3 * cells, np.int64)
    found = np.zeros((0, 0))
    slope = math.exp(at.log_discrimination)
    _scores(*_columns(entries), at.difficulty(), slope, _NODES, _LOG_WEIGHTS, LONGEST, total, found)
    return total


def scores_of_each(entries: Entries, at: Parameters) -> FloatArray:
    """Every person's scores before clipping, for calibration on invented persons; never of a store's."""
    bins, cells = at.curve.size, at.level.size
    found = np.zeros((entries.persons, bins + 1 + 3 * cells))
    total = np.zeros(bins + 1 + 3 * cells, np.int64)
    slope = math.exp(at.log_discrimination)
    _scores(*_columns(entries), at.difficulty(), slope, _NODES, _LOG_WEIGHTS, LONGEST, total, found)
    return found


def clipped(scaled: FloatArray) -> FloatArray:
    """Rows scaled down to a length of `CLIP` where they are longer."""
    length = np.sqrt(np.square(scaled).sum(axis=1))
    return np.asarray(scaled * np.minimum(1.0, CLIP / np.maximum(length, 1e-300))[:, None])


def score_scales(bins: int, cells: int) -> FloatArray:
    """What each coordinate of the scores is multiplied by before clipping."""
    cell = np.tile([SCORE_LEVEL, SCORE_TILT, SCORE_SHARE], cells)
    return np.concatenate([np.full(bins, SCORE_CURVE), [SCORE_DISCRIMINATION], cell])


def _columns(entries: Entries) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    return entries.start, entries.cell, entries.knot, entries.weights, entries.trials, entries.successes


@compiled
def _add_bounded(vector, unit, longest, total):
    """Add a person's vector to a sum in whole numbers, `GRID` to the length `unit`, never longer than `longest`."""
    squares = 0.0
    for i in range(vector.size):
        squares += vector[i] * vector[i]
    length = math.sqrt(squares)
    if not length < 1e300:  # also where it is no number: such a person adds nothing
        return
    factor = min(GRID / unit, longest / max(length, 1e-300))
    while True:
        exact = 0
        for i in range(vector.size):
            whole = int(vector[i] * factor)  # towards zero
            exact += whole * whole
        if exact <= longest * longest:
            break
        factor *= 0.5
    for i in range(vector.size):
        total[i] += int(vector[i] * factor)


@compiled
def _survey(start, cell, bin_, trials, successes, bins, longest, total):
    vector = np.zeros(total.size)
    for person in range(start.size - 1):
        first, last = start[person], start[person + 1]
        if first == last:
            continue
        vector[:] = 0.0
        outings = 0.0
        for i in range(first, last):
            vector[bin_[i]] += 2.0 * successes[i] - trials[i]
            vector[bins + bin_[i]] += trials[i]
            outings += trials[i]
        squares = 0.0
        for b in range(bins):
            squares += vector[bins + b] * vector[bins + b]
        shrink = 1.0 / max(OUTINGS, math.sqrt(squares))
        for b in range(bins):
            vector[b] *= SURVEY_SUCCESSES * shrink
            vector[bins + b] *= SURVEY_OUTINGS * shrink
        for i in range(first, last):
            vector[2 * bins + 2 + cell[i]] += trials[i] / outings
        concentration = 0.0
        for i in range(first, last):
            if i == first or cell[i] != cell[i - 1]:
                share = vector[2 * bins + 2 + cell[i]]
                concentration += share * share
                vector[2 * bins + 2 + cell[i]] = SURVEY_SHARE * share
        vector[2 * bins] = SURVEY_PERSON
        vector[2 * bins + 1] = SURVEY_PERSON * concentration
        _add_bounded(vector, 1.0, longest, total)


@compiled
def _score(cell, knot, weights, trials, successes, difficulty, discrimination, nodes, log_weights, weight, vector):
    """One person's scores into `vector`; `weight` is room for the posterior of their skill at the nodes."""
    bins = difficulty.shape[1]
    vector[:] = 0.0
    weight[:] = log_weights
    outings = 0.0
    for i in range(cell.size):
        outings += trials[i]
        d = 0.0
        for j in range(4):
            d += weights[i, j] * difficulty[cell[i], knot[i] + j]
        for q in range(nodes.size):
            eta = discrimination * (nodes[q] - d)
            # log(1 + exp(eta)), without overflow
            weight[q] += successes[i] * eta - trials[i] * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
    top = weight.max()
    whole = 0.0
    for q in range(nodes.size):
        weight[q] = math.exp(weight[q] - top)
        whole += weight[q]
    for i in range(cell.size):
        d, tilt = 0.0, -1.0
        for j in range(4):
            d += weights[i, j] * difficulty[cell[i], knot[i] + j]
            tilt += weights[i, j] * 2.0 * (knot[i] + j) / (bins - 1)
        by_difficulty, by_scale = 0.0, 0.0
        for q in range(nodes.size):
            eta = discrimination * (nodes[q] - d)
            p = 1.0 / (1.0 + math.exp(-eta)) if eta > -700.0 else 0.0
            residual = (successes[i] - trials[i] * p) * weight[q] / whole
            by_difficulty -= discrimination * residual
            by_scale += eta * residual
        at = bins + 1 + 3 * cell[i]
        for j in range(4):
            vector[knot[i] + j] += weights[i, j] * by_difficulty
        vector[bins] += by_scale
        vector[at] += by_difficulty
        vector[at + 1] += by_difficulty * tilt
        vector[at + 2] += trials[i] / outings


@compiled
def _scores(
    start, cell, knot, weights, trials, successes, difficulty, discrimination, nodes, log_weights, longest, total, found
):
    """Sums of clipped scores into `total`, or every person's own scores, unclipped, into `found` where it has rows."""
    bins = difficulty.shape[1]
    vector = np.zeros(total.size)
    weight = np.zeros(nodes.size)
    for person in range(start.size - 1):
        first, last = start[person], start[person + 1]
        if first == last:
            continue
        _score(
            cell[first:last], knot[first:last], weights[first:last], trials[first:last], successes[first:last],
            difficulty, discrimination, nodes, log_weights, weight, vector,
        )  # fmt: skip
        if found.shape[0] > 0:
            found[person] = vector
            continue
        for b in range(bins):
            vector[b] *= SCORE_CURVE
        vector[bins] *= SCORE_DISCRIMINATION
        for i in range(first, last):
            if i == first or cell[i] != cell[i - 1]:
                at = bins + 1 + 3 * cell[i]
                vector[at] *= SCORE_LEVEL
                vector[at + 1] *= SCORE_TILT
                vector[at + 2] *= SCORE_SHARE
        _add_bounded(vector, CLIP, longest, total)
