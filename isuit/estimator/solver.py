"""Maximising the penalised marginal likelihood.

`solve` starts a large cohort from the fit of every eighth rider; then it takes Newton steps on the marginal
likelihood, each with freshly placed nodes and freshly chosen smoothing. The information is computed anew only
when steps with the old one stop to shrink the gradient. What counts as converged is the gradient in units of
standard errors (`TOLERANCE`), never a small change; and a = 0, where the gradient in a always vanishes, is a
verdict of its own (`no_skill`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from . import cholesky
from .quadrature import Curve, MarginalLikelihood, Nodes, Pass
from .smoothing import choose, precisions

TOLERANCE = 1e-7  # of the gradient, in standard errors: sqrt(g' A^-1 g)
NO_SKILL = 0.02  # a discrimination below this is none: skill would move no probability by more than 0.5 %
_MOST_STEPS = 80
_MOST_CHOICES = 25  # of the smoothing, before it is held as it is
_SETTLED = 0.02  # change of a log precision below which the smoothing is held
_CONTRACTION = 0.3  # a step must shrink the gradient by this, or the information is computed anew
_LONG_STEP = 3.0  # standard errors; longer steps are checked against the likelihood
_FEW_RIDERS = 400  # from here on, a fit of every eighth rider gives the start
_THINNING = 8

Progress = Callable[[str, float], None]  # called with the name of a stage and the share of it that is done


class CurveModel(Protocol):
    """How coefficients become f at each item."""

    def at(self, a: float, coefficients: FloatArray) -> Curve: ...

    def curvature(self, a: float, coefficients: FloatArray, residual: FloatArray) -> FloatArray:
        """What second derivatives of f add to the information of (a, coefficients); zero for a linear model."""
        ...


@dataclass(frozen=True)
class Problem:
    """A likelihood, a model of its curve, and which coefficients share a precision."""

    likelihood: MarginalLikelihood
    curve: CurveModel
    groups: IntArray  # over (a, curve coefficients, population coefficients)
    curve_size: int

    def of_riders(self, chosen: slice) -> Problem:
        part = self.likelihood.counts.of_riders(chosen)
        return replace(self, likelihood=MarginalLikelihood(part, self.likelihood.population.of_rows(chosen)))


@dataclass(frozen=True)
class State:
    """Parameters phi = (a, curve, population), log precisions, and where the nodes stand."""

    phi: FloatArray
    rho: FloatArray
    centre: FloatArray


@dataclass(frozen=True)
class Solution:
    """The maximum, with what is needed to say how certain it is."""

    phi: FloatArray
    rho: FloatArray
    nodes: Nodes
    at: Pass
    curve: Curve
    covariance: FloatArray  # of phi, Bayesian: inverse of information plus precisions
    gradient_norm: float  # in standard errors
    steps: int
    no_skill: bool

    @property
    def discrimination(self) -> float:
        return float(self.phi[0])


def penalised(problem: Problem, phi: FloatArray, rho: FloatArray, log_likelihood: float) -> float:
    return log_likelihood - 0.5 * float(precisions(rho, problem.groups) @ phi**2)


def solve(problem: Problem, start: State, progress: Progress | None = None) -> Solution:
    """Newton steps to the maximum of the penalised marginal likelihood, smoothing chosen on the way."""
    riders = problem.likelihood.counts.riders
    if riders >= max(_FEW_RIDERS, _THINNING * start.phi.size):
        thin = slice(None, None, _THINNING)
        part = solve(problem.of_riders(thin), replace(start, centre=start.centre[thin]))
        if not part.no_skill:
            start = replace(start, phi=part.phi, rho=part.rho)
    state, information, norm_before = start, None, np.inf
    choices, held, same, first = 0, False, False, 1.0
    for step in range(1, _MOST_STEPS + 1):
        nodes, at, curve = _pass(problem, state, 6 if step == 1 else 2, information=information is None)
        if information is None:
            information = _positive(_information(problem, state, at))
            norm_before = np.inf
        if not held:
            rho = choose(information, information @ state.phi + at.gradient, problem.groups, state.rho)
            choices += 1
            same = float(np.max(np.abs(rho - state.rho), initial=0.0)) <= _SETTLED
            state = replace(state, rho=rho)
        factor, gradient = _factor(problem, information, state, at)
        move = cholesky.solve(factor, gradient)
        norm = float(np.sqrt(max(float(gradient @ move), 0.0)))
        held = held or (same and norm < 1.0) or choices >= _MOST_CHOICES
        if progress is not None:
            # The gradient falls by orders of magnitude, so its logarithm tells how far the way still is.
            first = max(first, norm)
            progress("fit", float(np.clip(np.log(first / max(norm, TOLERANCE)) / np.log(first / TOLERANCE), 0, 1)))
        if held and norm < TOLERANCE:
            return _solution(problem, state, nodes, curve, norm, step)
        # While the smoothing still moves, so does the maximum: a gradient that stays is no sign of an old information.
        if norm > _CONTRACTION * norm_before and (held or norm > 0.5):
            information = None
            state = replace(state, centre=nodes.centre)
            continue
        norm_before = norm
        state = _advance(problem, replace(state, centre=nodes.centre), move, at, nodes, check=norm > _LONG_STEP)
        if state.phi[0] < NO_SKILL:
            return _no_skill(problem, state, step)
        if norm > _LONG_STEP:
            information = None
    raise EstimationError(
        f"The fit did not reach its gradient tolerance of {TOLERANCE:.0e} standard errors in {_MOST_STEPS} steps (it "
        f"stood at {norm:.1e}); check the metric for outliers or fit a subset of the cohort."
    )


def _pass(problem: Problem, state: State, locate_steps: int, information: bool) -> tuple[Nodes, Pass, Curve]:
    a, coefficients, population = split(problem, state.phi)
    curve = problem.curve.at(a, coefficients)
    nodes = problem.likelihood.locate(a, curve.value, population, state.centre, locate_steps)
    return nodes, problem.likelihood.evaluate(a, curve, population, nodes, information), curve


def split(problem: Problem, phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    last = 1 + problem.curve_size
    return float(phi[0]), phi[1:last], phi[last:]


def _information(problem: Problem, state: State, at: Pass) -> FloatArray:
    assert at.information is not None
    a, coefficients, _ = split(problem, state.phi)
    information = at.information.copy()
    size = 1 + problem.curve_size
    information[:size, :size] += problem.curve.curvature(a, coefficients, at.item_residual)
    return information


def _positive(information: FloatArray) -> FloatArray:
    """The information, with negative curvature turned round where there is any.

    Far from the maximum the observed information can be indefinite; steps then go uphill along every direction.
    """
    scale = np.sqrt(np.maximum(np.diag(information), 1e-12))
    unit = information / np.outer(scale, scale)
    tiny = 1e-12  # directions that only a precision identifies are zero up to rounding
    try:
        cholesky.factor(unit + tiny * np.eye(len(unit)))
    except LinAlgError:
        values, vectors = np.linalg.eigh(unit)
        unit = (vectors * np.maximum(np.abs(values), tiny)) @ vectors.T
    return np.asarray((unit + tiny * np.eye(len(unit))) * np.outer(scale, scale))


def _factor(problem: Problem, information: FloatArray, state: State, at: Pass) -> tuple[FloatArray, FloatArray]:
    """Cholesky factor of the penalised information, and the penalised gradient."""
    weight = precisions(state.rho, problem.groups)
    try:
        factor = cholesky.factor(information + np.diag(weight))
    except LinAlgError:
        factor = cholesky.factor(_positive(information) + np.diag(weight))
    return factor, at.gradient - weight * state.phi


def _advance(problem: Problem, state: State, move: FloatArray, at: Pass, nodes: Nodes, check: bool) -> State:
    """The Newton step; a long one is shortened until the penalised likelihood on the same nodes does not fall."""
    length = 1.0
    if state.phi[0] + move[0] < 0.2 * state.phi[0]:
        length = 0.8 * state.phi[0] / -float(move[0])
    if not check:
        return replace(state, phi=state.phi + length * move)
    before = penalised(problem, state.phi, state.rho, at.log_likelihood)
    for _ in range(12):
        phi = state.phi + length * move
        a, coefficients, population = split(problem, phi)
        trial = problem.likelihood.evaluate(a, problem.curve.at(a, coefficients), population, nodes)
        if penalised(problem, phi, state.rho, trial.log_likelihood) >= before:
            break
        length /= 2
    return replace(state, phi=phi)


def _solution(problem: Problem, state: State, nodes: Nodes, curve: Curve, norm: float, steps: int) -> Solution:
    """One more pass at the maximum, for the information there."""
    a, _, population = split(problem, state.phi)
    at = problem.likelihood.evaluate(a, curve, population, nodes, information=True)
    factor, _ = _factor(problem, _information(problem, state, at), state, at)
    covariance = cholesky.inverse(factor)
    return Solution(state.phi, state.rho, nodes, at, curve, covariance, norm, steps, no_skill=False)


def _no_skill(problem: Problem, state: State, steps: int) -> Solution:
    nodes, at, curve = _pass(problem, state, locate_steps=3, information=False)
    size = state.phi.size
    return Solution(state.phi, state.rho, nodes, at, curve, np.zeros((size, size)), 0.0, steps, no_skill=True)
