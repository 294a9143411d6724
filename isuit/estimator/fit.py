"""One fit from outcomes to estimate: gate, single curve, latent fit, held-out score, promotion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from isuit.domain import (
    Estimate,
    FitConfig,
    FloatArray,
    HeldOut,
    Observations,
    PromotionReport,
    Skills,
    names_at,
)
from isuit.errors import EstimationError
from isuit.record import Parameters
from isuit.record.diagnostics import Nearby
from isuit.record.predictions import CalibrationGroup, Scores, ScoresOfAll

from . import difficulty_curves
from . import movement as moving
from .diagnostics import forecasts, heldout, newcomers, record
from .gate import Coverage, Gate, check, check_each, incidence
from .likelihood import threads
from .likelihood.latent import LatentFit, fit_latent
from .likelihood.moving_fit import MovingFit
from .likelihood.prepared import Prepared
from .likelihood.single_curve import SingleCurve
from .likelihood.skill import Skilled, skill_of
from .likelihood.solver import Progress
from .likelihood.varying import Varied, discrimination_of
from .model.anchor import anchor_of
from .model.basis import Spline, spline_for
from .model.components import in_largest
from .model.counts import Counts, count, count_conditions
from .model.curves import CurveSpace
from .model.population import largest_clientele, visits
from .model.slopes import Slopes
from .model.surface import Surface, surface_for
from .nearby import borrowed
from .promotion import also_predicts, candidate
from .suitability import latent_parameters, single_parameters
from .support import support_of
from .surfaces import latent_surface, single_surface
from .validity import validate

ESTIMATOR_VERSION = "6"  # changes whenever the same cohort and configuration can give other numbers

USABLE_OUTCOMES, USABLE_BINS = 5, 3
USABLE_SD = 0.8  # a posterior sd above this says little more than that the rider is one of the population


@threads.one_thread()
def fit(data: Observations, config: FitConfig | None = None, progress: Progress | None = None) -> Estimate:
    """Estimate difficulty and skill, or the single curve where that is the honest answer."""
    config = FitConfig() if config is None else config
    validate(data, config)
    coverage, gate = _gate(data, config)
    prepared = _prepare(data, config, _functions(data, config))
    tried = candidate(prepared, gate.report, config, progress, roughly=config.skill == "estimated")
    found = _Found(data, config, coverage, gate, prepared, tried.promotion)
    if tried.promotion is None or tried.latent is None:
        return _single_estimate(found)
    alone, nearby = tried.latent, None
    if tried.promotion:
        alone, nearby = borrowed(data, config, alone, progress)
    varied = discrimination_of(alone, tried.promotion, data, config, progress)
    skilled = skill_of(varied.latent, tried.promotion, config, progress)
    moved = moving.Moved()
    if tried.promotion:
        # Whether skill moves is tested where the discrimination does not.
        still = skilled.latent if skilled.latent.space.slopes is None else varied.constant
        moved = moving.movement(data, config, prepared, still, progress)
    latent = skilled.latent if moved.fit is None else moved.fit
    found = replace(found, varied=varied, skilled=skilled, moved=moved, nearby=nearby)
    full = _Full(skilled.latent, prepared.single, moved.fit)
    predicted = _held_out(data, config, full, progress)
    found = replace(found, predicted=predicted, promotion=also_predicts(tried.promotion, predicted.held_out))
    if not found.promotion:
        return _single_estimate(found)
    if moved.fit is not None:
        return _latent_estimate(found, latent, newcomers.nobody("skill moves in this fit", predicted.scores))
    refit = partial(_refit, data, config, latent.space.spline, full, progress, present_only=True)
    scored = newcomers.newcomers(data, refit, predicted.scores)
    scored = replace(scored, left_out=predicted.left_out | scored.left_out)
    return _latent_estimate(found, latent, scored)


def _gate(data: Observations, config: FitConfig) -> tuple[Coverage, Gate]:
    """The gate's verdict on the metric, or on each of several, and what the core's riders covered: of several metrics
    in that with the most bins."""
    graphs = [incidence(data.rider, metric, len(data.riders), config.gate_bins) for metric in data.conditions]
    gate = check_each(graphs, data.metrics, config) if data.further else check(graphs[0], config)
    return max(graphs, key=lambda graph: graph.outcomes.shape[1]).coverage(gate.core), gate


def _functions(data: Observations, config: FitConfig) -> Spline | Surface:
    return surface_for(data.metrics, data.conditions, config.anchors) if data.further else spline_for(data.metric)


@dataclass(frozen=True)
class _Full:
    """The fit of the whole cohort, from which fits of its parts start."""

    latent: LatentFit
    single: SingleCurve
    moving: MovingFit | None = None


@dataclass(frozen=True)
class _Predicted:
    """Scores of outcomes that were kept back, for the record and for the diagnostics."""

    held_out: HeldOut | None = None
    scores: Scores | None = None
    calibration: tuple[CalibrationGroup, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)  # why there are none, where a refit failed


@dataclass(frozen=True)
class _Found:
    """What a fit has gathered about a cohort by the time its estimate is written."""

    data: Observations
    config: FitConfig
    coverage: Coverage
    gate: Gate
    prepared: Prepared
    promotion: PromotionReport | None  # None where the gate did not pass
    predicted: _Predicted = field(default_factory=_Predicted)
    varied: Varied | None = None
    skilled: Skilled | None = None
    moved: moving.Moved = field(default_factory=moving.Moved)
    nearby: Nearby | None = None


def _prepare(
    data: Observations,
    config: FitConfig,
    spline: Spline | Surface,
    space: CurveSpace | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> Prepared:
    sites = len(data.sites) if len(data.sites) > 1 else 0
    site = data.site if sites else None
    if isinstance(spline, Surface):
        counts = count_conditions(
            data.rider, data.conditions, data.outcome, spline.splines, len(data.riders), site, chosen
        )
    else:
        counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders), site, chosen=chosen)
    if space is None:
        outcomes = len(data) if chosen is None else int(np.count_nonzero(chosen))
        anchor = None if isinstance(spline, Surface) else anchor_of(config.anchor, spline)
        space = CurveSpace.for_outcomes(outcomes, spline, sites, anchor)
        space = replace(space, origin=largest_clientele(counts, sites) if sites else None)
    return Prepared(counts, space)


def _varying(space: CurveSpace, data: Observations, config: FitConfig) -> CurveSpace:
    """The space with a discrimination that changes, where that is asked for."""
    slopes = Slopes.for_conditions(data.conditions) if config.discrimination == "varying" else None
    return replace(space, slopes=slopes) if slopes is not None and slopes.size else space


def _held_out(data: Observations, config: FitConfig, full: _Full, progress: Progress | None) -> _Predicted:
    """Fit what is not kept back, and score what is. The space of curves is the same, and so, with many sites, is the
    smoothing."""
    kept_back = heldout.kept_back_rows(data, config.split)
    test = data.rows(kept_back)
    successes = int(data.outcome.sum(dtype=np.int64)) - int(test.outcome.sum(dtype=np.int64))
    if not len(test) or successes in (0, len(data) - len(test)):
        return _Predicted()
    try:
        predicted, baseline = _predict(data, config, kept_back, full, progress)
    except (EstimationError, LinAlgError) as error:
        # What is left can be without a best fit where the whole has one: riders who succeed or fail wholly.
        return _Predicted(left_out={"held_out": f"the refit without them failed: {error}"})
    scored = forecasts.Forecasts.of(test, predicted, baseline)
    return _Predicted(
        forecasts.held_out(scored, config.split),
        replace(forecasts.of_forecasts(scored), rule=heldout.RULES[config.split]),
        forecasts.calibration(predicted, scored.outcome),
    )


@threads.one_thread()
def predict_held_out(
    data: Observations, config: FitConfig, kept_back: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Posterior-predictive probabilities of the rows kept back, and the single curve's, from a fit of the others."""
    return _predict(data, config, kept_back, None, None)


