"""How strongly to smooth, chosen by approximate marginal likelihood.

Every penalised coefficient belongs to a group that shares one precision, as in a mixed model. Around the current
estimate the log-likelihood is taken as quadratic with information H; integrating the coefficients out of it gives

    V(rho) = b' A^-1 b / 2 - log|A| / 2 + sum_m n_m rho_m / 2,    A = H + diag(exp(rho[group])),

with b = H phi + gradient, and rho maximises it (Laplace; Wood 2011, "Fast stable restricted maximum likelihood").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import FloatArray, IntArray

from . import cholesky

FREE = -1  # group of a coefficient that is not penalised
WEAK = -2  # group of coefficients with a precision too small to move them: it only makes them sum to about zero
_WEAK_PRECISION = 1e-2
# Precisions that can be told apart: below, the data decide alone; above, the group is zero to any digit shown.
LOWEST, HIGHEST = -12.0, 25.0
_FLAT = 1e-5  # of the gradient of V: further on, nothing that could be noticed changes
_LONGEST = 3.0  # of a step
_MOST_STEPS, _MANY = 40, 200
STEP = 0.01  # log precisions are whole multiples of this, so that the last bits of a sum cannot move an estimate


def precisions(rho: FloatArray, groups: IntArray) -> FloatArray:
    """The precision of each coefficient; zero where it is free."""
    padded = np.concatenate([np.exp(rho), [_WEAK_PRECISION, 0.0]])  # WEAK and FREE pick from the end
    return np.asarray(padded[groups])


def choose(information: FloatArray, b: FloatArray, groups: IntArray, start: FloatArray) -> FloatArray:
    """The log precisions that maximise V, by Newton steps from a start; rounded to `STEP`."""
    if start.size == 0:
        return start
    member = np.array([groups == m for m in range(start.size)], dtype=np.float64)  # groups x coefficients
    rho = start
    at = _value(information, b, groups, member, rho)
    if b.size > _MANY:
        # With many sites one look costs an inverse of a thousand rows; the solver comes back after each of its steps.
        return np.asarray(np.round(np.clip(rho + _step(at, rho), LOWEST, HIGHEST) / STEP) * STEP)
    for _ in range(_MOST_STEPS):
        step = _step(at, rho)
        if np.max(np.abs(step)) < STEP / 20:
            break
        for _ in range(8):
            proposed = np.clip(rho + step, LOWEST, HIGHEST)
            there = _value(information, b, groups, member, proposed)
            if there.value >= at.value - 1e-12 * abs(at.value):
                break
            step = step / 2
        rho, at = proposed, there
    return np.asarray(np.round(rho / STEP) * STEP)


@dataclass(frozen=True)
class _Local:
    """V at one rho, with its derivatives."""

    value: float
    gradient: FloatArray
    hessian: FloatArray
    schall: FloatArray  # the step of Fellner and Schall, uphill wherever it starts


def _value(information: FloatArray, b: FloatArray, groups: IntArray, member: FloatArray, rho: FloatArray) -> _Local:
    weight = precisions(rho, groups)
    factor = cholesky.factor(information + np.diag(weight))
    x = cholesky.solve(factor, b)
    inverse = cholesky.inverse(factor)
    size, precision = member.sum(axis=1), np.exp(rho)
    trace = precision * (member @ np.diag(inverse))
    square = precision * (member @ (x * x))
    value = 0.5 * float(b @ x) - float(np.log(np.diag(factor)).sum()) + 0.5 * float(size @ rho)
    curved = inverse * (inverse + 2.0 * np.outer(x, x))
    hessian = 0.5 * np.outer(precision, precision) * (member @ curved @ member.T) - 0.5 * np.diag(trace + square)
    left = np.maximum(size - trace, 1e-12)
    schall = np.log(left / np.maximum(square, 1e-300))
    return _Local(value, 0.5 * (size - trace - square), hessian, schall)


def _step(at: _Local, rho: FloatArray) -> FloatArray:
    """Newton's step where V is concave, otherwise Fellner and Schall's; none into a bound or along a plateau."""
    stuck = (
        (np.abs(at.gradient) < _FLAT) | ((rho >= HIGHEST) & (at.gradient > 0)) | ((rho <= LOWEST) & (at.gradient < 0))
    )
    free = np.flatnonzero(~stuck)
    step = np.zeros_like(rho)
    if free.size:
        block = -at.hessian[np.ix_(free, free)]
        concave = np.linalg.eigvalsh(block)[0] > 0
        step[free] = np.linalg.solve(block, at.gradient[free]) if concave else at.schall[free]
        # Where a group shrinks away V levels off like -exp(-rho), and Newton's step is one however far the end is.
        step[(at.gradient > 0) & (at.gradient < 0.05) & (step > 0)] *= _LONGEST
    return np.clip(step, -_LONGEST, _LONGEST)
