"""What the compiled loops read: counts, curve, places and windows as plain arrays, and riders in lanes.

Riders are cut into lanes of about as many entries; a lane's sums are added up rider by rider, and lanes' sums in the
order of lanes. The number of lanes follows from the cohort alone, so no result depends on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from isuit.compiled import CORES
from isuit.domain import FloatArray, IntArray

from ..model.counts import Counts
from ..model.slopes import Steepness
from . import kernels as compiled_loops
from .kernels import MOST_POINTS, REACH, STEP, STRIP, TOGETHER

kernels: Any = compiled_loops  # they take what numba makes of their arguments
LANES = 8
LARGE_LANE = 1 << 22  # entries of a lane at the most: a large cohort has more lanes, so that more workers share them
LANE_ENTRIES = 20_000  # at least so many in a lane: fewer are not worth a thread
_TABLE_BYTES = 1 << 26
_WORTH = 2  # entries to an item at a level from which that level is
_SHARED = 8  # riders to an item from which its probabilities are tabulated

_S = TypeVar("_S")
_T = TypeVar("_T")


class Entries(NamedTuple):
    """Counts as the loops read them."""

    entries: IntArray  # of rider r: entries[r] to entries[r + 1]
    item: NDArray[np.int32]
    trials: FloatArray
    rider_trials: FloatArray
    rider_successes: FloatArray
    successes: FloatArray  # of each entry; only where the discrimination changes with the item is it asked for

    @classmethod
    def of(cls, counts: Counts, apart: bool = False) -> Entries:
        """With `apart`, successes are told entry by entry."""
        trials = counts.trials
        return cls(
            counts.starts,
            trials.indices,
            trials.data,
            np.ascontiguousarray(counts.rider_trials),
            np.ascontiguousarray(counts.rider_successes),
            np.ascontiguousarray(counts.successes.data, np.float64) if apart else np.zeros(0),
        )


class AtItems(NamedTuple):
    """f at each item, its exponential, and its derivative with respect to the discrimination.

    `relative` is an item's discrimination over a, the largest of which is `steepest`; it is empty where all have the
    same. `function` and `value` are the derivatives of its logarithm (`model/slopes.py`).
    """

    f: FloatArray
    odds: FloatArray
    by_a: FloatArray
    anchored: bool  # whether `by_a` is anything but zero
    relative: FloatArray
    steepest: float
    function: NDArray[np.int32]
    value: FloatArray
    slopes: int  # raw functions of the change

    @classmethod
    def of(cls, f: FloatArray, by_a: FloatArray, steepness: Steepness | None = None) -> AtItems:
        odds, anchored = np.exp(np.clip(f, -600.0, 600.0)), bool(by_a.any())
        if steepness is None:
            return cls(f, odds, by_a, anchored, np.zeros(0), 1.0, np.zeros((0, 0), np.int32), np.zeros((0, 0)), 0)
        steep, rows = steepness.relative, steepness.rows
        return cls(f, odds, by_a, anchored, steep, float(steep.max()), rows.function, rows.value, rows.functions)


class Work(NamedTuple):
    """Room for one rider's numbers; a lane has its own."""

    weight: FloatArray
    row: IntArray
    success: FloatArray
    score: FloatArray
    gathered: FloatArray  # all riders' weights times trials, at the points of the table; empty where that does not pay

    @classmethod
    def for_riders(cls, most_entries: int, gathered: int = 0) -> Work:
        row, rest = np.empty(max(1, most_entries), np.int64), (np.empty(1 << 15), np.empty(1 << 15))
        return cls(np.empty(MOST_POINTS), row, *rest, np.zeros(gathered))


class Spans(NamedTuple):
    """Which lattice points the windows of some riders cover, level by level: the first point, the one after the last,
    and how many riders have a window there.

    The spans of several groups of riders can be joined, so that a table follows from all riders, wherever they are.
    """

    first_level: int
    starts: IntArray
    ends: IntArray
    riders: IntArray

    @classmethod
    def of(cls, windows: IntArray) -> Spans:
        used = windows[windows[:, 2] > 0]
        if not used.size:
            nothing = np.zeros(0, np.int64)
            return cls(0, nothing, nothing, nothing)
        first = int(used[:, 0].min())
        level = used[:, 0] - first
        levels = int(level.max()) + 1
        starts = np.full(levels, np.iinfo(np.int64).max)
        ends = np.full(levels, np.iinfo(np.int64).min)
        np.minimum.at(starts, level, used[:, 1])
        np.maximum.at(ends, level, used[:, 1] + used[:, 2])
        return cls(first, starts, ends, np.bincount(level, minlength=levels))

    @classmethod
    def first(cls, prior_mean: FloatArray, a: float) -> Spans:
        """Those of a first look at riders with these prior means, of which nothing else is known."""
        level = kernels.level_for(min(STEP, STRIP / a))
        step = kernels.step_at(level)
        start = np.floor((prior_mean.min() - REACH) / step).astype(np.int64)
        end = np.ceil((prior_mean.max() + REACH) / step).astype(np.int64) + 1
        return cls(level, np.array([start]), np.array([end]), np.array([prior_mean.size]))

    @classmethod
    def joined(cls, parts: Sequence[Spans]) -> Spans:
        """Those of all parts together."""
        parts = [part for part in parts if part.riders.size]
        if not parts:
            return cls.of(np.zeros((0, 3), np.int64))
        first = min(part.first_level for part in parts)
        levels = max(part.first_level + part.riders.size for part in parts) - first
        starts = np.full(levels, np.iinfo(np.int64).max)
        ends = np.full(levels, np.iinfo(np.int64).min)
        riders = np.zeros(levels, np.int64)
        for part in parts:
            here = slice(part.first_level - first, part.first_level - first + part.riders.size)
            starts[here] = np.minimum(starts[here], part.starts)
            ends[here] = np.maximum(ends[here], part.ends)
            riders[here] += part.riders
        return cls(first, starts, ends, riders)


