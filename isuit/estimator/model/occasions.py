"""A rider's occasions: the days with outcomes, in the order of time, and what is known of skill beforehand on each.

Outcomes of a rider on one day (UTC) are one occasion: within it skill stands still. Time is told in units of the
cohort's own, the median time between a rider's first and last occasion, so that nothing depends on whether a cohort
spans a week or ten years.

What may move the prior mean of skill at an occasion:
- *growth*: functions of the time since the rider's first occasion, the same for all riders: a logarithm, and a
  departure from it that is shrunk to nothing where the outcomes ask for none;
- with correlated exposure, *where the rider went lately*: the mean of the curve's basis over the outcomes of earlier
  days, each day counting half after so much time; of a first day its own. Later days and outcomes never enter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.compiled import compiled
from isuit.domain import NO_TIME, FloatArray, IntArray, Observations

DAY = 86_400_000_000  # microseconds
YEAR = 365.25 * DAY
GROWTH = 3  # functions
_LEAST_WEIGHT = 1e-100  # of past days: below, sums are scaled up, which changes no mean


@dataclass(frozen=True)
class Occasions:
    """Occasions rider by rider, each rider's in the order of time."""

    riders: IntArray  # of rider r: occasions riders[r] to riders[r + 1]
    day: IntArray  # since 1970
    of_row: IntArray  # the occasion of each row of the data
    seen: NDArray[np.bool_]  # occasions with outcomes that count: others are only predicted

    @classmethod
    def of(cls, data: Observations, chosen: NDArray[np.bool_] | None = None) -> Occasions:
        """The occasions of all rows, each of which must have a time. With a mask, days without a chosen row are
        occasions without outcomes."""
        assert data.observed_at is not None
        day = np.asarray(data.observed_at) // DAY
        rider = data.rider.astype(np.int64)
        first = int(day.min(initial=0))
        width = int(day.max(initial=0)) - first + 1
        codes, of_row = np.unique(rider * width + (day - first), return_inverse=True)
        riders = np.searchsorted(codes // width, np.arange(len(data.riders) + 1))
        seen = np.ones(codes.size, dtype=bool)
        if chosen is not None:
            seen = np.bincount(of_row, weights=chosen, minlength=codes.size) > 0
        return cls(riders, codes % width + first, of_row, seen)

    @property
    def rider(self) -> IntArray:
        return np.repeat(np.arange(self.riders.size - 1), np.diff(self.riders))

    @property
    def size(self) -> int:
        return int(self.day.size)

    def spans(self) -> FloatArray:
        """Days from the first to the last occasion, of riders who have two or more."""
        several = np.diff(self.riders) > 1
        starts, ends = self.riders[:-1][several], self.riders[1:][several] - 1
        return np.asarray((self.day[ends] - self.day[starts]).astype(np.float64))

    def since_first(self) -> FloatArray:
        """Days since the rider's first occasion with outcomes. Zero before it: skill is taken to have been the same
        then."""
        rider = self.rider
        first = np.full(self.riders.size - 1, np.iinfo(np.int64).max)
        np.minimum.at(first, rider[self.seen], self.day[self.seen])
        np.minimum.at(first, rider, np.where(first[rider] == np.iinfo(np.int64).max, self.day, first[rider]))
        return np.asarray(np.maximum(self.day - first[rider], 0).astype(np.float64))

    def gaps(self, since: FloatArray) -> FloatArray:
        """Time since the occasion before; zero at a rider's first."""
        gap = np.diff(since, prepend=0.0)
        gap[self.riders[:-1][np.diff(self.riders) > 0]] = 0.0
        return gap


def untimed(data: Observations) -> str | None:
    """Why skill cannot be seen to move in these data; None where it can."""
    if data.observed_at is None or not len(data):
        return "no outcome has a time"
    without = int(np.count_nonzero(np.asarray(data.observed_at) == NO_TIME))
    if without:
        return f"{without} of {len(data)} outcomes have no time"
    if not np.any(Occasions.of(data).spans() > 0):
        return "no rider has outcomes on more than one day"
    return None


def growth(since: FloatArray) -> FloatArray:
    """Functions of the time since a rider's first occasion, zero at it."""
    return np.column_stack([np.log1p(since), np.log1p(8.0 * since), since])


def recent(
    occasions: Occasions, gap: FloatArray, sums: FloatArray, outcomes: FloatArray, half_life: float
) -> FloatArray:
    """Means over the outcomes of earlier days, each counting half after `half_life`; of a first day its own.

    `sums` and `outcomes` are those of each occasion. Where a rider has no outcomes at all the mean is not a number.
    """
    result = np.empty_like(sums)
    decay = np.maximum(0.5 ** (gap / half_life), 1e-30)
    _recent(occasions.riders, decay, np.ascontiguousarray(sums), np.ascontiguousarray(outcomes), result)
    return result


@compiled
def _recent(riders, decay, sums, outcomes, result):
    width = sums.shape[1]
    past = np.empty(width)
    for r in range(riders.size - 1):
        weight = 0.0
        past[:] = 0.0
        for o in range(riders[r], riders[r + 1]):
            weight *= decay[o]
            past *= decay[o]
            if weight > 0.0:
                if weight < _LEAST_WEIGHT:
                    past /= weight
                    weight = 1.0
                for k in range(width):
                    result[o, k] = past[k] / weight
            else:
                # Nothing before: the first day that has outcomes, this one or, of those only predicted, a later one.
                first = o
                while first < riders[r + 1] - 1 and outcomes[first] == 0.0:
                    first += 1
                for k in range(width):
                    result[o, k] = sums[first, k] / outcomes[first]
            weight += outcomes[o]
            for k in range(width):
                past[k] += sums[o, k]
