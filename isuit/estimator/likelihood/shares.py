"""A share of the riders: what one pass asks of them, and what they answer, lane by lane.

One process has all riders in one share; on a cluster each worker has one or more (`far.py`). Both run this code, and a
lane is the same lane wherever its riders are: what is added up from lanes is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from isuit.domain import FloatArray, IntArray

from ..model.density import Tables
from ..model.design import Rows
from ..model.population import Visits
from . import kernels as compiled_loops
from .grids import AtItems, Entries, Spans, Table, Work, one_by_one

kernels: Any = compiled_loops  # they take what numba makes of their arguments

Lane = tuple[int, int]  # riders from and to


class Sums(NamedTuple):
    """What is summed over the riders of a lane. All but `expected`, `tilts` and `looked_up` are only summed for the
    information."""

    expected: FloatArray
    tilts: FloatArray  # items: score of the item's discrimination, where it is not the same at all
    moments: FloatArray  # items x 3: sums of p (1 - p) times powers of skill
    shared: FloatArray
    across: FloatArray
    own: FloatArray
    pairs: FloatArray
    looked_up: FloatArray  # how often each entry of the density's tables is read, points x 2
    pooled: FloatArray  # riders' posteriors together, at the points of the density's tables


class Bends(NamedTuple):
    """For each rider, the derivatives of the score of the prior mean: with respect to that mean, and with respect
    to the density's coefficients."""

    bend: FloatArray
    slopes: FloatArray


class OfLane(NamedTuple):
    """What one lane answers."""

    value: float  # log-likelihood, but for a sum without skill
    score: float  # of the discrimination
    short: int  # grids that were not enough
    sums: Sums


class Asked(NamedTuple):
    """What a pass asks of every share. It is small beside what they hold, for it goes to all of them."""

    a: float
    at: AtItems
    prior: Tables
    spans: Spans  # of the windows that all riders begin with
    entries: int  # of all riders, whose number comes next
    riders: int
    information: bool
    rows: Rows | None = None  # of the curve's design, for the information

    def table(self) -> Table:
        """Of probabilities, for all riders wherever they are."""
        return Table.of(self.spans, self.entries, self.riders, self.a, self.at)


class Found(NamedTuple):
    """What a pass leaves of each rider: where its grid begins the next time, and its posterior."""

    windows: IntArray
    mean: FloatArray
    sd: FloatArray
    pull: FloatArray  # score of the prior mean


class Looked(NamedTuple):
    """What a pass found in a share."""

    lanes: Iterator[OfLane]  # a lane at a time; what follows is whole when all of them have run
    found: Found
    bends: Bends


@dataclass(frozen=True)
class Share:
    """Riders with their counts and visits. Pairs of places are numbered as in the whole cohort."""

    entries: Entries
    visits: Visits
    places: int
    pairs: int  # of places
    density: int  # coefficients of the density of skill

    @property
    def riders(self) -> int:
        return int(self.entries.entries.size - 1)

    @property
    def regressed(self) -> bool:
        """Whether anything moves a rider's prior mean."""
        return bool(self.places or self.visits.regressors.shape[1])

    def work(self, gathered: int = 0) -> Work:
        return Work.for_riders(int(np.diff(self.entries.entries).max(initial=1)), gathered)

    def look(
        self,
        asked: Asked,
        lanes: list[Lane],
        prior_mean: FloatArray,
        windows: IntArray,
        table: Table,
        threads: int | None = None,
    ) -> Looked:
        """One pass over these lanes; `windows` are those that riders begin with, and `table` is that of the pass."""
        windows = windows.copy()
        mean, sd, pull = (np.empty(self.riders) for _ in range(3))
        bent = self.riders if self.density and self.regressed and asked.information else 0
        bends = Bends(np.zeros(bent), np.zeros((bent, self.density)))

        def of_lane(lane: Lane) -> OfLane:
            sums, ends = self._sums(asked), self.entries.entries
            work = self.work(table.gathered(int(ends[lane[1]] - ends[lane[0]])))
            rest = (asked.a, prior_mean, asked.prior, windows, table, work, mean, sd, pull)
            if asked.information:
                found = kernels.information(*lane, self.entries, asked.at, asked.rows, self.visits, *rest, sums, bends)
            else:
                found = kernels.gradient(
                    *lane, self.entries, asked.at, *rest, sums.expected, sums.tilts, sums.looked_up
                )
            value, score, few = found
            return OfLane(value, score, few, sums)

        return Looked(one_by_one(lanes, of_lane, threads), Found(windows, mean, sd, pull), bends)

    def _sums(self, asked: Asked) -> Sums:
        items, nothing, tilts = asked.at.f.size, np.zeros(0), np.zeros(asked.at.relative.size)
        looked_up = np.zeros(asked.prior.log.shape if self.density else (0, 2))
        if asked.rows is None:
            return Sums(np.zeros(items), tilts, *(nothing,) * 5, looked_up, nothing)
        raw, width = asked.rows.own.shape
        width = width + 1 if self.places else 0
        border = 1 + raw + self.visits.regressors.shape[1] + self.density
        return Sums(
            np.zeros(items),
            tilts,
            np.zeros((items, 3)),
            np.zeros((border, border)),
            np.zeros((self.places, width, border)),
            np.zeros((self.places, width, width)),
            np.zeros((self.pairs, width, width)),
            looked_up,
            np.zeros(len(asked.prior.log)),
        )

    def of_riders(self, begin: int, end: int) -> Share:
        """The share of some of the riders."""
        entries, visits = self.entries, self.visits
        first, last = entries.entries[begin], entries.entries[end]
        one, two = visits.visits[begin], visits.visits[end]
        in_pairs = visits.pairs_of_rider[begin:end]
        some = int(in_pairs[0]) if in_pairs.size else 0
        after = int(visits.pairs_of_rider[end]) if end < visits.pairs_of_rider.size else visits.pair.size
        return Share(
            Entries(
                entries.entries[begin : end + 1] - first,
                entries.item[first:last],
                entries.trials[first:last],
                entries.rider_trials[begin:end],
                entries.rider_successes[begin:end],
                entries.successes[first:last],
            ),
            Visits(
                visits.visits[begin : end + 1] - one,
                visits.entries[one : two + 1] - first,
                visits.place[one:two],
                visits.share[one:two],
                in_pairs - some,
                np.append(visits.pair[some:after], np.int32(0)),
                visits.regressors[begin:end],
            ),
            self.places,
            self.pairs,
            self.density,
        )


def in_order(lanes: Iterable[OfLane]) -> OfLane:
    """The sum over lanes, in their order, into the first."""
    rest = iter(lanes)
    value, score, short, total = next(rest)
    for one, slope, more, sums in rest:
        value, score, short = value + one, score + slope, short + more
        for k in range(len(total)):
            np.add(total[k], sums[k], out=total[k])
        del sums  # not held while the next lane runs
    return OfLane(value, score, short, total)
