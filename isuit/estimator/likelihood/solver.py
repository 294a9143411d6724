"""Maximising the penalised marginal likelihood.

`solve` starts a large cohort from the fit of every eighth rider; then it takes Newton steps on the marginal
likelihood, with freshly chosen smoothing until that stands. The information costs several gradients: first steps
use that of the riders who gave the start, later ones learn from how the gradient changed, and it is computed anew
only near the maximum and where steps stop to shrink the gradient. What counts as converged is the gradient in units
of standard errors (`TOLERANCE`), never a small change; and a = 0, where the gradient in a always vanishes, is a
verdict of its own (`no_skill`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from ..model.arrow import Arrow, Beginning, Factor, Shape
from ..model.curves import Curve, ItemCurve
from ..model.density import DENSITY_PRECISIONS, Density
from ..model.slopes import relative
from ..model.smoothing import STEP, Correction, choose, precisions, tiny
from . import newton
from .far import Near
from .level_prior import LevelPrior
from .quadrature import MarginalLikelihood, Parameters, Pass
from .small_places import profiles_of

TOLERANCE = 1e-7  # of the gradient, in standard errors: sqrt(g' A^-1 g)
PREDICTING = 1e-5  # the same, of a fit that only predicts: no forecast moves in its first six digits
NO_SKILL = 0.02  # a discrimination below this is none: skill would move no probability by more than 0.5 %
_TOLD = 0.1  # log-likelihood that is left where outcomes are told wholly: from there on parameters only grow
_MOST_SKILL = 40.0  # discrimination at which a tenth of a skill sd decides between failure and success
_MOST_STEPS = 80
_MOST_CHOICES = 25  # of the smoothing, before it is held as it is
_LEAP, _FALL = 3.0, 12.0  # most that a log precision rises and falls in one step
_SETTLED = 0.02  # change of a log precision below which the smoothing is held
_SETTLED_DENSITY = 0.1  # the same, of a density of many riders, where each further choice costs a pass over them
_CONTRACTION = 0.3  # a step must shrink the gradient by this, or the information is computed anew
_LONG_STEP = 3.0  # standard errors; longer steps are checked against the likelihood
_FAR = 20.0  # standard errors; after such a step the information is that of another place
_CLOSE = 0.1  # standard errors from the maximum at which the information of some riders gives way to that of all
_NEAR = 0.01  # standard errors, times the root of riders, within which the information changes by less than a percent
_SAME = 3e-6  # the same, within which errors of places are those of the maximum to 1e-5 sd
_SAME_DENSITY = 4e-3  # the same, of a density without places: errors are those of the maximum to a quarter percent
_MOST_HALVINGS = 12  # of a step
_ROUNDING = 1e-9  # relative, of a sum over outcomes
_ROUGHLY = 1e-6  # relative: steps need no more, since the next pass corrects them
_FEW_RIDERS = 400  # from here on, a fit of every eighth rider gives the start
_THINNING = 8

Progress = Callable[[str, float], None]  # called with the name of a stage and the share of it that is done


class NoMaximum(EstimationError):
    """The likelihood rises for ever; `reason` says why, and names no rider."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"There is no best fit: {reason}; check the outcomes.")
        self.reason = reason


