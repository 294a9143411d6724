"""The latent fit: skill and difficulty told apart, with standard errors, in units of the cohort's skill."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from isuit import columns
from isuit.domain import FloatArray, IntArray

from ..model.counts import Counts
from ..model.curves import CurveSpace, ItemCurve
from ..model.density import FUNCTIONS
from ..model.population import Units, population_of
from ..model.smoothing import FIXED, precisions
from .quadrature import MarginalLikelihood, Parameters, fixed_parameters
from .single_curve import SingleCurve
from .solver import Problem, Progress, Solution, State, aligned, penalised, solve

_FLATTENING = 0.35
_FIRST_PRECISION = 3.0  # logarithm, of the density's coefficients


@dataclass(frozen=True)
class Band:
    """An estimate along the metric with its standard error and its covariance with the discrimination."""

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
        return float(np.sqrt(self._products[2, 2]))

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
    def _solved(self) -> FloatArray:
        return self.solution.covariance.solve(self.directions)

    @cached_property
    def _products(self) -> FloatArray:
        return self.directions.T @ self._solved

    def _spread(self, slope: Slope, place: int) -> tuple[FloatArray, FloatArray]:
        """Standard errors of what has this slope, and covariances with the discrimination."""
        factor = self.solution.covariance
        above, below = self.problem.shape.split(self._solved)
        crossed = slope.border @ above
        variance = np.einsum("xb,bc,xc->x", slope.border, factor.border, slope.border)
        if place >= 0:
            crossed = crossed + slope.own @ below[place]
            variance = variance + np.einsum("xw,wv,xv->x", slope.own, factor.blocks[place], slope.own)
            variance = variance + 2 * np.einsum("xw,wb,xb->x", slope.own, self._cross[place], slope.border)
        variance = variance + 2 * np.einsum("xk,xk->x", slope.along, crossed)
        variance = variance + np.einsum("xk,kj,xj->x", slope.along, self._products, slope.along)
        with_discrimination = crossed[:, 2] + slope.along @ self._products[:, 2]
        return np.sqrt(np.maximum(variance, 0.0)), with_discrimination

    @cached_property
    def _cross(self) -> FloatArray:
        return self.solution.covariance.cross

    def _place(self, site: int) -> int:
        return site if self.space.places else -1

    def log_odds(self, metric: FloatArray, site: int) -> FloatArray:
        """f at the metrics of one site (-1: the shared curve)."""
        p = self.parameters
        return self.space.design(metric, np.full(metric.size, site), p.a).apply(p.shared, p.own)

    def difficulty(self, metric: FloatArray, site: int = -1) -> Band:
        """Difficulty and its standard error, by the delta method over curve, discrimination and population."""
        value, slope = self.difficulty_slope(metric, site)
        return Band(value, *self._spread(slope, self._place(site)))

    def difficulty_slope(self, metric: FloatArray, site: int) -> tuple[FloatArray, Slope]:
        """Difficulty, and how it moves with the parameters."""
        p, sd, place = self.parameters, self.units.sd, self._place(site)
        design = self.space.design(metric, np.full(metric.size, site), p.a)
        f = design.apply(p.shared, p.own)
        by_a = np.zeros(metric.size)
        if self.space.anchor is not None:
            by_a = p.shared[1] * self.space.anchor.log_odds(metric, p.a)[1]
        value = (f / p.a - self.units.mean) / sd
        curve, size = design.columns(place) / (p.a * sd), design.shared_size
        border = np.zeros((metric.size, self.problem.shape.border))
        border[:, 0] = (by_a - f / p.a) / (p.a * sd)
        border[:, 1 : 1 + size] = curve[:, :size]
        own = np.hstack([curve[:, size:], np.zeros((metric.size, 1))])
        along = np.column_stack([np.full(metric.size, -1 / sd), -value / sd, np.zeros(metric.size)])
        return value, Slope(border, own, along)

    def slope_band(self, metric: FloatArray, site: int = -1) -> Band:
        """The derivative of f along the metric, with its standard error: where its sign is certain."""
        p, place = self.parameters, self._place(site)
        design = self.space.design(metric, np.full(metric.size, site), p.a, derivative=1)
        curve, size = design.columns(place), design.shared_size
        border = np.zeros((metric.size, self.problem.shape.border))
        border[:, 1 : 1 + size] = curve[:, :size]
        own = np.hstack([curve[:, size:], np.zeros((metric.size, 1))])
        se, _ = self._spread(Slope(border, own, np.zeros((metric.size, 3))), place)
        return Band(design.apply(p.shared, p.own), se, np.zeros(metric.size))

    def marginal(self, metric: FloatArray, site: int = -1) -> FloatArray:
        """The single suitability curve: skill integrated out over the population's mixture."""
        f = self.log_odds(metric, site)
        theta, weight = self.units.nodes
        return np.asarray(expit(self.solution.discrimination * theta - f[:, None]) @ weight)

    def skills(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and sd of each rider's skill; the sd includes the uncertainty of curve and discrimination."""
        solution, posterior = self.solution, self.solution.at.posterior
        mean = (posterior.mean - self.units.mean) / self.units.sd
        added = self.problem.likelihood.skill_variance(posterior, solution.curve, solution.covariance)
        return mean, np.asarray(np.sqrt(posterior.sd**2 + added) / self.units.sd)

    def predict(self, rider: IntArray, metric: FloatArray, site: IntArray) -> FloatArray:
        """Posterior-predictive probability of success: integrated over each rider's posterior, not plugged in."""
        p, f = self.parameters, np.empty(metric.size)
        for part in columns.slices(metric.size, columns.DESIGN_ROWS):
            f[part] = self.space.design(metric[part], site[part], p.a).apply(p.shared, p.own)
        return self.solution.at.posterior.expect(rider, f)

    @property
    def effective_degrees_of_freedom(self) -> float:
        """Of all parameters: the trace of (information + precisions)^-1 times information."""
        return float(self._degrees_of_freedom.sum())

    @property
    def population_degrees_of_freedom(self) -> float:
        """The part of the above that the population's regressors take."""
        return float(self.problem.regression(self._degrees_of_freedom).sum())

    @property
    def density_degrees_of_freedom(self) -> float:
        """The part that the density of skill takes: zero where riders are normal."""
        border, _ = self.problem.shape.split(self._degrees_of_freedom)
        return float(border[border.size - self.problem.likelihood.density :].sum())

    @cached_property
    def _degrees_of_freedom(self) -> FloatArray:
        """By parameter: what the data say of it, against what its precision does."""
        weight = precisions(self.solution.rho, self.problem.groups)
        diagonal = self.solution.covariance.diagonal(certain=True)
        return np.where(self.problem.groups == FIXED, 0.0, 1.0 - weight * diagonal)


def fit_latent(
    counts: Counts,
    space: CurveSpace,
    single: SingleCurve,
    correlated: bool = False,
    near: LatentFit | None = None,
    progress: Progress | None = None,
) -> LatentFit:
    """Fit skill and difficulty, starting from the single curve.

    Or from a fit of the whole cohort, near which the fit of a part must be; such a fit predicts and has no errors.
    """
    problem = _problem(counts, space, correlated)
    if near is not None and near.problem.likelihood.density:
        problem = _with_density(problem, near.problem.likelihood.density)
    if near is None:
        begin = _from_single_curve(problem, counts, space, single)
    else:
        share = float(counts.item_trials.sum() / near.problem.likelihood.counts.item_trials.sum())
        information = near.solution.information
        begin = State(
            near.solution.phi,
            near.solution.rho,
            information=None if information is None else aligned(information.scaled(share), problem),
        )
    return _solved(space, problem, solve(problem, begin, progress, certainty=near is None))


def estimate_density(normal: LatentFit, progress: Progress | None = None) -> LatentFit:
    """The same model with a density of skill that is estimated, from the fit that takes skill as normal."""
    problem, before = _with_density(normal.problem, FUNCTIONS), normal.solution
    border, own = normal.problem.shape.split(before.phi)
    phi = problem.shape.join(np.concatenate([border, np.zeros(FUNCTIONS)]), own)
    begin = State(phi, np.append(before.rho, _FIRST_PRECISION), before.at.posterior.windows, near=True)
    return _solved(normal.space, problem, solve(problem, begin, progress))


def _solved(space: CurveSpace, problem: Problem, solution: Solution) -> LatentFit:
    p = problem.parameters(solution.phi)
    units = Units.of(problem.likelihood.population, p.regression, p.clientele, p.density)
    return LatentFit(space, problem, solution, units)


def _with_density(problem: Problem, functions: int) -> Problem:
    """The problem with so many coefficients of the density, the last of the border, in a group of their own."""
    likelihood = MarginalLikelihood(problem.likelihood.counts, problem.likelihood.population, functions)
    group = np.full(functions, int(problem.groups.max(initial=-1)) + 1)
    shape = replace(problem.shape, border=problem.shape.border + functions)
    groups = np.insert(problem.groups, problem.shape.border, group)
    return replace(problem, likelihood=likelihood, groups=groups, shape=shape)


def _problem(counts: Counts, space: CurveSpace, correlated: bool) -> Problem:
    items = ItemCurve.of(space, counts.item_metric, counts.item_site)
    shared, own = space.groups()
    used = int(max(shared.max(initial=-1), own.max(initial=-1))) + 1
    population = population_of(counts, space, correlated, used)
    likelihood = MarginalLikelihood(counts, population)
    shape = likelihood.shape(items.at(1.0, np.zeros(shared.size), np.zeros((space.places, items.plain.width))))
    border = np.concatenate([[-1], shared, population.groups])
    by_place = np.zeros((shape.places, shape.width), np.int64)
    if shape.places:
        by_place[:, :-1] = own
        by_place[:, -1] = population.clientele
        by_place[fixed_parameters(population, space.places, shape.width)] = FIXED
    return Problem(likelihood, items, shape.join(border, by_place), shape)


def _from_single_curve(problem: Problem, counts: Counts, space: CurveSpace, single: SingleCurve) -> State:
    f = problem.curve.plain.apply(single.shared, single.own) if space.anchor is None else None
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
