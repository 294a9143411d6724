"""Outcomes counted per rider and item: all that the likelihood needs to know.

An item is a metric cell at a site. Small cohorts keep every distinct metric; from `EXACT_ROWS` outcomes on, the
metric is cut into cells of about a five-hundredth of the range, each represented by the mean of the metrics in
it, which leaves an error of second order in the cell's width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray, IntArray

from .basis import Spline

EXACT_ROWS = 5_000
CELLS_PER_INTERVAL = 24
_STEPS = 2**20


@dataclass(frozen=True)
class Counts:
    """Trials and successes per rider and item, sparse and of the same structure."""

    trials: csr_matrix  # riders x items
    successes: csr_matrix
    item_metric: FloatArray
    item_site: IntArray  # -1: no site

    @property
    def riders(self) -> int:
        return int(self.trials.shape[0])

    @property
    def items(self) -> int:
        return int(self.trials.shape[1])

    @cached_property
    def item_trials(self) -> FloatArray:
        return np.asarray(self.trials.sum(axis=0), dtype=np.float64).ravel()

    @cached_property
    def item_successes(self) -> FloatArray:
        return np.asarray(self.successes.sum(axis=0), dtype=np.float64).ravel()

    @cached_property
    def rider_successes(self) -> FloatArray:
        return np.asarray(self.successes.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def rider_trials(self) -> FloatArray:
        return np.asarray(self.trials.sum(axis=1), dtype=np.float64).ravel()

    def of_riders(self, chosen: slice | IntArray) -> Counts:
        return Counts(self.trials[chosen], self.successes[chosen], self.item_metric, self.item_site)


def cell_edges(spline: Spline) -> FloatArray:
    """Edges of the fine metric cells, as many in each of the spline's intervals."""
    breaks = np.concatenate([[0.0], spline.inner_knots, [1.0]])
    steps = np.linspace(0.0, 1.0, CELLS_PER_INTERVAL, endpoint=False)
    fine = (breaks[:-1, None] + np.diff(breaks)[:, None] * steps).ravel()
    return np.append(fine, 1.0)


def count(
    rider: IntArray,
    metric: FloatArray,
    outcome: IntArray,
    spline: Spline,
    riders: int,
    site: IntArray | None = None,
    weight: FloatArray | None = None,
) -> Counts:
    """Count outcomes, each as one or as its weight. The result does not depend on the order of the rows.

    Weights must be whole multiples of a power of two, so that their sums are exact in any order.
    """
    exact = rider.size <= EXACT_ROWS
    if exact:
        values, cell = np.unique(metric, return_inverse=True)
        width = values.size
    else:
        edges = cell_edges(spline)
        width = edges.size - 1
        unit = spline.unit(metric)
        cell = np.clip(np.searchsorted(edges, unit, side="right") - 1, 0, width - 1)
    code = cell if site is None else (site + 1) * width + cell
    places = 1 if site is None else int(site.max()) + 2
    seen = np.bincount(code, minlength=width * places) > 0
    present = np.flatnonzero(seen)
    item = (np.cumsum(seen) - 1)[code]
    items = present.size
    item_trials = np.bincount(item, minlength=items).astype(np.float64)
    if exact:
        item_metric = values[present % width]
    else:
        # The mean of a cell in whole steps of its width: sums of whole numbers are exact in any order of rows.
        start, step = edges[:-1][present % width], np.diff(edges)[present % width] / _STEPS
        steps = np.rint((unit - start[item]) / step[item])
        mean = start + step * np.bincount(item, weights=steps, minlength=items) / item_trials
        item_metric = spline.lower + (spline.upper - spline.lower) * mean
    shape = (riders, items)
    # Several outcomes of a rider at an item are summed, in whole numbers, hence exactly and in any order.
    weight = np.ones(rider.size) if weight is None else weight
    trials = csr_matrix((weight, (rider, item)), shape=shape)
    successes = csr_matrix((weight * outcome, (rider, item)), shape=shape)
    for matrix in (trials, successes):
        matrix.sum_duplicates()
    return Counts(trials, successes, item_metric, present // width - 1)