@dataclass(frozen=True)
class Problem:
    """A likelihood, a model of its curve, and which parameters share a precision."""

    likelihood: MarginalLikelihood
    curve: ItemCurve
    groups: IntArray  # over the parameters, in the order of `shape`
    shape: Shape
    nearby: LevelPrior | None = None  # of places' levels, where sites near one another are alike: those are `FREE` then

    def parameters(self, phi: FloatArray) -> Parameters:
        """The flat vector phi by name."""
        border, own = self.shape.split(phi)
        n, places, last = 1 + self.curve.plain.shared_size, self.curve.plain.places, self._first_of_density
        density = Density(border[last:])
        cut = n - self.curve.slopes
        curves, regression, slopes = border[1:cut], border[n:last], border[cut:n]
        if not self.shape.places:
            return Parameters(float(phi[0]), curves, np.zeros((0, 0)), regression, np.zeros(0), density, slopes)
        return Parameters(float(phi[0]), curves, own[:places, :-1], regression, own[:, -1], density, slopes)

    @property
    def _first_of_density(self) -> int:
        """Where the density's coefficients begin, the last of the border."""
        return self.shape.border - self.likelihood.density

    @property
    def estimates_density(self) -> bool:
        """Whether the last precisions are those of a density of skill."""
        return bool(self.likelihood.density)

    @property
    def regressors(self) -> bool:
        """Whether the population has any."""
        return bool(self.shape.places or self._first_of_density > 1 + self.curve.plain.shared_size)

    def regression(self, phi: FloatArray) -> FloatArray:
        """Of phi, the coefficients of the population; zero elsewhere."""
        border, own = self.shape.split(phi)
        result = np.zeros_like(phi)
        above, below = self.shape.split(result)
        shared = slice(1 + self.curve.plain.shared_size, self._first_of_density)
        above[shared] = border[shared]
        below[:, -1:] = own[:, -1:]
        return result

    def limited(self, rho: FloatArray) -> FloatArray:
        """Log precisions, with those of the density within bounds: neither exactly normal nor finer than tables are."""
        if not self.estimates_density:
            return rho
        first = rho.size - len(DENSITY_PRECISIONS[0])
        return np.concatenate([rho[:first], np.clip(rho[first:], *DENSITY_PRECISIONS)])

    def roused(self, phi: FloatArray) -> FloatArray:
        """These parameters as a start: none of them where the gradient vanishes whatever the outcomes say."""
        return phi

    def prior_cost(self, phi: FloatArray) -> float:
        """What the prior of levels takes from the log-likelihood; nothing where precisions say it."""
        if self.nearby is None:
            return 0.0
        level = self.shape.split(phi)[1][:, 0]
        return 0.5 * float(level @ self.nearby.times(level))

    def of_riders(self, chosen: slice) -> Problem:
        part = self.likelihood.of_riders(chosen)
        return replace(
            self, likelihood=part, nearby=self.nearby and LevelPrior.of(self.nearby.precision, part.population)
        )


@dataclass(frozen=True)
class State:
    """Parameters phi, log precisions, and what is known from a pass nearby or from a like problem."""

    phi: FloatArray
    rho: FloatArray
    windows: Near | None = None
    information: Arrow | None = None  # of a like problem, good enough for the first steps
    near: bool = False  # so near to the maximum that a fit of some riders would be no better start
    held: bool = False  # whether the smoothing stays as it is


