"""The bins of a released surface: products of a few bins of each metric, or main effects where products are too thin.

A row of a surface is like a row of a curve. It runs along one metric, and its dimension names that metric and where the
others are held: `wave_m at wind_kn=15`. A cell has one of two forms, for ever the one that it was first released in:

products      a row for every product of the metrics' bins, at its middle; its riders are those who were out in it
main effects  a row for every bin of every metric, with the others held in the middle bin of their own; its riders are
              those who were out in that bin, whatever the others were

Every number that is published tells of a rider. So bins are few, a cell needs riders for each of the numbers that its
form may tell (`riders_needed`), and noise grows with the root of how many they are: docs/disclosure.md has the figures.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from isuit.domain import FloatArray, IntArray
from isuit.release.bins import OUTSIDE, Bins, choose

RIDERS_PER_PLACE = 5  # with fewer, one person in three cells decides which points are refused for their influence
MOST = {2: 4, 3: 3}  # bins of a metric, by the number of metrics
_MOST_OF_MANY = 2
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_HELD = re.compile(r"(?P<metric>.+) at (?P<others>[^=]+=.+)")


class Place(NamedTuple):
    """What a row is about."""

    dimension: str  # the metric that the row runs along, and where the others are held
    bins: Bins  # of that metric
    bin: int

    @property
    def metric(self) -> float:
        return self.bins.centre(self.bin)


@dataclass(frozen=True)
class Grid:
    """The bins of several metrics. Places are numbered: products first, the last metric fastest, then the bins of each
    metric by itself."""

    metrics: tuple[str, ...]
    bins: tuple[Bins, ...]

    @property
    def products(self) -> int:
        return math.prod(bins.number for bins in self.bins)

    @property
    def number(self) -> int:
        return self.products + sum(bins.number for bins in self.bins)

    def told(self, place: int) -> int:
        """How many places the form of this one has."""
        return self.products if place < self.products else self.number - self.products

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """The span of each metric."""
        return tuple((bins.lower, bins.upper) for bins in self.bins)

    def product_of(self, metric: FloatArray) -> IntArray:
        """The product that each row of metrics lies in; OUTSIDE beyond the span of any."""
        found = np.zeros(len(metric), np.int64)
        outside = np.zeros(len(metric), bool)
        for bins, column in zip(self.bins, metric.T, strict=True):
            own = bins.of(column)
            found, outside = found * bins.number + own, outside | (own == OUTSIDE)
        return np.where(outside, OUTSIDE, found)

    def mains_of(self, product: IntArray) -> IntArray:
        """The places of main effects that rows of these products lie in, rows x metrics."""
        own = np.unravel_index(product, [bins.number for bins in self.bins])
        return np.column_stack([first + each for first, each in zip(self._first_mains, own, strict=True)])

    @cached_property
    def _first_mains(self) -> list[int]:
        numbers = [bins.number for bins in self.bins]
        return [self.products + sum(numbers[:k]) for k in range(len(numbers))]

    @cached_property
    def centres(self) -> FloatArray:
        """The condition that each place is evaluated at, places x metrics."""
        of_each = [bins.centres for bins in self.bins]
        products = np.stack(np.meshgrid(*of_each, indexing="ij"), axis=-1).reshape(-1, len(self.bins))
        mains = []
        for k, centres in enumerate(of_each):
            held = np.tile([bins.centre(bins.number // 2) for bins in self.bins], (centres.size, 1))
            held[:, k] = centres
            mains.append(held)
        return np.vstack([products, *mains])

    def place(self, number: int) -> Place:
        """What a row of this place is about. Products run along the first metric."""
        along = 0
        while number >= self.products and along + 1 < len(self.bins) and number >= self._first_mains[along + 1]:
            along += 1
        at = self.centres[number]
        others = [f"{name}={at[k]:.12g}" for k, name in enumerate(self.metrics) if k != along]
        bin_ = int(self.bins[along].of(at[along : along + 1])[0])
        return Place(f"{self.metrics[along]} at {', '.join(others)}", self.bins[along], bin_)

    def places_of(self, dimension: str, metric: float) -> list[int]:
        """The places whose rows have this dimension and metric: in each form at most one."""
        return [n for n in range(self.number) if (at := self.place(n)).dimension == dimension and at.metric == metric]

    def dimensions(self, topic: str) -> dict[str, Bins]:
        """The dimensions that rows can have, with the bins along each."""
        return {at.dimension: at.bins for at in map(self.place, range(self.number))}

    def is_near(self, number: int, product: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of these products are near a place of main effects: in its bin, and in others' middle ones or beside.

        Where nobody met a metric while the others were near what they are held at, no value is given.
        """
        along = max(k for k, first in enumerate(self._first_mains) if number >= first)
        own = np.unravel_index(product, [bins.number for bins in self.bins])
        near = own[along] == number - self._first_mains[along]
        for k, bins in enumerate(self.bins):
            if k != along:
                near &= np.abs(own[k] - bins.number // 2) <= 1
        return np.asarray(near)

    def as_json(self) -> dict[str, Any]:
        return {
            "metrics": [{"metric": name, **bins.as_json()} for name, bins in zip(self.metrics, self.bins, strict=True)]
        }

    @classmethod
    def from_json(cls, metrics: list[dict[str, Any]]) -> Grid:
        return cls(
            tuple(each["metric"] for each in metrics),
            tuple(Bins(each["first"], each["number"], each["width"]) for each in metrics),
        )


def choose_grid(metrics: tuple[str, ...], rider: IntArray, metric: FloatArray, k: int) -> Grid | None:
    """The bins of each metric as a curve's are chosen, but few; None where fewer than k riders are there."""
    most = MOST.get(len(metrics), _MOST_OF_MANY)
    found = [choose(rider, column, k, most, _ROUND) for column in metric.T]
    bins = [each for each in found if each is not None]
    return Grid(metrics, tuple(bins)) if len(bins) == len(found) else None


def riders_needed(told: int) -> int:
    """Of a cell whose form may tell so many numbers."""
    return RIDERS_PER_PLACE * told


def metric_along(dimension: str) -> str:
    """The metric that a published row runs along, by its dimension."""
    several = _HELD.fullmatch(dimension)
    return several["metric"] if several else dimension
