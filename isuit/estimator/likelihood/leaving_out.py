"""How a fit's difficulty moves when one rider is left out of it, its smoothing held.

Leaving a rider out means: the rider's sites are solved again without them, with everything that sites share held
(discrimination, common curve, population). With few sites or few riders the shared part is theirs, so there everything
is solved again (measured with two sites of 15 riders: a point moves by 0.13 with the shared part held and by 0.29 in
truth). Both ways answer the same questions:

    leaving = leaving_out(latent, counts, visits)
    leaving.riders_of(site)                    whose absence moves the site's curve
    leaving.sites_of(rider)                    whose curves the rider's absence moves
    leaving.after_step(site, riders, metric)   difficulty after one Newton step without each of them: cheap
    leaving.step_is_near                       whether that step comes near to the whole way, also with few riders
    leaving.without(rider, sites)              the fit solved to the end without the rider; None where there is none
    leaving.nobody                             the fit itself, to compare with

With many sites the step goes over the information without the rider, and comes within a tenth of the whole way wherever
the way is long enough to matter. So few riders of a world of sites are solved to the end, and those only at the sites
where it matters. With few sites the step is over everyone's information: it ranks, and is too short with few riders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import csc_matrix, csr_matrix

from isuit.domain import FloatArray, IntArray

from ..model import cholesky
from ..model.counts import Counts
from ..model.curves import FEW_SITES, Curve
from ..model.design import dense_design
from ..model.population import Units, plain_population
from ..model.smoothing import precisions
from . import newton, threads
from .latent import LatentFit, Slope
from .quadrature import ByEntry, MarginalLikelihood, Parameters
from .solver import NO_SKILL, evaluate, with_curvature

FEW_RIDERS = 100  # in the whole fit; among more, one rider moves what all share by less than a release is rounded to
_TOLERANCE = 1e-4  # of the log odds: far below any rounding
_MOST_STEPS = 25
_LONGEST_STEP = 2.0  # of the log odds
_LARGEST_SHARE = 0.9  # of what is known in some direction, by one rider: beyond it a step says only that it is long


@dataclass(frozen=True)
class Solved:
    """Parameters of a fit, perhaps without a rider, with the units that they give."""

    latent: LatentFit
    phi: FloatArray
    units: Units

    def difficulty(self, metric: FloatArray, site: int) -> FloatArray:
        p = self.latent.problem.parameters(self.phi)
        f = self.latent.space.design(metric, np.full(len(metric), site), p.a).apply(p.shared, p.own)
        return np.asarray((f / p.a - self.units.mean) / self.units.sd)


@threads.one_thread()
def leaving_out(latent: LatentFit, counts: Counts, visits: csr_matrix) -> LeavingOut:
    """The way that suits the size of the fit; `visits` has a row per rider and a column per site, one where they were.

    A fit without sites has one column.
    """
    few = visits.shape[1] < FEW_SITES or visits.shape[0] < FEW_RIDERS
    return (AllParameters if few else OwnParameters)(latent, counts, visits)


class LeavingOut(ABC):
    """A fit that can be solved again without a rider, its smoothing held."""

    step_is_near: bool

    def __init__(self, latent: LatentFit, counts: Counts, visits: csr_matrix) -> None:
        self._latent, self._counts = latent, counts
        self._visits, self._by_site = visits, visits.tocsc()
        self._phi = latent.solution.phi
        self.nobody = Solved(latent, self._phi, latent.units)
        self._precision = precisions(latent.solution.rho, latent.problem.groups)
        assert latent.solution.information is not None
        self._information = latent.solution.information
        self._score = self._scores()

    @abstractmethod
    def riders_of(self, site: int) -> IntArray:
        """Riders whose absence moves the curve of this site."""

    @abstractmethod
    def sites_of(self, rider: int) -> IntArray:
        """Sites whose curves move when this rider is left out."""

    @abstractmethod
    def without(self, rider: int, sites: IntArray | None = None) -> Solved | None:
        """The fit without the rider; None where there is no solution. Other sites than these may be held."""

    @threads.one_thread()
    def after_step(self, site: int, riders: IntArray, metric: FloatArray) -> FloatArray:
        """Difficulty at these metrics after one Newton step without each of the riders, one row each."""
        value, slope = self._latent.difficulty_slope(metric, site)
        return np.asarray(value - self._steps(site, riders) @ self._slope_by_own(slope, site).T)

    @abstractmethod
    def _steps(self, site: int, riders: IntArray) -> FloatArray:
        """One Newton step of the parameters that are solved again for this site, for each rider: subtract it."""

    @abstractmethod
    def _slope_by_own(self, slope: Slope, site: int) -> FloatArray:
        """How difficulty moves with these parameters."""

    def _scores(self) -> csr_matrix:
        """Each rider's score for (a, curve, population) at the maximum."""
        solution, problem = self._latent.solution, self._latent.problem
        posterior = solution.at.posterior
        return problem.likelihood.rider_scores(solution.curve, posterior, self._by_entry)

    @cached_property
    def _by_entry(self) -> ByEntry:
        return self._latent.problem.likelihood.expected_by_entry(self._latent.solution.at.posterior)


