"""Which outcomes are kept back, so that predictions can be scored on what a fit did not see.

What is kept back follows from a rider's own metrics and times alone. The order of the rows, the names of riders and
sites, and the outcomes do not matter, so a cohort is split in the same way wherever it is fitted. Only between rows of
a rider that agree in metric and time others decide: what else happened at the site, then the outcome. A unit is kept
back as a whole or not at all: it is one outcome (split `rider`), a rider's outcomes at one site on a day (`occasion`),
or a rider's outcomes on one day (`time`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isuit import columns
from isuit.domain import NO_TIME, CodeArray, FloatArray, IntArray, Observations, Split

TEST_SHARE = 0.2
MOST_ROWS = 1 << 21  # that are kept back: their scores are certain to the third decimal, and they fit in memory
_DAY = 86_400_000_000  # microseconds


# What `kept_back_rows` keeps back, for the record.
RULES: dict[Split, str] = {
    "rider": "Kept back is a fifth of each rider's outcomes, spread evenly over the metrics that the rider faced.",
    "time": "Kept back is the last fifth of each rider's days, with all their outcomes.",
    "occasion": (
        "Kept back is a fifth of each rider's days at a site, with all their outcomes, spread evenly over the metrics "
        "that the rider faced."
    ),
}


def kept_back_rows(data: Observations, split: Split) -> NDArray[np.bool_]:
    """A mask of the rows to keep back: a fifth of each rider's units, the last for `time`, else every fifth by metric.

    Where a fifth of all rows would be more than `MOST_ROWS`, only some riders are asked for their fifth, chosen by a
    hash of their rows, and the other riders keep all their rows in the fit: about `MOST_ROWS` are then kept back.
    """
    riders = MOST_ROWS / max(1.0, TEST_SHARE * len(data))
    sites = _ranks_of_sites(data)
    kept_back = np.zeros(len(data), dtype=bool)
    for part in data.slices():
        kept_back[part] = _of_riders(data.rows(part), sites, split, riders)
    return kept_back


def _of_riders(data: Observations, sites: IntArray, split: Split, share: float) -> NDArray[np.bool_]:
    """The mask for a slice that holds all rows of its riders; only this share of the riders has anything kept back."""
    order, first = _units(data, sites, split)
    rider = data.rider[order]
    rows_of_rider = np.flatnonzero(changes(rider))
    # A fingerprint of the rider's rows, so that riders with nearly the same metrics are not split alike.
    fingerprint = np.add.reduceat(marks(data.metric, data.observed_at)[order], rows_of_rider)
    # From here on arrays have one element per unit, and the riders of the slice are numbered from 0.
    rider = (np.cumsum(changes(rider)) - 1)[first]
    sizes = np.bincount(rider)
    asked = np.rint(TEST_SHARE * sizes).astype(np.int64)
    if share < 1.0:
        asked[columns.mixed(fingerprint) >= np.uint64(share * 2.0**64)] = 0
    if split == "time":
        assert data.observed_at is not None
        kept_back = _last(rider, sizes, asked)
    else:
        rows = np.diff(first, append=len(data))
        metric = np.add.reduceat(data.metric[order], first) / rows
        by_metric = np.arange(first.size) if split == "rider" else np.lexsort((metric, rider))
        kept_back = np.empty(first.size, dtype=bool)
        kept_back[by_metric] = _evenly(rider, sizes, asked, fingerprint)
    chosen = np.empty(len(data), dtype=bool)
    chosen[order] = np.repeat(kept_back, np.diff(first, append=len(data)))
    return chosen


def _units(data: Observations, sites: IntArray, split: Split) -> tuple[IntArray, IntArray]:
    """How to sort the rows so that each unit's rows are neighbours, and where in that order each unit begins.

    Units of one rider follow one another, too: by metric for `rider`, by day for `time`. The result does not depend on
    the order in which the rows came.
    """
    time = data.observed_at if data.observed_at is not None else np.full(len(data), NO_TIME)
    site = sites[data.site] if data.site is not None else np.zeros(len(data), dtype=np.int64)
    if split == "rider":
        return _by_metric(data, time, site), np.arange(len(data))
    day = np.where(time == NO_TIME, NO_TIME, time // _DAY)
    if split == "time":
        site = np.zeros_like(site)  # a day is one occasion wherever the rider went
    order = _sorting(data.rider, site, day, time, data.metric)
    return order, np.flatnonzero(changes(data.rider[order], site[order], day[order]))


def _by_metric(data: Observations, time: IntArray, site: IntArray) -> IntArray:
    """The rows by rider and metric; those that agree in both by time, place and outcome."""
    order = np.lexsort((data.metric, data.rider))
    again = ~changes(data.rider[order], data.metric[order])
    equal = np.flatnonzero(again | np.append(again[1:], False))
    tied = order[equal]
    order[equal] = tied[np.lexsort((data.outcome[tied], site[tied], time[tied], data.metric[tied], data.rider[tied]))]
    return order


def _ranks_of_sites(data: Observations) -> IntArray:
    """The place of each site in an order that does not know its name; the last one is for rows without a site."""
    ranks = np.zeros(len(data.sites) + 1, dtype=np.int64)
    if data.site is not None:
        order = _in_fixed_order(data, data.site, len(data.sites))
        ranks[order] = np.arange(1, order.size + 1)
    return ranks


def _sorting(*keys: NDArray[Any]) -> IntArray:
    """Row numbers sorted by the first key, ties by the second, and so on.

    A cohort usually comes in this order already, which is quicker to find out than to sort.
    """
    later = np.zeros(keys[0].size - 1, dtype=bool)  # than the row before
    equal = ~later
    for key in keys:
        later |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    if np.all(later | equal):
        return np.arange(keys[0].size)
    return np.lexsort(keys[::-1])


def changes(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the rows that differ from the row before in any key; the first row counts as different."""
    changes = np.zeros(keys[0].size, dtype=bool)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return changes


