"""Maximising the penalised marginal likelihood.

`solve` starts a large cohort from the fit of every eighth rider; then it takes Newton steps on the marginal
likelihood, with freshly chosen smoothing until that stands. The information costs several gradients: first steps
use that of the riders who gave the start, later ones learn from how the gradient changed, and it is computed anew
only near the maximum and where steps stop to shrink the gradient. What counts as converged is the gradient in units
of standard errors (`TOLERANCE`), never a small change; and a = 0, where the gradient in a always vanishes, is a
verdict of its own (`no_skill`). Beside regressors of riders it is none: they can tell all of skill, and what is left is
held at `NO_SKILL`; whether skill explains anything is for the likelihood-ratio test to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from ..model import cholesky
from ..model.curves import Curve
from ..model.smoothing import choose, precisions
from . import newton, threads
from .grids import Nodes
from .quadrature import MarginalLikelihood, Pass

TOLERANCE = 1e-7  # of the gradient, in standard errors: sqrt(g' A^-1 g)
NO_SKILL = 0.02  # a discrimination below this is none: skill would move no probability by more than 0.5 %
_TOLD = 0.1  # log-likelihood that is left where outcomes are told wholly: from there on parameters only grow
_MOST_STEPS = 80
_MOST_CHOICES = 25  # of the smoothing, before it is held as it is
_LEAP = 3.0  # most that a log precision changes in one step
_SETTLED = 0.02  # change of a log precision below which the smoothing is held
_CONTRACTION = 0.3  # a step must shrink the gradient by this, or the information is computed anew
_LONG_STEP = 3.0  # standard errors; longer steps are checked against the likelihood
_CLOSE = 0.1  # standard errors from the maximum at which the information of some riders gives way to that of all
_NEAR = 0.01  # standard errors, times the root of riders, within which the information changes by less than a percent
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
    """Parameters phi = (a, curve, population), log precisions, and the grids of the last pass, if there was one."""

    phi: FloatArray
    rho: FloatArray
    nodes: Nodes | None = None
    information: FloatArray | None = None  # of a like problem, good enough for the first steps


@dataclass(frozen=True)
class Solution:
    """The maximum, with what is needed to say how certain it is."""

    phi: FloatArray
    rho: FloatArray
    at: Pass
    curve: Curve
    covariance: FloatArray  # of phi, Bayesian: inverse of information plus precisions
    information: FloatArray  # that the last step was taken with
    gradient_norm: float  # in standard errors
    steps: int
    no_skill: bool

    @property
    def discrimination(self) -> float:
        return float(self.phi[0])


def penalised(problem: Problem, phi: FloatArray, rho: FloatArray, log_likelihood: float) -> float:
    return log_likelihood - 0.5 * float(precisions(rho, problem.groups) @ phi**2)


def solve(
    problem: Problem,
    start: State,
    progress: Progress | None = None,
    tolerance: float = TOLERANCE,
    certainty: bool = True,
) -> Solution:
    """Newton steps to the maximum of the penalised marginal likelihood, smoothing chosen on the way.

    A fit that only predicts needs no `certainty`: it has no covariance then, or that of an earlier step.
    """
    with threads.for_parameters(start.phi.size):
        return _solve(problem, start, progress, tolerance, certainty)


def _solve(problem: Problem, start: State, progress: Progress | None, tolerance: float, certainty: bool) -> Solution:
    riders = problem.likelihood.counts.riders
    information, own, moved = start.information, None, 0.0
    if information is None and riders >= max(_FEW_RIDERS, _THINNING * start.phi.size):
        thin = slice(None, None, _THINNING)
        part = solve(problem.of_riders(thin), replace(start, nodes=None), tolerance=_CLOSE, certainty=False)
        if not part.no_skill:
            start = replace(start, phi=part.phi, rho=part.rho)
            # Good enough for the first steps, which only have to come near.
            information = riders / part.at.posterior.mean.size * part.information
    state, before, norm_before = start, None, np.inf
    choices, held, same, first = 0, False, False, 1.0
    for step in range(1, _MOST_STEPS + 1):
        at, curve = _pass(problem, state, information=information is None)
        if information is None:
            own, moved = at, 0.0
            information = _information(problem, state, at)
            norm_before = np.inf
        elif held and before is not None:
            information = _learnt(problem, information, state, at, *before)
        if not held:
            positive = newton.positive(information)
            rho = choose(positive, positive @ state.phi + at.gradient, problem.groups, state.rho)
            # Far from the maximum the choice is a guess, and a precision that leaps makes the penalty all that counts.
            rho = np.clip(rho, state.rho - _LEAP, state.rho + _LEAP)
            choices += 1
            same = float(np.max(np.abs(rho - state.rho), initial=0.0)) <= _SETTLED
            state = replace(state, rho=rho)
        move, norm = _direction(problem, information, state, at)
        held = held or (same and norm < 1.0) or choices >= _MOST_CHOICES
        if progress is not None:
            # The gradient falls by orders of magnitude, so its logarithm tells how far the way still is.
            first = max(first, norm)
            progress("fit", float(np.clip(np.log(first / max(norm, TOLERANCE)) / np.log(first / TOLERANCE), 0, 1)))
        if held and norm < tolerance and at.exact:
            if certainty and (own is None or moved > _NEAR * np.sqrt(riders)):
                own = _pass(problem, replace(state, nodes=at.nodes), information=True)[0]
            return _solution(problem, state, at, own, information, curve, norm, step)
        # While the smoothing still moves, so does the maximum: a gradient that stays is no sign of an old information.
        if norm > _CONTRACTION * norm_before and (held or norm > 0.5):
            information = None
            state = replace(state, nodes=at.nodes)
            continue
        norm_before = norm
        moved += norm
        before = state.phi, at.gradient
        state = _advance(problem, replace(state, nodes=at.nodes), move, at, check=norm > _LONG_STEP)
        information = _carried(problem, information, before[0], state.phi)
        if state.phi[0] < NO_SKILL:
            return _no_skill(problem, state, step)
        if norm > _LONG_STEP or (certainty and own is None and norm < _CLOSE):
            information = None
    raise EstimationError(
        f"The fit did not reach its gradient tolerance of {TOLERANCE:.0e} standard errors in {_MOST_STEPS} steps (it "
        f"stood at {norm:.1e}); check the metric for outliers or fit a subset of the cohort."
    )


# Steps are taken in a, the curve, and the effects b = a gamma that riders' regressors have on the log odds. In (a,
# gamma) itself the likelihood has a bent ridge along constant effects when a is small, and Newton's steps would creep.


def _moved(problem: Problem, phi: FloatArray, move: FloatArray) -> FloatArray:
    """The parameters after a move of (a, curve, effects)."""
    last = 1 + problem.curve_size
    there = phi + move
    if there.size > last:
        there[0] = max(there[0], NO_SKILL)
    there[last:] = (phi[0] * phi[last:] + move[last:]) / there[0]
    return there


def _direction(problem: Problem, information: FloatArray, state: State, at: Pass) -> tuple[FloatArray, float]:
    """Newton's move of (a, curve, effects), and the length of the gradient in standard errors."""
    weight, last = precisions(state.rho, problem.groups), 1 + problem.curve_size
    gradient = at.gradient - weight * state.phi
    a, gamma, slope = state.phi[0], state.phi[last:], gradient[last:].copy()
    gradient[0] -= gamma @ slope / a
    gradient[last:] /= a
    curvature = _in_effects(information + np.diag(weight), a, gamma)
    # The change of coordinates is not linear: its own curvature counts.
    curvature[0, 0] -= 2 * gamma @ slope / a**2
    curvature[0, last:] += slope / a**2
    curvature[last:, 0] += slope / a**2
    move = _newton(curvature, gradient)
    if gamma.size and a <= NO_SKILL and move[0] < 0:
        # Regressors tell all that can be told of riders: the spread beside them is held, and the rest maximised.
        gradient[0] = 0.0
        curvature[0, :] = curvature[:, 0] = 0.0
        curvature[0, 0] = 1.0
        move = _newton(curvature, gradient)
    return move, float(np.sqrt(max(float(gradient @ move), 0.0)))


