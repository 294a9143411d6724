"""A fit that knows the density of skill: as good as any fit can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isuit.domain import FloatArray
from isuit.estimator.likelihood.latent import LatentFit, _solved
from isuit.estimator.likelihood.quadrature import Parameters
from isuit.estimator.likelihood.solver import Problem, State, solve
from isuit.estimator.model.density import NORMAL, Density, Tables

from .populations import Population


@dataclass(frozen=True)
class Known(Density):
    """A density that is given: no coefficients, and tables of what it is."""

    log_density: Callable[[FloatArray], FloatArray] = lambda u: -0.5 * u**2

    @cached_property
    def tables(self) -> Tables:
        step, points = 1 / 64, np.linspace(-30, 60, 90 * 64 + 1)
        log = self.log_density(points)
        log = log - log.max()
        log = log - np.log(np.exp(log).sum() * step)
        log = log + 0.5 * points**2 + 0.5 * np.log(2 * np.pi)
        table = np.stack([log, np.gradient(log)], axis=1)
        nothing = np.zeros((0, 2))
        return Tables(-30.0, step, table, nothing, nothing, np.zeros((0, 2, 0)), np.zeros((0, 2, 0)))


@dataclass(frozen=True)
class Told(Problem):
    """A problem that knows the density of skill."""

    known: Density = NORMAL

    def parameters(self, phi: FloatArray) -> Parameters:
        return replace(super().parameters(phi), density=self.known)


def told(normal: LatentFit, population: Population) -> LatentFit:
    """The fit that is told the density, from the fit that takes skill as normal."""
    plain = normal.problem
    known = Known(np.zeros(0), population.log_density)
    problem = Told(plain.likelihood, plain.curve, plain.groups, plain.shape, known=known)
    begin = State(normal.solution.phi, normal.solution.rho, near=True)
    return _solved(normal.space, problem, solve(problem, begin))
