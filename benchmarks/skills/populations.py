"""Five densities of skill, cohorts drawn from them, and the units in which the model tells skill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import t as student

from isuit.domain import FloatArray, Observations
from isuit.estimator.model.bend import TAIL
from isuit.experiment.cohort import Truth

_E = np.e
_WALL = 0.1


@dataclass(frozen=True)
class Population:
    """A density of skill with mean 0 and variance 1."""

    draw: Callable[[np.random.Generator, int], FloatArray]
    log_density: Callable[[FloatArray], FloatArray]  # up to a constant


def _two(u: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(-0.5 * ((u - 0.9) ** 2) / 0.19, -0.5 * ((u + 0.9) ** 2) / 0.19))


def _lognormal(u: FloatArray) -> FloatArray:
    """Straight below a tenth, where one rider in a hundred is: no grid follows a wall."""
    x = u * np.sqrt(_E * (_E - 1)) + np.sqrt(_E)
    inside = np.log(np.maximum(x, _WALL))
    slope = -(1.0 + np.log(_WALL)) / _WALL
    return np.asarray(-inside - 0.5 * inside**2 + slope * np.minimum(x - _WALL, 0.0))


POPULATIONS = {
    "normal": Population(lambda g, n: g.standard_normal(n), lambda u: -0.5 * u**2),
    "two groups": Population(
        lambda g, n: np.where(g.random(n) < 0.5, -0.9, 0.9) + np.sqrt(0.19) * g.standard_normal(n), _two
    ),
    "exponential": Population(
        lambda g, n: g.exponential(size=n) - 1.0, lambda u: np.where(u >= -1.0, -u, -u - 100.0 * (-1.0 - u))
    ),
    "t, 3 degrees": Population(
        lambda g, n: g.standard_t(3, n) / np.sqrt(3.0), lambda u: np.asarray(student.logpdf(u * np.sqrt(3.0), 3))
    ),
    "lognormal": Population(lambda g, n: (g.lognormal(size=n) - np.sqrt(_E)) / np.sqrt(_E * (_E - 1)), _lognormal),
}


@dataclass(frozen=True)
class Ends:
    """A cohort whose curve may have other ends than the logistic's."""

    floor: float = 0.0
    lapse: float = 0.0
    population: str = "normal"


def cohort(
    population: Population, truth: Truth, seed: int, ends: Ends | None = None
) -> tuple[Observations, FloatArray]:
    generator = np.random.default_rng(seed)
    skill = population.draw(generator, truth.riders)
    rider = np.repeat(np.arange(truth.riders), truth.outcomes)
    metric = generator.uniform(truth.lower, truth.upper, rider.size)
    success = expit(truth.discrimination * (skill[rider] - truth.difficulty(metric)))
    if ends is not None:
        success = ends.floor + (1 - ends.floor - ends.lapse) * success
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    return Observations(tuple(f"rider-{r:05d}" for r in range(truth.riders)), rider, metric, outcome), skill


def units(skill: FloatArray, weight: FloatArray | None = None) -> tuple[float, float]:
    """Location and scale of skills as the model defines them, of values in rising order (`model/density.py`)."""
    weight = np.full(skill.size, 1.0 / skill.size) if weight is None else weight / weight.sum()
    lower, upper = np.interp([TAIL, 1 - TAIL], np.cumsum(weight) - weight / 2, skill)
    inside = np.clip(skill, lower, upper)
    location = float(weight @ inside)
    end = float(ndtri(1 - TAIL))
    of_normal = 1 - 2 * TAIL - 2 * end * np.exp(-0.5 * end**2) / np.sqrt(2 * np.pi) + 2 * TAIL * end**2
    return location, float(np.sqrt(weight @ (inside - location) ** 2 / of_normal))


@lru_cache
def units_of_population(name: str) -> tuple[float, float]:
    return units(np.sort(POPULATIONS[name].draw(np.random.default_rng(1), 4_000_000)))
