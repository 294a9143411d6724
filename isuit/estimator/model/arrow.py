"""Symmetric matrices in the shape of an arrow, and their factors.

Parameters are a border, which touches everything (discrimination, shared curve, regressors), and a few own ones for
each of many places. Two places touch each other only where they share a rider:

    | border    cross'          |     border  n x n
    | cross     own part        |     own part: a block for each place, and one for each pair of places with a rider

The border is eliminated exactly (Schur complement). The own part is factored densely while it is small, and beyond
that solved by conjugate gradients with the blocks as preconditioner. What smoothing and bands need of its inverse are
the diagonal blocks; `own_part.Coupled` says how they are had without the inverse.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from isuit.compiled import compiled
from isuit.domain import FloatArray, IntArray

from . import cholesky
from .own_part import own_part_of

_Number = TypeVar("_Number", np.float64, np.int64)


@dataclass(frozen=True)
class Shape:
    """How a flat vector is divided: the border, then each place's own parameters."""

    border: int
    places: int
    width: int

    @property
    def size(self) -> int:
        return self.border + self.places * self.width

    def split(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Border, and places x width (x columns)."""
        return flat[: self.border], flat[self.border :].reshape(self.places, self.width, *flat.shape[1:])

    def join(self, border: NDArray[_Number], own: NDArray[_Number]) -> NDArray[_Number]:
        return np.concatenate([border, own.reshape(self.places * self.width, *border.shape[1:])])


@dataclass(frozen=True)
class Arrow:
    """The matrix itself."""

    border: FloatArray
    cross: FloatArray  # places x width x border
    own: FloatArray  # places x width x width
    pairs: FloatArray  # pairs x width x width: rows of the first place, columns of the second
    first: IntArray
    second: IntArray

    @property
    def shape(self) -> Shape:
        return Shape(len(self.border), *self.own.shape[:2])

    @classmethod
    def uncoupled(cls, border: FloatArray, cross: FloatArray, own: FloatArray) -> Arrow:
        """Without pairs of places."""
        nothing = np.zeros(0, np.int64)
        return cls(border, cross, own, np.zeros((0, *own.shape[1:])), nothing, nothing)

    def plus(self, diagonal: FloatArray) -> Arrow:
        """With these numbers added to the diagonal."""
        border, own = self.shape.split(diagonal)
        blocks, k = self.own.copy(), np.arange(self.own.shape[1])
        blocks[:, k, k] += own
        return replace(self, border=self.border + np.diag(border), own=blocks)

    def scaled(self, factor: float) -> Arrow:
        return replace(
            self,
            border=factor * self.border,
            cross=factor * self.cross,
            own=factor * self.own,
            pairs=factor * self.pairs,
        )

    def times(self, flat: FloatArray) -> FloatArray:
        """The product with a vector or with the columns of a matrix."""
        columns = flat.reshape(len(flat), -1)
        border, own = self.shape.split(columns)
        above = self.border @ border + np.einsum("pwb,pwm->bm", self.cross, own)
        result = self.shape.join(above, self.own_times(own) + self.cross @ border)
        return np.asarray(result.reshape(flat.shape))

    def own_times(self, x: FloatArray) -> FloatArray:
        """The own part times places x width x columns."""
        y: FloatArray = np.matmul(self.own, x)
        _couple(self.pairs, self.first, self.second, np.ascontiguousarray(x), y)
        return y

    def dense(self) -> FloatArray:
        """As a plain matrix."""
        n, whole = self.shape.border, np.zeros((self.shape.size,) * 2)
        whole[:n, :n] = self.border
        whole[n:, :n] = self.cross.reshape(-1, n)
        whole[:n, n:] = whole[n:, :n].T
        whole[n:, n:] = self.dense_own()
        return whole

    def dense_own(self) -> FloatArray:
        places, width = self.own.shape[:2]
        own = np.zeros((places, width, places, width))
        own[np.arange(places), :, np.arange(places), :] = self.own
        own[self.first, :, self.second, :] = self.pairs
        own[self.second, :, self.first, :] = self.pairs.transpose(0, 2, 1)
        return own.reshape(places * width, places * width)

    def diagonal(self) -> FloatArray:
        return self.shape.join(np.diag(self.border), np.einsum("pww->pw", self.own))


class Beginning(NamedTuple):
    """What is kept of a factor so that the iterations for the factor of a similar matrix can start from it."""

    shape: Shape
    slope: FloatArray


class Factor:
    """A positive definite arrow, ready to solve with; raises `LinAlgError` where it is not positive definite.

    `near` is of the factor of a matrix like this one: what it solved is where the iterations begin. With `turned`,
    negative curvature of the border is turned round, and only an own part that is not positive definite raises.
    """

    def __init__(
        self, matrix: Arrow, near: Beginning | None = None, tolerance: float = 1e-9, turned: bool = False
    ) -> None:
        self.matrix, self.shape = matrix, matrix.shape
        self.own = own_part_of(matrix)
        start = near.slope if near is not None and near.shape == self.shape else None
        self.slope: FloatArray = self.own.solve(matrix.cross, start, tolerance)  # (own part)^-1 cross
        schur = matrix.border - np.einsum("pwb,pwc->bc", matrix.cross, self.slope)
        self._finish((schur + schur.T) / 2, turned)

    def _finish(self, schur: FloatArray, turned: bool) -> None:
        self.schur = schur  # of the border
        self._lower = cholesky.factor(cholesky.positive(schur) if turned else schur)
        self.border = cholesky.inverse(self._lower)  # the border's part of the inverse

    @property
    def beginning(self) -> Beginning:
        return Beginning(self.shape, self.slope)

    def with_border(self, added: FloatArray) -> Factor:
        """The factor of the matrix with these numbers added to the border's diagonal: the own part stays as it is."""
        other = copy(self)
        other.__dict__.pop("blocks", None)
        other.matrix = replace(self.matrix, border=self.matrix.border + np.diag(added))
        other._finish(self.schur + np.diag(added), False)
        return other

    def reduced(self, flat: FloatArray) -> FloatArray:
        """The right side of the border's own equations once the places' parameters are eliminated; their matrix is
        the Schur complement."""
        border, own = self.shape.split(flat)
        return np.asarray(border - np.einsum("pwb,pw->b", self.slope, own))

    def solve(self, flat: FloatArray, tolerance: float = 1e-9) -> FloatArray:
        """The solution for a vector or for the columns of a matrix."""
        columns = flat.reshape(len(flat), -1)
        border, own = self.shape.split(columns)
        above = cholesky.solve(self._lower, border - np.einsum("pwb,pwm->bm", self.slope, own))
        below = self.own.solve(own, None, tolerance) - self.slope @ above
        return self.shape.join(above, below).reshape(flat.shape)

    @cached_property
    def blocks(self) -> FloatArray:
        """The inverse's diagonal blocks, places x width x width."""
        return self.own.blocks + self.through_border

    @property
    def pairs(self) -> FloatArray:
        """The inverse's blocks at the pairs of places."""
        one, other = self.slope[self.matrix.first], self.slope[self.matrix.second]
        return np.asarray(self.own.pairs + np.matmul(one @ self.border, other.transpose(0, 2, 1)))

    @property
    def cross(self) -> FloatArray:
        """The inverse's part between own parameters and border, places x width x border."""
        return np.asarray(-self.slope @ self.border)

    @property
    def through_border(self) -> FloatArray:
        """What the border adds to the diagonal blocks of the own part's inverse."""
        return np.asarray(np.matmul(self.slope @ self.border, self.slope.transpose(0, 2, 1)))

    def diagonal(self, certain: bool = False) -> FloatArray:
        """The inverse's diagonal; sums over many places are exact to a percent of a percent unless `certain`."""
        own = np.einsum("pww->pw", self.own.blocks) if certain else self.own.diagonal
        return self.shape.join(np.diag(self.border), own + np.einsum("pww->pw", self.through_border))

    @property
    def log_determinant(self) -> float | None:
        """None where only the blocks are known."""
        own = self.own.log_determinant
        return None if own is None else own + 2.0 * float(np.log(np.diag(self._lower)).sum())

    def inverse(self) -> FloatArray:
        """The whole inverse: of small matrices only."""
        n, whole = self.shape.border, np.empty((self.shape.size,) * 2)
        slope = self.slope.reshape(-1, n)
        whole[:n, :n] = self.border
        whole[n:, :n] = -slope @ self.border
        whole[:n, n:] = whole[n:, :n].T
        whole[n:, n:] = self.own.whole() - whole[n:, :n] @ slope.T
        return whole


@compiled
def _couple(pairs, first, second, x, y):
    """y += the pairs' blocks times x, both ways; places x width x columns."""
    for z in range(first.size):
        s, t = first[z], second[z]
        for k in range(pairs.shape[1]):
            for j in range(pairs.shape[2]):
                b = pairs[z, k, j]
                for m in range(x.shape[2]):
                    y[s, k, m] += b * x[t, j, m]
                    y[t, j, m] += b * x[s, k, m]
