"""Cubic splines on the metric, and the roughness that the smoothing penalises.

A curve is `f(x) = B(x) @ coefficients` with a B-spline basis on about twenty intervals. The penalty is the
integral of the squared third derivative, so that a parabola costs nothing: conditions are often hard at both
ends, and `docs/explanation/basis-study.md` compares the choice with second order over four true shapes.

Knots stand half way between equal width and equal count: equal width alone wastes the basis on the tail when
one outcome lies far out, equal count alone leaves the sparse ends, which the reader looks at, without a knot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline

from isuit import columns
from isuit.domain import FloatArray, IntArray

from .smoothing import FREE

DEGREE = 3
INTERVALS = 20
PENALTY_ORDER = 3
SITE_ROUGH = 4  # rough functions of a site's deviation
_CDF_CELLS = 4096  # resolution of the empirical distribution that places knots


@dataclass(frozen=True)
class Spline:
    """A spline space on [lower, upper]; the basis lives on the unit interval, so no result depends on units."""

    lower: float
    upper: float
    inner_knots: tuple[float, ...]  # strictly inside (0, 1)
    degree: int = DEGREE
    penalty_order: int = PENALTY_ORDER

    @cached_property
    def knots(self) -> FloatArray:
        ends = self.degree + 1
        return np.concatenate([np.zeros(ends), np.asarray(self.inner_knots), np.ones(ends)])

    @property
    def size(self) -> int:
        return len(self.inner_knots) + self.degree + 1

    def unit(self, metric: FloatArray) -> FloatArray:
        """The metric on the unit interval; a constant metric maps to zero."""
        width = self.upper - self.lower
        return np.zeros_like(metric) if width == 0 else np.clip((metric - self.lower) / width, 0.0, 1.0)

    def design(self, metric: FloatArray, derivative: int = 0) -> FloatArray:
        """Basis functions (or a derivative with respect to the metric) at each metric, one row each."""
        unit = self.unit(np.asarray(metric, dtype=np.float64))
        if derivative > self.degree:
            return np.zeros((unit.size, self.size))
        if derivative == 0 and self.degree > 0:
            return np.asarray(BSpline.design_matrix(unit, self.knots, self.degree).toarray())
        if self.degree == 0:
            return np.ones((unit.size, 1))
        basis = BSpline(self.knots, np.eye(self.size), self.degree)
        return np.asarray(basis(unit, nu=derivative)) / (self.upper - self.lower) ** derivative

    def raw_rows(self, metric: FloatArray, derivative: int = 0) -> tuple[IntArray, FloatArray]:
        """The basis functions that are not zero at each metric, as indices and values, a row each."""
        unit = self.unit(np.asarray(metric, dtype=np.float64))
        if derivative > 0 or self.degree == 0:
            values = self.design(metric, derivative)
            return np.broadcast_to(np.arange(self.size), values.shape), values
        found = BSpline.design_matrix(unit, self.knots, self.degree)
        shape = (unit.size, self.degree + 1)
        return found.indices.reshape(shape).astype(np.int64), found.data.reshape(shape)

    @cached_property
    def in_raw(self) -> FloatArray:
        """The functions of `smooth_design` as combinations of the basis functions, a column each."""
        # As many points as functions in each interval determine them; polynomials below the degree are exact.
        breaks = np.concatenate([[0.0], self.inner_knots, [1.0]])
        steps = (np.arange(self.degree + 1) + 0.5) / (self.degree + 1)
        unit = (breaks[:-1, None] + np.diff(breaks)[:, None] * steps).ravel()
        if self.degree == 0:
            return np.ones((1, 1))
        basis = BSpline.design_matrix(unit, self.knots, self.degree).toarray()
        polynomials = np.column_stack(
            [np.polynomial.legendre.legval(2 * unit - 1, np.eye(self.free)[k]) for k in range(self.free)]
        )
        free = np.linalg.lstsq(basis, polynomials, rcond=None)[0]
        return np.hstack([free, self._whitening])

    @cached_property
    def penalty(self) -> FloatArray:
        """The integral of the squared derivative of penalty order, on the unit interval, scaled to trace one."""
        order = min(self.penalty_order, self.degree)
        if order == 0 or self.size <= order:
            return np.zeros((self.size, self.size))
        root = self._roughness
        penalty = root.T @ root
        return np.asarray(penalty / np.trace(penalty))

    @cached_property
    def _roughness(self) -> FloatArray:
        """A root of the penalty: the derivative of penalty order at points of integration, times root weights."""
        order = min(self.penalty_order, self.degree)
        breaks = np.concatenate([[0.0], self.inner_knots, [1.0]])
        # The derivative is a polynomial of degree (degree - order) on each interval: Gauss points are exact.
        points, weights = np.polynomial.legendre.leggauss(max(1, self.degree - order + 1))
        half = np.diff(breaks)[:, None] / 2
        at = (breaks[:-1, None] + half * (1 + points)).ravel()
        by = (half * weights).ravel()
        rough = BSpline(self.knots, np.eye(self.size), self.degree)(at, nu=order)
        return np.asarray(np.sqrt(by)[:, None] * rough)

    @cached_property
    def _whitening(self) -> FloatArray:
        """Coefficients of the penalised functions, scaled so that their penalty is a multiple of the sum of squares."""
        kept = self.size - self.free
        if kept == 0:
            return np.zeros((self.size, 0))
        # Of the root, not of the penalty: where one metric lies far out, knots are close beside wide, and the least
        # eigenvalues, which are squares, would drown in rounding.
        values, vectors = np.linalg.svd(self._roughness)[1:]
        values = np.maximum(values[:kept], np.finfo(np.float64).eps * values[0])
        vectors = vectors[:kept].T
        # Vectors are fixed up to sign; the largest entry is made positive so that every machine agrees.
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
        return np.asarray(vectors * signs * (values[-1] / values))

    @property
    def free(self) -> int:
        """How many functions the penalty leaves free: the polynomials below its order."""
        return min(self.penalty_order, self.size) if self.degree else 1

    def groups(self) -> list[int]:
        """Which coefficients share a precision: none of the polynomials, all of the rough functions."""
        return [FREE] * self.free + [0] * (self.size - self.free)

    def deviation(self, size: int | None) -> tuple[FloatArray, list[int]]:
        """Functions of a site's deviation, at most so many, basis functions x functions, and the kind of each: 0 tilt
        and bend, 1 rough, 2 level."""
        polynomials = self.free if size is None else min(self.free, size)
        rough = min(SITE_ROUGH, self.size - self.free)
        rough = rough if size is None else max(0, min(rough, size - self.free))
        # The smoothest of the rough functions come last in the order of eigenvalues.
        functions = np.hstack([self.in_raw[:, :polynomials], self.in_raw[:, self.size - rough :]])
        return functions, [2] + [0] * (polynomials - 1) + [1] * rough

    def exposure_design(self, metric: FloatArray) -> tuple[FloatArray, int]:
        """Functions of where riders go, without the constant, which is the origin; and how many are free."""
        return self.smooth_design(metric)[:, 1:], self.free - 1

    def smooth_design(self, metric: FloatArray, derivative: int = 0) -> FloatArray:
        """The same space in coordinates for estimation: free polynomials first, then whitened rough functions.

        In these coordinates the penalty is a ridge on the rough part, which stays well conditioned however
        strong the smoothing is.
        """
        unit = self.unit(np.asarray(metric, dtype=np.float64))
        scale = 1.0 if derivative == 0 else (2.0 / (self.upper - self.lower)) ** derivative
        legendre = np.polynomial.legendre
        polynomials = [
            legendre.legval(2 * unit - 1, legendre.legder(np.eye(self.free)[k], derivative)) for k in range(self.free)
        ]
        rough = self.design(metric, derivative) @ self._whitening
        return np.hstack([np.column_stack(polynomials) * scale, rough])


def spline_for(metric: FloatArray, intervals: int = INTERVALS, penalty_order: int = PENALTY_ORDER) -> Spline:
    """The spline space for these metrics: fewer intervals and a lower degree where few values are distinct."""
    lower, upper = float(metric.min()), float(metric.max())
    if lower == upper:
        return Spline(lower, upper, (), degree=0, penalty_order=0)
    counts = np.zeros(_CDF_CELLS, dtype=np.int64)
    for part in columns.slices(metric.size):
        unit = (metric[part] - lower) / (upper - lower)
        cell = np.minimum((unit * _CDF_CELLS).astype(np.int64), _CDF_CELLS - 1)
        counts += np.bincount(cell, minlength=_CDF_CELLS)
    distinct = int(np.count_nonzero(counts))
    if distinct < 64:
        distinct = _distinct(metric, lower, upper)
    degree = min(DEGREE, distinct - 1)
    used = max(1, min(intervals, distinct - degree))
    cumulative = np.concatenate([[0.0], np.cumsum(counts)]) / metric.size
    edges = np.linspace(0.0, 1.0, _CDF_CELLS + 1)
    blend = (edges + cumulative) / 2  # strictly increasing because the first part is
    inner = np.interp(np.linspace(0.0, 1.0, used + 1)[1:-1], blend, edges)
    return Spline(lower, upper, tuple(inner.tolist()), degree=degree, penalty_order=min(penalty_order, degree))


def means_of(spline: Spline, metric: FloatArray) -> tuple[float, ...]:
    """The mean of each basis function; of sorted values, so that the order of rows does not matter."""
    total, ordered = np.zeros(spline.size), np.sort(metric)
    for part in columns.slices(metric.size):
        total += spline.design(ordered[part]).sum(axis=0)
    return tuple((total / metric.size).tolist())


def _distinct(metric: FloatArray, lower: float, upper: float) -> int:
    """How many values differ on the unit interval."""
    seen = np.zeros(0)
    for part in columns.slices(metric.size):
        seen = np.union1d(seen, (metric[part] - lower) / (upper - lower))
    return int(seen.size)
