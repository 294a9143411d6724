"""Exact order statistics of a column that may be larger than memory: it is neither sorted nor copied as a whole.

Binary64 numbers sort as their bits do (those of negative ones inverted), so a range of numbers is a range of whole
numbers. A pass over the column counts how many fall into each of 2^16 equal parts of that range; the part that holds
the rank asked for is the next range, until it is one number or holds few enough to take them out and sort them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit import columns
from isuit.domain import FloatArray, IntArray

_PARTS = 16  # bits that one pass settles
_FEW = 1 << 17


@dataclass(frozen=True)
class _Range:
    """A range of numbers, ends included, as ordered bits; how many of the column are below it and how many inside."""

    low: int
    high: int
    below: int
    inside: int


def order_statistics(column: FloatArray, ranks: IntArray) -> FloatArray:
    """The numbers at these ranks (counted from 0, in any order) of the sorted column."""
    if column.size <= max(_FEW, columns.SLICE_ROWS):
        return np.asarray(np.partition(column, ranks)[ranks] + 0.0)
    low, high = int(_ordered(column.min(keepdims=True))[0]), int(_ordered(column.max(keepdims=True))[0])
    ranges = {rank: _Range(low, high, 0, column.size) for rank in np.unique(ranks).tolist()}
    while wide := {r for r in ranges.values() if r.inside > _FEW and r.low < r.high}:
        counted = _count(column, wide)
        ranges = {rank: _narrowed(r, counted[r], rank) if r in wide else r for rank, r in ranges.items()}
    taken = _take(column, {r for r in ranges.values() if r.low < r.high})
    found = {
        rank: _number(r.low) if r.low == r.high else float(np.partition(taken[r], rank - r.below)[rank - r.below])
        for rank, r in ranges.items()
    }
    return np.array([found[rank] for rank in ranks.tolist()])


def quantiles(column: FloatArray, shares: FloatArray) -> FloatArray:
    """Quantiles by linear interpolation between two neighbours, to the last bit as `np.quantile` gives them."""
    place = (column.size - 1) * np.asarray(shares, dtype=np.float64)
    before = np.floor(place).astype(np.int64)
    after = np.minimum(before + 1, column.size - 1)
    low, high = np.split(order_statistics(column, np.concatenate([before, after])), 2)
    share, step = place - before, high - low
    return np.where(share >= 0.5, high - step * (1 - share), low + step * share)


def _ordered(numbers: FloatArray) -> NDArray[np.int64]:
    """Integers that sort as these numbers do; -0.0 becomes 0.0."""
    bits = (numbers + 0.0).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF)))


def _number(ordered: int) -> float:
    bits = ordered if ordered >= 0 else ordered ^ 0x7FFF_FFFF_FFFF_FFFF
    return float(np.array([bits], dtype=np.int64).view(np.float64)[0])


def _shift(of: _Range) -> int:
    return max(0, (of.high - of.low).bit_length() - _PARTS)


def _count(column: FloatArray, ranges: set[_Range]) -> dict[_Range, IntArray]:
    """How many of the column fall into each part of each range."""
    counts = {r: np.zeros(((r.high - r.low) >> _shift(r)) + 1, dtype=np.int64) for r in ranges}
    for part in columns.slices(column.size):
        ordered = _ordered(column[part])
        for r in ranges:
            inside = ordered if r.inside == column.size else ordered[(ordered >= r.low) & (ordered <= r.high)]
            # Differences may exceed 63 bits; as unsigned numbers they are right.
            distance = inside.view(np.uint64) - np.uint64(r.low % 2**64)
            counts[r] += np.bincount((distance >> np.uint64(_shift(r))).view(np.int64), minlength=counts[r].size)
    return counts


def _narrowed(of: _Range, counts: IntArray, rank: int) -> _Range:
    up_to = np.cumsum(counts)
    part = int(np.searchsorted(up_to, rank - of.below, side="right"))
    low = of.low + (part << _shift(of))
    high = min(of.high, low + (1 << _shift(of)) - 1)
    return _Range(low, high, of.below + int(up_to[part] - counts[part]), int(counts[part]))


def _take(column: FloatArray, ranges: set[_Range]) -> dict[_Range, FloatArray]:
    """The numbers of each range."""
    bounds = {r: (_number(r.low), _number(r.high)) for r in ranges}
    taken: dict[_Range, list[FloatArray]] = {r: [] for r in ranges}
    for part in columns.slices(column.size if ranges else 0):
        here = column[part]
        for r, (low, high) in bounds.items():
            taken[r].append(here[(here >= low) & (here <= high)])
    return {r: np.concatenate(parts) + 0.0 for r, parts in taken.items()}
