"""The latent fit: skill apart from difficulty, with standard errors, in units of the sd of the cohort's skill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from isuit import columns
from isuit.domain import NO_SITE, FloatArray, IntArray

from ..model.counts import Counts
from ..model.curves import CurveSpace, ItemCurve
from ..model.normal import NODES, WEIGHTS
from ..model.population import Units, population_design
from ..model.smoothing import FREE
from .quadrature import MarginalLikelihood
from .single_curve import SingleCurve
from .solver import Problem, Progress, Solution, State, penalised, solve, split

_FLATTENING = 0.35


@dataclass(frozen=True)
class Band:
    """An estimate along the metric with its standard error and its covariance with the discrimination."""

    value: FloatArray
    se: FloatArray
    with_discrimination: FloatArray


@dataclass(frozen=True)
class LatentFit:
    """A converged fit; `discrimination`, `difficulty` and skills are in units of the total skill sd."""

    space: CurveSpace
    problem: Problem
    solution: Solution
    units: Units

    @property
    def discrimination(self) -> float:
        return self.solution.discrimination * self.units.sd

    @property
    def _discrimination_slope(self) -> FloatArray:
        slope = np.zeros(self.solution.phi.size)
        slope[0] = self.units.sd
        slope[1 + self.problem.curve_size :] = self.solution.discrimination * self.units.sd_slope
        return slope

    @property
    def discrimination_se(self) -> float:
        slope = self._discrimination_slope
        return float(np.sqrt(slope @ self.solution.covariance @ slope))

    def log_odds(self, metric: FloatArray, site: int) -> FloatArray:
        """f at the metrics of one site (`NO_SITE`: the shared curve)."""
        a, coefficients, _ = split(self.problem, self.solution.phi)
        return self.space.design(metric, np.full(metric.size, site), a).apply(coefficients)

    def difficulty(self, metric: FloatArray, site: int = NO_SITE) -> Band:
        """Difficulty and its standard error, by the delta method over curve, discrimination and population."""
        value, slope = self.difficulty_slope(metric, site)
        spread = slope @ self.solution.covariance
        se = np.sqrt(np.einsum("xm,xm->x", spread, slope))
        return Band(value, se, spread @ self._discrimination_slope)

    def difficulty_slope(self, metric: FloatArray, site: int) -> tuple[FloatArray, FloatArray]:
        a, coefficients, _ = split(self.problem, self.solution.phi)
        design = self.space.design(metric, np.full(metric.size, site), a)
        f = design.apply(coefficients)
        by_a = np.zeros(metric.size)
        if self.space.anchor is not None:
            by_a = coefficients[1] * self.space.anchor.log_odds(metric, a)[1]
        value = (f / a - self.units.mean) / self.units.sd
        local = design.local.toarray() if design.local is not None else np.zeros((metric.size, 0))
        columns = [
            ((by_a - f / a) / a)[:, None] / self.units.sd,
            np.hstack([design.dense, local]) / (a * self.units.sd),
            (-self.units.mean_slope - value[:, None] * self.units.sd_slope) / self.units.sd,
        ]
        return value, np.hstack(columns)

    def slope_band(self, metric: FloatArray, site: int = NO_SITE) -> Band:
        """The derivative of f along the metric, with its standard error: where its sign is certain."""
        a, coefficients, _ = split(self.problem, self.solution.phi)
        design = self.space.design(metric, np.full(metric.size, site), a, derivative=1)
        local = design.local.toarray() if design.local is not None else np.zeros((metric.size, 0))
        columns = np.hstack([design.dense, local])
        last = 1 + self.problem.curve_size
        spread = columns @ self.solution.covariance[1:last, 1:last]
        se = np.sqrt(np.einsum("xm,xm->x", spread, columns))
        return Band(columns @ coefficients, se, np.zeros(metric.size))

    def marginal(self, metric: FloatArray, site: int = NO_SITE) -> FloatArray:
        """The single suitability curve: skill integrated out over the population's mixture."""
        f = self.log_odds(metric, site)
        theta = (self.units.points[:, None] + NODES).ravel()
        weight = np.tile(WEIGHTS, self.units.points.size) / self.units.points.size
        return np.asarray(expit(self.solution.discrimination * theta - f[:, None]) @ weight)

    def skills(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and sd of each rider's skill; the sd includes the uncertainty of curve and discrimination."""
        solution, posterior = self.solution, self.solution.at.posterior
        assert solution.at.slope is not None
        mean = (posterior.mean - self.units.mean) / self.units.sd
        added = self.problem.likelihood.skill_variance(solution.at.slope, solution.curve, solution.covariance)
        return mean, np.asarray(np.sqrt(posterior.sd**2 + added) / self.units.sd)

    def predict(self, rider: IntArray, metric: FloatArray, site: IntArray) -> FloatArray:
        """Posterior-predictive probability of success: integrated over each rider's posterior, not plugged in."""
        a, coefficients, _ = split(self.problem, self.solution.phi)
        f = np.empty(metric.size)
        for part in columns.slices(metric.size, columns.DESIGN_ROWS):
            f[part] = self.space.design(metric[part], site[part], a).apply(coefficients)
        return self.solution.at.posterior.expect(rider, a, f)

    @property
    def effective_degrees_of_freedom(self) -> float:
        """Of all parameters: the trace of (information + precisions)^-1 times information."""
        information = self.solution.at.information
        assert information is not None
        return float(np.sum(self.solution.covariance * information))

    @property
    def population_degrees_of_freedom(self) -> float:
        """The part of `effective_degrees_of_freedom` that belongs to the population's regressors."""
        information = self.solution.at.information
        assert information is not None
        by_parameter = np.einsum("mn,nm->m", self.solution.covariance, information)
        return float(by_parameter[1 + self.problem.curve_size :].sum())


def fit_latent(
    counts: Counts,
    space: CurveSpace,
    single: SingleCurve,
    correlated: bool = False,
    near: LatentFit | None = None,
    progress: Progress | None = None,
) -> LatentFit:
    """Fit skill and difficulty.

    The solver starts from the single curve; or, when `counts` are a part of a cohort, from `near`, the whole's fit,
    which must be close by. A fit that starts from `near` is for predictions, and has no standard errors.
    """
    items = ItemCurve.of(space, counts.item_metric, counts.item_site)
    used = int(items.plain.groups.max(initial=-1)) + 1
    population = population_design(counts, space.sites, space.spline, correlated, used, space.origin)
    problem = Problem(
        MarginalLikelihood(counts, population),
        items,
        np.concatenate([[FREE], items.plain.groups, population.groups]),
        items.plain.size,
    )
    if near is None:
        a = _first_discrimination(counts, items.plain.apply(single.coefficients) if space.anchor is None else None)
        # Averaging over skill flattens a logistic curve by about this factor, so the curve given skill is steeper.
        coefficients = single.coefficients * np.sqrt(1 + _FLATTENING * a * a)
        precisions = int(problem.groups.max(initial=-1)) + 1
        rho = np.concatenate([single.rho, np.ones(precisions - single.rho.size)])
        phi = np.concatenate([[a], coefficients, np.zeros(population.size)])
        begin = State(phi, rho)
    else:
        share = float(counts.item_trials.sum() / near.problem.likelihood.counts.item_trials.sum())
        begin = State(near.solution.phi, near.solution.rho, information=share * near.solution.information)
    solution = solve(problem, begin, progress, certainty=near is None)
    return LatentFit(space, problem, solution, Units.of(population, solution.phi[1 + problem.curve_size :]))


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
