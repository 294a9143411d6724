"""What a fit says about itself: what it estimates, convergence, predictions, exposure, and how items and skills fit.

`isuit.record.diagnostics` names and describes each.
"""

from __future__ import annotations

import numpy as np

from isuit.domain import Exposure, GateReport, Observations
from isuit.record.diagnostics import (
    CalibrationGroup,
    Convergence,
    Diagnostics,
    ItemBand,
    OutsideCore,
    ScoresOfAll,
)

from ..likelihood.latent import LatentFit
from ..likelihood.single_curve import SingleCurve
from ..likelihood.skill import Skilled
from ..model.counts import Counts
from ..model.curves import CurveSpace
from . import assumptions
from .distribution import distribution
from .exposure import ESTIMAND, compared, exposure
from .minimum import least_difficulty

BANDS = 10  # of the metric, for item fit


def of_single(
    gate: GateReport, single: SingleCurve, calibration: tuple[CalibrationGroup, ...], scores: ScoresOfAll
) -> Diagnostics:
    """What a single-curve fit says about itself."""
    return Diagnostics(
        estimand=ESTIMAND,
        outside_core=_outside_core(gate),
        log_precisions=tuple(single.rho.tolist()),
        calibration=calibration,
        scores=scores,
    )


def _outside_core(gate: GateReport) -> OutsideCore:
    return OutsideCore(riders=1.0 - gate.core_riders / max(1, gate.riders), outcomes=1.0 - gate.core_share)


def of_latent(
    gate: GateReport,
    data: Observations,
    space: CurveSpace,
    counts: Counts,
    single: SingleCurve,
    latent: LatentFit,
    incomparable: list[str],
    assumed: Exposure,
    calibration: tuple[CalibrationGroup, ...],
    scores: ScoresOfAll,
    skilled: Skilled | None = None,
) -> Diagnostics:
    """What a latent fit says about itself."""
    comparison = compared(counts, space, single, latent)
    posterior = latent.solution.at.posterior
    spread, doubt = float(np.var(posterior.mean)), float(np.mean(posterior.sd**2))
    return Diagnostics(
        estimand=ESTIMAND,
        outside_core=_outside_core(gate),
        log_precisions=tuple(latent.solution.rho.tolist()),
        calibration=calibration,
        scores=scores,
        convergence=Convergence(gradient_norm=latent.solution.gradient_norm, steps=latent.solution.steps),
        effective_degrees_of_freedom=latent.effective_degrees_of_freedom,
        minimum=least_difficulty(latent),
        marginal=comparison,
        incomparable_sites=tuple(incomparable),
        exposure=exposure(data, counts, latent, comparison, assumed),
        marginal_reliability=spread / (spread + doubt),
        item_fit=_item_fit(counts, latent),
        assumptions=assumptions.tests(latent, None if skilled is None or skilled.normal is latent else skilled.normal),
        skill_distribution=distribution(latent, skilled.reason) if skilled is not None and skilled.asked else None,
    )


def _item_fit(counts: Counts, latent: LatentFit) -> tuple[ItemBand, ...]:
    """Observed and expected successes in ten bands of the metric with equal numbers of outcomes."""
    order = np.argsort(counts.item_metric, kind="stable")
    share = np.cumsum(counts.item_trials[order]) / counts.item_trials.sum()
    band = np.minimum((share * BANDS - 1e-9).astype(np.int64), BANDS - 1)
    bands = []
    for b in np.unique(band):
        items = order[band == b]
        observed = float(counts.item_successes[items].sum())
        bands.append(
            ItemBand(
                lower=float(counts.item_metric[items].min()),
                upper=float(counts.item_metric[items].max()),
                outcomes=float(counts.item_trials[items].sum()),
                observed=observed,
                expected=observed - float(latent.solution.at.item_residual[items].sum()),
            )
        )
    return tuple(bands)
