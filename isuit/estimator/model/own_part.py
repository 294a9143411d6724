"""The own part of an arrow: a block for each place, and one for each pair of places that share a rider.

It is solved with, and asked for the blocks of its inverse: block by block where no rider is shared, as one dense matrix
while it is small, and beyond that by iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError

from isuit.compiled import compiled
from isuit.domain import FloatArray, IntArray

from . import cholesky

if TYPE_CHECKING:
    from .arrow import Arrow

DENSE = 2_000  # own parameters up to which the own part is factored as a whole
COARSE = 6_000  # places, those most coupled to others, whose level is kept in a dense matrix (0.3 GB)
_WEAKLY = 0.01  # sum of squares of a level's coupling to others up to which the second order says all there is to say
_PROBES = 24
_SOME_PAIRS = 8_192  # pairs of places that are turned at a time
NO_ROW = -1  # of a place that is not among those that have rows
_SEED = 7  # any constant: the same matrix must give the same numbers
_MOST_ITERATIONS = 2_000


class OwnPart(ABC):
    """The own part: solved with, and its inverse's blocks."""

    matrix: Arrow

    @abstractmethod
    def solve(self, right: FloatArray, start: FloatArray | None, tolerance: float) -> FloatArray:
        """For places x width x columns."""

    @property
    @abstractmethod
    def blocks(self) -> FloatArray:
        """Diagonal blocks of the inverse."""

    @property
    @abstractmethod
    def pairs(self) -> FloatArray:
        """Blocks of the inverse at the pairs of places."""

    @property
    def diagonal(self) -> FloatArray:
        """Of the inverse, places x width."""
        return np.asarray(np.einsum("pww->pw", self.blocks))

    @property
    def quick_blocks(self) -> FloatArray:
        """Diagonal blocks of the inverse, or what is near them and had at once."""
        return self.blocks

    def whole(self) -> FloatArray:
        """The inverse as a plain matrix: of a small own part only."""
        places, width = self.matrix.own.shape[:2]
        unit = np.eye(places * width).reshape(places, width, places * width)
        return self.solve(unit, None, 1e-9).reshape(places * width, places * width)

    @property
    @abstractmethod
    def log_determinant(self) -> float | None: ...


def own_part_of(matrix: Arrow) -> OwnPart:
    """The kind of own part that suits the matrix: `DENSE` divides them."""
    if not len(matrix.pairs):
        return Apart(matrix)
    return Dense(matrix) if matrix.shape.places * matrix.shape.width <= DENSE else Coupled(matrix)


class Apart(OwnPart):
    """No two places share a rider, or riders do not enter: every block for itself."""

    def __init__(self, matrix: Arrow) -> None:
        self.matrix = matrix
        self._log_determinant = 2.0 * float(np.log(np.einsum("pww->pw", np.linalg.cholesky(matrix.own))).sum())
        self._inverse: FloatArray = np.asarray(np.linalg.inv(matrix.own), dtype=np.float64)

    def solve(self, right: FloatArray, start: FloatArray | None, tolerance: float) -> FloatArray:
        return np.asarray(np.matmul(self._inverse, right))

    @property
    def blocks(self) -> FloatArray:
        return self._inverse

    @property
    def pairs(self) -> FloatArray:
        return np.zeros_like(self.matrix.pairs)

    @property
    def log_determinant(self) -> float | None:
        return self._log_determinant


class Dense(OwnPart):
    """The own part as one matrix."""

    def __init__(self, matrix: Arrow) -> None:
        self.matrix = matrix
        self._lower = cholesky.factor(matrix.dense_own())

    def solve(self, right: FloatArray, start: FloatArray | None, tolerance: float) -> FloatArray:
        flat = right.reshape(-1, right.shape[2])
        return cholesky.solve(self._lower, flat).reshape(right.shape) if flat.size else right

    @cached_property
    def _inverse(self) -> FloatArray:
        places, width = self.matrix.own.shape[:2]
        return cholesky.inverse(self._lower).reshape(places, width, places, width)

    def whole(self) -> FloatArray:
        size = self.matrix.shape.places * self.matrix.shape.width
        return self._inverse.reshape(size, size)

    @property
    def blocks(self) -> FloatArray:
        places = np.arange(len(self.matrix.own))
        return self._inverse[places, :, places, :]

    @property
    def pairs(self) -> FloatArray:
        return self._inverse[self.matrix.first, :, self.matrix.second, :]

    @property
    def log_determinant(self) -> float | None:
        return 2.0 * float(np.log(np.diag(self._lower)).sum())


