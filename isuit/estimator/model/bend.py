"""How skill bends: the rising function G of a standard normal z, whose slope a spline w decides.

    G'(z) = LEAST + (1 - LEAST) exp(w(z)),    w(z) = sum_k eta_k B_k(z)

`density.py` says what becomes of it. The functions B are the smoothest splines that there are by a penalty on first and
second derivatives, each scaled to the same penalty.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import eigh, null_space
from scipy.special import ndtri

from isuit.domain import FloatArray

TAIL = 0.05  # of the riders at either end: those further out count as if they stood there
REACH = 3.5  # of z: one rider in 2,000 is further out at one of the ends
SPACING = 0.5  # of the knots
FUNCTIONS = 8
LEAST = 0.25
_LEVEL = 0.3  # weight of the first derivative's penalty beside that of the second
_DEGREE = 5
_BEYOND = 12  # knots to either side, so that the constant goes as far as tables do
END = 8.0  # of z, to which tables go
FINE = 1 / 32  # of z: within so much the spline is a polynomial, and three nodes integrate its exponential


class Basis(NamedTuple):
    """The functions B, and what is the same for every density."""

    splines: BSpline  # K of them at once
    edges: FloatArray  # of z, `FINE` apart
    inside: FloatArray  # B at the three nodes between two edges: (edges - 1) x 3 x K
    middle: FloatArray  # nodes of z between the percentiles, with both percentiles at the ends
    weights: FloatArray  # of the riders there
    spread: float  # sd of a normal on them


_NODES3, _WEIGHTS3 = np.polynomial.legendre.leggauss(3)


@lru_cache(maxsize=1)
def the_basis() -> Basis:
    count = round(REACH / SPACING)
    knots = SPACING * np.arange(-count - _DEGREE - 1 - _BEYOND, count + _DEGREE + 2 + _BEYOND)
    begins, ends = knots[: -_DEGREE - 1], knots[_DEGREE + 1 :]
    # Those that reach beyond an end go together there: their sum is constant.
    within = np.flatnonzero((begins > -REACH - SPACING / 2) & (ends < REACH + SPACING / 2))
    merged = np.clip(np.arange(begins.size), within[0] - 1, within[-1] + 1) - within[0] + 1
    together = (merged[:, None] == np.arange(merged[-1] + 1)).astype(np.float64)
    every = BSpline(knots, together, _DEGREE)
    z = np.arange(-REACH, REACH + FINE / 2, FINE)
    phi = np.exp(-0.5 * z**2)
    free = null_space((phi @ every(z))[None, :])
    one, two = every.derivative(1)(z), every.derivative(2)(z)
    penalty = free.T @ (FINE * (two.T @ two + _LEVEL * one.T @ one)) @ free
    size = free.T @ (every(z).T @ (np.sqrt(phi)[:, None] * every(z)) * FINE) @ free
    rough, vectors = eigh(penalty, size, subset_by_index=[0, FUNCTIONS - 1])
    chosen = free @ (vectors / np.sqrt(rough))
    chosen = chosen * np.where((every(z) @ chosen)[-1] < 0, -1.0, 1.0)  # eigenvectors have no sign of their own
    spline = BSpline(knots, together @ chosen, _DEGREE)
    edges = np.linspace(-END, END, round(2 * END / FINE) + 1)
    nodes = edges[:-1, None] + FINE / 2 * (1 + _NODES3)
    end = float(ndtri(1 - TAIL))
    points, weights = np.polynomial.legendre.leggauss(48)
    middle = np.concatenate([[-end], end * points, [end]])
    weights = np.concatenate([[TAIL], end * weights * np.exp(-0.5 * (end * points) ** 2) / np.sqrt(2 * np.pi), [TAIL]])
    spread = float(np.sqrt(weights @ middle**2))
    return Basis(spline, edges, spline(nodes), middle, weights / weights.sum(), spread)


class Functions(NamedTuple):
    """At some z: B, G' and what log G' does."""

    value: FloatArray
    steep: FloatArray
    share: FloatArray  # of G' that moves with w
    bent: FloatArray  # derivatives of log G', by z, once and twice
    bent1: FloatArray
    stretched1: FloatArray  # of log G' by eta, the derivative by z


class Way(NamedTuple):
    """G and how it moves with eta, at the edges."""

    basis: Basis
    eta: FloatArray
    total: FloatArray
    by_eta: FloatArray
    steepness: FloatArray

    @classmethod
    def of(cls, basis: Basis, eta: FloatArray) -> Way:
        rising = (1 - LEAST) * np.exp(basis.inside @ eta)
        weights = FINE / 2 * _WEIGHTS3
        total = np.concatenate([[0.0], np.cumsum((LEAST + rising) @ weights)])
        each = np.einsum("en,enk,n->ek", rising, basis.inside, weights)
        by_eta = np.concatenate([np.zeros((1, eta.size)), np.cumsum(each, axis=0)])
        middle = total.size // 2
        steepness = LEAST + (1 - LEAST) * np.exp(basis.splines(basis.edges) @ eta)
        return cls(basis, eta, total - total[middle], by_eta - by_eta[middle], steepness)

    def functions(self, z: FloatArray) -> Functions:
        value, one, two = (np.asarray(self.basis.splines(z, d)) for d in range(3))
        w1, w2 = one @ self.eta, two @ self.eta
        rising = (1 - LEAST) * np.exp(value @ self.eta)
        share = rising / (LEAST + rising)
        share1 = share * (1 - share) * w1
        return Functions(
            value,
            LEAST + rising,
            share,
            share * w1,
            share1 * w1 + share * w2,
            share1[:, None] * value + share[:, None] * one,
        )

    def twice(self, z: FloatArray) -> FloatArray:
        """How G moves with eta twice, at any z."""
        weights, edges = FINE / 2 * _WEIGHTS3, self.basis.edges
        rising = (1 - LEAST) * np.exp(self.basis.inside @ self.eta)
        each = np.einsum("en,enj,enk->ejk", rising * weights, self.basis.inside, self.basis.inside, optimize=True)
        total = np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)])
        total -= total[edges.size // 2]
        below = np.clip(((z - edges[0]) / FINE).astype(np.int64), 0, edges.size - 2)
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
        below = np.clip(((z - edges[0]) / FINE).astype(np.int64), 0, edges.size - 2)
        half = (z - edges[below]) / 2
        functions = self.basis.splines(edges[below][:, None] + half[:, None] * (1 + _NODES3))
        rising = (1 - LEAST) * np.exp(functions @ self.eta)
        total = self.total[below] + half * ((LEAST + rising) @ _WEIGHTS3)
        by_eta = self.by_eta[below] + half[:, None] * np.einsum("zn,znk,n->zk", rising, functions, _WEIGHTS3)
        return total, by_eta
