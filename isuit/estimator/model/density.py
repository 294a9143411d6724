"""The density of skill among riders: normal, or a smooth departure from it that the data ask for.

Beside its prior mean a rider's skill is u = g(z), where z is standard normal and g rises:

    g(z) = (G(z) - m) / s,    G'(z) = LEAST + (1 - LEAST) exp(w(z)),    w(z) = sum_k eta_k B_k(z).

With w = 0 skill is normal, and w constant is the same after m and s; a straight w is about a lognormal, one that rises
at both ends has heavy tails, one that is high in the middle has two groups. The penalty is that of w's first and second
derivative, and the functions B_k are scaled to a penalty of one each, the smoothest first. Three precisions, chosen by
marginal likelihood like any other, say how far from normal the riders are: one of the first function, which is
skewness, one of the second, which is tails, and one of the rest. (Were that of skewness also that of tails, riders
whose skill is not skewed would hide their tails.) `LEAST` keeps the density from rising more steeply than outcomes
could tell.
Beyond `REACH` w is constant.

m and s are location and scale, which the curve's level and the discrimination would otherwise share: the mean and the
sd of skill with the riders beyond the 5th and the 95th percentile counted as if they stood there, the sd over what that
is for a normal. So for a normal they are mean and sd, and under heavy tails they are what the riders whom outcomes can
tell apart show of them, whatever the few beyond would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import ndtr

from isuit.domain import FloatArray

from .bend import END, FINE, Basis, Way, the_basis
from .normal import NODES, WEIGHTS

SHAPES = 2  # the first of them: skewness and tails, each with a precision of its own
# Least and most of the logarithms of the three precisions. That tails are exactly a normal's is more than riders can
# tell, and a density that bends more sharply than the least allows is finer than its tables.
DENSITY_PRECISIONS = ((-2.0, -2.0, -1.0), (2.0, 2.0, np.inf))
_FARTHEST = 60.0  # skill to which they go at the most
_STEP = 1 / 16  # of skill, in the tables
_FURTHEST = 1.0  # change of w in one step
_STEEPEST, _WIDEST = 6.0, 4.0  # of w and of s: beyond, nothing that riders are like, and no table follows
_REFUSED = 1e3  # taken from the log-density: whoever stepped here goes back


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
    def _bent(self) -> _Bent:
        return _Bent.of(self.eta)

    @cached_property
    def tables(self) -> Tables:
        if not self.size:
            nothing = np.zeros((0, 2))
            return Tables(0.0, 1.0, nothing, nothing, nothing, np.zeros((0, 2, 0)), np.zeros((0, 2, 0)))
        b = self._bent
        return Tables(
            float(b.points[0]),
            _STEP,
            _hermite(b.log + 0.5 * b.points**2 + 0.5 * np.log(2 * np.pi), b.slope + b.points),
            _hermite(b.slope + b.points, b.bend + 1.0),
            # The last two are in the information alone, where digits are few.
            _hermite(b.bend + 1.0, np.gradient(b.bend, _STEP)),
            _hermite(b.scores, b.score_slopes),
            _hermite(b.score_slopes, np.gradient(b.score_slopes, _STEP, axis=0)),
        )

    @property
    def nodes(self) -> FloatArray:
        """With `weights`: the mean of f over skill is `f(nodes) @ weights`."""
        return self._bent.at_nodes if self.size else NODES

    @property
    def weights(self) -> FloatArray:
        return np.asarray(_LEVELS[1] if self.size else WEIGHTS)

    def share_that_keeps_shape(self) -> float:
        """Taking the coefficients as a step: the share of it after which the density still resembles the one
        before."""
        if not self.size:
            return 1.0
        return min(1.0, _FURTHEST / max(float(np.max(np.abs(the_basis().inside @ self.eta))), 1e-300))

    @cached_property
    def expected_information(self) -> FloatArray:
        """Of eta, expected from one rider whose skill were known."""
        if not self.size:
            return np.zeros((0, 0))
        b = self._bent
        weight = _STEP * np.exp(b.log)
        return np.asarray(b.scores.T @ (weight[:, None] * b.scores))

    def information(self, pooled: FloatArray) -> FloatArray:
        """The information about eta if skills were known; `pooled` is how many riders are at each point of the
        tables."""
        return -self._bent.curvature(pooled) if self.size else np.zeros((0, 0))

    def log_density(self, u: FloatArray) -> FloatArray:
        """At any u; by straight lines between the points of the tables."""
        if not self.size:
            return np.asarray(-0.5 * u**2 - 0.5 * np.log(2 * np.pi))
        return np.asarray(np.interp(u, self._bent.points, self._bent.log))

    def log_density_slope(self, u: FloatArray) -> FloatArray:
        """How the log-density at each u moves with eta."""
        return np.stack([np.interp(u, self._bent.points, column) for column in self._bent.scores.T], axis=1)

    def share_below(self, u: FloatArray) -> FloatArray:
        """Of the riders, those whose skill beside its prior mean is below u."""
        return np.asarray(ndtr(np.interp(u, self._bent.points, self._bent.z) if self.size else u))


NORMAL = Density(np.zeros(0))
_EVEN = np.arange(-END, END + FINE, 2 * FINE)  # the trapezoid rule in z is exact
_LEVELS = (_EVEN, np.exp(-0.5 * _EVEN**2) / np.exp(-0.5 * _EVEN**2).sum())


class _Units(NamedTuple):
    """Location m and scale s of G(z), and how they move with eta, once and twice."""

    m: float
    s: float
    m_slope: FloatArray
    s_slope: FloatArray

    @classmethod
    def of(cls, basis: Basis, middle: FloatArray, by_eta: FloatArray) -> _Units:
        m, m_slope = float(basis.weights @ middle), basis.weights @ by_eta
        gap = middle - m
        s = float(np.sqrt(basis.weights @ gap**2)) / basis.spread
        return cls(m, s, m_slope, (basis.weights * gap) @ (by_eta - m_slope) / (basis.spread**2 * s))


@dataclass(frozen=True)
class _Bent:
    """A density that is not normal, at the points of the tables."""

    way: Way
    units: _Units
    points: FloatArray
    z: FloatArray
    log: FloatArray  # the logarithm of the density, and its derivatives
    slope: FloatArray
    bend: FloatArray
    scores: FloatArray  # of eta
    score_slopes: FloatArray
    moved: FloatArray  # how skill at z moves with eta
    at_nodes: FloatArray  # skill at `_LEVELS`

    @classmethod
    def of(cls, eta: FloatArray) -> _Bent:
        basis = the_basis()
        refused = not float(np.max(basis.inside @ eta, initial=0.0)) < _STEEPEST
        way = Way.of(basis, np.zeros_like(eta) if refused else eta)
        units = _Units.of(basis, *way.at(basis.middle))
        m, s, m_slope, s_slope = units
        skill = (way.total - m) / s
        lower, upper = max(skill[0], -_FARTHEST), min(skill[-1], _FARTHEST)
        points = _STEP * np.arange(np.ceil(lower / _STEP), np.floor(upper / _STEP) + 1)
        z = CubicHermiteSpline(skill, basis.edges, s / way.steepness)(points)
        total, by_eta = way.at(z)
        z = z - (total - m - s * points) / way.steep(z)  # Newton: the interpolation is good to some nine digits
        at, by_eta = way.functions(z), way.at(z)[1]
        moved = (by_eta - m_slope - points[:, None] * s_slope) / s
        stretched = at.share[:, None] * at.value - s_slope / s  # how log g' moves with eta
        steep, pull = at.steep / s, z + at.bent
        by_skill = moved / steep[:, None]
        log = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(steep)
        return cls(
            way,
            units,
            points,
            z,
            log - _REFUSED if refused or s > _WIDEST else log,
            -pull / steep,
            (pull * at.bent - 1.0 - at.bent1) / steep**2,
            pull[:, None] * by_skill - stretched,
            ((1.0 + at.bent1 - pull * at.bent)[:, None] * by_skill + pull[:, None] * stretched - at.stretched1)
            / steep[:, None],
            moved,
            np.interp(_LEVELS[0], basis.edges, skill),
        )

    def curvature(self, weight: FloatArray) -> FloatArray:
        """Of the log-density by eta twice, summed over the points with these weights."""
        here = np.flatnonzero(weight)
        weight, z, g = weight[here], self.z[here], self.points[here]
        basis, (m, s, m_slope, s_slope) = self.way.basis, self.units
        middle, by_eta = self.way.at(basis.middle)
        gap, gaps, twice = middle - m, by_eta - m_slope, self.way.twice(basis.middle)
        m_bend = np.einsum("z,zjk->jk", basis.weights, twice)
        square = np.einsum("z,zj,zk->jk", basis.weights, gaps, gaps)
        square = (square + np.einsum("z,zjk->jk", basis.weights * gap, twice - m_bend)) / basis.spread**2
        relative = s_slope / s
        doubled = (square / s - np.outer(s_slope, s_slope) / s) / s - np.outer(relative, relative)  # of log s, twice
        at, moved, slopes = self.way.functions(z), self.moved[here], self.score_slopes[here]
        steep = at.steep / s
        by_skill, pull = moved / steep[:, None], z + at.bent
        stretched = at.share[:, None] * at.value - relative
        # Skill at z by eta twice; then the score at z by eta, and z itself by eta.
        plain = moved + g[:, None] * relative
        one = np.einsum("z,zjk->jk", weight * pull / steep, (self.way.twice(z) - m_bend) / s)
        one -= np.einsum("z,zj,k->jk", weight * pull / steep, plain, relative)
        one -= np.einsum("z,zk,j->jk", weight * pull / steep, moved, relative)
        one -= float(np.sum(weight * pull / steep * g)) * doubled
        one += np.einsum("z,zk,zj->jk", weight, at.stretched1, by_skill)
        one -= np.einsum("z,zk,zj->jk", weight * pull, stretched, by_skill)
        one -= np.einsum("z,zj,zk->jk", weight * at.share * (1 - at.share), at.value, at.value)
        one += float(weight.sum()) * doubled
        one -= np.einsum("z,zk,zj->jk", weight * steep, by_skill, slopes)
        return np.asarray((one + one.T) / 2)