class Coupled(OwnPart):
    """Thousands of places: conjugate gradients, and blocks of the inverse by elimination to second order.

    With the blocks made unit matrices, the own part is I + E, and E is small but in one direction of each place, its
    level: a rider who is better than thought lifts all places that they visit. That direction of every place, P, is
    kept in one dense matrix, of the places that are coupled to others at all: one with two outcomes hangs on its prior,
    and is coupled to nobody much (`_WEAKLY`; of more than `COARSE` those that are coupled most). The other directions,
    Q, are eliminated to second order in E:

        G = I + E_PP - E_PQ E_QP,      inverse_PP = G^-1,      inverse_QP = -E_QP G^-1,
        inverse_QQ = I + E_QP G^-1 E_PQ + E_QQ E_QQ.
    """

    def __init__(self, matrix: Arrow) -> None:
        self.matrix = matrix
        self._half = np.linalg.inv(np.linalg.cholesky(matrix.own))  # raises where a block is not positive definite
        self._inverse: FloatArray = np.matmul(self._half.transpose(0, 2, 1), self._half)

    def solve(self, right: FloatArray, start: FloatArray | None, tolerance: float) -> FloatArray:
        if not right.size:
            return right
        result = np.zeros_like(right) if start is None else start.copy()
        left = right - self.matrix.own_times(result) if start is not None else right.copy()
        scaled = np.matmul(self._inverse, left)
        along = scaled.copy()
        norm = np.einsum("pwm,pwm->m", left, scaled)
        enough = tolerance**2 * np.einsum("pwm,pwm->m", right, np.matmul(self._inverse, right))
        x, column = result, np.arange(norm.size)  # of those that go on: where one started near its end, few do
        for _ in range(_MOST_ITERATIONS):
            on = norm > enough
            if not on.all():
                result[:, :, column] = x
                column, norm, enough = column[on], norm[on], enough[on]
                x, left, along = (np.ascontiguousarray(some[:, :, on]) for some in (x, left, along))
            if not column.size:
                break
            image = self.matrix.own_times(along)
            curvature = np.einsum("pwm,pwm->m", along, image)
            if np.any(curvature < 0):
                raise LinAlgError("the matrix is not positive definite")
            length = np.divide(norm, curvature, out=np.zeros_like(norm), where=curvature > 0)
            x += length * along
            left -= length * image
            scaled = np.matmul(self._inverse, left)
            following = np.einsum("pwm,pwm->m", left, scaled)
            along = scaled + np.divide(following, norm, out=np.zeros_like(norm), where=norm > 0) * along
            norm = following
        result[:, :, column] = x
        return result

    @cached_property
    def diagonal(self) -> FloatArray:
        """By fixed random signs: unbiased, and the errors of thousands of places cancel in their sums."""
        places, width = self.matrix.own.shape[:2]
        signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], (places, width, _PROBES))
        plain = np.matmul(self._inverse, signs)
        solved = self.solve(signs, plain, 1e-4)
        return np.asarray(np.einsum("pww->pw", self._inverse) + np.mean(signs * (solved - plain), axis=2))

    @property
    def quick_blocks(self) -> FloatArray:
        return self._inverse

    @cached_property
    def blocks(self) -> FloatArray:
        matrix, half = self.matrix, self._half
        places, width = matrix.own.shape[:2]
        coupling = _rotated(matrix, half)
        strength = np.zeros_like(matrix.own)
        _gram_of_pairs(coupling, matrix.first, matrix.second, strength)
        # Eigenvectors in rising order: the last one of each place is P.
        size, vectors = np.linalg.eigh(strength)
        turned = np.matmul(vectors.transpose(0, 2, 1), half)
        del coupling
        coupling = _rotated(matrix, turned)
        kept = np.sort(np.argsort(-size[:, -1], kind="stable")[:COARSE])
        kept = kept[size[kept, -1] > _WEAKLY]
        row = np.full(places, NO_ROW)
        row[kept] = np.arange(kept.size)
        start, neighbour, pair, swapped = _neighbours(matrix.first, matrix.second, places, row)
        middle = np.eye(kept.size)
        both = (row[matrix.first] >= 0) & (row[matrix.second] >= 0)
        one, other = row[matrix.first[both]], row[matrix.second[both]]
        middle[one, other] = middle[other, one] = coupling[both, -1, -1]
        _eliminate(start, neighbour, pair, swapped, row, coupling, middle)
        middle = cholesky.inverted(middle) if kept.size else middle
        unit = np.zeros_like(matrix.own)
        _back(start, neighbour, pair, swapped, row, coupling, middle, unit)
        unit[kept, -1, -1] = np.diag(middle)
        # Between directions of Q; a level that is kept is none of them.
        coupling[row[matrix.first] >= 0, -1, :] = 0.0
        coupling[row[matrix.second] >= 0, :, -1] = 0.0
        again = np.zeros_like(matrix.own)
        _gram_of_pairs(coupling, matrix.first, matrix.second, again)
        identity = np.tile(np.eye(width), (places, 1, 1))
        identity[kept, -1, -1] = 0.0
        return np.asarray(np.matmul(np.matmul(turned.transpose(0, 2, 1), unit + identity + again), turned))

    @cached_property
    def pairs(self) -> FloatArray:
        """To first order about the blocks."""
        return _rotated(self.matrix, self.blocks, -1.0)

    @property
    def log_determinant(self) -> float | None:
        return None