@dataclass(frozen=True)
class Solution:
    """The maximum, with what is needed to say how certain it is."""

    phi: FloatArray
    rho: FloatArray
    at: Pass
    curve: Curve
    factor: Factor | None  # of information plus precisions: its inverse is the covariance of phi (Bayesian)
    information: Arrow | None  # that the last step was taken with
    gradient_norm: float  # in standard errors
    steps: int
    no_skill: bool

    @property
    def discrimination(self) -> float:
        return float(self.phi[0])

    @property
    def covariance(self) -> Factor:
        """The factor, of a fit that was asked for its certainty."""
        assert self.factor is not None
        return self.factor


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

    A fit that only predicts needs no `certainty`: it has no covariance then.
    """
    climb = _Climb(problem, _thinned(problem, start), certainty)
    for step in range(1, _MOST_STEPS + 1):
        climb.look()
        climb.choose_smoothing()
        climb.find_direction()
        climb.report(progress, tolerance)
        if climb.has_arrived(tolerance):
            return climb.solution(step)
        if climb.information_is_old():
            continue
        climb.advance()
        if climb.has_no_skill():
            return climb.without_skill(step)
    raise EstimationError(
        f"The fit did not reach its gradient tolerance of {tolerance:.0e} standard errors in {_MOST_STEPS} steps (it "
        f"stood at {climb.norm:.1e}); check the metric for outliers or fit a subset of the cohort."
    )


def _thinned(problem: Problem, start: State) -> State:
    """The start that a fit of every eighth rider gives, where there are riders enough."""
    if not is_thinned(problem, start):
        return start
    riders = problem.likelihood.counts.riders
    thin = problem.of_riders(slice(None, None, _THINNING))
    part = solve(thin, replace(start, windows=None), tolerance=_CLOSE, certainty=False)
    if part.no_skill or part.information is None:
        return start
    # Good enough for the first steps, which only have to come near.
    share = riders / thin.likelihood.counts.riders
    return replace(start, phi=problem.roused(part.phi), rho=part.rho, information=part.information.scaled(share))


def is_thinned(problem: Problem, start: State) -> bool:
    """Whether a fit of every eighth rider gives the start.

    Places' own parameters hang on their own riders: an eighth of them is no start, and costs as much as a step.
    """
    enough = problem.likelihood.counts.riders >= max(_FEW_RIDERS, _THINNING * start.phi.size)
    return enough and not problem.shape.places and not start.near and start.information is None


def of_part(information: Arrow, problem: Problem, share: float, by_place: FloatArray) -> Arrow:
    """The information of a part of the outcomes, as far as that of all tells it.

    Each place's rows and columns are scaled by the root of the share of its outcomes that the part has: the matrix
    stays positive definite, and a place without outcomes is left to its precisions.
    """
    root, of_border = np.sqrt(by_place), np.sqrt(share)
    scaled = replace(
        information,
        border=share * information.border,
        cross=(of_border * root)[:, None, None] * information.cross,
        own=by_place[:, None, None] * information.own,
        pairs=(root[information.first] * root[information.second])[:, None, None] * information.pairs,
    )
    return problem.likelihood.without_fixed(scaled, problem.curve.plain.places)


class _Climb:
    """A climb to the maximum: where it stands, what it knows of the curvature, and whether the smoothing is held."""

    def __init__(self, problem: Problem, start: State, certainty: bool) -> None:
        self._problem, self._certainty = problem, certainty
        self.phi, self.rho, self._windows = start.phi, start.rho, start.windows
        self._information = start.information
        self._complete: Arrow | None = None  # of the same pass, if skills were known
        self._stand_in: Arrow | None = None  # what steps are taken with instead of an information that is indefinite
        self._looked = False  # whether an information was of this problem, and not of a like one
        self._factor: Factor | None = None
        self._near: Beginning | None = None  # of the last factor
        self._learnt: list[tuple[FloatArray, FloatArray]] = []  # steps, and how the gradient changed over them
        self._before: tuple[FloatArray, FloatArray] | None = None
        self._left: tuple[FloatArray, float] | None = None  # where the last step began, and how high that was
        self._seen: tuple[Pass, Curve] | None = None  # where it ends, if that was looked at
        self._moved, self._norm_before, self._highest = 0.0, np.inf, 1.0
        self._choices, self._held, self._same = 0, start.held, False
        self._change = np.zeros_like(start.rho)  # of the log precisions, the last time
        self._settled = np.full(start.rho.size, _SETTLED)
        if problem.estimates_density and problem.likelihood.counts.riders >= _FEW_RIDERS:
            self._settled[-len(DENSITY_PRECISIONS[0]) :] = _SETTLED_DENSITY
        self.norm = np.inf

    def look(self) -> None:
        """A pass over the counts, with the information where none is at hand; half the way back where it fell."""
        anew = self._information is None
        if anew:
            self._forget()
        for _ in range(_MOST_HALVINGS):
            seen = None if anew else self._seen
            self._at, self._curve = seen or evaluate(self._problem, self.phi, self._windows, anew)
            self._seen = None
            if not self._fell():
                break
            assert self._left is not None
            self._length /= 2
            self._forget()
            self.phi, anew = self._after(self._left[0], self._length), True
        self._left = None
        self._refuse_what_is_told_wholly()
        self._windows = self._at.posterior.near
        if anew:
            self._inform()
        elif self._held and self._before is not None:
            self._learn(*self._before)

    def _inform(self) -> None:
        """Take the information of the pass at hand."""
        self._looked, self._moved = True, 0.0
        self._information, self._complete = with_curvature(self._problem, self.phi, self._at), self._at.complete
        self._at = replace(self._at, information=None, complete=None)
        self._learnt, self._before, self._norm_before = [], None, np.inf

    def _refuse_what_is_told_wholly(self) -> None:
        """Where every outcome can be told, parameters only grow: there is no maximum."""
        if self._at.log_likelihood > -_TOLD:
            raise NoMaximum("metric, sites and where riders go tell every outcome, so nothing is left for skill")
        if self.phi[0] > _MOST_SKILL and self._at.gradient[0] > 0:
            raise NoMaximum(
                "skill decides every outcome and nothing is left to chance, so the discrimination has no finite value"
            )

    def _fell(self) -> bool:
        """Whether the last step lowered the penalised likelihood by more than rounding does."""
        if self._left is None:
            return False
        before, height = self._left
        there = penalised(self._problem, self.phi, self.rho, self._at.log_likelihood)
        return not there >= height - _ROUNDING * (1.0 + abs(height)) and not np.array_equal(before, self.phi)

    def choose_smoothing(self) -> None:
        """New precisions by marginal likelihood, until they stand."""
        if self._held:
            return
        assert self._information is not None
        try:
            rho = self._chosen(self._information)
        except LinAlgError:
            rho = self._chosen_here()
        # Far from the maximum the choice is a guess, and a precision that leaps up makes the penalty all that counts.
        change = np.clip(self._problem.limited(rho) - self.rho, -_FALL, _LEAP)
        self._choices += 1
        self._same = bool(np.all(np.abs(change) <= self._settled))
        # One that turns back has gone too far: half of the way, so that it does not swing.
        before = np.abs(self._change)
        change = np.where(change * self._change < 0, np.clip(change, -before, before) / 2, change)
        self._change = change
        self.rho = self._problem.limited(np.round((self.rho + change) / STEP) * STEP)

    def _chosen_here(self) -> FloatArray:
        """From the information of this very place, where that of another is of no use."""
        if self._is_far_from_information(0.0):
            self._forget()
            self._at = evaluate(self._problem, self.phi, self._windows, True)[0]
            self._inform()
            assert self._information is not None
            try:
                return self._chosen(self._information)
            except LinAlgError:
                pass
        return self._chosen(self._fallback())

    def _chosen(self, information: Arrow) -> FloatArray:
        b = information.times(self.phi) + self._at.gradient
        return choose(information, b, self._problem.groups, self.rho, self._beginning, self._correction(information))

    def _correction(self, information: Arrow) -> Correction | None:
        """For the level of small places, which a quadratic says too little of; their first own coefficient it is."""
        problem = self._problem
        if not problem.curve.plain.places:
            return None
        group = int(problem.groups[problem.shape.border])
        if group < 0:
            return None  # the prior of levels is given
        profiles = profiles_of(self._at, information.own, self.phi, problem.shape, float(np.exp(self.rho[group])))
        return None if profiles is None else Correction(group, profiles.excess)

    def find_direction(self) -> None:
        """Newton's move, and the length of the gradient in standard errors."""
        weight = precisions(self.rho, self._problem.groups)
        gradient = self._at.gradient - weight * self.phi
        if self._factor is None or not self._held:
            self._factor = self._factored(weight, gradient)
        self._move = self._solved(gradient)
        if self._problem.regressors and self.phi[0] <= NO_SKILL and self._move[0] < 0:
            # Regressors tell all that can be told of riders: the spread beside them is held, and the rest maximised.
            gradient[0] = 0.0
            self._learnt = []
            self._move = self._factored(weight, gradient, held=True).solve(gradient, _ROUGHLY)
        self._gradient = gradient
        self.norm = float(np.sqrt(max(float(gradient @ self._move), 0.0)))
        if self._held or not (self.norm < 1.0 or self._choices >= _MOST_CHOICES):
            return
        if (
            self._certainty
            and (self._same or self.norm < 0.5)
            and self._is_far_from_information(_NEAR)
            and self._choices < _MOST_CHOICES
        ):
            self._information = None  # what is held is chosen where the maximum is
            return
        if not self._same and self._choices < _MOST_CHOICES:
            return
        self._held, self._norm_before = True, np.inf
        self._factor = self._factored(weight, gradient)

    def _is_far_from_information(self, allowed: float) -> bool:
        """Whether the last information of this problem is of parameters too far away to be that of these."""
        return not self._looked or self._moved > allowed * np.sqrt(self._problem.likelihood.counts.riders)

    def report(self, progress: Progress | None, tolerance: float) -> None:
        """The gradient falls by orders of magnitude, so its logarithm tells how far the way still is."""
        if progress is not None:
            self._highest = max(self._highest, self.norm)
            done = np.log(self._highest / max(self.norm, tolerance)) / np.log(self._highest / tolerance)
            progress("fit", float(np.clip(done, 0, 1)))

    def has_arrived(self, tolerance: float) -> bool:
        return self._held and self.norm < tolerance and self._at.exact

    def information_is_old(self) -> bool:
        """Whether steps stopped to shrink the gradient; the information is then dropped.

        While the smoothing still moves, so does the maximum: a gradient that stays is no sign of an old information.
        One that is told by some riders is wrong by the same everywhere near: asked for again it would be no better,
        and steps go on from it, with what was learnt of it.
        """
        shrinks = self.norm <= _CONTRACTION * self._norm_before
        as_good = self._problem.likelihood.samples_information and not self._is_far_from_information(_NEAR)
        if self._information is None or not (shrinks or as_good or (not self._held and self.norm <= 0.5)):
            self._information, self._before = None, None
            return True
        return False

    def advance(self) -> None:
        """The step; a long one is shortened until the penalised likelihood does not fall."""
        self._norm_before = self.norm
        self._moved += self.norm
        self._before = self.phi, self._gradient
        here = self.phi
        self._left = here, penalised(self._problem, here, self.rho, self._at.log_likelihood)
        length = newton.share_that_keeps_skill(float(here[0]), float(self._move[0]))
        length = min(length, self._problem.parameters(self._move).density.share_that_keeps_shape())
        self.phi = self._after(here, length)
        if self.norm > _LONG_STEP:
            for _ in range(_MOST_HALVINGS):
                self._seen = evaluate(self._problem, self.phi, self._windows, False)
                if penalised(self._problem, self.phi, self.rho, self._seen[0].log_likelihood) >= self._left[1]:
                    break
                length, self._seen = length / 2, None
                self.phi = self._after(here, length)
        self._length = length
        late = self._certainty and not self._looked and self.norm < _CLOSE
        # The population's part of the information goes with the discrimination.
        turned = self._problem.regression(here).any() and abs(self.phi[0] / here[0] - 1) > 0.1
        if self.norm > _FAR or late or turned:
            self._information = None

    def _after(self, here: FloatArray, length: float) -> FloatArray:
        """The parameters after a share of the move.

        Steps are straight in a, the curve, and the effects b = a gamma that riders' regressors have on the log odds. In
        (a, gamma) itself the likelihood has a bent ridge along constant effects when a is small, and steps would creep.
        """
        move = self._move
        gamma, along = self._problem.regression(here), self._problem.regression(move)
        effects = here[0] * gamma + length * (here[0] * along + gamma * move[0])
        there = here - gamma + length * (move - along)
        if self._problem.regressors:
            there[0] = max(there[0], NO_SKILL)
        return np.asarray(there + effects / there[0])

    def has_no_skill(self) -> bool:
        """Beside regressors a small discrimination is no verdict: it is held, and the likelihood ratio decides."""
        return bool(self.phi[0] < NO_SKILL) and not self._problem.regressors

    def solution(self, steps: int) -> Solution:
        """With the information at the maximum, if certainty is asked."""
        factor = None
        if self._certainty:
            # What no place has to itself is known the better the more riders there are.
            riders = self._problem.likelihood.counts.riders
            alone = _SAME_DENSITY if self._problem.estimates_density else _SAME * np.sqrt(riders)
            if self._is_far_from_information(_SAME if self._problem.shape.places else alone):
                self._forget()
                self._at = evaluate(self._problem, self.phi, self._windows, True)[0]
                self._inform()
            factor = self._exactly(precisions(self.rho, self._problem.groups))
        return Solution(
            self.phi, self.rho, self._at, self._curve, factor, self._information, self.norm, steps, no_skill=False
        )

    def without_skill(self, steps: int) -> Solution:
        at, curve = evaluate(self._problem, self.phi, None, False)
        return Solution(self.phi, self.rho, at, curve, None, None, 0.0, steps, no_skill=True)

    # The curvature

    def _forget(self) -> None:
        """Let go of the last information before a pass with another: each is as large as all pairs of places.

        Of its factor the slope stays, where the next one's iterations begin.
        """
        self._information, self._complete = None, None
        if self._factor is not None:
            self._near = self._factor.beginning
        self._factor = None

    @property
    def _beginning(self) -> Beginning | None:
        return self._near if self._factor is None else self._factor.beginning

    def _fallback(self) -> Arrow:
        """The information if skills were known: far from the maximum that of the data can be indefinite."""
        if self._complete is None:
            self._complete = evaluate(self._problem, self.phi, self._windows, True)[0].complete
        assert self._complete is not None
        return self._complete.plus(tiny(self._complete))

    def _factored(self, weight: FloatArray, gradient: FloatArray, held: bool = False) -> Factor:
        """Of the penalised information; with the discrimination `held`, which then moves nowhere."""
        assert self._information is not None
        matrix, self._stand_in = _bent(self._problem, self._information, self.phi, gradient).plus(weight), None
        for turned in (False, True):
            try:
                return Factor(_without_first(matrix) if held else matrix, self._beginning, 1e-5, turned)
            except LinAlgError:
                continue
        self._stand_in = self._fallback()
        matrix = self._stand_in.plus(weight)
        return Factor(_without_first(matrix) if held else matrix, None, 1e-5)

    def _exactly(self, weight: FloatArray) -> Factor:
        assert self._information is not None
        try:
            return Factor(self._information.plus(weight), self._beginning)
        except LinAlgError:
            return Factor(self._fallback().plus(weight))

    def _learn(self, phi: FloatArray, gradient: FloatArray) -> None:
        """Remember how the penalised gradient changed over the last step (BFGS with limited memory)."""
        weight = precisions(self.rho, self._problem.groups)
        step, change = self.phi - phi, gradient - (self._at.gradient - weight * self.phi)
        assert self._information is not None
        told = self._information if self._stand_in is None else self._stand_in
        along = float(step @ change)
        expected = float(step @ (told.times(step) + weight * step))
        # Far from what the information says, a change is not curvature but rounding.
        if 0.1 * expected < along < 10.0 * expected:
            self._learnt.append((step, change))

    def _solved(self, gradient: FloatArray) -> FloatArray:
        """Newton's direction, corrected by what was learnt."""
        assert self._factor is not None
        left, used = gradient.copy(), []
        for step, change in reversed(self._learnt):
            share = float(step @ left) / float(step @ change)
            left -= share * change
            used.append(share)
        move = self._factor.solve(left, _ROUGHLY)
        for (step, change), share in zip(self._learnt, reversed(used), strict=True):
            move += (share - float(change @ move) / float(step @ change)) * step
        return move


