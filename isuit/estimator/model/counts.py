"""Outcomes counted per rider and item: all that the likelihood needs to know.

An item is a metric cell at a site. Small cohorts keep every distinct metric; from `EXACT_ROWS` outcomes on, the
metric is cut into cells of about a five-hundredth of the range, each represented by the mean of the metrics in
it, which leaves an error of second order in the cell's width. Of several metrics a cell is a product of cells, and
those of each are wider, so that riders still share some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from isuit import columns
from isuit.columns import Column, rider_slices
from isuit.domain import CodeArray, FloatArray, IntArray

from .basis import Spline

EXACT_ROWS = 5_000
_MOST_CODES = (
    5_000_000  # of distinct metrics at sites, whether they occur or not; with more, metrics are put into cells
)
CELLS_PER_INTERVAL = 24
_STEPS = 2**20
_PARTS = {1: CELLS_PER_INTERVAL, 2: 8, 3: 2}  # of a spline's interval, by the number of continuous metrics: cells
_FEW_VALUES = 48  # distinct values of a metric up to which each is a cell: attempts and board types stay apart
_BUCKETS = 2**14  # equal parts of the range that find a metric's cell, five times as fast as bisection


@dataclass(frozen=True)
class Counts:
    """Trials and successes per rider and item, as two sparse matrices with entries at the same places."""

    trials: csr_matrix  # riders x items
    successes: csr_matrix  # of whole numbers where outcomes are not weighted, as narrow as these allow
    item_metric: FloatArray  # of several metrics, items x metrics
    item_site: IntArray  # or `NO_SITE`

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
        return np.asarray(self.successes.T @ np.ones(self.riders))

    @cached_property
    def rider_successes(self) -> FloatArray:
        return np.asarray(self.successes @ np.ones(self.items))  # exact: they are multiples of a power of two

    @cached_property
    def rider_trials(self) -> FloatArray:
        return np.asarray(self.trials.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def starts(self) -> IntArray:
        """Where each rider's entries begin, and after all of them the end."""
        return np.asarray(self.trials.indptr, np.int64)

    def of_present(self) -> Counts:
        """Of the riders who have an outcome; the entries are the same."""
        indptr = self.trials.indptr
        ends = indptr[1:][np.diff(indptr) > 0]
        trials = csr_matrix(
            (self.trials.data, self.trials.indices, np.append(indptr[:1], ends)), shape=(ends.size, self.items)
        )
        return Counts(trials, _beside(trials, self.successes.data), self.item_metric, self.item_site)

    def of_riders(self, chosen: slice | IntArray) -> Counts:
        trials, successes = self.trials[chosen], self.successes[chosen]
        return Counts(trials, _beside(trials, successes.data), self.item_metric, self.item_site)


def cell_edges(spline: Spline) -> FloatArray:
    """Edges of the fine metric cells, as many in each of the spline's intervals."""
    breaks = np.concatenate([[0.0], spline.inner_knots, [1.0]])
    steps = np.linspace(0.0, 1.0, CELLS_PER_INTERVAL, endpoint=False)
    fine = (breaks[:-1, None] + np.diff(breaks)[:, None] * steps).ravel()
    return np.append(fine, 1.0)


