"""How far any one rider moves a released point.

The estimator tells what becomes of difficulty without a rider (`isuit.estimator.weighted_fit`). One step, which is
cheap, tells for every rider of every cell about how far. Those who may move a point too far are then left out in
earnest, at the cells where they may: a world of a thousand cells is not solved again for each of its riders.

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

REFIT_SHARE = 0.5  # of the limit: riders whose step is longer are solved to the end
TOGETHER_SHARE = 0.25  # of the limit: cells where the step of such a rider is longer are solved together
REFITTED = 5  # riders of a cell who are always solved to the end where steps are too short: those with the longest


def refused_bins(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> NDArray[np.bool_]:
    """Cells by bins: the released points that leaving out some rider moves by more than the limit."""
    return np.asarray(released & (largest_influence(curves, released, policy) > policy.influence))


def largest_influence(curves: CellCurves, released: NDArray[np.bool_], policy: Policy) -> FloatArray:
    """The largest movement of each released point by any one rider, in skill sds; zero where nothing is released."""
    centres = curves.placed.bins.centres
    leaving, scale = curves.fit.leaving_out(), Scale.of(curves.fit)
    published = [scale.top_coded(leaving.nobody.difficulty(centres, cell)) for cell in range(len(released))]
    moved = np.zeros(released.shape)
    again: dict[int, list[int]] = {}  # rider: cells that are solved again without them
    doubted: set[int] = set()
    for cell in np.flatnonzero(released.any(axis=1)).tolist():
        riders = leaving.riders_of(cell)
        change = np.abs(scale.top_coded(leaving.after_step(cell, riders, centres)) - published[cell])
        size = change[:, released[cell]].max(axis=1)
        long = size > REFIT_SHARE * policy.influence
        if not leaving.step_is_near:
            long[np.argsort(-size, kind="stable")[:REFITTED]] = True
        doubted.update(riders[long].tolist())
        for rider in riders[long | (size > TOGETHER_SHARE * policy.influence)].tolist():
            again.setdefault(rider, []).append(cell)
        moved[cell] = change[~long].max(axis=0, initial=0.0)
    for rider in sorted(doubted):
        without = leaving.without(rider, np.array(again[rider]))
        for cell in again[rider] if leaving.step_is_near else leaving.sites_of(rider).tolist():
            # Without a solution everything hangs on this rider.
            by: FloatArray | float = np.inf
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
