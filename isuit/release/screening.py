"""Step 3: withhold what is thin, before anything is fitted: it cannot reach a number that is published.

riders of a cell          the union over its sites, each once
thin bins, thin cells     fewer than k riders: withheld with all their outcomes
weight                    a rider weighs at most the cap in a bin of a cell, copies of a line weigh nothing more
dominance                 a cell that one or two riders weigh too much in is refused
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray, IntArray
from isuit.release import bins as binning
from isuit.release.bins import OUTSIDE, Bins
from isuit.release.cells import cell_of
from isuit.release.eligibility import NOWHERE, Outcomes
from isuit.release.grid import Grid, choose_grid, riders_needed
from isuit.release.policy import Policy
from isuit.store.sites import Coordinates

NO_CELL = -1  # of an outcome whose site has no coordinates, or that a rule withholds
WEIGHT_STEPS = 2**20  # weights are whole multiples of 1 / this: sums are exact in any order of rows


@dataclass(frozen=True)
class Placed:
    """Outcomes with the cell and the bin they lie in. Cells are sorted by name."""

    outcomes: Outcomes
    cells: tuple[str, ...]
    cell: IntArray
    bin: IntArray
    bins: Bins | Grid
    line: IntArray | None = None  # of a surface, which line of outcomes a row is of (`forms`); None: each of its own

    def of_rows(self, chosen: NDArray[np.bool_] | IntArray) -> Placed:
        """Some of the rows; cells without a row are no longer there."""
        present, code = np.unique(self.cell[chosen], return_inverse=True)
        return Placed(
            self.outcomes.of_rows(chosen),
            tuple(self.cells[c] for c in present.tolist()),
            code.astype(np.int64),
            self.bin[chosen],
            self.bins,
            None if self.line is None else self.line[chosen],
        )

    def whole(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The chosen rows of lines all of whose rows are chosen."""
        if self.line is None:
            return chosen
        left = np.zeros(int(self.line.max(initial=-1)) + 1, dtype=bool)
        left[self.line[~chosen]] = True
        return ~left[self.line]

    @property
    def lines(self) -> Placed:
        """Every line of outcomes once."""
        return self if self.line is None else self.of_rows(np.unique(self.line, return_index=True)[1])

    @property
    def pair(self) -> IntArray:
        """The (cell, bin) of each row as one code."""
        return self.cell * self.bins.number + self.bin


@dataclass
class Reasons:
    """Why cells are missing: for the operator's eyes, never in a file. Names cells and sites, not riders."""

    cells: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, cell: str, reason: str) -> None:
        found = self.cells.setdefault(cell, [])
        if reason not in found:
            found.append(reason)


def place(
    outcomes: Outcomes,
    sites: Mapping[str, Coordinates],
    policy: Policy,
    bins: Bins | Grid | None,
    reasons: Reasons,
    metrics: tuple[str, ...] = (),
) -> Placed | None:
    """Cells and bins of the outcomes, without cells that are too small for any bin; None if nothing is left.

    `bins` are those of the series; without them this release is its first and chooses them. Outcomes of several
    `metrics` lie in products of bins.
    """
    names = [cell_of(site, sites, policy.resolution) for site in outcomes.places]
    without = [site for site, name in zip(outcomes.places, names, strict=True) if name is None]
    if without:
        reasons.notes.append(f"{len(without)} sites have no coordinates: give them with `isuit fit --sites`")
    if np.any(outcomes.place == NOWHERE):
        reasons.notes.append("some outcomes have no site, in a cohort that has sites: they are in no cell")
    cells = sorted({name for name in names if name is not None})
    code_of = {name: code for code, name in enumerate(cells)}
    lookup = np.array([NO_CELL if name is None else code_of[name] for name in names] + [NO_CELL], dtype=np.int64)
    cell = lookup[outcomes.place]  # NOWHERE, which is -1, picks the last one
    riders = distinct_riders(cell, outcomes, len(cells))
    for code in np.flatnonzero(riders < policy.k).tolist():
        reasons.add(cells[code], _few(policy))
    rows = (cell != NO_CELL) & np.append(riders >= policy.k, False)[cell]
    if not rows.any():
        return None
    if bins is None and metrics:
        bins = choose_grid(metrics, outcomes.rider[rows], outcomes.metric[rows], policy.k)
    elif bins is None:
        bins = binning.choose(outcomes.rider[rows], outcomes.metric[rows], policy.k)
    if bins is None:
        return None
    bin_ = bins.product_of(outcomes.metric) if isinstance(bins, Grid) else bins.of(outcomes.metric)
    rows &= bin_ != OUTSIDE
    placed = Placed(outcomes, tuple(cells), cell, bin_, bins)
    return placed.of_rows(rows) if rows.any() else None


def withhold_thin(placed: Placed, policy: Policy, reasons: Reasons) -> Placed | None:
    """What is left when every (cell, bin) with fewer than k riders is withheld, then every cell with fewer than k."""
    rows = _in_enough(placed, np.ones(placed.cell.size, dtype=bool), policy)
    while placed.line is not None and not np.array_equal(rows, fewer := _in_enough(placed, rows, policy)):
        rows = fewer  # lines that left a thin bin left other bins too
    riders = distinct_riders(np.where(rows, placed.cell, NO_CELL), placed.outcomes, len(placed.cells))
    for code in np.flatnonzero(riders < policy.k).tolist():
        reasons.add(placed.cells[code], f"{_few(policy)} in every bin of the metric")
    needed = _needed(placed, policy)
    for code in np.flatnonzero((riders >= policy.k) & (riders < needed)).tolist():
        reasons.add(
            placed.cells[code],
            f"fewer than {needed[code]} riders, which a surface of so many bins needs: fit and release one metric",
        )
    rows &= (riders >= needed)[placed.cell]
    return placed.of_rows(rows) if rows.any() else None