def _without_first(matrix: Arrow) -> Arrow:
    """The matrix with its first parameter cut off from the others."""
    border, cross = matrix.border.copy(), matrix.cross.copy()
    border[0] = border[:, 0] = 0.0
    border[0, 0] = 1.0
    cross[:, :, 0] = 0.0
    return replace(matrix, border=border, cross=cross)


def _bent(problem: Problem, information: Arrow, phi: FloatArray, gradient: FloatArray) -> Arrow:
    """The information with the curvature of the coordinates that steps are straight in (`_Climb._after`).

    In (a, curve, effects) it has one more term; in (a, curve, gamma) that is the gradient by gamma over a, between a
    and gamma.
    """
    slope = problem.regression(gradient) / phi[0]
    if not slope.any():
        return information
    above, below = problem.shape.split(slope)
    border, cross = information.border.copy(), information.cross.copy()
    border[0] += above
    border[:, 0] += above
    cross[:, :, 0] += below
    return replace(information, border=border, cross=cross)


def evaluate(problem: Problem, phi: FloatArray, windows: Near | None, information: bool) -> tuple[Pass, Curve]:
    p = problem.parameters(phi)
    curve = problem.curve.at(p.a, p.shared, p.own, p.slopes)
    at = problem.likelihood.evaluate(p, curve, windows, information)
    return (at if problem.nearby is None else _with_prior(at, problem.nearby, phi, problem.shape)), curve


