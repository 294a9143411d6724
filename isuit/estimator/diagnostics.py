"""What a fit says about itself: convergence, calibration, exposure, and whether the two curves agree.

Outcomes exist only for those who went out. Difficulty is that of the conditions people faced, and a fit cannot tell how
those would have fared who stayed at home.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isuit.domain import CodeArray, FloatArray, Observations

from .counts import Counts
from .curves import CurveSpace
from .latent import LatentFit
from .minimum import least_difficulty
from .order import quantiles
from .single_curve import SingleCurve

# The skill-integrated curve and the single curve agree when they differ nowhere, over the central 95 % of outcomes, by
# more than the first of these, or the second over the root of the number of riders where that is larger: sampling alone
# gives that much in one cohort of a hundred (docs/explanation/model.md).
MARGINAL_TOLERANCE, MARGINAL_SAMPLING = 0.05, 0.5
CALIBRATION_GROUPS = 10
STRONG_EXPOSURE = 0.2  # correlation of mean metric with skill from which the independence of the two is in doubt
_METRICS = 101


def of_latent(
    data: Observations,
    space: CurveSpace,
    counts: Counts,
    single: SingleCurve,
    latent: LatentFit,
    incomparable: list[str],
) -> dict[str, Any]:
    """All diagnostics of a latent fit as JSON values."""
    difference = _marginal_difference(data, space, single, latent)
    tolerance = marginal_tolerance(len(data.riders))
    posterior = latent.solution.at.posterior
    spread, doubt = float(np.var(posterior.mean)), float(np.mean(posterior.sd**2))
    return {
        "convergence": {"gradient_norm": latent.solution.gradient_norm, "steps": latent.solution.steps},
        "effective_degrees_of_freedom": latent.effective_degrees_of_freedom,
        "log_precisions": latent.solution.rho.tolist(),
        "minimum": least_difficulty(latent).as_json(),
        "marginal": {
            "matches": difference <= tolerance,
            "largest_difference": difference,
            "tolerance": tolerance,
            "average": "riders",
        },
        "incomparable_sites": incomparable,
        "exposure": _exposure(counts, latent, difference),
        "marginal_reliability": spread / (spread + doubt),
        "item_fit": _item_fit(counts, latent),
    }


def calibration(predicted: FloatArray, outcome: CodeArray) -> list[dict[str, float]]:
    """Predicted against observed shares of success of held-out outcomes, in ten groups of equal size."""
    order = np.lexsort((outcome, predicted))
    return [
        {
            "outcomes": int(part.size),
            "predicted": float(predicted[part].mean()),
            "observed": float(outcome[part].mean()),
        }
        for part in np.array_split(order, min(CALIBRATION_GROUPS, order.size))
    ]


def marginal_tolerance(riders: int) -> float:
    return max(MARGINAL_TOLERANCE, MARGINAL_SAMPLING / float(np.sqrt(riders)))


def _marginal_difference(data: Observations, space: CurveSpace, single: SingleCurve, latent: LatentFit) -> float:
    """The largest difference of the two curves over the central 95 % of outcomes."""
    low, high = quantiles(data.metric, np.array([0.025, 0.975]))
    metric = np.linspace(low, high, _METRICS)
    own = single.suitability(space.design(metric, np.full(_METRICS, -1), 0.0))
    return float(np.max(np.abs(latent.marginal(metric) - own)))


def _exposure(counts: Counts, latent: LatentFit, difference: float) -> dict[str, Any]:
    """Whether stronger riders choose other conditions, which breaks the independence of skill and metric."""
    mean_metric = (counts.trials @ counts.item_metric) / np.maximum(counts.rider_trials, 1.0)
    skill = latent.solution.at.posterior.mean
    correlation = None
    if np.ptp(mean_metric) > 0 and np.ptp(skill) > 0:
        correlation = float(np.corrcoef(mean_metric, skill)[0, 1])
    sentence = None
    if correlation is not None and abs(correlation) >= STRONG_EXPOSURE:
        sentence = (
            f"Riders choose conditions by skill (correlation of mean metric with skill {correlation:+.2f}); among "
            f"those who go out, suitability differs from the population's by up to {difference:.2f}: use --exposure "
            "correlated, and do not read the curve as that of people who stayed away."
        )
    return {"correlation_of_mean_metric_with_skill": correlation, "sentence": sentence}


def _item_fit(counts: Counts, latent: LatentFit) -> list[dict[str, float]]:
    """Observed and expected successes in ten bands of the metric with equal numbers of outcomes."""
    order = np.argsort(counts.item_metric, kind="stable")
    share = np.cumsum(counts.item_trials[order]) / counts.item_trials.sum()
    band = np.minimum((share * CALIBRATION_GROUPS - 1e-9).astype(np.int64), CALIBRATION_GROUPS - 1)
    bands = []
    for b in np.unique(band):
        items = order[band == b]
        observed = float(counts.item_successes[items].sum())
        bands.append(
            {
                "lower": float(counts.item_metric[items].min()),
                "upper": float(counts.item_metric[items].max()),
                "outcomes": float(counts.item_trials[items].sum()),
                "observed": observed,
                "expected": observed - float(latent.solution.at.item_residual[items].sum()),
            }
        )
    return bands
