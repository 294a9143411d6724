"""How far any one rider moves a released point.

The estimator tells what becomes of difficulty without a rider (`isuit.estimator.weighted_fit`). One step ranks the
riders of a cell, cheaply; those who move a point most are then left out in earnest, because with fewer than about
twenty riders one step is too small.

Points that are top-coded are compared as published: beyond the ends of the scale there is no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray
from isuit.estimator.weighted_fit import WeightedFit
from isuit.release.cell_curves import CellCurves
from isuit.release.policy import SATURATION, Policy

REFITTED = 5  # riders of a cell who are always solved to the end: those with the largest steps
REFIT_SHARE = 0.5  # and so are all whose step is above this share of the limit


def refused_bins(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> NDArray[np.bool_]:
    """Cells by bins: the released points that leaving out some rider moves by more than the limit."""
    return np.asarray(released & (largest_influence(curves, released, policy) > policy.influence))


def largest_influence(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> FloatArray:
    """The largest movement of each released point by any one rider, in skill sds; zero where nothing is released."""
    centres = curves.placed.bins.centres
    leaving, scale = curves.fit.leaving_out(), Scale.of(curves.fit)
    published = [scale.top_coded(leaving.nobody.difficulty(centres, cell)) for cell in range(len(released))]
    refit: set[int] = set()
    for cell in np.flatnonzero(released.any(axis=1)).tolist():
        riders = leaving.riders_of(cell)
        change = np.abs(scale.top_coded(leaving.after_step(cell, riders, centres)) - published[cell])
        size = change[:, released[cell]].max(axis=1)
        refit.update(riders[np.argsort(-size, kind="stable")[:REFITTED]].tolist())
        refit.update(riders[size > REFIT_SHARE * policy.influence].tolist())
    moved = np.zeros(released.shape)
    for rider in sorted(refit):
        without = leaving.without(rider)
        for cell in leaving.sites_of(rider).tolist():
            # Without a solution everything hangs on this rider.
            by = np.inf
            if without is not None:
                by = np.abs(scale.top_coded(without.difficulty(centres, cell)) - published[cell])
            moved[cell] = np.maximum(moved[cell], by)
    return np.where(released, moved, 0.0)


@dataclass(frozen=True)
class Scale:
    """The ends of the published scale: beyond them a point is saturated."""

    easiest: float
    hardest: float

    @classmethod
    def of(cls, fit: WeightedFit) -> Scale:
        return cls(fit.difficulty_at(SATURATION[1]), fit.difficulty_at(SATURATION[0]))

    def top_coded(self, difficulty: FloatArray) -> FloatArray:
        """Difficulty as published."""
        return np.clip(difficulty, self.easiest, self.hardest)
