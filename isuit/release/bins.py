"""The bins of a released curve: equal widths between round numbers, fixed by the first release of a series.

The span runs from the metric that k riders have reached downwards to the one that k riders have reached upwards, and
outwards to the next edge. A single rider who went out in a storm therefore moves no edge, and nothing is lost: outside
the span no bin can have k riders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from isuit.domain import FloatArray, IntArray

MOST = 12  # bins; with round widths there are seldom fewer than eight
_ROUND = (1.0, 2.0, 2.5, 4.0, 5.0, 10.0)
OUTSIDE = -1


@dataclass(frozen=True)
class Bins:
    """`number` bins of equal width; edge i is `(first + i) * width`, so edges are round numbers."""

    first: int
    number: int
    width: float

    def edge(self, index: int) -> float:
        # Twelve digits: 3 * 0.1 is 0.3 again.
        return float(f"{(self.first + index) * self.width:.12g}") + 0.0

    @property
    def lower(self) -> float:
        return self.edge(0)

    @property
    def upper(self) -> float:
        return self.edge(self.number)

    def centre(self, index: int) -> float:
        return float(f"{(self.first + index + 0.5) * self.width:.12g}") + 0.0

    @property
    def centres(self) -> FloatArray:
        return np.array([self.centre(index) for index in range(self.number)])

    def of(self, metric: FloatArray) -> IntArray:
        """The bin of each metric; the last bin includes its upper edge; OUTSIDE beyond the span."""
        edges = np.array([self.edge(index) for index in range(self.number + 1)])
        found = np.searchsorted(edges, metric, side="right") - 1
        found = np.where(metric == edges[-1], self.number - 1, found)
        return np.where((found < 0) | (found >= self.number), OUTSIDE, found).astype(np.int64)

    def place(self, number: int) -> tuple[None, Bins, int]:
        """As of a grid (`grid.Place`): the row's dimension is that of its topic."""
        return None, self, number

    def dimensions(self, topic: str) -> dict[str, Bins]:
        """The dimension of the rows, which is that of their topic, with the bins along it."""
        return {topic: self}

    def as_json(self) -> dict[str, Any]:
        return {"first": self.first, "number": self.number, "width": self.width}


def choose(
    rider: IntArray, metric: FloatArray, k: int, most: int = MOST, widths: tuple[float, ...] = _ROUND
) -> Bins | None:
    """The bins for these outcomes, at most so many; None where fewer than k riders are there."""
    lowest, highest = _reached(rider, metric, k)
    if lowest is None or highest is None:
        return None
    if lowest >= highest:
        # One value, or ends that k riders reach only by passing each other: bins around the middle.
        lowest, highest = min(lowest, highest), max(lowest, highest)
    if lowest == highest:
        step = abs(lowest) or 1.0
        lowest, highest = lowest - step / 2, highest + step / 2
    return _round_bins(lowest, highest, most, widths)


def _reached(rider: IntArray, metric: FloatArray, k: int) -> tuple[float | None, float | None]:
    """The metrics that k riders have reached, downwards and upwards."""
    if not rider.size:
        return None, None
    riders = int(rider.max()) + 1
    least, most = np.full(riders, np.inf), np.full(riders, -np.inf)
    np.minimum.at(least, rider, metric)
    np.maximum.at(most, rider, metric)
    seen = np.isfinite(least)
    if np.count_nonzero(seen) < k:
        return None, None
    return float(np.sort(least[seen])[k - 1]), float(np.sort(most[seen])[-k])


def _round_bins(lowest: float, highest: float, most: int = MOST, widths: tuple[float, ...] = _ROUND) -> Bins:
    """The narrowest round width that covers the span with at most so many bins."""
    power = 10.0 ** math.floor(math.log10((highest - lowest) / most))
    for factor in (*widths, *(10 * step for step in widths)):
        width = float(f"{factor * power:.6g}")
        first, last = math.floor(lowest / width), math.ceil(highest / width)
        # A quotient can round to the whole number next to it: an end that is just beyond an edge keeps its bin.
        first -= int(Bins(first, 1, width).lower > lowest)
        last += int(Bins(last, 1, width).lower < highest)
        if last - first <= most:
            return Bins(first, max(last - first, 1), width)
    raise AssertionError("a width of a hundred times the span covers it")
