"""The density of skill among riders: normal, or a smooth departure from it that the data ask for.

Beside its prior mean a rider's skill is u, with log-density

    log p(u) = log phi(u) + h(u) + c1 u + c2 u^2 - log Z,    h(u) = sum_k eta_k B_k(u).

The penalty of h is the integral of its squared third derivative. What has no penalty are 1, u and u^2, the normal
densities, and c1, c2 and Z follow from eta: mean 0 and variance 1 are imposed, since location and scale are the curve's
level and the discrimination. The functions B_k are scaled to a penalty of one each, so that one precision, chosen by
marginal likelihood like any other, says how far from normal the riders are: infinite, they are normal.

A tail that is not normal costs only where it turns: beyond, the second derivative stays as it is, so that a log-density
that has become straight goes on straight (exponential tails) as far as `REACH`.

With s_k the score of eta_k, and T = (u, u^2): s_k is what is left of B_k when T is regressed out under p, and

    -d2 log p / d eta_j d eta_k = Cov(s_j, s_k) - c_jk' (T - E T),    c_jk = -Cov(T)^-1 Cov(T, s_j s_k).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import eigh, null_space

from isuit.domain import FloatArray

from .normal import NODES, WEIGHTS

REACH = 9.0  # sds up to which the density may bend away from a normal
SPACING = 0.5  # of the knots: no rider's outcomes tell skill more finely
FUNCTIONS = 12
_DEGREE = 5
_STEP = 1 / 16  # of the tables: interpolated between, they are exact to about 1e-8
_END = 12.0  # sds to which tables go: beyond, everything but the normal itself is straight
_NOTHING = 1e-15  # of the largest weight: nodes with less count for nothing
_MOST_STEPS = 200
_EXACTLY = 1e-13  # of mean and variance
_NEARLY = 1e-6  # the same, of coefficients too large to impose them
_SPIKE = 0.25  # of all riders at one point of the tables: finer than any grid
_REFUSED = 1e3  # taken from the log-density
_ARMIJO, _SHORTEST = 1e-4, 2.0**-40


class Tables(NamedTuple):
    """Functions of u on an even grid, as compiled loops interpolate them: values, and slopes times the step.

    Empty tables are the normal density.
    """

    lower: float
    step: float
    log: FloatArray  # points x 2: log p - log phi
    slope: FloatArray  # points x 2: its first derivative
    bend: FloatArray  # points x 2: its second derivative
    functions: FloatArray  # points x 2 x K: the scores s of eta
    slopes: FloatArray  # points x 2 x K: their derivatives


class _Functions(NamedTuple):
    """B and its first three derivatives at the points of the tables, each points x K."""

    points: FloatArray
    value: FloatArray
    first: FloatArray
    second: FloatArray
    third: FloatArray


@lru_cache(maxsize=1)
def _functions() -> _Functions:
    intervals = round(2 * REACH / SPACING)
    knots = -REACH + SPACING * np.arange(-_DEGREE, intervals + _DEGREE + 1)
    points = np.linspace(-_END, _END, round(2 * _END / _STEP) + 1)
    inside = np.clip(points, -REACH, REACH)
    splines = BSpline(knots, np.eye(intervals + _DEGREE), _DEGREE)
    raw = [np.asarray(splines.derivative(d)(inside) if d else splines(inside)) for d in range(4)]
    raw[0] = raw[0] + (points - inside)[:, None] * raw[1]  # straight beyond the reach
    raw[2][points != inside] = raw[3][points != inside] = 0.0
    phi = np.exp(-0.5 * points**2)
    free = null_space((np.stack([np.ones_like(points), points, points**2]) * phi) @ raw[0], rcond=1e-12)
    # Functions are in the order of how rough they are for their size where riders can be, also of heavy tails.
    somewhere = _STEP / (1.0 + points**2 / 2.0) ** 1.5
    penalty = free.T @ (_STEP * raw[3].T @ raw[3]) @ free
    size = free.T @ (raw[0].T @ (somewhere[:, None] * raw[0])) @ free
    rough, vectors = eigh(penalty, size, subset_by_index=[0, FUNCTIONS - 1])
    chosen = free @ (vectors / np.sqrt(rough))
    chosen = chosen * np.where((raw[0] @ chosen)[-1] < 0, -1.0, 1.0)  # eigenvectors have no sign of their own
    return _Functions(points, *(values @ chosen for values in raw))


def _hermite(value: FloatArray, slope: FloatArray) -> FloatArray:
    return np.ascontiguousarray(np.stack([value, _STEP * slope], axis=1))


@dataclass(frozen=True)
class Density:
    """The density of skill beside its prior mean; without coefficients it is normal."""

    eta: FloatArray

    @property
    def size(self) -> int:
        return int(self.eta.size)

    @cached_property
    def _tilted(self) -> _Tilted:
        return _Tilted.of(self.eta)

    @cached_property
    def tables(self) -> Tables:
        if not self.size:
            nothing = np.zeros((0, 2))
            return Tables(0.0, 1.0, nothing, nothing, nothing, np.zeros((0, 2, 0)), np.zeros((0, 2, 0)))
        f, eta, tilted = _functions(), self.eta, self._tilted
        (c1, c2), by_eta = tilted.tilt, tilted.tilt_slope
        u = f.points
        slope, bend = f.first @ eta + c1 + 2 * c2 * u, f.second @ eta + 2 * c2
        scores = tilted.scores
        score_slopes = f.first + by_eta[0] + np.outer(2 * u, by_eta[1])
        return Tables(
            -_END,
            _STEP,
            _hermite(tilted.log, slope),
            _hermite(slope, bend),
            _hermite(bend, f.third @ eta),
            _hermite(scores, score_slopes),
            _hermite(score_slopes, f.second + 2 * by_eta[1]),
        )

    @property
    def nodes(self) -> FloatArray:
        """With `weights`: the mean of f over skill is `f(nodes) @ weights`."""
        return self._tilted.points[self._tilted.kept] if self.size else NODES

    @property
    def weights(self) -> FloatArray:
        return self._tilted.weights[self._tilted.kept] if self.size else WEIGHTS

    @property
    def expected_information(self) -> FloatArray:
        """Of eta, expected from one rider whose skill were known."""
        if not self.size:
            return np.zeros((0, 0))
        scores = self._tilted.scores
        return np.asarray(scores.T @ (self._tilted.weights[:, None] * scores))

    def information(self, gap: FloatArray, square: FloatArray) -> FloatArray:
        """Of eta, if skills were known, from riders whose u and u^2 are these."""
        if not self.size:
            return np.zeros((0, 0))
        tilted = self._tilted
        excess = np.array([gap.sum(), square.sum() - gap.size])
        # c_jk' (T - E T), summed over riders: one weight for each node.
        node = tilted.weights * (tilted.statistics @ np.linalg.solve(tilted.covariance, excess))
        return np.asarray(gap.size * self.expected_information + tilted.scores.T @ (node[:, None] * tilted.scores))

    def log_density(self, u: FloatArray) -> FloatArray:
        """At any u; by straight lines between the points of the tables."""
        log = np.interp(u, self._tilted.points, self._tilted.log) if self.size else 0.0
        return np.asarray(log - 0.5 * u**2 - 0.5 * np.log(2 * np.pi))

    def log_density_slope(self, u: FloatArray) -> FloatArray:
        """How the log-density at each u moves with eta."""
        return np.stack([np.interp(u, self._tilted.points, column) for column in self._tilted.scores.T], axis=1)


NORMAL = Density(np.zeros(0))


@dataclass(frozen=True)
class _Tilted:
    """A density with mean 0 and variance 1, at the points of the tables."""

    points: FloatArray
    log: FloatArray  # its logarithm minus that of the standard normal
    weights: FloatArray
    statistics: FloatArray  # u and u^2 - 1
    covariance: FloatArray  # of these
    tilt: FloatArray  # c1 and c2
    tilt_slope: FloatArray  # by eta
    scores: FloatArray  # of eta

    @property
    def kept(self) -> NDArray[np.bool_]:
        return np.asarray(self.weights > _NOTHING)

    @classmethod
    def of(cls, eta: FloatArray) -> _Tilted:
        """The tilt by Newton's method: it minimises log Z, which is convex."""
        f = _functions()
        u = f.points
        statistics = np.stack([u, u**2 - 1.0], axis=1)
        bent = f.value @ eta
        log_phi = -0.5 * u**2 - 0.5 * np.log(2 * np.pi)

        def at(tilt: FloatArray) -> tuple[float, FloatArray]:
            log = bent + statistics @ tilt + log_phi
            top = float(log.max())
            mass = np.exp(log - top)
            total = float(mass.sum())
            return top + float(np.log(total * _STEP)), mass / total

        tilt = np.zeros(2)
        log_total, weights = at(tilt)
        for _ in range(_MOST_STEPS):
            gradient = weights @ statistics
            covariance = statistics.T @ (weights[:, None] * statistics) - np.outer(gradient, gradient)
            move = -np.linalg.solve(covariance + 1e-12 * np.eye(2), gradient)
            if float(np.max(np.abs(gradient))) < _EXACTLY:
                break
            length = 1.0
            following, there = at(tilt + move)
            while following > log_total + _ARMIJO * length * float(gradient @ move) + _EXACTLY and length > _SHORTEST:
                length /= 2
                following, there = at(tilt + length * move)
            tilt, log_total, weights = tilt + length * move, following, there
        covariance = statistics.T @ (weights[:, None] * statistics)
        by_eta = -np.linalg.solve(covariance, statistics.T @ (weights[:, None] * f.value))
        scores = f.value + statistics @ by_eta
        scores = scores - weights @ scores
        log = bent + statistics @ tilt - log_total
        rises = weights[-1] >= weights[-2] > 0 or weights[0] >= weights[1] > 0 or weights[0] + weights[-1] > _NEARLY
        if rises or float(np.max(np.abs(weights @ statistics))) > _NEARLY or float(weights.max()) > _SPIKE:
            log = log - _REFUSED  # nothing that riders are like: whoever stepped here goes back
        return cls(u, log, weights, statistics, covariance, tilt, np.asarray(by_eta, np.float64), scores)
