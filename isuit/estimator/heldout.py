"""Which outcomes are kept back, so that predictions can be scored on what a fit did not see.

A split depends on nothing but a rider's own rows: not on the order of rows, nor on labels, nor on outcomes. Rows of one
unit (an outcome, or all outcomes of a rider at one site and day) are never on both sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isuit.domain import NO_TIME, FloatArray, IntArray, Observations, Split

TEST_SHARE = 0.2
_BLOCK = 1_000_000  # rows hashed at a time
_DAY = 86_400_000_000  # microseconds


def test_rows(data: Observations, split: Split) -> NDArray[np.bool_]:
    """The rows to keep back: a fifth of each rider's units, the last ones for `time`, otherwise by a fixed hash."""
    unit, first = _units(data, split)
    unit_rider = data.rider[first]
    if split == "time":
        assert data.observed_at is not None
        rank_by = data.observed_at[first].astype(np.float64)
        order = np.lexsort((_mixed(data, first), -rank_by, unit_rider))
    else:
        order = np.lexsort((_mixed(data, first), unit_rider))
    sizes = np.bincount(unit_rider, minlength=len(data.riders))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.empty(unit_rider.size, dtype=np.int64)
    rank[order] = np.arange(unit_rider.size) - np.repeat(starts, sizes)
    kept_back = rank < np.rint(TEST_SHARE * sizes)[unit_rider]
    return np.asarray(kept_back[unit])


def _units(data: Observations, split: Split) -> tuple[IntArray, IntArray]:
    """The unit of each row, and a first row of each unit, in an order that does not depend on the rows' order."""
    time = data.observed_at if data.observed_at is not None else np.full(len(data), NO_TIME)
    site = data.site if data.site is not None else np.full(len(data), -1)
    if split == "rider":
        order = np.lexsort((data.outcome, data.metric.view(np.int64), time, site, data.rider))
        unit = np.empty(len(data), dtype=np.int64)
        unit[order] = np.arange(len(data))
        return unit, order
    day = np.where(time == NO_TIME, NO_TIME, time // _DAY)
    if split == "time":
        site = np.zeros_like(site)  # a day is one occasion wherever the rider went
    order = np.lexsort((data.metric.view(np.int64), time, day, site, data.rider))
    keys = np.stack([data.rider[order], site[order], day[order]])
    new = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    unit = np.empty(len(data), dtype=np.int64)
    unit[order] = np.cumsum(new) - 1
    return unit, order[new]


def _mixed(data: Observations, first: IntArray) -> NDArray[np.uint64]:
    """A fixed pseudo-random number per unit, from the rider's own metrics and times; outcomes do not enter."""
    metric = np.where(data.metric == 0.0, 0.0, data.metric).view(np.uint64)
    time = np.zeros(len(data), dtype=np.uint64) if data.observed_at is None else data.observed_at.view(np.uint64)
    own = _mix(metric ^ _mix(time))
    # A fingerprint of the rider's rows, so that riders with the same metrics are not split alike.
    fingerprint = np.zeros(len(data.riders), dtype=np.uint64)
    np.add.at(fingerprint, data.rider, own)
    # Rows that agree in metric and time get different numbers by their place among the rider's units.
    rider = data.rider[first]
    sizes = np.bincount(rider, minlength=len(data.riders))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = (np.arange(first.size) - starts[rider]).astype(np.uint64)
    return _mix(own[first] ^ _mix(fingerprint[rider] + place))


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    with np.errstate(over="ignore"):
        value = value + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return value ^ (value >> np.uint64(31))


def marks(metric: FloatArray, time: IntArray | None) -> NDArray[np.uint64]:
    """A fixed hash of each row's metric and time."""
    bits = np.where(metric == 0.0, 0.0, metric).view(np.uint64)
    return _mix(bits ^ _mix(np.zeros(1, dtype=np.uint64) if time is None else time.view(np.uint64)))


def days_and_sites(data: Observations) -> IntArray | None:
    """A code for the day and site of each row; None where some have no time."""
    time = data.observed_at
    if time is None or not len(data) or bool(np.any(time == NO_TIME)):
        return None
    day = np.asarray(time) // _DAY
    place = np.zeros(len(data), dtype=np.int64) if data.site is None else data.site.astype(np.int64) + 1
    return np.asarray(np.unique((day - day.min()) * (place.max() + 1) + place, return_inverse=True)[1])


def riders_in_fixed_order(data: Observations) -> IntArray:
    """Riders with rows in the order of a hash of their metrics and times."""
    return _in_fixed_order(data, data.rider, len(data.riders))


def of_new_riders(data: Observations) -> NDArray[np.bool_]:
    """All rows of a fifth of the riders."""
    order = riders_in_fixed_order(data)
    kept_back = np.zeros(len(data.riders), dtype=bool)
    kept_back[order[: round(TEST_SHARE * order.size)]] = True
    return np.asarray(kept_back[data.rider])


def of_new_sites(data: Observations) -> NDArray[np.bool_]:
    """All rows at a fifth of the sites; rows without a site stay."""
    assert data.site is not None
    place = data.site.astype(np.int64) + 1
    order = _in_fixed_order(data, place, len(data.sites) + 1)
    order = order[order > 0]
    kept_back = np.zeros(len(data.sites) + 1, dtype=bool)
    kept_back[order[: round(TEST_SHARE * order.size)]] = True
    return np.asarray(kept_back[place])


def _in_fixed_order(data: Observations, code: IntArray, codes: int) -> IntArray:
    """Codes that have rows in the order of a fixed hash of these.

    Riders who met the same conditions at the same times have the same hash; among them the order of labels decides,
    because outcomes must not.
    """
    fingerprint = np.zeros(codes, dtype=np.uint64)
    for k in range(0, len(data), _BLOCK):
        block = slice(k, k + _BLOCK)
        time = None if data.observed_at is None else data.observed_at[block]
        np.add.at(fingerprint, code[block], marks(data.metric[block], time))
    present = np.flatnonzero(np.bincount(code, minlength=codes))
    return np.asarray(present[np.argsort(_mix(fingerprint[present]), kind="stable")])
