"""The latent fit with skill that moves, started from the fit that takes it as standing still.

Identification: over the riders, each taken at one of their occasions at random, skill has mean 0 and variance 1. So a
unit of difficulty is what it is in a fit of standing skill: the spread of those who went out, when they went out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from ..model.counts import Counts
from ..model.curves import CurveSpace, ItemCurve
from ..model.density import NORMAL
from ..model.occasions import DAY, GROWTH, YEAR, Occasions, growth, recent
from ..model.population import Units, plain_population, population_of
from ..model.smoothing import FREE
from .boundary import boundary_p_value
from .latent import LatentFit, penalised_log_likelihood
from .moving import MovingLikelihood, MovingParameters, MovingPosterior, MovingProblem
from .solver import Progress, State, evaluate, penalised, solve

LEVEL = 0.01  # of the test that skill stands still
HALF_LIVES = (0.125, 0.25, 0.5, 1.0, 2.0)  # of a past day's weight, in units of the cohort's time
_FIRST_WALKS = (0.1, 0.2, 0.4, 0.8, 1.6)  # starts, from which the best is taken
_CHOICE_OUTCOMES = 60_000  # of the riders by whom the half-life is chosen
_FIRST_PRECISION = 1.0  # logarithm, of growth
_SPREAD = ndtri((np.arange(8) + 0.5) / 8)
_MIXTURE_POINTS = 64


@dataclass(frozen=True)
class Timed:
    """Occasions with all that a fit of moving skill needs to know of them."""

    occasions: Occasions
    unit: float  # of time, in days
    since: FloatArray  # the rider's first occasion, in units
    gap: FloatArray
    counts: Counts  # by occasion
    regressors: FloatArray
    groups: IntArray  # of the regressors
    half_life: float | None  # of a past day's weight, in units
    centre: FloatArray  # of the regressors of exposure

    @classmethod
    def of(
        cls,
        occasions: Occasions,
        counts: Counts,
        by_rider: Counts,
        space: CurveSpace,
        first_group: int,
        half_life: float | None = None,
        like: Timed | None = None,
    ) -> Timed:
        """With growth, where riders went lately, and, of a few sites, their clienteles.

        `like` gives the unit of time and the centre of the regressors, where these are those of another fit.
        """
        unit = max(float(np.median(occasions.spans())), 1.0) if like is None else like.unit
        since = occasions.since_first() / unit
        gap = occasions.gaps(since)
        parts, groups = [], []
        centre = np.zeros(0)
        if half_life is not None:
            basis, free = space.spline.exposure_design(counts.item_metric)
            lately = recent(occasions, gap, np.asarray(counts.trials @ basis), counts.rider_trials, half_life)
            known = np.asarray(np.isfinite(lately).all(axis=1))
            centre = lately[known & occasions.seen].mean(axis=0) if like is None else like.centre
            parts.append(np.where(known[:, None], lately - centre, 0.0))
            groups += [FREE] * free + [first_group] * (basis.shape[1] - free)
            first_group += 1
        parts.append(growth(since))
        groups += [FREE] + [first_group] * (GROWTH - 1)
        first_group += 1
        clientele = population_of(by_rider, space, False, first_group)
        parts.append(clientele.visits.regressors[occasions.rider])
        groups += clientele.groups.tolist()
        return cls(
            occasions, unit, since, gap, counts, np.column_stack(parts), np.array(groups, np.int64), half_life, centre
        )


@dataclass(frozen=True)
class MovingFit(LatentFit):
    """A converged fit of moving skill; `timed` says when, and `still` is the fit of standing skill beside it."""

    timed: Timed
    still: LatentFit

    @property
    def walk(self) -> float:
        """The sd, in units of skill, by which skill moves in a year."""
        return float(abs(self._moving.walk) / self.units.sd * np.sqrt(YEAR / DAY / self.timed.unit))

    @property
    def walk_se(self) -> float:
        border = self.solution.covariance.border
        return float(np.sqrt(border[-1, -1]) / self.units.sd * np.sqrt(YEAR / DAY / self.timed.unit))

    @property
    def half_life_years(self) -> float | None:
        half_life = self.timed.half_life
        return None if half_life is None else half_life * self.timed.unit * DAY / YEAR

    @property
    def _moving(self) -> MovingParameters:
        p = self.parameters
        assert isinstance(p, MovingParameters)
        return p

    @property
    def _likelihood(self) -> MovingLikelihood:
        likelihood = self.problem.likelihood
        assert isinstance(likelihood, MovingLikelihood)
        return likelihood

    @cached_property
    def directions(self) -> FloatArray:
        """With how the sd of skill moves with the walk."""
        result = super().directions.copy()
        result[-1, 1] = self._moving.walk * float(_weights(self.timed.occasions) @ self.timed.since) / self.units.sd
        result[:, 2] = self.solution.discrimination * result[:, 1]
        result[0, 2] = self.units.sd
        return result

    def growth_after(self, years: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much skill has grown on average, so long after a first occasion, and its standard error."""
        first = 1 + self.problem.curve.plain.shared_size + _growth_column(self.timed)
        functions = growth(years * YEAR / DAY / self.timed.unit)
        own = slice(first, first + GROWTH)
        covariance = self.solution.covariance.border[own, own]
        value = functions @ self.solution.phi[own]
        se = np.sqrt(np.maximum(np.einsum("xk,kj,xj->x", functions, covariance, functions), 0.0))
        return np.asarray(value / self.units.sd), np.asarray(se / self.units.sd)

    @cached_property
    def paths(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and sd of skill at every occasion; the sd includes the uncertainty of the parameters."""
        solution, posterior = self.solution, self.solution.at.posterior
        assert isinstance(posterior, MovingPosterior)
        added = self._likelihood.path_variance(self._moving, solution.curve, solution.at, solution.covariance.border)
        mean = (posterior.occasion_mean - self.units.mean) / self.units.sd
        return np.asarray(mean), np.asarray(np.sqrt(posterior.occasion_sd**2 + added) / self.units.sd)

    def skills(self) -> tuple[FloatArray, FloatArray]:
        """At each rider's last occasion."""
        mean, sd = self.paths
        riders = self.timed.occasions.riders
        last, empty = np.maximum(riders[1:] - 1, 0), np.diff(riders) == 0
        return np.where(empty, 0.0, mean[last]), np.where(empty, 1.0, sd[last])

    def predict_at(self, timed: Timed, by_rider: Counts, occasion: IntArray, f: FloatArray) -> FloatArray:
        """Posterior-predictive probabilities at these of another set of occasions, which hold the fitted outcomes."""
        p = self._moving
        likelihood = MovingLikelihood(
            by_rider, plain_population(by_rider), timed.occasions.riders, timed.counts, timed.gap, timed.regressors
        )
        items = ItemCurve.of(self.space, timed.counts.item_metric, timed.counts.item_site)
        return likelihood.predict(p, items.at(p.a, p.shared, p.own), occasion, f)


def fit_moving(
    occasions: Occasions,
    counts: Counts,
    still: LatentFit,
    correlated: bool,
    near: MovingFit | None = None,
    progress: Progress | None = None,
) -> MovingFit:
    """From the fit of standing skill on the same outcomes; `counts` are those of the occasions.

    Beside a fit of the whole cohort, its half-life and unit of time are taken, and the fit has no errors.
    """
    by_rider, space = still.problem.likelihood.counts, still.space
    first_group = int(max((g.max(initial=-1) for g in space.groups()), default=-1)) + 1
    half_life = None
    if correlated:
        half_life = near.timed.half_life if near is not None else _half_life(occasions, counts, still, first_group)
    timed = Timed.of(occasions, counts, by_rider, space, first_group, half_life, None if near is None else near.timed)
    problem = _problem(timed, by_rider, space)
    if near is None:
        begin = _start(problem, timed, still)
    else:
        share = float(by_rider.item_trials.sum() / near.problem.likelihood.counts.item_trials.sum())
        information = near.solution.information
        begin = State(
            near.solution.phi, near.solution.rho, information=None if information is None else information.scaled(share)
        )
    solution = solve(problem, begin, progress, certainty=near is None)
    if solution.no_skill:
        raise EstimationError("with skill that moves, skill explains nothing.")
    units = _units(timed, problem.parameters(solution.phi))
    return MovingFit(space, problem, solution, units, timed, still)


def _problem(timed: Timed, by_rider: Counts, space: CurveSpace) -> MovingProblem:
    items = ItemCurve.of(space, timed.counts.item_metric, timed.counts.item_site)
    shared, _ = space.groups()
    likelihood = MovingLikelihood(
        by_rider, plain_population(by_rider), timed.occasions.riders, timed.counts, timed.gap, timed.regressors
    )
    shape = likelihood.shape(items.at(1.0, np.zeros(shared.size), np.zeros((0, 0))))
    return MovingProblem(likelihood, items, np.concatenate([[FREE], shared, timed.groups, [FREE]]), shape)


def _growth_column(timed: Timed) -> int:
    return int(timed.centre.size)


def _start(problem: MovingProblem, timed: Timed, still: LatentFit) -> State:
    """The standing fit's curve, coefficients of its regressors where they are alike, and the best of a few walks."""
    before, n = still.solution.phi, 1 + problem.curve.plain.shared_size
    phi = np.zeros(problem.shape.size)
    phi[:n] = before[:n]
    regression = still.parameters.regression
    exposure = timed.centre.size
    phi[n : n + min(exposure, regression.size)] = regression[: min(exposure, regression.size)]
    rest = regression[exposure:] if exposure else regression
    first = n + exposure + GROWTH
    phi[first : first + rest.size] = rest
    count = int(problem.groups.max(initial=-1)) + 1
    rho = np.full(count, _FIRST_PRECISION)
    known = min(count, still.solution.rho.size)
    rho[:known] = still.solution.rho[:known]
    some = problem.of_riders(slice(None, None, max(1, int(problem.likelihood.counts.trials.sum() / _CHOICE_OUTCOMES))))
    heights = []
    for walk in _FIRST_WALKS:
        phi[-1] = walk
        heights.append(evaluate(some, phi, None, False)[0].log_likelihood)
    phi[-1] = _FIRST_WALKS[int(np.argmax(heights))]
    return State(phi, rho)


def _half_life(occasions: Occasions, counts: Counts, still: LatentFit, first_group: int) -> float:
    """After how long a past day should weigh half in where a rider went lately: of a few values the one under which
    a sample of the riders is most likely."""
    by_rider, space = still.problem.likelihood.counts, still.space
    every = slice(None, None, max(1, int(np.ceil(by_rider.trials.sum() / _CHOICE_OUTCOMES))))
    heights: list[float] = []
    begin: State | None = None
    for half_life in HALF_LIVES:
        timed = Timed.of(occasions, counts, by_rider, space, first_group, half_life)
        whole = _problem(timed, by_rider, space)
        part = whole if every.step == 1 else whole.of_riders(every)
        assert isinstance(part, MovingProblem)
        begin = _start(part, timed, still) if begin is None else begin
        try:
            found = solve(part, begin, tolerance=0.1, certainty=False)
        except EstimationError:
            heights.append(-np.inf)
            continue
        heights.append(penalised(part, found.phi, found.rho, found.at.log_likelihood))
        if not found.no_skill:
            begin = State(found.phi, found.rho, information=found.information)
    return HALF_LIVES[int(np.argmax(heights))]


def _weights(occasions: Occasions) -> FloatArray:
    """The weight of each occasion in averages over the population: every rider weighs the same, and within a rider
    every occasion does."""
    each = np.diff(occasions.riders)
    return np.asarray((1.0 / np.maximum(each, 1))[occasions.rider] / max(1, int(np.count_nonzero(each))))


def _units(timed: Timed, p: MovingParameters) -> Units:
    """Mean and sd of skill over riders and their occasions."""
    weight, mu, extra = _weights(timed.occasions), timed.regressors @ p.regression, p.walk**2 * timed.since
    mean = float(weight @ mu)
    sd = float(np.sqrt(1.0 + weight @ ((mu - mean) ** 2 + extra)))
    spread = (mu[:, None] + np.sqrt(extra)[:, None] * _SPREAD).ravel()
    order = np.argsort(spread, kind="stable")
    below = np.cumsum(np.repeat(weight / _SPREAD.size, _SPREAD.size)[order])
    part = np.minimum((below * _MIXTURE_POINTS * (1 - 1e-12)).astype(np.int64), _MIXTURE_POINTS - 1)
    share = np.bincount(part, minlength=_MIXTURE_POINTS)
    points = np.bincount(part, weights=spread[order], minlength=_MIXTURE_POINTS)[share > 0] / share[share > 0]
    return Units(
        mean,
        sd,
        (timed.regressors.T @ weight, np.zeros(0)),
        (timed.regressors.T @ (weight * (mu - mean)) / sd, np.zeros(0)),
        points,
        NORMAL,
    )


def movement_test(fit: MovingFit) -> tuple[float, float]:
    """The likelihood-ratio test of skill that stands still: the statistic and its p-value.

    The walk lies on the boundary; growth counts with the degrees of freedom that its shrinkage leaves it.
    """
    ratio = max(0.0, 2.0 * (penalised_log_likelihood(fit) - penalised_log_likelihood(fit.still)))
    first = 1 + fit.problem.curve.plain.shared_size + _growth_column(fit.timed)
    extra = int(np.ceil(float(fit.degrees_of_freedom[first : first + GROWTH].sum()) - 1e-9))
    return ratio, boundary_p_value(ratio, extra)


def movement_score(
    occasions: Occasions, counts: Counts, by_rider: Counts, still: LatentFit, every: int = 1
) -> tuple[float, float] | None:
    """A test of standing skill from its own fit: the efficient score of the walk's rate, in standard errors, and p.

    Occasions and counts are those of every so many riders of the fit; None with too few of them.
    """
    timed = Timed.of(occasions, counts, by_rider, still.space, 0)
    regressors = np.asarray(still.problem.likelihood.population.visits.regressors)[::every][occasions.rider]
    likelihood = MovingLikelihood(by_rider, plain_population(by_rider), occasions.riders, counts, timed.gap, regressors)
    p = still.parameters
    at = MovingParameters(p.a, p.shared, np.zeros((0, 0)), p.regression, np.zeros(0))
    curve = ItemCurve.of(still.space, counts.item_metric, counts.item_site).at(p.a, p.shared, np.zeros((0, 0)))
    rate, others = likelihood.rate_scores(at, curve)
    if rate.size < 50:
        return None
    fitted = others @ np.linalg.lstsq(others, rate, rcond=None)[0]
    own = rate - fitted
    spread = float(np.sqrt(own @ own))
    z = float(own.sum()) / spread if spread > 0 else 0.0
    return z, float(ndtr(-z))
