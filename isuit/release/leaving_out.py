"""Solving a fit again without one rider, from its solution: all parameters, or only those of the rider's cells.

Both answer the same three questions: which places of phi are solved again for a cell, how far one step moves them for
each rider (`steps`: the rider's score times the inverse information), and where they come to rest without a rider.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray, IntArray
from isuit.estimator.likelihood.latent import LatentFit
from isuit.estimator.likelihood.quadrature import MarginalLikelihood
from isuit.estimator.likelihood.solver import NO_SKILL, split
from isuit.estimator.model.counts import Counts
from isuit.estimator.model.curves import Curve
from isuit.estimator.model.design import Design, free_groups
from isuit.estimator.model.population import Units
from isuit.estimator.model.smoothing import precisions

_TOLERANCE = 1e-4  # of the log odds: far below any rounding
_MOST_STEPS = 25
_LONGEST_STEP = 2.0  # of the log odds
_CHUNK = 100_000  # entries


class LeavingOut(ABC):
    """A fit that can be solved again without a rider, its smoothing held."""

    def __init__(self, latent: LatentFit, counts: Counts) -> None:
        self._latent, self._counts = latent, counts
        self._phi = latent.solution.phi
        self._precision = precisions(latent.solution.rho, latent.problem.groups)
        information = latent.solution.at.information
        assert information is not None
        self._information = information
        self._score = self._scores()

    @abstractmethod
    def places(self, cell: int) -> IntArray:
        """Places in phi of the parameters that are solved again for this cell."""

    def steps(self, cell: int, riders: IntArray) -> FloatArray:
        """One Newton step of these parameters for each rider who is left out: subtract it."""
        own = self.places(cell)
        inverse = _inverse(self._information[np.ix_(own, own)] + np.diag(self._precision[own]))
        return np.asarray(self._score[riders][:, own].toarray() @ inverse)

    @abstractmethod
    def without(self, rider: int) -> tuple[FloatArray, Units] | None:
        """Parameters and units without the rider; None where there is no solution."""

    def _scores(self) -> csr_matrix:
        """Each rider's score for (a, curve, population) at the maximum."""
        solution, problem = self._latent.solution, self._latent.problem
        a, _, population = split(problem, self._phi)
        posterior = solution.at.posterior
        by_entry = problem.likelihood.expected_by_entry(a, solution.curve, posterior)
        return problem.likelihood.rider_scores(solution.curve, population, posterior, by_entry)


class AllParameters(LeavingOut):
    """Discrimination, curves and population are solved again: for a release of few cells."""

    def places(self, cell: int) -> IntArray:
        return np.arange(self._phi.size)

    def without(self, rider: int) -> tuple[FloatArray, Units] | None:
        problem = self._latent.problem
        others = np.delete(np.arange(self._counts.riders), rider)
        population = problem.likelihood.population.of_rows(others)
        likelihood = MarginalLikelihood(self._counts.of_riders(others), population)
        phi, nodes = self._phi.copy(), None
        for _ in range(_MOST_STEPS):
            a, coefficients, regression = split(problem, phi)
            curve = problem.curve.at(a, coefficients)
            nodes = nodes or likelihood.place(a, curve.value, regression)
            at = likelihood.evaluate(a, curve, regression, nodes, information=True)
            assert at.information is not None
            information = at.information + np.diag(self._precision)
            size = 1 + problem.curve_size
            information[:size, :size] += problem.curve.curvature(a, coefficients, at.item_residual)
            move = _inverse(information) @ (at.gradient - self._precision * phi)
            reach = max(_reach(curve.design.apply(move[1:size])), abs(float(move[0])))
            move *= min(1.0, _LONGEST_STEP / max(reach, 1e-12))
            if phi[0] + move[0] < 0.2 * phi[0]:
                move *= 0.8 * phi[0] / -float(move[0])
            phi, nodes = phi + move, at.nodes
            if not np.all(np.isfinite(phi)) or phi[0] < NO_SKILL:
                return None
            if reach < _TOLERANCE:
                return phi, Units.of(population, split(problem, phi)[2])
        return None


class OwnParameters(LeavingOut):
    """Only what belongs to the rider's cells is solved again, over the riders of those cells."""

    def __init__(self, latent: LatentFit, counts: Counts, visits: csr_matrix) -> None:
        super().__init__(latent, counts)
        self._visits, self._by_cell = visits, visits.tocsc()
        regression = split(latent.problem, self._phi)[2]
        self._prior_mean = latent.problem.likelihood.population.apply(regression)

    def places(self, cell: int) -> IntArray:
        shared = self._latent.space.shared_size
        width = (self._latent.problem.curve_size - shared) // self._latent.space.sites
        return 1 + shared + cell * width + np.arange(width)

    def without(self, rider: int) -> tuple[FloatArray, Units] | None:
        latent = self._latent
        cells = self._visits[rider].indices.tolist()
        own = np.concatenate([self.places(cell) for cell in cells])
        pointers = self._by_cell.indptr
        others = np.unique(np.concatenate([self._by_cell.indices[pointers[c] : pointers[c + 1]] for c in cells]))
        others = others[others != rider]
        counts = _with_items(self._counts.of_riders(others))
        likelihood = MarginalLikelihood(counts, Design(self._prior_mean[others][:, None], None, free_groups(1)))
        a, coefficients, _ = split(latent.problem, self._phi)
        design = latent.space.design(counts.item_metric, counts.item_site, a)
        assert design.local is not None
        columns = design.local[:, own - 1 - latent.space.shared_size].toarray()
        local = Design(columns, None, free_groups(own.size))
        f = design.apply(coefficients)
        phi, by_a = self._phi.copy(), np.zeros(counts.items)
        nodes = likelihood.place(a, f, np.ones(1))
        for _ in range(_MOST_STEPS):
            at = likelihood.evaluate(a, Curve(f, local, by_a), np.ones(1), nodes, information=True)
            assert at.information is not None
            # The first and the last parameter, discrimination and population, are held.
            information = at.information[1:-1, 1:-1] + np.diag(self._precision[own])
            move = _inverse(information) @ (at.gradient[1:-1] - self._precision[own] * phi[own])
            reach = _reach(columns @ move)
            move *= min(1.0, _LONGEST_STEP / max(reach, 1e-12))
            phi[own] += move
            f, nodes = f + columns @ move, at.nodes
            if not np.all(np.isfinite(phi)):
                return None
            if reach < _TOLERANCE:
                return phi, latent.units
        return None


def _with_items(counts: Counts) -> Counts:
    """Without the items that none of these riders has: the rest of a large release is not touched."""
    items = np.flatnonzero(counts.item_trials)
    return Counts(
        counts.trials[:, items], counts.successes[:, items], counts.item_metric[items], counts.item_site[items]
    )


def _reach(change: FloatArray) -> float:
    return float(np.max(np.abs(change), initial=0.0))


def _inverse(information: FloatArray) -> FloatArray:
    """Of a penalised information, with negative curvature turned round: far from a maximum there can be some."""
    try:
        return np.asarray(cho_solve(cho_factor(information, lower=True), np.eye(len(information))))
    except LinAlgError:
        values, vectors = np.linalg.eigh(information)
        return np.asarray((vectors / np.maximum(np.abs(values), 1e-9)) @ vectors.T)