def _predict(
    data: Observations,
    config: FitConfig,
    kept_back: NDArray[np.bool_],
    full: _Full | None,
    progress: Progress | None,
) -> tuple[FloatArray, FloatArray]:
    spline = _functions(data, config) if full is None else full.latent.space.spline
    fitted = _refit(data, config, spline, full, progress, ~kept_back, "held out")
    test = data.rows(kept_back)
    site = newcomers.places(test, fitted.space)
    if full is not None and full.moving is not None:
        again = moving.refit(data, config, ~kept_back, fitted.latent, full.moving)
        return moving.predict(data, ~kept_back, again, site), fitted.of_single(test, site)
    return fitted.latent.predict(test.rider.astype(np.int64), test.condition, site), fitted.of_single(test, site)


def _refit(
    data: Observations,
    config: FitConfig,
    spline: Spline | Surface,
    full: _Full | None,
    progress: Progress | None,
    chosen: NDArray[np.bool_],
    stage: str,
    present_only: bool = False,
) -> newcomers.Refit:
    """A fit of some of the outcomes, from the full solution where there is one; it reports under its own stage."""
    prepared = _prepare(data, config, spline, None if full is None else full.latent.space, chosen)
    if full is None:
        prepared = Prepared(prepared.counts, _varying(prepared.space, data, config))
    if present_only:
        # Riders without an outcome here would count in the population's mixture.
        prepared = Prepared(prepared.counts.of_present(), prepared.space)
    single = prepared.single if full is None else prepared.single_near(full.single)
    latent = fit_latent(
        prepared.counts,
        prepared.space,
        single,
        config.exposure == "correlated",
        None if full is None else full.latent,
        None if progress is None else (lambda _, share: progress(stage, share)),
    )
    return newcomers.Refit(prepared.space, single, latent)


