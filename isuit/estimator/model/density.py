"""The density of skill among riders: normal, or a smooth departure from it that the data ask for.

Beside its prior mean a rider's skill is u = g(z), where z is standard normal and g rises:

    g(z) = (G(z) - m) / s,    G'(z) = LEAST + (1 - LEAST) exp(w(z)),    w(z) = sum_k eta_k B_k(z).

With w = 0 skill is normal, and w constant is the same after m and s; a straight w is about a lognormal, one that rises
at both ends has heavy tails, one that is high in the middle has two groups. The penalty is that of w's first and second
derivative, and the functions B_k are scaled to a penalty of one each, the smoothest first. Two precisions, chosen by
marginal likelihood like any other, say how far from normal the riders are: one of the first two functions, which are
skewness and tails, and one of the rest. `LEAST` keeps the density from rising more steeply than outcomes could tell.
Beyond `REACH` w is constant.

m and s are location and scale, which the curve's level and the discrimination would otherwise share: the mean and the
sd of skill with the riders beyond the 5th and the 95th percentile counted as if they stood there, the sd over what that
is for a normal. So for a normal they are mean and sd, and under heavy tails they are what the riders whom outcomes can
tell apart show of them, whatever the few beyond would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, CubicHermiteSpline
from scipy.linalg import eigh, null_space
from scipy.special import ndtr, ndtri

from isuit.domain import FloatArray

from .normal import NODES, WEIGHTS

TAIL = 0.05  # of the riders at either end: those further out count as if they stood there
REACH = 3.5  # of z: one rider in 2,000 is further out at one of the ends
SPACING = 0.5  # of the knots
FUNCTIONS = 8
SHAPES = 2  # the first of them: skewness and tails, which have a precision of their own
# Least and most of the logarithms of the two precisions. That tails are exactly a normal's is more than riders can
# tell, and a density that bends more sharply than the least allows is finer than its tables.
DENSITY_PRECISIONS = ((-2.0, -1.0), (2.0, np.inf))
LEAST = 0.25
_LEVEL = 0.3  # weight of the first derivative's penalty beside that of the second
_DEGREE = 5
_BEYOND = 12  # knots to either side, so that the constant goes as far as tables do
_END = 8.0  # of z, to which tables go
_FINE = 1 / 32  # of z: within so much the spline is a polynomial, and three nodes integrate its exponential
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


class _Basis(NamedTuple):
    """The functions B, and what is the same for every density."""

    splines: BSpline  # K of them at once
    edges: FloatArray  # of z, `_FINE` apart
    inside: FloatArray  # B at the three nodes between two edges: (edges - 1) x 3 x K
    middle: FloatArray  # nodes of z between the percentiles, with both percentiles at the ends
    weights: FloatArray  # of the riders there
    spread: float  # sd of a normal on them


_NODES3, _WEIGHTS3 = np.polynomial.legendre.leggauss(3)


@lru_cache(maxsize=1)
def _basis() -> _Basis:
    count = round(REACH / SPACING)
    knots = SPACING * np.arange(-count - _DEGREE - 1 - _BEYOND, count + _DEGREE + 2 + _BEYOND)
    begins, ends = knots[: -_DEGREE - 1], knots[_DEGREE + 1 :]
    # Those that reach beyond an end go together there: their sum is constant.
    within = np.flatnonzero((begins > -REACH - SPACING / 2) & (ends < REACH + SPACING / 2))
    merged = np.clip(np.arange(begins.size), within[0] - 1, within[-1] + 1) - within[0] + 1
    together = (merged[:, None] == np.arange(merged[-1] + 1)).astype(np.float64)
    every = BSpline(knots, together, _DEGREE)
    z = np.arange(-REACH, REACH + _FINE / 2, _FINE)
    phi = np.exp(-0.5 * z**2)
    free = null_space((phi @ every(z))[None, :])
    one, two = every.derivative(1)(z), every.derivative(2)(z)
    penalty = free.T @ (_FINE * (two.T @ two + _LEVEL * one.T @ one)) @ free
    size = free.T @ (every(z).T @ (np.sqrt(phi)[:, None] * every(z)) * _FINE) @ free
    rough, vectors = eigh(penalty, size, subset_by_index=[0, FUNCTIONS - 1])
    chosen = free @ (vectors / np.sqrt(rough))
    chosen = chosen * np.where((every(z) @ chosen)[-1] < 0, -1.0, 1.0)  # eigenvectors have no sign of their own
    spline = BSpline(knots, together @ chosen, _DEGREE)
    edges = np.linspace(-_END, _END, round(2 * _END / _FINE) + 1)
    nodes = edges[:-1, None] + _FINE / 2 * (1 + _NODES3)
    end = float(ndtri(1 - TAIL))
    points, weights = np.polynomial.legendre.leggauss(48)
    middle = np.concatenate([[-end], end * points, [end]])
    weights = np.concatenate([[TAIL], end * weights * np.exp(-0.5 * (end * points) ** 2) / np.sqrt(2 * np.pi), [TAIL]])
    spread = float(np.sqrt(weights @ middle**2))
    return _Basis(spline, edges, spline(nodes), middle, weights / weights.sum(), spread)


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
        return min(1.0, _FURTHEST / max(float(np.max(np.abs(_basis().inside @ self.eta))), 1e-300))

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
_EVEN = np.arange(-_END, _END + _FINE, 2 * _FINE)  # the trapezoid rule in z is exact
_LEVELS = (_EVEN, np.exp(-0.5 * _EVEN**2) / np.exp(-0.5 * _EVEN**2).sum())


class _Units(NamedTuple):
    """Location m and scale s of G(z), and how they move with eta, once and twice."""

    m: float
    s: float
    m_slope: FloatArray
    s_slope: FloatArray

    @classmethod
    def of(cls, basis: _Basis, middle: FloatArray, by_eta: FloatArray) -> _Units:
        m, m_slope = float(basis.weights @ middle), basis.weights @ by_eta
        gap = middle - m
        s = float(np.sqrt(basis.weights @ gap**2)) / basis.spread
        return cls(m, s, m_slope, (basis.weights * gap) @ (by_eta - m_slope) / (basis.spread**2 * s))


@dataclass(frozen=True)
class _Bent:
    """A density that is not normal, at the points of the tables."""

    way: _Way
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
        basis = _basis()
        refused = not float(np.max(basis.inside @ eta, initial=0.0)) < _STEEPEST
        way = _Way.of(basis, np.zeros_like(eta) if refused else eta)
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


class _Functions(NamedTuple):
    """At some z: B, G' and what log G' does."""

    value: FloatArray
    steep: FloatArray
    share: FloatArray  # of G' that moves with w
    bent: FloatArray  # derivatives of log G', by z, once and twice
    bent1: FloatArray
    stretched1: FloatArray  # of log G' by eta, the derivative by z


class _Way(NamedTuple):
    """G and how it moves with eta, at the edges."""

    basis: _Basis
    eta: FloatArray
    total: FloatArray
    by_eta: FloatArray
    steepness: FloatArray

    @classmethod
    def of(cls, basis: _Basis, eta: FloatArray) -> _Way:
        rising = (1 - LEAST) * np.exp(basis.inside @ eta)
        weights = _FINE / 2 * _WEIGHTS3
        total = np.concatenate([[0.0], np.cumsum((LEAST + rising) @ weights)])
        each = np.einsum("en,enk,n->ek", rising, basis.inside, weights)
        by_eta = np.concatenate([np.zeros((1, eta.size)), np.cumsum(each, axis=0)])
        middle = total.size // 2
        steepness = LEAST + (1 - LEAST) * np.exp(basis.splines(basis.edges) @ eta)
        return cls(basis, eta, total - total[middle], by_eta - by_eta[middle], steepness)

    def functions(self, z: FloatArray) -> _Functions:
        value, one, two = (np.asarray(self.basis.splines(z, d)) for d in range(3))
        w1, w2 = one @ self.eta, two @ self.eta
        rising = (1 - LEAST) * np.exp(value @ self.eta)
        share = rising / (LEAST + rising)
        share1 = share * (1 - share) * w1
        return _Functions(
            value,
            LEAST + rising,
            share,
            share * w1,
            share1 * w1 + share * w2,
            share1[:, None] * value + share[:, None] * one,
        )

    def twice(self, z: FloatArray) -> FloatArray:
        """How G moves with eta twice, at any z."""
        weights, edges = _FINE / 2 * _WEIGHTS3, self.basis.edges
        rising = (1 - LEAST) * np.exp(self.basis.inside @ self.eta)
        each = np.einsum("en,enj,enk->ejk", rising * weights, self.basis.inside, self.basis.inside, optimize=True)
        total = np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)])
        total -= total[edges.size // 2]
        below = np.clip(((z - edges[0]) / _FINE).astype(np.int64), 0, edges.size - 2)
        half = (z - edges[below]) / 2
        functions = self.basis.splines(edges[below][:, None] + half[:, None] * (1 + _NODES3))
        rising = (1 - LEAST) * np.exp(functions @ self.eta) * _WEIGHTS3 * half[:, None]
        return np.asarray(total[below] + np.einsum("zn,znj,znk->zjk", rising, functions, functions, optimize=True))

    def steep(self, z: FloatArray) -> FloatArray:
        return np.asarray(LEAST + (1 - LEAST) * np.exp(self.basis.splines(z) @ self.eta))

    def at(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """G(z) and its derivative with respect to eta at any z: the integral up to the edge below, and from there
        by Gauss's rule with three nodes."""
        edges = self.basis.edges
        below = np.clip(((z - edges[0]) / _FINE).astype(np.int64), 0, edges.size - 2)
        half = (z - edges[below]) / 2
        functions = self.basis.splines(edges[below][:, None] + half[:, None] * (1 + _NODES3))
        rising = (1 - LEAST) * np.exp(functions @ self.eta)
        total = self.total[below] + half * ((LEAST + rising) @ _WEIGHTS3)
        by_eta = self.by_eta[below] + half[:, None] * np.einsum("zn,znk,n->zk", rising, functions, _WEIGHTS3)
        return total, by_eta