def _rotated(matrix: Arrow, turn: FloatArray, sign: float = 1.0) -> FloatArray:
    """For each pair of places, its block multiplied from both sides by the places' own matrices: turn_i B_ij
    turn_j'."""
    result = np.empty_like(matrix.pairs)
    for begin in range(0, len(result), _SOME_PAIRS):
        some = slice(begin, begin + _SOME_PAIRS)
        left, right = turn[matrix.first[some]], turn[matrix.second[some]].transpose(0, 2, 1)
        result[some] = sign * np.matmul(np.matmul(left, matrix.pairs[some]), right)
    return result


def _neighbours(
    first: IntArray, second: IntArray, places: int, row: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The places that each place shares a rider with, among those that have a `row`, in one list sorted by place.

    Returns where each place's neighbours start in the list, their rows, the pair that links them, and whether the
    place is the second of that pair.
    """
    place, other = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(place, kind="stable")
    order = order[row[other[order]] >= 0]
    start = np.concatenate([[0], np.cumsum(np.bincount(place[order], minlength=places))])
    return start, row[other[order]], order % max(1, first.size), order // max(1, first.size)


@compiled
def _gram_of_pairs(pairs, first, second, total):
    """Of each place the sum over its pairs of block times transposed block."""
    for z in range(first.size):
        s, t = first[z], second[z]
        for k in range(pairs.shape[1]):
            for j in range(pairs.shape[1]):
                here, there = 0.0, 0.0
                for m in range(pairs.shape[2]):
                    here += pairs[z, k, m] * pairs[z, j, m]
                    there += pairs[z, m, k] * pairs[z, m, j]
                total[s, k, j] += here
                total[t, k, j] += there


@compiled
def _rows_to_coarse(place, start, pair, swapped, coupling, rows):
    """E_QP of one place: neighbours with a row x the place's directions in Q."""
    last = coupling.shape[1] - 1
    for i in range(rows.shape[0]):
        z = pair[start[place] + i]
        for k in range(rows.shape[1]):
            rows[i, k] = coupling[z, last, k] if swapped[start[place] + i] else coupling[z, k, last]


@compiled
def _eliminate(start, neighbour, pair, swapped, row, coupling, middle):
    """middle -= E_PQ E_QP, place by place of Q."""
    for place in range(start.size - 1):
        count = start[place + 1] - start[place]
        rows = np.empty((count, coupling.shape[1] - (row[place] >= 0)))
        _rows_to_coarse(place, start, pair, swapped, coupling, rows)
        for i in range(count):
            s = neighbour[start[place] + i]
            for j in range(count):
                x = 0.0
                for k in range(rows.shape[1]):
                    x += rows[i, k] * rows[j, k]
                middle[s, neighbour[start[place] + j]] -= x


@compiled
def _back(start, neighbour, pair, swapped, row, coupling, middle, unit):
    """unit_QQ = E_QP G^-1 E_PQ and unit_QP = -E_QP G^-1, for each place."""
    last = coupling.shape[1] - 1
    for place in range(start.size - 1):
        count = start[place + 1] - start[place]
        q = coupling.shape[1] - (row[place] >= 0)
        rows = np.empty((count, q))
        _rows_to_coarse(place, start, pair, swapped, coupling, rows)
        image = np.empty(q)
        for i in range(count):
            s = neighbour[start[place] + i]
            image[:] = 0.0
            for j in range(count):
                g = middle[s, neighbour[start[place] + j]]
                for k in range(q):
                    image[k] += g * rows[j, k]
            for k in range(q):
                for m in range(q):
                    unit[place, k, m] += rows[i, k] * image[m]
                if row[place] >= 0:
                    x = rows[i, k] * middle[s, row[place]]
                    unit[place, k, last] -= x
                    unit[place, last, k] -= x