def _needed(placed: Placed, policy: Policy) -> IntArray:
    """The riders that each cell needs: k, and of a surface some for every number that may be told."""
    found = np.full(len(placed.cells), policy.k)
    if isinstance(placed.bins, Grid):
        cells, first = np.unique(placed.cell, return_index=True)
        told = [placed.bins.told(place) for place in placed.bin[first].tolist()]
        found[cells] = np.maximum(policy.k, [riders_needed(number) for number in told])
    return found


def _in_enough(placed: Placed, rows: NDArray[np.bool_], policy: Policy) -> NDArray[np.bool_]:
    """Of these rows those in a (cell, bin) with enough riders."""
    number = len(placed.cells) * placed.bins.number
    enough = bins_with_enough(distinct_riders(np.where(rows, placed.pair, NO_CELL), placed.outcomes, number), policy)
    return placed.whole(rows & enough[placed.pair])


def distinct_riders(group: IntArray, outcomes: Outcomes, groups: int) -> IntArray:
    """How many riders each group has, each once whatever sites they visited; `NO_CELL` is no group."""
    inside, riders = group != NO_CELL, max(len(outcomes.riders), 1)
    pairs = np.unique(group[inside] * riders + outcomes.rider[inside])
    return np.bincount(pairs // riders, minlength=groups)


def bins_with_enough(riders: IntArray, policy: Policy) -> NDArray[np.bool_]:
    return np.asarray(riders >= policy.k)


def weights(placed: Placed, policy: Policy) -> FloatArray:
    """The weight of each row: a rider weighs in a bin as many outcomes as they have distinct lines, up to the cap.

    Copies share the weight of their line's rider and add none, so copying one rider's rows changes nothing.
    """
    key = placed.pair * len(placed.outcomes.riders) + placed.outcomes.rider
    _, group = np.unique(key, return_inverse=True)
    outcomes = np.bincount(group, weights=placed.outcomes.times)
    total = capped(distinct_lines(group, placed.outcomes.times), policy)
    weight = placed.outcomes.times * (total / outcomes)[group]
    if placed.line is not None:  # a rider weighs no more than the cap in any bin that the line is in
        least = np.full(int(placed.line.max(initial=-1)) + 1, np.inf)
        np.minimum.at(least, placed.line, weight)
        weight = least[placed.line]
    return np.maximum(np.rint(weight * WEIGHT_STEPS), 1.0) / WEIGHT_STEPS


def distinct_lines(group: IntArray, times: IntArray) -> FloatArray:
    """By group, how many lines it has; how often each of them is repeated (`times`) does not matter."""
    return np.bincount(group, minlength=0).astype(np.float64)


def capped(lines: FloatArray, policy: Policy) -> FloatArray:
    """What a rider weighs in a bin with this many distinct lines."""
    return np.minimum(lines, policy.weight_cap)


def refuse_dominated(placed: Placed, policy: Policy, reasons: Reasons) -> Placed | None:
    """Refuse the cells in which the heaviest rider or the two heaviest weigh too much."""
    weight = weights(placed, policy)
    riders = len(placed.outcomes.riders)
    key, group = np.unique(placed.cell * riders + placed.outcomes.rider, return_inverse=True)
    by_rider: FloatArray = np.bincount(group, weights=weight).astype(np.float64)
    cell = key // riders
    falling = np.lexsort((-by_rider, cell))
    # k is at least two: every cell that is left has a second rider.
    first = np.searchsorted(cell[falling], np.arange(len(placed.cells)))
    heaviest, second = by_rider[falling[first]], by_rider[falling[first + 1]]
    refused = is_dominated(heaviest, second, np.bincount(cell, weights=by_rider).astype(np.float64), policy)
    for code in np.flatnonzero(refused).tolist():
        reasons.add(placed.cells[code], "one or two riders dominate it: more outcomes of others are needed")
    rows = ~refused[placed.cell]
    return placed.of_rows(rows) if rows.any() else None


def is_dominated(heaviest: FloatArray, second: FloatArray, total: FloatArray, policy: Policy) -> NDArray[np.bool_]:
    """By cell, from the weights of its two heaviest riders and of all."""
    one, two = heaviest > policy.largest_share * total, heaviest + second > policy.largest_two_share * total
    return np.asarray(one | two)


def without(placed: Placed, refused: NDArray[np.bool_]) -> Placed | None:
    """Without the refused (cell, bin)s, given as a table of cells by bins."""
    rows = placed.whole(~refused[placed.cell, placed.bin])
    return placed.of_rows(rows) if rows.any() else None


def members(placed: Placed) -> dict[tuple[str, int], list[int]]:
    """The riders (as codes) behind each cell and bin."""
    riders = len(placed.outcomes.riders)
    found: dict[tuple[str, int], list[int]] = {}
    for key in np.unique(placed.pair * riders + placed.outcomes.rider).tolist():
        pair, rider = divmod(key, riders)
        cell, bin_ = divmod(pair, placed.bins.number)
        found.setdefault((placed.cells[cell], bin_), []).append(rider)
    return found


def _few(policy: Policy) -> str:
    return f"fewer than {policy.k} riders whose outcomes are old enough"