class AllParameters(LeavingOut):
    """Discrimination, curves and population are solved again, for few sites or few riders: everyone moves all."""

    step_is_near = False

    def riders_of(self, site: int) -> IntArray:
        return np.arange(self._visits.shape[0])

    def sites_of(self, rider: int) -> IntArray:
        return np.arange(self._visits.shape[1])

    @cached_property
    def _inverse(self) -> FloatArray:
        return _inverse(self._information.dense() + np.diag(self._precision))

    def _steps(self, site: int, riders: IntArray) -> FloatArray:
        return np.asarray(self._score[riders] @ self._inverse)

    def _slope_by_own(self, slope: Slope, site: int) -> FloatArray:
        whole = slope.along @ self._latent.directions.T
        above, below = self._latent.problem.shape.split(whole.T)
        above += slope.border.T
        if below.size and site >= 0:
            below[site] += slope.own.T
        return whole

    @threads.one_thread()
    def without(self, rider: int, sites: IntArray | None = None) -> Solved | None:
        problem = self._latent.problem
        others = np.delete(np.arange(self._counts.riders), rider)
        remaining = self._counts.of_riders(others)
        population = problem.likelihood.population.of_riders(remaining, others)
        density = problem.likelihood.density
        problem = replace(problem, likelihood=MarginalLikelihood(remaining, population, density))
        phi, windows = self._phi.copy(), None
        for _ in range(_MOST_STEPS):
            at, curve = evaluate(problem, phi, windows, True)
            information = with_curvature(problem, phi, at).dense() + np.diag(self._precision)
            move = _inverse(information) @ (at.gradient - self._precision * phi)
            by = problem.parameters(move)
            reach = max(_reach(curve.design.apply(by.shared, by.own)), abs(by.a))
            move *= newton.share_within(reach, _LONGEST_STEP)
            move *= newton.share_that_keeps_skill(float(phi[0]), float(move[0]))
            phi, windows = phi + move, at.posterior.windows
            if not np.all(np.isfinite(phi)) or phi[0] < NO_SKILL:
                return None
            if reach < _TOLERANCE:
                p = problem.parameters(phi)
                return Solved(self._latent, phi, Units.of(population, p.regression, p.clientele, p.density))
        return None


