"""The latent fit: skill and difficulty told apart, with standard errors, in units of the cohort's skill."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from isuit import columns
from isuit.domain import NO_SITE, FloatArray, IntArray

from ..model.arrow import Factor
from ..model.bend import FUNCTIONS
from ..model.counts import Counts
from ..model.curves import CurveSpace, ItemCurve
from ..model.density import SHAPES
from ..model.nearness import Nearness, Neighbours, Precision
from ..model.population import Units, population_of
from ..model.slopes import Slopes
from ..model.smoothing import FIXED, FREE, precisions
from .level_prior import LevelPrior
from .quadrature import MarginalLikelihood, Parameters, fixed_parameters
from .single_curve import SingleCurve
from .solver import (
    PREDICTING,
    Problem,
    Progress,
    Solution,
    State,
    evaluate,
    is_thinned,
    of_part,
    penalised,
    solve,
)

_FLATTENING = 0.35
_SMALL_STEP = 1e-4  # of the parameter that moves most, in a central difference
_ROUGHLY = 0.1  # standard errors from the maximum at which a fit is left that another one starts from
_FIRST_PRECISION = 2.0  # logarithm, of the coefficients of the discrimination's change
_FIRST_PRECISIONS = (1.0, 1.0, 3.0)  # logarithms, of the density's coefficients: of its skewness, tails, and the rest


@dataclass(frozen=True)
class Band:
    """An estimate along the metric with its standard error and its covariance with the discrimination there."""

    value: FloatArray
    se: FloatArray
    with_discrimination: FloatArray


@dataclass(frozen=True)
class Slope:
    """How an estimate along the metric at one place moves with the parameters, a row for each metric.

    It moves with the border and the place's own parameters, and, through the units of skill, with those of all places:
    that part is a combination of the few vectors of `LatentFit.directions`.
    """

    border: FloatArray
    own: FloatArray
    along: FloatArray


@dataclass(frozen=True)
class LatentFit:
    """A converged fit; `discrimination`, `difficulty` and skills are in units of the total skill sd."""

    space: CurveSpace
    problem: Problem
    solution: Solution
    units: Units

    @cached_property
    def parameters(self) -> Parameters:
        return self.problem.parameters(self.solution.phi)

    @property
    def coefficients(self) -> FloatArray:
        """Of the curve, one after the other: shared ones, then those of each site."""
        return np.concatenate([self.parameters.shared, self.parameters.own.ravel()])

    @property
    def discrimination(self) -> float:
        return self.solution.discrimination * self.units.sd

    @property
    def discrimination_se(self) -> float:
        return float(np.sqrt(self.products[2, 2]))

    @cached_property
    def directions(self) -> FloatArray:
        """Columns: how the mean and the sd of skill and the discrimination move with the parameters."""
        first = 1 + self.problem.curve.plain.shared_size
        result = np.zeros((self.problem.shape.size, 3))
        above, below = self.problem.shape.split(result)
        for k, (regression, clientele) in enumerate((self.units.mean_slope, self.units.sd_slope)):
            above[first : first + regression.size, k] = regression
            if below.size:
                below[:, -1, k] = clientele
        result[:, 2] = self.solution.discrimination * result[:, 1]
        result[0, 2] = self.units.sd
        return result

    @cached_property
    def solved_directions(self) -> FloatArray:
        return self.solution.covariance.solve(self.directions)

    @cached_property
    def products(self) -> FloatArray:
        return self.directions.T @ self.solved_directions

    @property
    def slopes(self) -> slice:
        """Where the border has the coefficients of the discrimination's change."""
        last = 1 + self.problem.curve.plain.shared_size
        return slice(last - self.problem.curve.slopes, last)

    def relative(self, metric: FloatArray) -> FloatArray:
        """The discrimination at these metrics over that of the fit: ones where it is the same everywhere."""
        slopes = self.space.slopes
        return np.ones(len(metric)) if slopes is None else slopes.relative(metric, self.parameters.slopes)

    def discrimination_at(self, metric: FloatArray) -> Band:
        """The discrimination at these metrics, with its standard error; its covariance with the fit's."""
        steep, size = self.relative(metric), self.problem.shape.border
        value, border = self.discrimination * steep, np.zeros((len(metric), size))
        if self.space.slopes is not None:
            border[:, self.slopes] = value[:, None] * self.space.slopes.rows(metric).columns
        along = np.zeros((len(metric), 3))
        along[:, 2] = steep
        nothing = np.zeros((len(metric), self.problem.shape.width))
        variance, crossed = self._variance(Slope(border, nothing, along), -1)
        return Band(value, np.sqrt(np.maximum(variance, 0.0)), crossed)

    def _spread(self, slope: Slope, place: int, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standard errors of what has this slope at these metrics, and covariances with the discrimination there."""
        variance, with_discrimination = self._variance(slope, place)
        if self.space.slopes is not None:
            factor, chosen = self.solution.covariance, self.slopes
            above, _ = self.problem.shape.split(self.solved_directions)
            with_slopes = slope.border @ factor.border[:, chosen] + slope.along @ above[chosen].T
            if place >= 0:
                with_slopes = with_slopes + slope.own @ self.cross[place][:, chosen]
            steep, columns = self.relative(metric), self.space.slopes.rows(metric).columns
            with_log = np.einsum("xk,xk->x", with_slopes, columns)
            with_discrimination = steep * (with_discrimination + self.discrimination * with_log)
        return np.sqrt(np.maximum(variance, 0.0)), with_discrimination

    def _variance(self, slope: Slope, place: int) -> tuple[FloatArray, FloatArray]:
        """Variances of what has this slope, and covariances with the discrimination of the fit."""
        factor = self.solution.covariance
        above, below = self.problem.shape.split(self.solved_directions)
        crossed = slope.border @ above
        variance = np.einsum("xb,bc,xc->x", slope.border, factor.border, slope.border)
        if place >= 0:
            crossed = crossed + slope.own @ below[place]
            variance = variance + np.einsum("xw,wv,xv->x", slope.own, factor.blocks[place], slope.own)
            variance = variance + 2 * np.einsum("xw,wb,xb->x", slope.own, self.cross[place], slope.border)
        variance = variance + 2 * np.einsum("xk,xk->x", slope.along, crossed)
        variance = variance + np.einsum("xk,kj,xj->x", slope.along, self.products, slope.along)
        with_discrimination = crossed[:, 2] + slope.along @ self.products[:, 2]
        return np.asarray(variance), np.asarray(with_discrimination)

    def joint_covariances(self) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
        """Of (a, shared coefficients, mean and sd of skill, discrimination); and of each place's own coefficients, with
        themselves and with the former."""
        factor, size = self.solution.covariance, 1 + self.problem.curve.plain.shared_size
        above, below = self.problem.shape.split(self.solved_directions)
        border = np.block([[factor.border[:size, :size], above[:size]], [above[:size].T, self.products]])
        by_place = [
            (factor.blocks[place][:-1, :-1], np.hstack([self.cross[place][:-1, :size], below[place][:-1]]))
            for place in range(self.space.places)
        ]
        return border, by_place

    @cached_property
    def cross(self) -> FloatArray:
        return self.solution.covariance.cross

    def _place(self, site: int) -> int:
        return site if self.space.places else NO_SITE

    def log_odds(self, metric: FloatArray, site: int) -> FloatArray:
        """f at the metrics of one site (`NO_SITE`: the shared curve)."""
        p = self.parameters
        return self.space.design(metric, np.full(len(metric), site), p.a).apply(p.shared, p.own)

    def condition_difficulty(self, metric: FloatArray) -> FloatArray:
        """Difficulty of many conditions on the shared curve, without its error; some at a time."""
        p, f = self.parameters, np.empty(len(metric))
        for part in columns.slices(len(metric), columns.DESIGN_ROWS):
            f[part] = self.space.design(metric[part], np.full(len(metric[part]), NO_SITE), p.a).apply(p.shared, p.own)
            f[part] /= self.relative(metric[part])
        return np.asarray((f / p.a - self.units.mean) / self.units.sd)

    def difficulty(self, metric: FloatArray, site: int = NO_SITE) -> Band:
        """Difficulty and its standard error, by the delta method over curve, discrimination and population."""
        value, slope = self.difficulty_slope(metric, site)
        return Band(value, *self._spread(slope, self._place(site), metric))

    def difficulty_slope(self, metric: FloatArray, site: int) -> tuple[FloatArray, Slope]:
        """Difficulty, and how it moves with the parameters."""
        p, sd, place = self.parameters, self.units.sd, self._place(site)
        design = self.space.design(metric, np.full(len(metric), site), p.a)
        f = design.apply(p.shared, p.own)
        by_a = np.zeros(len(metric))
        if self.space.anchor is not None:
            by_a = p.shared[1] * self.space.anchor.log_odds(metric, p.a)[1]
        steep = self.relative(metric)
        f, by_a = f / steep, by_a / steep
        value = (f / p.a - self.units.mean) / sd
        curve, size = design.columns(place) / (p.a * sd * steep[:, None]), design.shared_size
        border = np.zeros((len(metric), self.problem.shape.border))
        border[:, 0] = (by_a - f / p.a) / (p.a * sd)
        if self.space.slopes is not None:
            border[:, self.slopes] = -(f / (p.a * sd))[:, None] * self.space.slopes.rows(metric).columns
        border[:, 1 : 1 + size] = curve[:, :size]
        own = np.hstack([curve[:, size:], np.zeros((len(metric), 1))])
        along = np.column_stack([np.full(len(metric), -1 / sd), -value / sd, np.zeros(len(metric))])
        return value, Slope(border, own, along)

    def slope_band(self, metric: FloatArray, site: int = NO_SITE) -> Band:
        """The derivative of f along the metric, with its standard error: where its sign is certain.

        Where the discrimination changes it is that of f over the discrimination, times the latter: the sign is that of
        the difficulty's derivative.
        """
        p, place = self.parameters, self._place(site)
        design = self.space.design(metric, np.full(len(metric), site), p.a, derivative=1)
        curve, size = design.columns(place), design.shared_size
        border = np.zeros((len(metric), self.problem.shape.border))
        border[:, 1 : 1 + size] = curve[:, :size]
        if self.space.slopes is not None:
            here = self.space.design(metric, np.full(len(metric), site), p.a)
            along, f = self.space.slopes.derivative(metric), here.apply(p.shared, p.own)
            log_slope = along @ p.slopes
            curve = curve - log_slope[:, None] * here.columns(place)
            border[:, 1 : 1 + size] = curve[:, :size]
            border[:, self.slopes] = -f[:, None] * along
        own = np.hstack([curve[:, size:], np.zeros((len(metric), 1))])
        se, _ = self._spread(Slope(border, own, np.zeros((len(metric), 3))), place, metric)
        value = design.apply(p.shared, p.own)
        return Band(value if self.space.slopes is None else value - log_slope * f, se, np.zeros(len(metric)))

    def marginal(self, metric: FloatArray, site: int = NO_SITE) -> FloatArray:
        """The single suitability curve: skill integrated out over the population's mixture."""
        f = self.log_odds(metric, site)
        theta, weight = self.units.nodes
        skill = self.solution.discrimination * theta * self.relative(metric)[:, None]
        return np.asarray(expit(skill - f[:, None]) @ weight)

    def skills(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and sd of each rider's skill; the sd includes the uncertainty of all parameters.

        Skill is told beside the population's mean and in its sd, which move with the same parameters: where sites are
        few, their levels and everybody's skill go up and down together, and the difference does not.
        """
        solution, posterior = self.solution, self.solution.at.posterior
        mean = (posterior.mean - self.units.mean) / self.units.sd
        added = self.problem.likelihood.skill_variance(posterior, solution.curve, solution.covariance)
        if self.problem.regressors:
            with_mean, with_sd = self._means_along(self.solved_directions[:, :2])
            of_units = self.products[0, 0] + 2 * mean * self.products[0, 1] + mean**2 * self.products[1, 1]
            added = np.maximum(added + of_units - 2 * (with_mean + mean * with_sd), 0.0)
        return mean, np.asarray(np.sqrt(posterior.sd**2 + added) / self.units.sd)

    def _means_along(self, directions: FloatArray) -> list[FloatArray]:
        """How every rider's posterior mean moves along these directions of the parameters, by central differences."""
        found = []
        for direction in directions.T:
            step = _SMALL_STEP / max(float(np.abs(direction).max(initial=0.0)), 1e-300)
            above, below = (
                evaluate(self.problem, self.solution.phi + sign * step * direction, None, False)[0].posterior.mean
                for sign in (1.0, -1.0)
            )
            found.append((above - below) / (2 * step))
        return found

    def predict(self, rider: IntArray, metric: FloatArray, site: IntArray) -> FloatArray:
        """Posterior-predictive probability of success: integrated over each rider's posterior, not plugged in."""
        p, f = self.parameters, np.empty(len(metric))
        for part in columns.slices(len(metric), columns.DESIGN_ROWS):
            f[part] = self.space.design(metric[part], site[part], p.a).apply(p.shared, p.own)
        return self.solution.at.posterior.expect(rider, f, self.relative(metric))

    @property
    def effective_degrees_of_freedom(self) -> float:
        """Of all parameters: the trace of (information + precisions)^-1 times information."""
        return float(self.degrees_of_freedom.sum())

    @property
    def population_degrees_of_freedom(self) -> float:
        """The part of the above that the population's regressors take."""
        return float(self.problem.regression(self.degrees_of_freedom).sum())

    @property
    def density_degrees_of_freedom(self) -> float:
        """The part that the density of skill takes: zero where riders are normal."""
        border, _ = self.problem.shape.split(self.degrees_of_freedom)
        return float(border[border.size - self.problem.likelihood.density :].sum())

    @cached_property
    def degrees_of_freedom(self) -> FloatArray:
        """For each parameter the share of what is known of it that the data say; the rest comes from its prior
        precision."""
        weight, factor = precisions(self.solution.rho, self.problem.groups), self.solution.covariance
        left = 1.0 - weight * factor.diagonal(certain=True)
        if self.problem.nearby is not None:
            self.problem.shape.split(left)[1][:, 0] -= self.problem.nearby.taken(factor.blocks, factor.pairs)
        return np.where(self.problem.groups == FIXED, 0.0, left)


def fit_latent(
    counts: Counts,
    space: CurveSpace,
    single: SingleCurve,
    correlated: bool = False,
    near: LatentFit | None = None,
    progress: Progress | None = None,
    roughly: bool = False,
) -> LatentFit:
    """Fit skill and difficulty, starting from the single curve.

    Or from a fit of the whole cohort, near which the fit of a part must be; such a fit predicts and has no errors. With
    `roughly`, many riders are fitted to a tenth of a standard error only, and errors are those that a part of them
    tells: enough for tests, and to start another fit from.
    """
    problem = _problem(counts, space, correlated)
    if near is not None and near.problem.likelihood.density:
        problem = _with_density(problem, near.problem.likelihood.density)
    if near is not None and near.problem.nearby is not None:
        problem = _with_nearby(problem, near.problem.nearby.precision)
    if near is None:
        start = _from_single_curve(problem, counts, space, single)
        if roughly and is_thinned(problem, start):
            return _solved(space, problem, _rough(problem, start, progress))
        return _solved(space, problem, solve(problem, start, progress))
    return _solved(space, problem, solve(problem, _from_near(problem, near), progress, PREDICTING, certainty=False))


def let_discrimination_vary(constant: LatentFit, slopes: Slopes, progress: Progress | None = None) -> LatentFit:
    """The same model with a discrimination that changes with conditions, from the fit in which it does not."""
    space, likelihood, before = replace(constant.space, slopes=slopes), constant.problem.likelihood, constant.solution
    problem = _with_slopes(constant.problem, space)
    cut = 1 + constant.problem.curve.plain.shared_size
    phi = np.insert(before.phi, cut, np.zeros(slopes.size))
    assert not likelihood.density
    rho = np.append(before.rho, np.full(problem.groups.max() + 1 - before.rho.size, _FIRST_PRECISION))
    return _solved(space, problem, solve(problem, State(phi, rho, near=True), progress))


def estimate_density(normal: LatentFit, progress: Progress | None = None) -> LatentFit:
    """The same model with a density of skill that is estimated, from the fit that takes skill as normal.

    Sums of a table's values hold no more digits than a fit that predicts asks for: a density with a wall moves by a
    millionth with the grids that it is summed on.
    """
    problem, before = _with_density(normal.problem, FUNCTIONS), normal.solution
    border, own = normal.problem.shape.split(before.phi)
    phi = problem.shape.join(np.concatenate([border, np.zeros(FUNCTIONS)]), own)
    begin = State(phi, np.append(before.rho, _FIRST_PRECISIONS), before.at.posterior.near)
    return _solved(normal.space, problem, solve(problem, begin, progress, PREDICTING))


def borrow(alone: LatentFit, coordinates: FloatArray, progress: Progress | None = None) -> tuple[LatentFit, Nearness]:
    """The same model with levels of sites near one another alike, from the fit that takes them as unrelated.

    Coordinates are latitude and longitude, a row for each site, NaN where a site has none. Where sites nearby are not
    more alike than others the fit stays as it is.
    """
    problem, before = alone.problem, alone.solution
    places = problem.shape.places
    group = int(problem.groups[problem.shape.border])
    variance = float(np.exp(-before.rho[group]))
    where = np.full((places, 2), np.nan)
    where[: len(coordinates)] = coordinates
    neighbours = Neighbours.of(where)
    # What outcomes alone say of each level: its posterior without the prior.
    level, spread = problem.shape.split(before.phi)[1][:, 0], before.covariance.blocks[:, 0, 0]
    told = np.maximum(1.0 / spread - 1.0 / variance, 1e-6 / variance)
    nearness = neighbours.chosen(level / (spread * told), 1.0 / told, variance)
    if not nearness.share:
        return alone, nearness
    problem = _with_nearby(problem, neighbours.precision(nearness, variance))
    begin = State(before.phi, before.rho, before.at.posterior.near)
    found = solve(problem, begin, progress)
    at = replace(found.at, log_likelihood=found.at.log_likelihood + problem.prior_cost(found.phi))
    return _solved(alone.space, problem, replace(found, at=at)), nearness


def _with_nearby(problem: Problem, precision: Precision) -> Problem:
    """The problem with this prior of levels, which no precision of theirs says any more."""
    groups, shape = problem.groups.copy(), problem.shape
    level = shape.border + shape.width * np.arange(shape.places)
    groups[level] = np.where(groups[level] == FIXED, FIXED, FREE)
    return replace(problem, groups=groups, nearby=LevelPrior.of(precision, problem.likelihood.population))


def finished(fit: LatentFit, progress: Progress | None = None) -> LatentFit:
    """A fit that was made roughly, taken on to its maximum and given its standard errors."""
    rough = fit.solution
    begin = State(rough.phi, rough.rho, rough.at.posterior.near, rough.information)
    return _solved(fit.space, fit.problem, solve(fit.problem, begin, progress))


def _rough(problem: Problem, start: State, progress: Progress | None) -> Solution:
    found = solve(problem, start, progress, _ROUGHLY, certainty=False)
    if found.no_skill or found.information is None:
        return found
    return replace(found, factor=Factor(found.information.plus(precisions(found.rho, problem.groups))))


def _solved(space: CurveSpace, problem: Problem, solution: Solution) -> LatentFit:
    p = problem.parameters(solution.phi)
    units = Units.of(problem.likelihood.population, p.regression, p.clientele, p.density)
    return LatentFit(space, problem, solution, units)


def _with_density(problem: Problem, functions: int) -> Problem:
    """The problem with this many coefficients of the density of skill appended to the border: the first two, for
    skewness and tails, are each a group of smoothing of its own, the finer ones together another."""
    before = problem.likelihood
    likelihood = MarginalLikelihood(before.counts, before.population, functions, before.apart)
    group = int(problem.groups.max(initial=-1)) + 1 + np.minimum(np.arange(functions), SHAPES)
    shape = replace(problem.shape, border=problem.shape.border + functions)
    groups = np.insert(problem.groups, problem.shape.border, group)
    return replace(problem, likelihood=likelihood, groups=groups, shape=shape)


def _with_slopes(problem: Problem, space: CurveSpace) -> Problem:
    """The problem with the coefficients of the discrimination's change after the curve's, in groups of their own."""
    assert space.slopes is not None
    before = problem.likelihood
    counts, cut = before.counts, 1 + problem.curve.plain.shared_size
    group = int(problem.groups.max(initial=-1)) + 1 + np.array(space.slopes.groups(), np.int64)
    return Problem(
        MarginalLikelihood(counts, before.population, before.density, apart=True),
        ItemCurve.of(space, counts.item_metric, counts.item_site),
        np.insert(problem.groups, cut, group),
        replace(problem.shape, border=problem.shape.border + space.slopes.size),
    )


def _problem(counts: Counts, space: CurveSpace, correlated: bool) -> Problem:
    if space.slopes is not None:
        return _with_slopes(_problem(counts, replace(space, slopes=None), correlated), space)
    items = ItemCurve.of(space, counts.item_metric, counts.item_site)
    shared, own = space.groups()
    used = int(max(shared.max(initial=-1), own.max(initial=-1))) + 1
    population = population_of(counts, space, correlated, used)
    likelihood = MarginalLikelihood(counts, population)
    shape = likelihood.shape(items.at(1.0, np.zeros(shared.size), np.zeros((space.places, items.plain.width))))
    border = np.concatenate([[FREE], shared, population.groups])
    by_place = np.zeros((shape.places, shape.width), np.int64)
    if shape.places:
        by_place[:, :-1] = own
        by_place[:, -1] = population.clientele
        by_place[fixed_parameters(population, space.places, shape.width)] = FIXED
    return Problem(likelihood, items, shape.join(border, by_place), shape)


def _from_single_curve(problem: Problem, counts: Counts, space: CurveSpace, single: SingleCurve) -> State:
    shared = np.concatenate([single.shared, np.zeros(problem.curve.slopes)])
    f = problem.curve.plain.apply(shared, single.own) if space.anchor is None else None
    a = _first_discrimination(counts, f)
    # Averaging over skill flattens a logistic curve by about this factor, so the curve given skill is steeper.
    steeper = np.sqrt(1 + _FLATTENING * a * a)
    phi = np.zeros(problem.shape.size)
    border, own = problem.shape.split(phi)
    border[0], border[1 : 1 + single.shared.size] = a, steeper * single.shared
    if own.size:
        own[: len(single.own), :-1] = steeper * single.own
    count = int(problem.groups.max(initial=-1)) + 1
    return State(phi, np.concatenate([single.rho, np.ones(count - single.rho.size)]))


def _from_near(problem: Problem, near: LatentFit) -> State:
    """From the fit of all, for that of a part.

    With many places the smoothing stays that of all: each of its few numbers rests on hundreds of coefficients, so the
    part would choose alike, and to choose costs more than the rest of the fit. So too with a density of many riders.
    """
    part, whole, shape = problem.likelihood.counts, near.problem.likelihood.counts, problem.shape
    share = float(part.item_trials.sum() / whole.item_trials.sum())
    here, there = (
        np.bincount(counts.item_site % max(1, shape.places), counts.item_trials, shape.places)
        for counts in (part, whole)
    )
    by_place = np.divide(here, there, out=np.zeros(here.size), where=there > 0)[: shape.places]
    border, own = shape.split(near.solution.phi)
    phi = shape.join(border, np.where(by_place[:, None] > 0, own, 0.0))
    information = near.solution.information
    if information is not None:
        information = of_part(information, problem, share, by_place)
    many = problem.estimates_density and is_thinned(problem, State(phi, near.solution.rho))
    held = near.space.smooths_parts_alike or many
    return State(phi, near.solution.rho, information=information, held=held)


def _first_discrimination(counts: Counts, f: FloatArray | None) -> float:
    """A start for a, from how much more riders' successes vary about the single curve than chance allows."""
    if f is None:
        return 1.0
    p = expit(-f)
    chance = counts.trials @ (p * (1 - p))
    excess = float(np.sum((counts.rider_successes - counts.trials @ p) ** 2 - chance)) / float(np.sum(chance**2))
    # Averaging over skill flattens a logistic curve by the root of 1 + 0.35 a^2: excess is a^2 over that.
    flattened = min(max(excess, 0.1), 2.4)
    return float(np.sqrt(flattened / (1 - _FLATTENING * flattened)))


def penalised_log_likelihood(fit: LatentFit) -> float:
    return penalised(fit.problem, fit.solution.phi, fit.solution.rho, fit.solution.at.log_likelihood)