def _single_estimate(found: _Found) -> Estimate:
    prepared, single, predicted = found.prepared, found.prepared.single, found.predicted
    return Estimate(
        kind="single-curve",
        estimator_version=ESTIMATOR_VERSION,
        discrimination=None,
        discrimination_se=None,
        log_likelihood=single.log_likelihood,
        identification=found.gate.report,
        promotion=found.promotion,
        held_out=predicted.held_out,
        curves=difficulty_curves.of_single(found.data, prepared.space, single),
        skills=None,
        parameters=_single_parameters(found, single),
        diagnostics=record.of_single(
            found.gate.report,
            single,
            predicted.calibration,
            newcomers.nobody("the fit is the single curve", predicted.scores),
        ),
    )


def _latent_estimate(found: _Found, latent: LatentFit, scored: ScoresOfAll) -> Estimate:
    data, prepared, predicted = found.data, found.prepared, found.predicted
    comparable = _comparable_sites(prepared.counts, prepared.space.sites)
    incomparable = [data.sites[s] for s in np.flatnonzero(~comparable)]
    return Estimate(
        kind="latent",
        estimator_version=ESTIMATOR_VERSION,
        discrimination=latent.discrimination,
        discrimination_se=latent.discrimination_se,
        log_likelihood=latent.solution.at.log_likelihood,
        identification=found.gate.report,
        promotion=found.promotion,
        held_out=predicted.held_out,
        curves=difficulty_curves.of_latent(data, prepared.space, latent, incomparable),
        skills=_skills(data, found.gate, found.coverage, latent),
        parameters=_latent_parameters(found, latent, incomparable),
        diagnostics=record.of_latent(
            latent,
            data=data,
            gate=found.gate.report,
            between=found.gate.between,
            prepared=prepared,
            assumed=found.config.exposure,
            incomparable=incomparable,
            calibration=predicted.calibration,
            scores=scored,
            skilled=found.skilled,
            varied=found.varied,
            movement=found.moved.report,
            nearby=found.nearby,
        ),
    )


def _single_parameters(found: _Found, single: SingleCurve) -> Parameters:
    data, space = found.data, found.prepared.space
    if not isinstance(space.spline, Surface):
        return single_parameters(space, data.sites, single)
    return single_surface(space, space.spline, data.sites, single, support_of(data, found.config))


def _latent_parameters(found: _Found, latent: LatentFit, incomparable: list[str]) -> Parameters:
    data, space = found.data, latent.space
    if not isinstance(space.spline, Surface):
        return latent_parameters(space, data.sites, latent, incomparable)
    return latent_surface(space, space.spline, data.sites, latent, incomparable, support_of(data, found.config))


def _comparable_sites(counts: Counts, sites: int) -> NDArray[np.bool_]:
    """Sites in the part of the rider-site graph that holds most outcomes: only these share an origin of difficulty."""
    if not sites:
        return np.zeros(0, dtype=bool)
    graph = visits(counts, sites)[:, :sites]
    outcomes = np.asarray(graph.sum(axis=0)).ravel()
    return np.asarray(in_largest(graph, outcomes) & (outcomes > 0))


def _skills(data: Observations, gate: Gate, coverage: Coverage, latent: LatentFit) -> Skills:
    mean, sd = latent.skills()
    core = np.flatnonzero(gate.core)
    outcomes, bins = coverage.outcomes, coverage.bins
    usable = (outcomes >= USABLE_OUTCOMES) & (bins >= USABLE_BINS) & (sd[core] <= USABLE_SD)
    paths = moving.paths(latent, core) if isinstance(latent, MovingFit) else None
    return Skills(names_at(data.riders, core), mean[core], sd[core], outcomes, bins, usable, paths)