def _newton(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """Newton's move. Of small discriminations the likelihood is convex: turned round in effects, steps double them."""
    try:
        factor = cholesky.factor(curvature)
    except LinAlgError:
        factor = cholesky.factor(newton.positive(curvature))
    return cholesky.solve(factor, gradient)


def _in_effects(matrix: FloatArray, a: float, gamma: FloatArray) -> FloatArray:
    """Second derivatives by (a, curve, gamma) as those by (a, curve, effects), but for the curvature of the change."""
    result, last = matrix.copy(), len(matrix) - gamma.size
    result[0] -= gamma @ result[last:] / a
    result[:, 0] -= result[:, last:] @ gamma / a
    result[last:] /= a
    result[:, last:] /= a
    return result


def _carried(problem: Problem, information: FloatArray, here: FloatArray, there: FloatArray) -> FloatArray:
    """The information at other parameters: in (a, curve, effects) it is nearly the same."""
    last = 1 + problem.curve_size
    if last == here.size:
        return information
    result = information.copy()
    result[0] += (there[last:] - here[last:]) @ result[last:] / here[0]
    result[:, 0] += result[:, last:] @ (there[last:] - here[last:]) / here[0]
    scale = there[0] / here[0]
    result[last:] *= scale
    result[:, last:] *= scale
    return result


def _learnt(
    problem: Problem, information: FloatArray, state: State, at: Pass, phi: FloatArray, gradient: FloatArray
) -> FloatArray:
    """The information corrected by how the gradient changed over the last step (BFGS)."""
    weight = precisions(state.rho, problem.groups)
    step = state.phi - phi
    change = gradient - at.gradient + weight * step
    explained = information @ step + weight * step
    along, curvature = float(step @ change), float(step @ explained)
    if not (along > 0.1 * curvature > 0):
        return information
    return np.asarray(information + np.outer(change, change) / along - np.outer(explained, explained) / curvature)


def _pass(problem: Problem, state: State, information: bool) -> tuple[Pass, Curve]:
    a, coefficients, population = split(problem, state.phi)
    curve = problem.curve.at(a, coefficients)
    nodes = problem.likelihood.place(a, curve.value, population) if state.nodes is None else state.nodes
    at = problem.likelihood.evaluate(a, curve, population, nodes, information)
    if at.log_likelihood > -_TOLD:
        raise EstimationError(
            "Metric, riders and where they go tell every outcome, so no fit is the best; check the outcomes or use "
            "--exposure independent."
        )
    return at, curve


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


def _factor(problem: Problem, information: FloatArray, state: State, at: Pass) -> tuple[FloatArray, FloatArray]:
    """Cholesky factor of the penalised information, and the penalised gradient."""
    weight = precisions(state.rho, problem.groups)
    try:
        factor = cholesky.factor(information + np.diag(weight))
    except LinAlgError:
        factor = cholesky.factor(newton.positive(information) + np.diag(weight))
    return factor, at.gradient - weight * state.phi


def _advance(problem: Problem, state: State, move: FloatArray, at: Pass, check: bool) -> State:
    """The Newton step; a long one is shortened until the penalised likelihood does not fall."""
    length = newton.share_that_keeps_skill(float(state.phi[0]), float(move[0]))
    if not check:
        return replace(state, phi=_moved(problem, state.phi, length * move))
    before = penalised(problem, state.phi, state.rho, at.log_likelihood)
    for _ in range(12):
        phi = _moved(problem, state.phi, length * move)
        a, coefficients, population = split(problem, phi)
        trial = problem.likelihood.evaluate(a, problem.curve.at(a, coefficients), population, at.nodes)
        if penalised(problem, phi, state.rho, trial.log_likelihood) >= before:
            break
        length /= 2
    return replace(state, phi=phi)


def _solution(
    problem: Problem,
    state: State,
    at: Pass,
    own: Pass | None,
    information: FloatArray,
    curve: Curve,
    norm: float,
    steps: int,
) -> Solution:
    """With the information of a pass so near to the maximum that it is the same there, if there was one."""
    covariance = np.zeros((state.phi.size, state.phi.size))
    if own is not None:
        at = replace(at, information=own.information, slope=own.slope)
        covariance = cholesky.inverse(_factor(problem, _information(problem, state, at), state, at)[0])
    return Solution(state.phi, state.rho, at, curve, covariance, information, norm, steps, no_skill=False)


def _no_skill(problem: Problem, state: State, steps: int) -> Solution:
    at, curve = _pass(problem, state, information=False)
    size = state.phi.size
    nothing = np.zeros((size, size))
    return Solution(state.phi, state.rho, at, curve, nothing, nothing, 0.0, steps, no_skill=True)
