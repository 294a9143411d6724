"""What a fit says about itself: what it estimates, convergence, predictions, exposure, and how items and skills fit.

`isuit.record.diagnostics` names and describes each.
"""

from __future__ import annotations

import numpy as np

from isuit.domain import NO_SITE, Exposure, GateReport, Observations
from isuit.record.diagnostics import (
    Convergence,
    Diagnostics,
    ItemBand,
    Movement,
    Nearby,
    OutsideCore,
    TermReport,
)
from isuit.record.predictions import CalibrationGroup, ScoresOfAll

from ..likelihood.latent import LatentFit
from ..likelihood.moving_fit import MovingFit
from ..likelihood.prepared import Prepared
from ..likelihood.single_curve import SingleCurve
from ..likelihood.skill import Skilled
from ..likelihood.varying import Varied
from ..model.counts import Counts
from ..model.population import LEAST_WITHIN, within_riders
from ..model.smoothing import precisions
from ..model.surface import Surface
from ..model.terms import TermEffect, term_effects
from . import assumptions
from .distribution import distribution
from .exposure import ESTIMAND, along, compared, exposure
from .minimum import least_difficulty
from .steepness import varying_discrimination

TOGETHER = 0.5  # share of a main effect that others explain from which it is told
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
    latent: LatentFit,
    *,
    data: Observations,
    gate: GateReport,
    between: tuple[bool, ...],
    prepared: Prepared,
    assumed: Exposure,
    incomparable: list[str],
    calibration: tuple[CalibrationGroup, ...],
    scores: ScoresOfAll,
    skilled: Skilled | None,
    varied: Varied | None,
    movement: Movement | None,
    nearby: Nearby | None,
) -> Diagnostics:
    """What a latent fit says about itself.

    `between` tells of each metric whether the gate let it pass because riders can be compared; `incomparable` names the
    sites that share no origin with the others; the last four are None where the fit was not asked for them, or not of
    that kind.
    """
    counts, space = prepared.counts, latent.space
    comparison = compared(counts, space, prepared.single, latent)
    # Who goes where, and what is assumed of skill, is told from the fit in which a rider has one skill.
    still = latent.still if isinstance(latent, MovingFit) else latent
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
        minimum=None if isinstance(space.spline, Surface) else least_difficulty(latent),
        marginal=comparison,
        incomparable_sites=tuple(incomparable),
        exposure=exposure(data, counts, still, comparison, assumed),
        marginal_reliability=spread / (spread + doubt),
        item_fit=_item_fit(counts, latent),
        assumptions=assumptions.tests(
            still,
            None if skilled is None or skilled.normal is still else skilled.normal,
            None if varied is None or varied.constant is still else varied.constant,
        ),
        skill_distribution=distribution(latent, skilled.reason) if skilled is not None and skilled.asked else None,
        terms=terms_of(latent, between, assumed) or None,
        movement=movement,
        discrimination=varying_discrimination(latent, data, varied.reason) if varied and varied.asked else None,
        nearby=nearby,
    )


def _item_fit(counts: Counts, latent: LatentFit) -> tuple[ItemBand, ...]:
    """Observed and expected successes in ten bands of the metric with equal numbers of outcomes; of several metrics, in
    bands of the difficulty that the fit gives a condition."""
    metric = along(counts, latent)
    order = np.argsort(metric, kind="stable")
    share = np.cumsum(counts.item_trials[order]) / counts.item_trials.sum()
    band = np.minimum((share * BANDS - 1e-9).astype(np.int64), BANDS - 1)
    bands = []
    for b in np.unique(band):
        items = order[band == b]
        observed = float(counts.item_successes[items].sum())
        bands.append(
            ItemBand(
                lower=float(metric[items].min()),
                upper=float(metric[items].max()),
                outcomes=float(counts.item_trials[items].sum()),
                observed=observed,
                expected=observed - float(latent.solution.at.item_residual[items].sum()),
            )
        )
    return tuple(bands)


def terms_of(
    latent: LatentFit, between: tuple[bool, ...] = (), assumed: Exposure = "independent"
) -> tuple[TermReport, ...]:
    """What each term of a surface does; nothing where there is one metric.

    `between` tells of each metric whether the gate let it pass because riders can be compared.
    """
    surface, p, counts = latent.space.spline, latent.parameters, latent.problem.likelihood.counts
    if not isinstance(surface, Surface):
        return ()
    own = slice(1, 1 + surface.in_raw.shape[1])
    effects = term_effects(
        surface,
        latent.space.design(counts.item_metric, np.full(counts.items, NO_SITE), p.a),
        counts.item_trials,
        p.shared[: surface.in_raw.shape[1]],
        latent.solution.covariance.border[own, own],
        latent.degrees_of_freedom[own],
        precisions(latent.solution.rho, latent.problem.groups)[own],
    )
    means = (counts.trials @ counts.item_metric) / np.maximum(counts.rider_trials, 1.0)[:, None]
    within = within_riders(counts, counts.item_metric, means)
    reports = []
    for effect in effects:
        names = tuple(surface.metrics[k] for k in effect.metrics)
        reports.append(
            TermReport(
                metrics=names,
                sd=effect.sd / (p.a * latent.units.sd),
                degrees_of_freedom=effect.degrees_of_freedom,
                p_value=effect.p_value,
                is_zero=effect.is_zero,
                explained_by_others=effect.explained,
                sentence=_sentence(names, effect, between, float(within[effect.metrics[0]]), assumed),
                within_riders=float(within[effect.metrics[0]]) if len(names) == 1 else None,
            )
        )
    return tuple(reports)


def _sentence(
    names: tuple[str, ...], effect: TermEffect, between: tuple[bool, ...], within: float, assumed: Exposure
) -> str | None:
    if len(names) > 1:
        return None
    said = []
    if effect.explained >= TOGETHER:
        said.append(
            f"{names[0]} moves with the other metrics, which explain {effect.explained:.0%} of what it could do: its "
            "effect is hard to tell from theirs, and its band is as wide as that makes it."
        )
    if between and between[effect.metrics[0]]:
        said.append(
            f"{names[0]} hardly changes for a rider ({within:.0%} of its variance): {_told_by(within, assumed)}."
        )
    return " ".join(said) or None


def _told_by(within: float, assumed: Exposure) -> str:
    if assumed == "correlated" and within >= LEAST_WITHIN:
        return "its effect is told by the few who change"
    difference = "its effect compares riders with one another and holds what they differ in skill"
    return difference if within < LEAST_WITHIN else f"{difference}; --exposure correlated asks only those who change"
