"""An expert's curve of suitability, as log odds under the population: what difficulty is shrunk towards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import expit

from isuit.domain import FloatArray

from .basis import Spline
from .normal import NODES, WEIGHTS

SUITABILITY_RANGE = (0.02, 0.98)
_DEGREE = 3  # of the anchor's spline
_KNOTS = 10  # intervals of the anchor's spline that fit into the data's range: half as many as the curve's own


@dataclass(frozen=True)
class Anchor:
    """An expert's suitability along the metric, given at points and smooth between them on the scale of difficulty.

    The log odds of the points, joined by lines, have corners, which no smooth deviation can undo: the easiest
    condition would be the expert's best point, whatever the data say. So they are rounded by Schoenberg's
    variation-diminishing spline. Its knots are the points, but none nearer to the next than `spacing`; its coefficients
    are the joined lines at the knots' averages. It is twice differentiable, rises and falls only where the points do,
    and keeps straight lines and, but for a constant, the parabola of evenly spaced points. Interpolation would not do:
    through a smooth function it overshoots, through a monotone one the best point stays where it was.
    """

    metric: FloatArray  # increasing
    suitability: FloatArray
    spacing: float = 0.0  # least distance of knots, in units of the metric; details of the points below it are smoothed

    @cached_property
    def _expert(self) -> BSpline:
        """Log odds of the expert's suitability."""
        metric, s = self.metric, np.clip(self.suitability, *SUITABILITY_RANGE)
        first, last = metric[0], metric[-1]
        inner: list[float] = []
        for point in metric[1:-1].tolist():
            if point - (inner[-1] if inner else first) >= self.spacing and last - point >= self.spacing:
                inner.append(point)
        knots = np.concatenate([np.full(_DEGREE + 1, first), inner, np.full(_DEGREE + 1, last)])
        averages = np.array([knots[k + 1 : k + 1 + _DEGREE].mean() for k in range(knots.size - _DEGREE - 1)])
        return BSpline(knots, np.interp(averages, metric, np.log(s / (1 - s))), _DEGREE)

    def suitability_at(self, metric: FloatArray) -> FloatArray:
        """The smooth curve; beyond the points its last value."""
        return np.asarray(expit(self._expert(np.clip(metric, self.metric[0], self.metric[-1]))))

    def log_odds(self, metric: FloatArray, a: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """f0, and its first and second derivative with respect to a, at each metric."""
        values, where = np.unique(self.suitability_at(metric), return_inverse=True)
        f0 = _population_log_odds(values, a)
        p = expit(a * NODES - f0[:, None])
        v = p * (1 - p)
        mass = v @ WEIGHTS
        first = ((v * NODES) @ WEIGHTS) / mass
        # Differentiate E[sigmoid(a theta - f0(a))] = s twice.
        second = ((v * (1 - 2 * p) * (NODES - first[:, None]) ** 2) @ WEIGHTS) / mass
        return f0[where], first[where], second[where]

    def slope(self, metric: FloatArray, a: float) -> FloatArray:
        """The derivative of f0 along the metric."""
        s = self.suitability_at(metric)
        p = expit(a * NODES - _population_log_odds(s, a)[:, None])
        inside = (metric >= self.metric[0]) & (metric <= self.metric[-1])
        along = np.where(inside, self._expert.derivative()(np.where(inside, metric, self.metric[0])), 0.0)
        return np.asarray(-along * s * (1 - s) / ((p * (1 - p)) @ WEIGHTS))


@dataclass(frozen=True)
class JoinedAnchor(Anchor):
    """The anchor of fits before estimator version 3, with which their records are scored: points joined by lines."""

    def suitability_at(self, metric: FloatArray) -> FloatArray:
        return np.clip(np.interp(metric, self.metric, self.suitability), *SUITABILITY_RANGE)


def anchor_of(points: tuple[tuple[float, float], ...] | None, spline: Spline) -> Anchor | None:
    """The anchor of these pairs of metric and suitability, so smooth that a curve of this spline can undo it."""
    if points is None:
        return None
    metric, suitability = np.array(points, dtype=np.float64).T
    return Anchor(metric, suitability, (spline.upper - spline.lower) / _KNOTS)


def _population_log_odds(suitability: FloatArray, a: float) -> FloatArray:
    """f0 with E[sigmoid(a theta - f0)] = suitability."""
    f0 = -np.log(suitability / (1 - suitability)) * np.sqrt(1 + 0.35 * a * a)
    for _ in range(50):
        p = expit(a * NODES - f0[:, None])
        step = ((p @ WEIGHTS) - suitability) / ((p * (1 - p)) @ WEIGHTS)
        f0 += np.clip(step, -2.0, 2.0)
        if np.max(np.abs(step)) < 1e-12:
            break
    return np.asarray(f0)