def count(
    rider: CodeArray,
    metric: FloatArray,
    outcome: CodeArray,
    spline: Spline,
    riders: int,
    site: CodeArray | None = None,
    weight: FloatArray | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> Counts:
    """Count outcomes by rider and item. The order of the rows does not matter.

    Each outcome counts as one, or as its `weight`; with `chosen`, only rows of that mask count. Weights must be whole
    multiples of a power of two, so that their sums are exact in any order.
    """
    rows = rider.size if chosen is None else int(np.count_nonzero(chosen))
    places = 1 if site is None else int(site.max(initial=-1)) + 2
    cells: _Cells | _Values = _Cells(spline)
    if rows <= EXACT_ROWS and rows * places <= _MOST_CODES:
        cells = _Values(metric if chosen is None else metric[chosen])
    code_trials, code_steps = np.zeros(cells.width * places, dtype=np.int64), np.zeros(cells.width * places)
    entries = _Entries(riders, cells.width * places, weight is not None)
    for part in rider_slices(rider):
        own = part if chosen is None else part.start + np.flatnonzero(chosen[part])
        cell, steps = cells.place(metric[own])
        code = cell if site is None else (site[own].astype(np.int64) + 1) * cells.width + cell
        np.add.at(code_trials, code, 1)
        np.add.at(code_steps, code, steps)
        entries.add(rider[own], code, outcome[own], None if weight is None else weight[own])
    seen = code_trials > 0
    present = np.flatnonzero(seen)
    item_metric = cells.mean(present % cells.width, code_steps[present], code_trials[present])
    trials, successes = entries.matrices(seen)
    return Counts(trials, successes, item_metric, present // cells.width - 1)


def count_conditions(
    rider: CodeArray,
    conditions: tuple[FloatArray, ...],
    outcome: CodeArray,
    splines: tuple[Spline, ...],
    riders: int,
    site: CodeArray | None = None,
    chosen: NDArray[np.bool_] | None = None,
    weight: FloatArray | None = None,
) -> Counts:
    """The same of several metrics: an item is a cell of all of them at a site."""
    rows = slice(None) if chosen is None else np.flatnonzero(chosen)
    rider, outcome = rider[rows], outcome[rows]
    weight = None if weight is None else weight[rows]
    columns_ = [metric[rows] for metric in conditions]
    exact = [rider.size <= EXACT_ROWS or _has_few_values(metric) for metric in columns_]
    parts = _PARTS.get(exact.count(False), 1)
    cells = [
        _DistinctValues(metric) if few else _WideCells(spline, parts)
        for metric, spline, few in zip(columns_, splines, exact, strict=True)
    ]
    code = np.zeros(rider.size, np.int64) if site is None else site[rows].astype(np.int64) + 1
    for cell, metric in zip(cells, columns_, strict=True):
        code = code * cell.width + cell.place(metric)
    present, item, trials = np.unique(code, return_inverse=True, return_counts=True)
    item_metric = np.empty((present.size, len(splines)))
    for k, (cell, metric) in enumerate(zip(cells, columns_, strict=True)):
        item_metric[:, k] = cell.means(metric, item, trials)
    for cell in cells:
        present = present // cell.width
    order = np.argsort(rider, kind="stable")
    entries = _Entries(riders, item_metric.shape[0], weight is not None)
    for part in rider_slices(rider[order]):
        own = order[part]
        entries.add(rider[own], item[own], outcome[own], None if weight is None else weight[own])
    matrices = entries.matrices(np.ones(item_metric.shape[0], dtype=bool))
    return Counts(*matrices, item_metric, present - 1)


def _has_few_values(metric: FloatArray) -> bool:
    """Whether the metric is one of few levels; most others are told by their first values alone."""
    if np.unique(metric[: 4 * _FEW_VALUES]).size > _FEW_VALUES:
        return False
    return bool(np.unique(metric).size <= _FEW_VALUES)


class _DistinctValues:
    """Every distinct value of a metric is a cell of its own."""

    def __init__(self, metric: FloatArray) -> None:
        self._values = np.unique(metric)
        self.width = self._values.size

    def place(self, metric: FloatArray) -> IntArray:
        return np.searchsorted(self._values, metric)

    def means(self, metric: FloatArray, item: IntArray, trials: IntArray) -> FloatArray:
        result = np.empty(trials.size)
        result[item] = metric
        return result


class _WideCells(_DistinctValues):
    """Cells of a metric, as many in each of the spline's intervals."""

    def __init__(self, spline: Spline, parts: int) -> None:
        self._spline = spline
        breaks = np.concatenate([[0.0], spline.inner_knots, [1.0]])
        steps = np.arange(parts) / parts
        self._edges = (breaks[:-1, None] + np.diff(breaks)[:, None] * steps).ravel()[1:]
        self.width = self._edges.size + 1

    def place(self, metric: FloatArray) -> IntArray:
        return np.searchsorted(self._edges, self._spline.unit(metric), side="right")

    def means(self, metric: FloatArray, item: IntArray, trials: IntArray) -> FloatArray:
        # Whole multiples of a fraction of the range: their sums are exact, whatever the order of rows.
        steps = np.bincount(item, weights=np.rint(self._spline.unit(metric) * _STEPS), minlength=trials.size)
        spline = self._spline
        return np.asarray(spline.lower + (spline.upper - spline.lower) * (steps / trials / _STEPS))


class _Values:
    """Every distinct metric is a cell of its own."""

    def __init__(self, metric: FloatArray) -> None:
        self._values = np.unique(metric)
        self.width = self._values.size

    def place(self, metric: FloatArray) -> tuple[IntArray, FloatArray]:
        return np.searchsorted(self._values, metric), np.zeros(metric.size)

    def mean(self, cell: IntArray, steps: FloatArray, trials: IntArray) -> FloatArray:
        return np.asarray(self._values[cell])


class _Cells:
    """The fine cells of a spline. Where a metric lies in its cell is rounded to whole steps, whose sums are exact."""

    def __init__(self, spline: Spline) -> None:
        self._spline = spline
        self._edges = cell_edges(spline)
        self.width = self._edges.size - 1
        self._start, self._step = self._edges[:-1], np.diff(self._edges) / _STEPS
        # For each bucket, how many edges lie in lower ones. Edges inside the bucket, mostly one or none, are compared.
        inside = np.bincount((self._edges * _BUCKETS).astype(np.int64), minlength=_BUCKETS + 1)
        self._below, self._most = np.cumsum(inside) - inside, int(inside.max())
        self._next_edge = np.append(self._edges, np.inf)

    def place(self, metric: FloatArray) -> tuple[IntArray, FloatArray]:
        """The cell of each metric, and how many steps into it."""
        unit = self._spline.unit(metric)
        edges_up_to = self._below[(unit * _BUCKETS).astype(np.int64)]
        for _ in range(self._most):
            edges_up_to += unit >= self._next_edge[edges_up_to]
        cell = np.minimum(edges_up_to, self.width) - 1  # the upper end is in the last cell
        return cell, np.rint((unit - self._start[cell]) / self._step[cell])

    def mean(self, cell: IntArray, steps: FloatArray, trials: IntArray) -> FloatArray:
        """The mean metric of each cell, from the sum of its outcomes' steps and their number."""
        mean = self._start[cell] + self._step[cell] * steps / trials
        return np.asarray(self._spline.lower + (self._spline.upper - self._spline.lower) * mean)


class _Entries:
    """The entries of both matrices, collected slice by slice. A rider's rows must all be in one slice."""

    def __init__(self, riders: int, codes: int, weighted: bool = False) -> None:
        self._bits = max(1, codes - 1).bit_length()
        self._of_rider = np.zeros(riders, dtype=np.int64)
        self._code = Column(np.int32 if codes <= np.iinfo(np.int32).max else np.int64)
        self._trials, self._successes = Column(np.float64), Column(np.float64 if weighted else np.int32)

    def add(self, rider: CodeArray, code: IntArray, outcome: CodeArray, weight: FloatArray | None) -> None:
        if not rider.size:
            return
        first = int(rider.min())
        key = ((rider.astype(np.int64) - first) << self._bits) | code
        key, trials, successes = _tallied(key, outcome) if weight is None else _summed(key, outcome, weight)
        of_rider = np.bincount(key >> self._bits)
        self._of_rider[first : first + of_rider.size] = of_rider
        self._code.append(key & ((1 << self._bits) - 1))
        self._trials.append(trials)
        self._successes.append(successes)

    def matrices(self, seen: NDArray[np.bool_]) -> tuple[csr_matrix, csr_matrix]:
        """Trials and successes as riders x codes that occur; both matrices share one copy of their indices."""
        code = self._code.array()
        if not seen.all():
            item, number = Column(np.int32), (np.cumsum(seen) - 1).astype(np.int32)
            for part in columns.slices(code.size):
                item.append(number[code[part]])
            code = item.array()
        ends = np.concatenate([[0], np.cumsum(self._of_rider)])
        ends = ends.astype(np.int32) if code.size <= np.iinfo(np.int32).max else ends
        shape = (self._of_rider.size, int(np.count_nonzero(seen)))
        trials = csr_matrix((self._trials.array(), code, ends), shape=shape)
        return trials, _beside(trials, _narrow(self._successes.array()))


def _beside(trials: csr_matrix, data: NDArray[Any]) -> csr_matrix:
    """Entries at the same places, which both matrices share."""
    return csr_matrix((data, trials.indices, trials.indptr), shape=trials.shape)


def _narrow(data: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the narrowest type that holds them; others as they are."""
    if data.dtype.kind != "i":
        return data
    narrow = Column(np.min_scalar_type(max((int(data[part].max()) for part in columns.slices(data.size)), default=0)))
    for part in columns.slices(data.size):
        narrow.append(data[part])
    return narrow.array()


def _tallied(key: IntArray, outcome: CodeArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct keys in order, and how many rows and successes each has."""
    key = (key << 1) | outcome  # so that sorting the keys alone brings the outcomes along
    if int(key.max()) < 2**31:
        key = key.astype(np.int32)  # sorts twice as fast
    key.sort()
    success, key = key & 1, key >> 1
    start = _starts(key)
    return key[start], np.diff(start, append=key.size), np.add.reduceat(success, start)


def _summed(key: IntArray, outcome: CodeArray, weight: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """The distinct keys in order, and the weights of all rows and of the successes, summed by key."""
    order = np.argsort(key)
    key, weight = key[order], weight[order]
    start = _starts(key)
    return key[start], np.add.reduceat(weight, start), np.add.reduceat(weight * outcome[order], start)


def _starts(key: IntArray) -> IntArray:
    return np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