def _with_prior(at: Pass, prior: LevelPrior, phi: FloatArray, shape: Shape) -> Pass:
    """The pass with a prior of levels that no precision of single coefficients can say."""
    level, gradient = shape.split(phi)[1][:, 0], at.gradient.copy()
    slope = prior.times(level)
    shape.split(gradient)[1][:, 0] -= slope
    return replace(
        at,
        log_likelihood=at.log_likelihood - 0.5 * float(level @ slope),
        gradient=gradient,
        information=None if at.information is None else prior.added_to(at.information),
        complete=None if at.complete is None else prior.added_to(at.complete),
    )


def with_curvature(problem: Problem, phi: FloatArray, at: Pass) -> Arrow:
    """The information of a pass, with what second derivatives of the curve add."""
    assert at.information is not None
    p = problem.parameters(phi)
    if problem.curve.slopes:
        return _with_curved_slopes(problem, p, at.information, at.item_tilt)
    of_a, with_scale = problem.curve.curvature(p.a, p.shared, at.item_residual)
    if of_a == 0.0 and with_scale == 0.0:
        return at.information
    border = at.information.border.copy()
    border[0, 0] += of_a
    border[0, 2] += with_scale
    border[2, 0] += with_scale
    return replace(at.information, border=border)


def _with_curved_slopes(problem: Problem, p: Parameters, information: Arrow, tilt: FloatArray) -> Arrow:
    """With second derivatives of a(x) = a exp(s(x)): its own by the coefficients of s, and a's with these."""
    columns = problem.curve.slope_rows.columns
    weight = relative(columns, p.slopes) * tilt
    last = 1 + problem.curve.plain.shared_size
    first = last - columns.shape[1]
    border = information.border.copy()
    border[0, first:last] -= weight @ columns
    border[first:last, 0] -= weight @ columns
    border[first:last, first:last] -= p.a * columns.T @ (weight[:, None] * columns)
    return replace(information, border=border)
