"""Designs: how coefficients become f at items.

f at an item is a combination of a few raw functions (the four B-splines that are not zero at a metric, say), so a row
is a few indices and values. Coefficients are of two kinds: shared ones, which every item has, and a place's own ones,
which only the items at that place have. Both are given by matrices that turn them into coefficients of the raw
functions, so that thousands of places cost no more memory than their coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isuit.compiled import compiled
from isuit.domain import FloatArray, IntArray

_WIDE = 16  # functions in a row from which rows with the same functions are added up together: those of surfaces
_ROWS = 256  # that are multiplied at a time
NO_PLACE = -1  # of a row on the shared curve alone, and of a visit where places have no coefficients


class Rows(NamedTuple):
    """A design as compiled loops read it."""

    function: NDArray[np.int32]  # rows x the raw functions that are not zero there
    value: FloatArray
    place: IntArray  # or `NO_PLACE`
    own: FloatArray  # raw functions x own coefficients


@dataclass(frozen=True)
class Design:
    """Rows by (shared coefficients, places x own coefficients)."""

    rows: Rows
    shared: FloatArray  # raw functions x shared coefficients
    places: int

    @property
    def shared_size(self) -> int:
        return int(self.shared.shape[1])

    @property
    def width(self) -> int:
        """Own coefficients of a place."""
        return int(self.rows.own.shape[1])

    @property
    def size(self) -> int:
        return self.shared_size + self.places * self.width

    def apply(self, shared: FloatArray, own: FloatArray) -> FloatArray:
        """Values at the rows of these coefficients; `own` is places x width."""
        result = np.empty(self.rows.place.size)
        _apply(self.rows.function, self.rows.value, self.rows.place, self._table(shared, own), result)
        return result

    def evaluate(self, shared: FloatArray, own: FloatArray) -> FloatArray:
        """The same numbers without a compiled loop, for callers who have a few rows and no time to wait for one."""
        table = self._table(shared, own)
        result = np.zeros(self.rows.place.size)
        for function, value in zip(self.rows.function.T, self.rows.value.T, strict=True):
            result += value * table[self.rows.place, function]
        return result

    def _table(self, shared: FloatArray, own: FloatArray) -> FloatArray:
        """What each raw function is multiplied by at each place, and last where there is none."""
        none = np.zeros((1, self.shared.shape[0]))
        return np.ascontiguousarray(np.vstack([own @ self.rows.own.T, none]) + self.shared @ shared)

    def pull_back(self, by_row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The transpose applied to one number per row: shared, and places x width."""
        sums = np.zeros((self.places + 1, self.shared.shape[0]))
        _pull_back(self.rows.function, self.rows.value, self.rows.place, np.ascontiguousarray(by_row), sums)
        return sums.sum(axis=0) @ self.shared, sums[: self.places] @ self.rows.own

    def gram(self, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Transpose times weights times itself: shared, own by shared for each place, own by own for each place."""
        raw = self.shared.shape[0]
        shared = np.zeros((raw, raw))
        across, own = np.zeros((self.places, self.width, raw)), np.zeros((self.places, self.width, self.width))
        weight = np.ascontiguousarray(weight)
        if self.rows.function.shape[1] < _WIDE:
            _gram(*self.rows, weight, shared, across, own)
        else:
            turned = np.zeros((self.places, raw, self.width))
            _wide_gram(*self.rows[:3], self._own_values, self._alike, weight, shared, turned, own)
            across = np.ascontiguousarray(turned.transpose(0, 2, 1))
        return self.shared.T @ (shared + shared.T) @ self.shared, across @ self.shared, own

    @cached_property
    def _own_values(self) -> FloatArray:
        """Rows by a place's own functions."""
        values = np.zeros((self.rows.place.size, self.width))
        _own_values(*self.rows[:2], self.rows.own, values)
        return values

    @cached_property
    def _alike(self) -> IntArray:
        """An order of the rows in which those with the same functions, of one box between knots, follow each other."""
        key = np.zeros(self.rows.place.size, np.int64)
        for column in self.rows.function.T:
            key = key * 1_000_003 + column  # may overflow: two boxes that share a key by chance cost time alone
        return np.argsort(key, kind="stable")

    def columns(self, place: int = NO_PLACE) -> FloatArray:
        """Dense rows over the shared coefficients and, for rows at this place, its own."""
        dense = np.zeros((self.rows.place.size, self.shared.shape[0]))
        np.add.at(dense, (np.arange(dense.shape[0])[:, None], self.rows.function), self.rows.value)
        own = dense @ self.rows.own if place >= 0 else np.zeros((dense.shape[0], 0))
        return np.hstack([dense @ self.shared, own])

    def of_rows(self, chosen: slice | IntArray) -> Design:
        rows = self.rows
        return Design(
            Rows(rows.function[chosen], rows.value[chosen], rows.place[chosen], rows.own), self.shared, self.places
        )


def dense_design(values: FloatArray) -> Design:
    """A design of shared coefficients alone, given by its columns."""
    count = values.shape[1]
    index = np.broadcast_to(np.arange(count, dtype=np.int32), values.shape)
    place = np.full(values.shape[0], NO_PLACE)
    rows = Rows(np.ascontiguousarray(index), np.ascontiguousarray(values), place, np.zeros((count, 0)))
    return Design(rows, np.eye(count), 0)


@compiled
def _apply(index, value, place, table, result):
    last = table.shape[0] - 1
    for i in range(place.size):
        row = table[place[i] if place[i] >= 0 else last]
        total = 0.0
        for d in range(index.shape[1]):
            total += value[i, d] * row[index[i, d]]
        result[i] = total


@compiled
def _pull_back(index, value, place, by_row, sums):
    last = sums.shape[0] - 1
    for i in range(place.size):
        row = sums[place[i] if place[i] >= 0 else last]
        for d in range(index.shape[1]):
            row[index[i, d]] += value[i, d] * by_row[i]


@compiled
def _gram(index, value, place, own, weight, shared, across, blocks):
    """Of `shared` it is half: with its transpose it is the whole."""
    width = own.shape[1]
    mine = np.empty(width)
    for i in range(place.size):
        p = place[i]
        if p >= 0:
            mine[:] = 0.0
            for d in range(index.shape[1]):
                for w in range(width):
                    mine[w] += value[i, d] * own[index[i, d], w]
            for w in range(width):
                for v in range(width):
                    blocks[p, w, v] += weight[i] * mine[w] * mine[v]
        for d in range(index.shape[1]):
            k, x = index[i, d], weight[i] * value[i, d]
            for e in range(d):
                shared[k, index[i, e]] += x * value[i, e]
            shared[k, k] += 0.5 * x * value[i, d]
            if p >= 0:
                for w in range(width):
                    across[p, w, k] += x * mine[w]


@compiled
def _own_values(index, value, own, values):
    for i in range(values.shape[0]):
        for d in range(index.shape[1]):
            for w in range(values.shape[1]):
                values[i, w] += value[i, d] * own[index[i, d], w]


@compiled
def _wide_gram(index, value, place, own_values, order, weight, shared, across, blocks):
    """The same as `_gram`, with rows of the same functions multiplied as a matrix; `across` is places x functions x own
    functions."""
    count, width = index.shape[1], own_values.shape[1]
    left, right = np.empty((_ROWS, count)), np.empty((_ROWS, count))
    filled = 0
    for number in range(order.size):
        i = order[number]
        p, w, row, functions = place[i], weight[i], value[i], index[i]
        one, two = left[filled], right[filled]
        for d in range(count):
            one[d] = 0.5 * w * row[d]
            two[d] = row[d]
        filled += 1
        if p >= 0:
            mine = own_values[i]
            for d in range(count):
                _add(across[p, functions[d]], w * row[d], mine)
            for d in range(width):
                _add(blocks[p, d], w * mine[d], mine)
        is_last = filled == _ROWS or number + 1 == order.size
        if not is_last:
            following = index[order[number + 1]]
            for d in range(count):
                if functions[d] != following[d]:
                    is_last = True
                    break
        if is_last:
            product = np.dot(left[:filled].T, right[:filled])
            for d in range(count):
                for e in range(count):
                    shared[functions[d], functions[e]] += product[d, e]
            filled = 0


@compiled
def _add(total, times, values):
    """total += times * values. Slices and not indices, which may count from the end: so the loop is one of vectors."""
    for k in range(values.size):
        total[k] += times * values[k]