class Table(NamedTuple):
    """Probabilities at the points of the lattice, for items that many riders share; empty where that does not pay."""

    first_level: int
    widths: IntArray  # points, by level
    starts: IntArray  # first multiple, by level
    bases: IntArray  # where a level's items begin
    log_failure: FloatArray
    success: FloatArray

    def gathered(self, entries: int) -> int:
        """How many sums a lane of so many entries has when it gathers its riders' weights by item and point; none where
        to look at riders one by one costs less."""
        return self.success.size if entries >= self.success.size else 0

    @classmethod
    def empty(cls) -> Table:
        nothing = np.zeros(0, np.int64)
        return cls(0, nothing, nothing, nothing, np.zeros(TOGETHER), np.zeros(TOGETHER))

    @classmethod
    def of(cls, spans: Spans, entries: int, riders: int, a: float, at: AtItems) -> Table:
        """For all points that any window has, by level, of so many riders with so many entries."""
        items, levels = at.f.size, spans.riders.size
        if entries < _SHARED * items or not levels:
            return cls.empty()
        first, starts, ends = spans.first_level, spans.starts, spans.ends
        widths = np.where(ends > starts, ends - starts, 0)
        starts = np.where(widths > 0, starts, 0)
        # A level that few entries use costs more to tabulate than to compute.
        widths = np.where(spans.riders * (entries / riders) > _WORTH * items, widths, 0)
        if int(widths.sum()) * items * 16 > _TABLE_BYTES:
            return cls.empty()
        bases = np.concatenate([[0], np.cumsum(widths)[:-1]]) * items
        # Rows are read beyond their end, to a multiple of so many points.
        log_failure, success = (np.zeros(int(widths.sum()) * items + TOGETHER) for _ in range(2))
        for k in range(levels):
            if widths[k]:
                theta = 2.0 ** (-0.5 * (first + k)) * (starts[k] + np.arange(widths[k]))
                x = at.f[:, None] - (a * at.relative[:, None] * theta if at.relative.size else a * theta)
                here = slice(bases[k], bases[k] + items * widths[k])
                small = np.exp(-np.abs(x))
                log_failure[here] = (np.maximum(x, 0.0) + np.log1p(small)).ravel()
                success[here] = (np.where(x > 0, small, 1.0) / (1.0 + small)).ravel()
        return cls(first, widths, starts, bases, log_failure, success)


def most_lanes(entries: int) -> int:
    """The most lanes for so many entries: a number that depends on the cohort alone, not on the machine."""
    return max(LANES, entries // LARGE_LANE)


def lanes(entries: IntArray, most: int | None = None) -> list[tuple[int, int]]:
    """Riders cut into at most `most` lanes with about equally many entries, each as (first rider, one after the
    last)."""
    riders, total = entries.size - 1, int(entries[-1])
    count = max(1, min(most_lanes(total) if most is None else most, total // LANE_ENTRIES))
    cuts = np.searchsorted(entries, np.linspace(0, total, count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [riders]])).tolist()
    return list(pairwise(edges))


def over(parts: Sequence[_S], task: Callable[[_S], _T], threads: int | None = None) -> list[_T]:
    """The task's result for each part, in the parts' order, on this many threads (all cores by default)."""
    threads = CORES if threads is None else threads
    if len(parts) < 2 or threads < 2:
        return [task(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(task, parts))


def one_by_one(parts: Sequence[_S], task: Callable[[_S], _T], threads: int | None = None) -> Iterator[_T]:
    """As `over`, but one result at a time: a caller who adds results up need not hold all of them."""
    threads = CORES if threads is None else threads
    if len(parts) < 2 or threads < 2:
        yield from map(task, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque(pool.submit(task, part) for part in parts[:threads])
        for following in range(threads, len(parts) + threads):
            if not waiting:
                break
            found = waiting.popleft().result()
            if following < len(parts):
                waiting.append(pool.submit(task, parts[following]))
            yield found
            del found


def added(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """The sum, in order, into the first."""
    rest = iter(parts)
    total = next(rest)
    for part in rest:
        total += part
    return total