def _last(rider: IntArray, sizes: IntArray, asked: IntArray) -> NDArray[np.bool_]:
    """Of units that stand rider by rider, the last of each, as many as asked."""
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(rider.size) >= (ends - asked)[rider])


def _evenly(rider: IntArray, sizes: IntArray, asked: IntArray, fingerprint: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Of units that stand rider by rider, as many of each as asked, at even distances from a start that is a hash.

    Never two neighbours, because fewer than half are asked: of units with the same metric some always stay.
    """
    start = (columns.mixed(fingerprint) % sizes.astype(np.uint64)).astype(np.int64)
    place = np.arange(rider.size) - (np.cumsum(sizes) - sizes)[rider]
    size, step = sizes[rider], asked[rider]
    here = place * step + start[rider]
    return np.asarray((here + step) // size > here // size)


def marks(metric: FloatArray, time: IntArray | None) -> NDArray[np.uint64]:
    """A fixed pseudo-random number per row, from its metric and time; outcomes do not enter."""
    bits = np.where(metric == 0.0, 0.0, metric).view(np.uint64)
    return columns.mixed(bits ^ columns.mixed(np.zeros(1, dtype=np.uint64) if time is None else time.view(np.uint64)))


def days_and_sites(data: Observations) -> IntArray | None:
    """A code for the day and site of each row; None where some have no time."""
    time = data.observed_at
    if time is None or not len(data) or bool(np.any(time == NO_TIME)):
        return None
    day = np.asarray(time) // _DAY
    place = np.zeros(len(data), dtype=np.int64) if data.site is None else data.site.astype(np.int64) + 1
    return np.asarray(np.unique((day - day.min()) * (place.max() + 1) + place, return_inverse=True)[1])


def riders_in_fixed_order(data: Observations) -> IntArray:
    """The riders who have rows, ordered by a hash of their metrics and times: as if at random, and always the same."""
    return _in_fixed_order(data, data.rider, len(data.riders))


def of_new_riders(data: Observations) -> NDArray[np.bool_]:
    """All rows of a fifth of the riders."""
    return _all_of_some(data.rider, riders_in_fixed_order(data))


def of_new_sites(data: Observations) -> NDArray[np.bool_]:
    """All rows at a fifth of the sites; rows without a site stay."""
    assert data.site is not None
    order = _in_fixed_order(data, data.site, len(data.sites))
    return _all_of_some(data.site, order)


def _all_of_some(code: CodeArray, order: IntArray) -> NDArray[np.bool_]:
    """A mask of all rows of the first fifth of these codes, or of fewer codes where that were more than `MOST_ROWS`."""
    codes = int(order.max(initial=-1)) + 1
    sizes = columns.counted(code, codes, code >= 0)
    chosen = order[: round(TEST_SHARE * order.size)]
    chosen = chosen[: max(1, int(np.searchsorted(np.cumsum(sizes[chosen]), MOST_ROWS, side="right")))]
    kept_back = np.zeros(codes + 1, dtype=bool)  # the last one is for `NO_SITE`, which is -1
    kept_back[chosen] = True
    return np.asarray(kept_back[code])


def _in_fixed_order(data: Observations, code: CodeArray, codes: int) -> IntArray:
    """The codes (of riders or sites) that have rows, ordered by a hash of their rows' metrics and times.

    Riders who met the same conditions at the same times have the same hash; among them the order of labels decides,
    because outcomes must not.
    """
    fingerprint = np.zeros(codes, dtype=np.uint64)
    for block in columns.slices(len(data)):
        time = None if data.observed_at is None else data.observed_at[block]
        here = code[block] >= 0
        np.add.at(fingerprint, code[block][here], marks(data.metric[block], time)[here])
    present = np.flatnonzero(columns.counted(code, codes, code >= 0))
    return np.asarray(present[np.argsort(columns.mixed(fingerprint[present]), kind="stable")])
