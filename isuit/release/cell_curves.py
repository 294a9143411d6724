"""Step 4: the release's own fit, on what the screening left and on nothing else. Cells take the role of sites.

The estimator's gates hold here as for any fit: where skill and difficulty cannot be told apart, or skill explains
nothing, there is no difficulty to release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FitConfig, FloatArray
from isuit.estimator import weighted_fit
from isuit.estimator.weighted_fit import Band, WeightedFit, WeightedOutcomes, fit_weighted
from isuit.release.grid import Grid
from isuit.release.policy import Policy
from isuit.release.screening import Placed, weights


@dataclass(frozen=True)
class CellCurves:
    """The curves of all cells, read off at the centres of the bins."""

    placed: Placed
    fit: WeightedFit

    def difficulty(self, cell: int) -> Band:
        """Difficulty at the centres of all bins, with its standard error."""
        return self.fit.difficulty(self.placed.bins.centres, cell)

    def suitability(self, cell: int) -> FloatArray:
        """How often the whole population succeeds at the centres of all bins."""
        return self.fit.suitability(self.placed.bins.centres, cell)


def fit_cells(placed: Placed, policy: Policy, config: FitConfig) -> CellCurves:
    """Fit the curves of all cells together; raises `Unfit` where the estimator's gates do not pass."""
    weight = weights(placed, policy)
    if placed.line is not None:
        weight = weight[np.unique(placed.line, return_index=True)[1]]
    placed_once = placed.lines
    outcomes, bins = placed_once.outcomes, placed.bins
    given = WeightedOutcomes(
        rider=outcomes.rider,
        riders=len(outcomes.riders),
        site=placed_once.cell,
        sites=len(placed.cells),
        metric=outcomes.metric,
        outcome=outcomes.outcome,
        weight=weight,
        metric_range=bins.ranges if isinstance(bins, Grid) else (bins.lower, bins.upper),
        metrics=bins.metrics if isinstance(bins, Grid) else (),
    )
    return CellCurves(placed, fit_weighted(given, config))


def comparable(placed: Placed) -> NDArray[np.bool_]:
    """By cell, whether riders link it to the cells that hold most riders, and would do so without any one of them."""
    return weighted_fit.comparable(placed.outcomes.rider, len(placed.outcomes.riders), placed.cell, len(placed.cells))
