"""Maximising the penalised marginal likelihood.

`solve` runs in this order: a start from the single curve; a fit of some of the riders when there are many; Newton
steps on the marginal likelihood, each with freshly placed nodes and freshly chosen smoothing; then, with the
smoothing held, cheap steps until the gradient vanishes. What counts as converged is the gradient in units of
standard errors (`TOLERANCE`), never a small change; and a = 0, where the gradient in a always vanishes, is a
verdict of its own (`no_skill`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from .quadrature import Curve, MarginalLikelihood, Nodes, Pass
from .smoothing import choose, precisions

TOLERANCE = 1e-7  # of the gradient, in standard errors: sqrt(g' A^-1 g)
NO_SKILL = 0.02  # a discrimination below this is none: skill would move no probability by more than 0.5 %
_CLOSE = 0.05  # gradient, in standard errors, below which the information is not computed anew
_MOST_STEPS = 60
_MOST_SMOOTHING_STEPS = 25

Progress = Callable[[str, float], None]


class CurveModel(Protocol):
    """How coefficients become f at each item."""

    def at(self, a: float, coefficients: FloatArray) -> Curve: ...

    def curvature(self, coefficients: FloatArray, residual: FloatArray) -> FloatArray:
        """What second derivatives of f add to the information of (a, coefficients); zero for a linear model."""
        ...


@dataclass(frozen=True)
class Problem:
    """A likelihood, a model of its curve, and which coefficients share a precision."""

    likelihood: MarginalLikelihood
    curve: CurveModel
    groups: IntArray  # over (a, curve coefficients, population coefficients)
    curve_size: int


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
    state, value = start, -np.inf
    settled = 0
    for step in range(1, _MOST_STEPS + 1):
        smoothing_open = settled < 2 and step <= _MOST_SMOOTHING_STEPS
        nodes, at, _ = _pass(problem, state, locate_steps=6 if step == 1 else 3, information=True)
        new_value = penalised(problem, state.phi, state.rho, at.log_likelihood)
        information = _information(problem, state, at)
        rho = state.rho
        if smoothing_open:
            rho = choose(information, information @ state.phi + at.gradient, problem.groups, state.rho)
            settled = settled + 1 if np.array_equal(rho, state.rho) else 0
        factor, gradient = _factor(problem, information, state.phi, rho, at)
        move = cho_solve(factor, gradient)
        norm = float(np.sqrt(max(gradient @ move, 0.0)))
        if progress is not None:
            progress("gradient", norm)
        closed = settled >= 2 or step > _MOST_SMOOTHING_STEPS
        if closed and norm < _CLOSE:
            return _polish(problem, replace(state, rho=rho), factor, step)
        state = _advance(problem, replace(state, rho=rho, centre=nodes.centre), move, at, nodes)
        if state.phi[0] < NO_SKILL:
            return _no_skill(problem, state, step)
        value = new_value
    raise EstimationError(
        f"The fit did not reach its gradient tolerance in {_MOST_STEPS} steps (it stood at {norm:.1e} standard errors, "
        f"log-likelihood {value:.6g}); check the metric for outliers or fit a subset of the cohort."
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
    _, coefficients, _ = split(problem, state.phi)
    information = at.information.copy()
    size = 1 + problem.curve_size
    information[:size, :size] += problem.curve.curvature(coefficients, at.item_residual)
    return information


def _factor(
    problem: Problem, information: FloatArray, phi: FloatArray, rho: FloatArray, at: Pass
) -> tuple[tuple[FloatArray, bool], FloatArray]:
    """Cholesky factor of the penalised information, and the penalised gradient."""
    weight = precisions(rho, problem.groups)
    gradient = at.gradient - weight * phi
    ridge = 0.0
    scale = np.abs(np.diag(information)) + weight
    while True:
        try:
            return cho_factor(information + np.diag(weight + ridge * scale), lower=True), gradient
        except LinAlgError:
            # Far from the maximum the observed information can be indefinite; a ridge gives an ascent direction.
            ridge = max(10 * ridge, 1e-3)


def _advance(problem: Problem, state: State, move: FloatArray, at: Pass, nodes: Nodes) -> State:
    """The Newton step, shortened until the penalised likelihood on the same nodes does not fall."""
    before = penalised(problem, state.phi, state.rho, at.log_likelihood)
    length = 1.0
    if state.phi[0] + move[0] < 0.2 * state.phi[0]:
        length = 0.8 * state.phi[0] / -move[0]
    for _ in range(12):
        phi = state.phi + length * move
        if float(np.max(np.abs(length * move))) < 1e-3:
            return replace(state, phi=phi)  # too short to check against rounding
        a, coefficients, population = split(problem, phi)
        trial = problem.likelihood.evaluate(a, problem.curve.at(a, coefficients), population, nodes)
        if penalised(problem, phi, state.rho, trial.log_likelihood) >= before:
            return replace(state, phi=phi)
        length /= 2
    return replace(state, phi=state.phi + length * move)


def _polish(problem: Problem, state: State, factor: tuple[FloatArray, bool], steps: int) -> Solution:
    """With smoothing and information held, steps on the gradient alone until it vanishes; then one full pass."""
    norm = np.inf
    for extra in range(_MOST_STEPS):
        nodes, at, curve = _pass(problem, state, locate_steps=2, information=False)
        gradient = at.gradient - precisions(state.rho, problem.groups) * state.phi
        move = cho_solve(factor, gradient)
        norm = float(np.sqrt(max(gradient @ move, 0.0)))
        if norm < TOLERANCE:
            break
        state = replace(state, phi=state.phi + move, centre=nodes.centre)
    else:
        raise EstimationError(
            f"The fit stopped at a gradient of {norm:.1e} standard errors, above its tolerance of {TOLERANCE:.0e}; "
            "check the metric for outliers or fit a subset of the cohort."
        )
    at = problem.likelihood.evaluate(*_arguments(problem, state, curve, nodes), information=True)
    factor, _ = _factor(problem, _information(problem, state, at), state.phi, state.rho, at)
    covariance = cho_solve(factor, np.eye(state.phi.size))
    return Solution(state.phi, state.rho, nodes, at, curve, covariance, norm, steps + extra, no_skill=False)


def _arguments(problem: Problem, state: State, curve: Curve, nodes: Nodes) -> tuple[float, Curve, FloatArray, Nodes]:
    a, _, population = split(problem, state.phi)
    return a, curve, population, nodes


def _no_skill(problem: Problem, state: State, steps: int) -> Solution:
    nodes, at, curve = _pass(problem, state, locate_steps=3, information=True)
    size = state.phi.size
    return Solution(state.phi, state.rho, nodes, at, curve, np.zeros((size, size)), 0.0, steps, no_skill=True)
