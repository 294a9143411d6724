"""Step 4: the release's own fit, on what the screening left and on nothing else. Cells take the role of sites.

The estimator's gates hold here as for any fit: where skill and difficulty cannot be told apart, or skill explains
nothing, there is no difficulty to release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FitConfig, FloatArray
<<<<<<< HEAD
from isuit.estimator import weighted_fit
from isuit.estimator.weighted_fit import Band, WeightedFit, WeightedOutcomes, fit_weighted
=======
from isuit.errors import EstimationError
from isuit.estimator.fit import PROMOTION_LEVEL
from isuit.estimator.gate import check, incidence
from isuit.estimator.likelihood import threads
from isuit.estimator.likelihood.latent import Band, LatentFit, fit_latent, penalised_log_likelihood
from isuit.estimator.likelihood.single_curve import SingleCurve, fit_single_curve
from isuit.estimator.model.anchor import anchor_of
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import Counts, count
from isuit.estimator.model.curves import CurveSpace
>>>>>>> h3
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
<<<<<<< HEAD
    outcomes = placed.outcomes
    given = WeightedOutcomes(
        rider=outcomes.rider,
        riders=len(outcomes.riders),
        site=placed.cell,
        sites=len(placed.cells),
        metric=outcomes.metric,
        outcome=outcomes.outcome,
        weight=weights(placed, policy),
        metric_range=(placed.bins.lower, placed.bins.upper),
=======
    outcomes, cells = placed.outcomes, len(placed.cells)
    if outcomes.outcome.min() == outcomes.outcome.max():
        raise Unfit("all outcomes are equal, so nothing tells riders apart")
    graph = incidence(outcomes.rider, outcomes.metric, len(outcomes.riders), config.gate_bins)
    gate = check(graph, config)
    if not gate.report:
        raise Unfit(*gate.report.shortfalls)
    # The ends of the bins are in the spline's range, so that it does not end at any rider's own extreme.
    spline = spline_for(np.concatenate([outcomes.metric, [placed.bins.lower, placed.bins.upper]]))
    space = CurveSpace(spline, cells if cells > 1 else 0, anchor_of(config.anchor, spline))
    counts = count(
        outcomes.rider,
        outcomes.metric,
        outcomes.outcome,
        spline,
        len(outcomes.riders),
        placed.cell if cells > 1 else None,
        weights(placed, policy),
>>>>>>> h3
    )
    return CellCurves(placed, fit_weighted(given, config))


def comparable(placed: Placed) -> NDArray[np.bool_]:
    """By cell, whether riders link it to the cells that hold most riders, and would do so without any one of them."""
    return weighted_fit.comparable(placed.outcomes.rider, len(placed.outcomes.riders), placed.cell, len(placed.cells))