class OwnParameters(LeavingOut):
    """Only what belongs to the rider's sites is solved again, over the riders of those sites."""

    step_is_near = True

    def __init__(self, latent: LatentFit, counts: Counts, visits: csr_matrix) -> None:
        super().__init__(latent, counts, visits)
        self._prior_mean = latent.solution.at.posterior.prior_mean
        self._last_item = np.searchsorted(counts.item_site, np.arange(visits.shape[1]), side="right")

    def riders_of(self, site: int) -> IntArray:
        return np.asarray(self._by_site.indices[self._by_site.indptr[site] : self._by_site.indptr[site + 1]])

    def sites_of(self, rider: int) -> IntArray:
        return np.asarray(self._visits.indices[self._visits.indptr[rider] : self._visits.indptr[rider + 1]])

    def _places(self, site: int) -> IntArray:
        """Places in phi of the site's deviation."""
        shape, width = self._latent.problem.shape, self._latent.space.width
        return shape.border + site * shape.width + np.arange(width)

    def _steps(self, site: int, riders: IntArray) -> FloatArray:
        """Over the information without each rider: (H - H_r)^-1 s_r, in coordinates in which H is the unit matrix."""
        own, width = self._places(site), self._latent.space.width
        information = self._information.own[site, :width, :width] + np.diag(self._precision[own])
        to_unit = np.linalg.inv(np.linalg.cholesky(cholesky.positive(information)))
        score = self._score[riders][:, own].toarray() @ to_unit.T
        share, along = np.linalg.eigh(to_unit @ self._told(site, riders) @ to_unit.T)
        longer = 1.0 / (1.0 - np.minimum(share, _LARGEST_SHARE))
        step = np.einsum("rwk,rk,rvk,rv->rw", along, longer, along, score)
        return np.asarray(step @ to_unit)

    def _told(self, site: int, riders: IntArray) -> FloatArray:
        """What each rider tells about the site's parameters, riders x width x width.

        By Louis' identity: what they would tell if their skill were known, minus what not knowing it takes away.
        """
        items = slice(self._last_item[site - 1] if site else 0, self._last_item[site])
        metric = self._counts.item_metric[items]
        design = self._latent.space.design(metric, np.full(len(metric), site), self._latent.parameters.a)
        functions = design.columns(0)[:, design.shared_size :]
        squares = (functions[:, :, None] * functions[:, None, :]).reshape(len(metric), -1)
        variance = self._variance[:, items].tocsr()[riders]
        known = (variance @ squares).reshape(riders.size, functions.shape[1], -1)
        posterior = self._latent.solution.at.posterior
        taken = (posterior.a * posterior.sd[riders])[:, None] * (variance @ functions)
        return np.asarray(known - taken[:, :, None] * taken[:, None, :])

    @cached_property
    def _variance(self) -> csc_matrix:
        """Of each rider's successes at each item, at the success that is expected of them there."""
        trials, expected = self._counts.trials, self._by_entry.expected
        share = expected.data / trials.data
        return csr_matrix((expected.data * (1 - share), trials.indices, trials.indptr), shape=trials.shape).tocsc()

    def _slope_by_own(self, slope: Slope, site: int) -> FloatArray:
        return slope.own[:, : self._latent.space.width]

    @threads.one_thread()
    def without(self, rider: int, sites: IntArray | None = None) -> Solved | None:
        latent = self._latent
        again = (self.sites_of(rider) if sites is None else sites).tolist()
        own = np.concatenate([self._places(site) for site in again])
        others = np.unique(np.concatenate([self.riders_of(site) for site in again]))
        others = others[others != rider]
        counts = _with_items(self._counts.of_riders(others))
        likelihood = MarginalLikelihood(counts, plain_population(counts, self._prior_mean[others]))
        p = latent.parameters
        design = latent.space.design(counts.item_metric, counts.item_site, p.a)
        functions = design.columns(0)[:, design.shared_size :]  # of a site's deviation, which are the same for all
        columns = np.hstack([functions * (counts.item_site == site)[:, None] for site in again])
        local, f = dense_design(columns), design.apply(p.shared, p.own)
        phi, by_a, windows = self._phi.copy(), np.zeros(counts.items), None
        held = Parameters(p.a, np.zeros(own.size), np.zeros((0, 0)), np.ones(1), np.zeros(0))
        for _ in range(_MOST_STEPS):
            at = likelihood.evaluate(held, Curve(f, local, by_a), windows, information=True)
            assert at.information is not None
            # The first and the last parameter, discrimination and population, are held.
            information = at.information.border[1:-1, 1:-1] + np.diag(self._precision[own])
            move = _inverse(information) @ (at.gradient[1:-1] - self._precision[own] * phi[own])
            reach = _reach(columns @ move)
            move *= newton.share_within(reach, _LONGEST_STEP)
            phi[own] += move
            f, windows = f + columns @ move, at.posterior.windows
            if not np.all(np.isfinite(phi)):
                return None
            if reach < _TOLERANCE:
                return Solved(latent, phi, latent.units)
        return None


def _with_items(counts: Counts) -> Counts:
    """Without the items that none of these riders has: the rest of a large cohort is not touched."""
    items = np.flatnonzero(counts.item_trials)
    return Counts(
        counts.trials[:, items], counts.successes[:, items], counts.item_metric[items], counts.item_site[items]
    )


def _reach(change: FloatArray) -> float:
    return float(np.max(np.abs(change), initial=0.0))


def _inverse(information: FloatArray) -> FloatArray:
    """The inverse of a penalised information. Where it is not positive definite, as can happen far from a maximum,
    its negative curvature is turned round first."""
    try:
        factor = cholesky.factor(information)
    except LinAlgError:
        factor = cholesky.factor(cholesky.positive(information))
    return cholesky.solve(factor, np.eye(len(information)))
