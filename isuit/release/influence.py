"""How far any one rider moves a released point.

Leaving a rider out means: the rider's cells are solved again without them, with everything that cells share held
(discrimination, common curve, population, smoothing). With few cells or few riders the shared part is theirs, so there
everything but the smoothing is solved again (measured with two cells of 15 riders: a point moves by 0.13 with the
shared part held and by 0.29 in truth). One step with the inverse information and the rider's score ranks the riders;
the largest are then solved to the end, because with fewer than about twenty riders one step is too small.

Points that are top-coded are compared as published: beyond the ends of the scale there is no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from scipy.special import expit

from isuit.domain import FloatArray, IntArray
from isuit.estimator.likelihood import threads
from isuit.estimator.likelihood.solver import split
from isuit.estimator.model.curves import FEW_SITES
from isuit.estimator.model.normal import NODES, WEIGHTS
from isuit.estimator.model.population import Units
from isuit.release.cell_curves import CellCurves
from isuit.release.leaving_out import AllParameters, OwnParameters
from isuit.release.policy import SATURATION, Policy

FEW_RIDERS = 100  # in the whole release; among more, one rider moves what all share by less than a rounding step
REFITTED = 5  # riders of a cell who are always solved to the end: those with the largest steps
REFIT_SHARE = 0.5  # and so are all whose step is above this share of the limit


def refused_bins(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> NDArray[np.bool_]:
    """Cells by bins: the released points that leaving out some rider moves by more than the limit."""
    return np.asarray(released & (largest_influence(curves, released, policy) > policy.influence))


@threads.one_thread()
def largest_influence(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> FloatArray:
    """The largest movement of each released point by any one rider, in skill sds; zero where nothing is released."""
    latent, cells = curves.latent, len(curves.placed.cells)
    visits = _visits(curves)
    few = cells < FEW_SITES or visits.shape[0] < FEW_RIDERS
    leaving = AllParameters(latent, curves.counts) if few else OwnParameters(latent, curves.counts, visits)
    scale = Scale.of(latent.discrimination, latent.units)
    points = _Points(curves, scale, latent.solution.phi, latent.units)
    by_cell = visits.tocsc()
    refit: set[int] = set()
    for cell in range(cells):
        if not released[cell].any():
            continue
        here = by_cell.indices[by_cell.indptr[cell] : by_cell.indptr[cell + 1]]
        riders = np.arange(visits.shape[0]) if few else here
        change = np.abs(points.after_steps(leaving.steps(cell, riders), leaving.places(cell), cell))
        size = change[:, released[cell]].max(axis=1)
        refit.update(riders[np.argsort(-size, kind="stable")[:REFITTED]].tolist())
        refit.update(riders[size > REFIT_SHARE * policy.influence].tolist())
    moved = np.zeros(released.shape)
    for rider in sorted(refit):
        touched = np.arange(cells) if few else visits[rider].indices
        solution = leaving.without(rider)
        for cell in touched.tolist():
            # Without a solution everything hangs on this rider.
            by = np.inf if solution is None else np.abs(points.at(*solution, cell) - points.published[cell])
            moved[cell] = np.maximum(moved[cell], by)
    return np.where(released, moved, 0.0)


def _visits(curves: CellCurves) -> csr_matrix:
    """Riders by cells, one where a rider was."""
    cells = len(curves.placed.cells)
    pairs = np.unique(curves.placed.outcomes.rider * cells + curves.placed.cell)
    shape = (len(curves.placed.outcomes.riders), cells)
    return csr_matrix((np.ones(pairs.size), (pairs // cells, pairs % cells)), shape=shape)


@dataclass(frozen=True)
class Scale:
    """The ends of the published scale: beyond them a point is saturated."""

    easiest: float
    hardest: float

    @classmethod
    def of(cls, discrimination: float, units: Units) -> Scale:
        # The population's mixture in units of its total skill, as difficulty is.
        theta = ((units.points[:, None] + NODES).ravel() - units.mean) / units.sd
        weight = np.tile(WEIGHTS, units.points.size) / units.points.size

        def at(probability: float) -> float:
            def excess(difficulty: float) -> float:
                return float(expit(discrimination * (theta - difficulty)) @ weight) - probability

            reach = 10.0 + 10.0 / discrimination
            return float(brentq(excess, -reach, reach))

        return cls(at(SATURATION[1]), at(SATURATION[0]))


class _Points:
    """Difficulty at the bins' centres, top-coded as published, for any parameters of the same fit."""

    def __init__(self, curves: CellCurves, scale: Scale, phi: FloatArray, units: Units) -> None:
        self._curves, self._scale, self._phi, self._units = curves, scale, phi, units
        self._centres = curves.placed.bins.centres
        self.published = [self.at(phi, units, cell) for cell in range(len(curves.placed.cells))]

    def at(self, phi: FloatArray, units: Units, cell: int) -> FloatArray:
        latent = self._curves.latent
        a, coefficients, _ = split(latent.problem, phi)
        site = np.full(self._centres.size, self._curves.code(cell))
        f = latent.space.design(self._centres, site, a).apply(coefficients)
        return self._top_coded((f / a - units.mean) / units.sd)

    def after_steps(self, steps: FloatArray, places: IntArray, cell: int) -> FloatArray:
        """Changes for many small steps of the parameters at these places, one row each, to first order."""
        latent = self._curves.latent
        value, slope = latent.difficulty_slope(self._centres, self._curves.code(cell))
        return np.asarray(self._top_coded(value - steps @ slope[:, places].T) - self._top_coded(value))

    def _top_coded(self, difficulty: FloatArray) -> FloatArray:
        return np.clip(difficulty, self._scale.easiest, self._scale.hardest)
