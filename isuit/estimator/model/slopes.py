"""How the discrimination changes with conditions: log a(x) as smooth functions that are shrunk to nothing.

    a(x) = a exp(s(x)),    s(x) = s_1(x_1) + s_2(x_2) + ...

Each s_k is a spline with mean zero over the cohort, so that a is the geometric mean of the discrimination over its
outcomes. The penalty is the integral of the squared first derivative: nothing but a constant is free, and a cohort that
does not tell otherwise has one discrimination. Every metric has a precision of its own.

The linear predictor is a(x) theta - f(x), and f stays what it is in a fit of one discrimination: linear in its
coefficients. Difficulty is f(x) / a(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from isuit.domain import FloatArray

from .basis import Spline, means_of, spline_for
from .design import Design, Rows

INTERVALS = 5  # of each metric: what skill matters for changes slowly, and outcomes tell less of it than of difficulty
ORDER = 1  # of the derivative that is penalised
STEEPEST = 8.0  # of |s|: beyond, discriminations differ by more than any outcomes could tell


class SlopeRows(NamedTuple):
    """Derivatives of log a(x) at some conditions, a row each.

    By the coefficient of raw function `function[i, d]`, of `functions` in all, it is `value[i, d]`; by those of the
    space itself it is `columns`.
    """

    function: NDArray[np.int32]
    value: FloatArray
    functions: int
    columns: FloatArray


class Steepness(NamedTuple):
    """The discrimination at some conditions: a(x) is `relative` times a; and its derivatives."""

    relative: FloatArray
    rows: SlopeRows


@dataclass(frozen=True)
class Slopes:
    """The space of s: a spline for each metric, and the mean of each basis function over the cohort."""

    splines: tuple[Spline, ...]
    means: tuple[tuple[float, ...], ...]

    @classmethod
    def for_conditions(cls, conditions: tuple[FloatArray, ...]) -> Slopes:
        """The space for these columns, one for each metric."""
        splines = tuple(spline_for(metric, INTERVALS, ORDER) for metric in conditions)
        return cls(splines, tuple(means_of(spline, metric) for spline, metric in zip(splines, conditions, strict=True)))

    @cached_property
    def in_raw(self) -> FloatArray:
        """The functions as combinations of the splines' basis functions, a column each."""
        return np.asarray(block_diag(*map(_centred, self.splines, self.means)), np.float64)

    @property
    def size(self) -> int:
        return int(self.in_raw.shape[1])

    def groups(self) -> list[int]:
        """Which coefficients share a precision: those of one metric."""
        return [k for k, spline in enumerate(self.splines) for _ in range(spline.size - 1)]

    def rows(self, metric: FloatArray) -> SlopeRows:
        """Derivatives at these conditions, a row each of several metrics."""
        conditions = metric.reshape(len(metric), -1)
        index, value, first = [], [], 0
        for k, spline in enumerate(self.splines):
            functions, values = spline.raw_rows(conditions[:, k])
            index.append(first + functions)
            value.append(values)
            first += spline.size
        functions, values = np.hstack(index), np.hstack(value)
        dense = np.zeros((len(metric), first))
        np.add.at(dense, (np.arange(len(metric))[:, None], functions), values)
        return SlopeRows(functions.astype(np.int32), np.ascontiguousarray(values), first, dense @ self.in_raw)

    def relative(self, metric: FloatArray, coefficients: FloatArray) -> FloatArray:
        """a(x) over a at these conditions."""
        return relative(self.rows(metric).columns, coefficients)

    def derivative(self, metric: FloatArray) -> FloatArray:
        """Derivatives of the functions along the metric, of one metric alone."""
        (spline,) = self.splines
        return np.asarray(spline.design(metric, 1) @ self.in_raw)

    def beside(self, design: Design) -> Design:
        """The design of f with the coefficients of s after the shared ones; no row of f has them."""
        rows, (raw, size) = design.rows, self.in_raw.shape
        own = np.vstack([rows.own, np.zeros((raw, rows.own.shape[1]))])
        shared = np.asarray(block_diag(design.shared, self.in_raw), np.float64)
        assert shared.shape[1] == design.shared_size + size
        return Design(Rows(rows.function, rows.value, rows.place, own), shared, design.places)


def relative(columns: FloatArray, coefficients: FloatArray) -> FloatArray:
    """a(x) over a, from the derivatives of its logarithm."""
    return np.asarray(np.exp(np.clip(columns @ coefficients, -STEEPEST, STEEPEST)))


def _centred(spline: Spline, means: tuple[float, ...]) -> FloatArray:
    """The spline's functions but the constant, each with mean zero, in its basis functions."""
    functions = spline.in_raw[:, 1:]
    return np.asarray(functions - np.asarray(means) @ functions)
