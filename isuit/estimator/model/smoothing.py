"""How strongly to smooth, chosen by approximate marginal likelihood.

Every penalised coefficient belongs to a group that shares one precision, as in a mixed model. Around the current
estimate the log-likelihood is taken as quadratic with information H; integrating the coefficients out of it gives

    V(rho) = b' A^-1 b / 2 - log|A| / 2 + sum_m n_m rho_m / 2,    A = H + diag(exp(rho[group])),

with b = H phi + gradient, and rho maximises it (Laplace; Wood 2011, "Fast stable restricted maximum likelihood").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray, IntArray

from .arrow import Arrow, Beginning, Factor

FREE = -1  # group of a coefficient that is not penalised
WEAK = -2  # group of coefficients with a precision too small to move them: it only makes them sum to about zero
FIXED = -3  # group of a coefficient that is not estimated: it is zero
_WEAK_PRECISION = 1e-2
# Precisions that can be told apart: below, the data decide alone; above, the group is zero to any digit shown.
LOWEST, HIGHEST = -12.0, 25.0
_FLAT = 1e-5  # of the gradient of V: further on, nothing that could be noticed changes
_LONGEST = 3.0  # of a step
_MOST_STEPS, _MANY = 40, 200
STEP = 0.01  # log precisions are whole multiples of this, so that the last bits of a sum cannot move an estimate


class Excess(NamedTuple):
    """By how much an exact integral over the coefficients of one group differs from that of the quadratic
    approximation."""

    value: float  # of V
    square: float  # of the sum of expected squares


@dataclass(frozen=True)
class Correction:
    """A group of coefficients that is integrated better than by the quadratic approximation: `excess` gives the
    difference at a log precision."""

    group: int
    excess: Callable[[float], Excess]


def precisions(rho: FloatArray, groups: IntArray) -> FloatArray:
    """The precision of each coefficient; zero where it is free."""
    padded = np.concatenate([np.exp(rho), [0.0, _WEAK_PRECISION, 0.0]])  # FIXED, WEAK and FREE pick from the end
    return np.asarray(padded[groups])


def choose(
    information: Arrow,
    b: FloatArray,
    groups: IntArray,
    start: FloatArray,
    near: Beginning | None = None,
    correction: Correction | None = None,
) -> FloatArray:
    """The log precisions that maximise V, by Newton steps from a start; rounded to `STEP`.

    With many coefficients it is one step for the places' own groups: a look costs a factor of the own part, and the
    caller comes back after each of its own steps. Groups of the border alone cost nothing more, and are chosen wholly.
    """
    if start.size == 0:
        return start
    if b.size > _MANY:
        rho, factor = _with_border_chosen(information, b, groups, start, near)
        return _rounded(np.clip(rho + _step(_local(factor, b, groups, rho, correction), rho), LOWEST, HIGHEST))
    rho, at = start, _value(information, b, groups, start, near, correction)
    for _ in range(_MOST_STEPS):
        step = _step(at, rho)
        if np.max(np.abs(step)) < STEP / 20:
            break
        for _ in range(8):
            proposed = np.clip(rho + step, LOWEST, HIGHEST)
            there = _value(information, b, groups, proposed, near, correction)
            if there.value >= at.value - 1e-12 * abs(at.value):
                break
            step = step / 2
        rho, at = proposed, there
    return _rounded(rho)


def tiny(matrix: Arrow) -> FloatArray:
    """A diagonal that is next to nothing. Added to a matrix it keeps directions positive that only a precision
    identifies: the data leave them zero but for rounding, which may make them negative."""
    return 1e-12 * np.maximum(matrix.diagonal(), 1e-12)


def _rounded(rho: FloatArray) -> FloatArray:
    return np.asarray(np.round(rho / STEP) * STEP)


@dataclass(frozen=True)
class _Local:
    """V at one rho, with its derivatives."""

    value: float
    gradient: FloatArray
    hessian: FloatArray
    schall: FloatArray  # the step of Fellner and Schall, uphill wherever it starts
    shrunk: NDArray[np.bool_]  # groups of which the data see next to nothing


def _with_border_chosen(
    information: Arrow, b: FloatArray, groups: IntArray, start: FloatArray, near: Beginning | None
) -> tuple[FloatArray, Factor]:
    """The log precisions with those of the border's own groups at their best given the others, and the factor there.

    With the own part eliminated, V is that of a small problem: the Schur complement and what is left of b.
    """
    factor = Factor(information.plus(precisions(start, groups) + tiny(information)), near, 1e-5)
    border, own = groups[: factor.shape.border], groups[factor.shape.border :]
    alone = np.setdiff1d(border[border >= 0], own)
    if not own.size or not alone.size:
        return start, factor
    number = np.full(start.size, FREE)
    number[alone] = np.arange(alone.size)
    renumbered = np.where(border >= 0, number[np.maximum(border, 0)], FREE)
    before = precisions(start, np.where(renumbered >= 0, border, FREE))
    nothing = np.zeros((0, 0, border.size)), np.zeros((0, 0, 0))
    small = Arrow.uncoupled(factor.schur - np.diag(before), *nothing)
    rho = start.copy()
    rho[alone] = choose(small, factor.reduced(b), renumbered, start[alone])
    after = precisions(rho, np.where(renumbered >= 0, border, FREE))
    return rho, factor.with_border(after - before)


def _value(
    information: Arrow,
    b: FloatArray,
    groups: IntArray,
    rho: FloatArray,
    near: Beginning | None,
    correction: Correction | None,
) -> _Local:
    weight = precisions(rho, groups) + tiny(information)
    return _local(Factor(information.plus(weight), near, 1e-5), b, groups, rho, correction)


def _local(factor: Factor, b: FloatArray, groups: IntArray, rho: FloatArray, correction: Correction | None) -> _Local:
    x = factor.solve(b, 1e-6)
    count, penalised = rho.size, groups >= 0

    def by_group(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(groups[penalised], weights=values[penalised], minlength=count), np.float64)

    size, precision = by_group(np.ones(b.size)), np.exp(rho)
    trace, square = precision * by_group(factor.diagonal()), precision * by_group(x * x)
    more = Excess(0.0, 0.0)
    if correction is not None:
        more = correction.excess(float(rho[correction.group]))
        square[correction.group] += precision[correction.group] * more.square
    # With a row for each group: its part of x.
    member = np.where(groups[:, None] == np.arange(count), 1.0, 0.0)
    part = member * x[:, None]
    mixed = 2.0 * (part.T @ factor.solve(part, 1e-3)) + _squares(factor, member)
    hessian = 0.5 * np.outer(precision, precision) * (mixed + mixed.T) / 2 - 0.5 * np.diag(trace + square)
    left = np.maximum(size - trace, 1e-12)
    schall = np.log(left / np.maximum(square, 1e-300))
    logarithm = factor.log_determinant or 0.0
    value = 0.5 * float(b @ x) - 0.5 * logarithm + 0.5 * float(size @ rho) + more.value
    return _Local(value, 0.5 * (size - trace - square), hessian, schall, left < 0.05 * size)


def _squares(factor: Factor, member: FloatArray) -> FloatArray:
    """Sums of squares of the inverse by pairs of groups; what places share by common riders alone is left out.

    Beside its blocks the own part's inverse is V V' with as many columns as the border has, and a sum of squares of
    that over all pairs of rows is a product of small matrices.
    """
    border, own = factor.shape.split(member)
    result = border.T @ factor.border**2 @ border
    if not own.size:
        return np.asarray(result)
    across = np.einsum("pwi,pwb,bj->ij", own, factor.cross**2, border, optimize=True)
    through = np.matmul(factor.slope, np.linalg.cholesky(factor.border)).reshape(-1, len(border))
    by_group = [(through * weight[:, None]).T @ through for weight in own.reshape(-1, member.shape[1]).T]
    pairs = np.array([[np.sum(one * other) for other in by_group] for one in by_group])
    added = factor.through_border
    blocks = np.einsum("pwi,pwv,pvj->ij", own, (factor.own.quick_blocks + added) ** 2 - added**2, own, optimize=True)
    return np.asarray(result + across + across.T + pairs + blocks)


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
        # By Schall's step a group that is all but zero comes back in steps of less than one, however far it has to go.
        schall = np.where(at.shrunk & (at.schall < 0), _LONGEST * at.schall, at.schall)
        step[free] = np.linalg.solve(block, at.gradient[free]) if concave else schall[free]
        # Where a group shrinks away V levels off like -exp(-rho), and Newton's step is one however far the end is.
        step[(at.gradient > 0) & (at.gradient < 0.05) & (step > 0)] *= _LONGEST
    return np.clip(step, -_LONGEST, _LONGEST)
