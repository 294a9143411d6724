"""One fit from outcomes to estimate: gate, single curve, latent fit, held-out score, promotion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc  # chi-square's tail; scipy.stats would take a second to import

from isuit.domain import (
    DifficultyCurve,
    Estimate,
    FitConfig,
    FloatArray,
    HeldOutScores,
    Observations,
    PromotionReport,
    Skills,
)

from .diagnostics import forecasts as scores
from .diagnostics import heldout, newcomers
from .diagnostics import record as diagnostics
from .gate import Gate, Incidence, check, incidence
from .likelihood import threads
from .likelihood.latent import LatentFit, anchor_of, fit_latent, penalised_log_likelihood
from .likelihood.single_curve import SingleCurve, fit_single_curve
from .likelihood.solver import Progress
from .model.basis import Spline, spline_for
from .model.counts import Counts, count
from .model.curves import CurveSpace
from .model.design import Design
from .model.population import largest_clientele, visits
from .suitability import latent_parameters, single_parameters
from .validity import validate

ESTIMATOR_VERSION = "2"  # changes whenever the same cohort and configuration can give other numbers

GRID_POINTS = 101  # metrics at which a curve is told
USABLE_OUTCOMES, USABLE_BINS = 5, 3
USABLE_SD = 0.8  # a posterior sd above this says little more than that the rider is one of the population
PROMOTION_LEVEL = 0.01


@dataclass(frozen=True)
class _Prepared:
    """A cohort counted, with the space its curves live in."""

    counts: Counts
    space: CurveSpace

    @cached_property
    def single_design(self) -> Design:
        return self.space.design(self.counts.item_metric, self.counts.item_site, 0.0)

    def single_curve(self, rho: FloatArray | None = None, start: SingleCurve | None = None) -> SingleCurve:
        counts = self.counts
        return fit_single_curve(self.single_design, counts.item_trials, counts.item_successes, rho, start)


@threads.one_thread()
def fit(data: Observations, config: FitConfig | None = None, progress: Progress | None = None) -> Estimate:
    """Estimate difficulty and skill, or the single curve where that is the honest answer."""
    config = FitConfig() if config is None else config
    validate(data, config)
    graph = incidence(data.rider, data.metric, len(data.riders), config.gate_bins)
    gate = check(graph, config)
    prepared = _prepare(data, config, spline_for(data.metric))
    single = prepared.single_curve()
    if not gate.report:
        return _single_estimate(data, gate, None, prepared, single)
    if data.outcome.min() == data.outcome.max():
        flat = PromotionReport(False, None, None, ("all outcomes are equal, so nothing tells riders apart",))
        return _single_estimate(data, gate, flat, prepared, single)
    latent = fit_latent(prepared.counts, prepared.space, single, config.exposure == "correlated", progress=progress)
    if latent.solution.no_skill:
        none = PromotionReport(False, 0.0, 0.5, ("skill explains nothing: the discrimination goes to zero",))
        return _single_estimate(data, gate, none, prepared, single)
    predicted = _held_out(data, config, latent, progress)
    promotion = _promotion(prepared, single, latent, predicted.held_out)
    if not promotion:
        return _single_estimate(data, gate, promotion, prepared, single, predicted)
    refit = partial(_refit, data, config, latent.space.spline, latent, progress, present_only=True)
    others = newcomers.newcomers(data, refit)
    return _latent_estimate(data, config, gate, graph, promotion, predicted, others, prepared, single, latent)


def _prepare(
    data: Observations,
    config: FitConfig,
    spline: Spline,
    space: CurveSpace | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> _Prepared:
    sites = len(data.sites) if len(data.sites) > 1 else 0
    site = data.site if sites else None
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders), site, chosen=chosen)
    if space is None:
        outcomes = len(data) if chosen is None else int(np.count_nonzero(chosen))
        space = CurveSpace.for_outcomes(outcomes, spline, sites, anchor_of(config.anchor))
        space = replace(space, origin=largest_clientele(counts, sites) if sites else None)
    return _Prepared(counts, space)


@dataclass(frozen=True)
class _Predicted:
    """Scores of outcomes that were kept back, for the record and for the diagnostics."""

    held_out: HeldOutScores | None = None
    scores: dict[str, Any] | None = None
    calibration: list[dict[str, float]] = field(default_factory=list)


def _held_out(data: Observations, config: FitConfig, full: LatentFit, progress: Progress | None) -> _Predicted:
    """Fit what is not kept back, and score what is. The space of curves is the same; smoothing is chosen anew."""
    kept_back = heldout.kept_back_rows(data, config.split)
    test = data.rows(kept_back)
    successes = int(data.outcome.sum(dtype=np.int64)) - int(test.outcome.sum(dtype=np.int64))
    if not len(test) or successes in (0, len(data) - len(test)):
        return _Predicted()
    predicted, baseline = _predict(data, config, kept_back, full, progress)
    forecasts = scores.Forecasts.of(test, predicted, baseline)
    return _Predicted(
        scores.held_out(forecasts, config.split),
        scores.of_forecasts(forecasts),
        scores.calibration(predicted, forecasts.outcome),
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
    full: LatentFit | None,
    progress: Progress | None,
) -> tuple[FloatArray, FloatArray]:
    spline = spline_for(data.metric) if full is None else full.space.spline
    fitted = _refit(data, config, spline, full, progress, ~kept_back, "held out")
    test = data.rows(kept_back)
    site = newcomers.places(test, fitted.space)
    return fitted.latent.predict(test.rider.astype(np.int64), test.metric, site), fitted.of_single(test, site)


def _refit(
    data: Observations,
    config: FitConfig,
    spline: Spline,
    full: LatentFit | None,
    progress: Progress | None,
    chosen: NDArray[np.bool_],
    stage: str,
    present_only: bool = False,
) -> newcomers.Refit:
    """A fit of some of the outcomes, from the full solution where there is one; it reports under its own stage."""
    prepared = _prepare(data, config, spline, None if full is None else full.space, chosen)
    if present_only:
        # Riders without an outcome here would count in the population's mixture.
        present = np.flatnonzero(prepared.counts.rider_trials)
        prepared = _Prepared(prepared.counts.of_riders(present), prepared.space)
    single = prepared.single_curve()
    latent = fit_latent(
        prepared.counts,
        prepared.space,
        single,
        config.exposure == "correlated",
        full,
        None if progress is None else (lambda _, share: progress(stage, share)),
    )
    return newcomers.Refit(prepared.space, single, latent)


def _promotion(
    prepared: _Prepared, single: SingleCurve, latent: LatentFit, held_out: HeldOutScores | None
) -> PromotionReport:
    """Skill must be there (likelihood-ratio test of a = 0, on the boundary) and must not predict worse."""
    curve_precisions = int(prepared.single_design.groups.max(initial=-1)) + 1
    null = prepared.single_curve(latent.solution.rho[:curve_precisions], single)
    ratio = max(0.0, 2.0 * (penalised_log_likelihood(latent) - null.penalised))
    # Under a = 0 the population's regressors do not matter either: each adds up to one degree of freedom.
    extra = int(np.ceil(latent.population_degrees_of_freedom - 1e-9))
    p_value = 0.5 * float(chdtrc(extra + 1, ratio)) + (0.5 * float(chdtrc(extra, ratio)) if extra else 0.0)
    shortfalls = []
    if p_value >= PROMOTION_LEVEL:
        shortfalls.append(
            f"skill does not explain outcomes: the likelihood-ratio test of a = 0 has p = {p_value:.2g}, "
            f"not below {PROMOTION_LEVEL}"
        )
    if held_out is not None and held_out.brier_skill < -held_out.brier_skill_se:
        shortfalls.append(
            f"skill predicts held-out outcomes worse than the single curve: Brier skill {held_out.brier_skill:.3f} "
            f"with standard error {held_out.brier_skill_se:.3f}"
        )
    return PromotionReport(not shortfalls, ratio, p_value, tuple(shortfalls))


def _grid(space: CurveSpace) -> FloatArray:
    if space.spline.lower == space.spline.upper:
        return np.array([space.spline.lower])
    return np.linspace(space.spline.lower, space.spline.upper, GRID_POINTS)


def _single_estimate(
    data: Observations,
    gate: Gate,
    promotion: PromotionReport | None,
    prepared: _Prepared,
    single: SingleCurve,
    predicted: _Predicted | None = None,
) -> Estimate:
    predicted = _Predicted() if predicted is None else predicted
    metric = _grid(prepared.space)
    curves = [
        DifficultyCurve(name, metric, None, None, single.suitability(_at(prepared.space, metric, code, 0.0)))
        for code, name in _places(data, prepared.space)
    ]
    return Estimate(
        kind="single-curve",
        estimator_version=ESTIMATOR_VERSION,
        discrimination=None,
        discrimination_se=None,
        log_likelihood=single.log_likelihood,
        identification=gate.report,
        promotion=promotion,
        held_out=predicted.held_out,
        curves=tuple(curves),
        skills=None,
        parameters=single_parameters(prepared.space, data.sites, single),
        diagnostics={
            **diagnostics.of_any(gate.report),
            "log_precisions": single.rho.tolist(),
            "calibration": predicted.calibration,
            "scores": {"held_out": predicted.scores, **newcomers.nobody("the fit is the single curve")},
        },
    )


def _latent_estimate(
    data: Observations,
    config: FitConfig,
    gate: Gate,
    graph: Incidence,
    promotion: PromotionReport,
    predicted: _Predicted,
    others: dict[str, Any],
    prepared: _Prepared,
    single: SingleCurve,
    latent: LatentFit,
) -> Estimate:
    metric = _grid(prepared.space)
    comparable = _comparable_sites(prepared.counts, prepared.space.sites)
    incomparable = [data.sites[s] for s in np.flatnonzero(~comparable)]
    curves = []
    for code, name in _places(data, prepared.space):
        suitability = latent.marginal(metric, code)
        if name in incomparable:
            curves.append(DifficultyCurve(name, metric, None, None, suitability))
        else:
            band = latent.difficulty(metric, code)
            curves.append(DifficultyCurve(name, metric, band.value, band.se, suitability))
    return Estimate(
        kind="latent",
        estimator_version=ESTIMATOR_VERSION,
        discrimination=latent.discrimination,
        discrimination_se=latent.discrimination_se,
        log_likelihood=latent.solution.at.log_likelihood,
        identification=gate.report,
        promotion=promotion,
        held_out=predicted.held_out,
        curves=tuple(curves),
        skills=_skills(data, gate, graph, latent),
        parameters=latent_parameters(prepared.space, data.sites, latent, incomparable),
        diagnostics={
            **diagnostics.of_any(gate.report),
            **diagnostics.of_latent(
                data, prepared.space, prepared.counts, single, latent, incomparable, config.exposure
            ),
            "calibration": predicted.calibration,
            "scores": {"held_out": predicted.scores, **others},
        },
    )


def _places(data: Observations, space: CurveSpace) -> list[tuple[int, str | None]]:
    """Code and name of every curve to tell: the shared one first."""
    if not space.sites:
        return [(-1, None), *((-1, name) for name in data.sites)]
    return [(-1, None), *enumerate(data.sites)]


def _at(space: CurveSpace, metric: FloatArray, code: int, a: float) -> Any:
    return space.design(metric, np.full(metric.size, code), a)


def _comparable_sites(counts: Counts, sites: int) -> Any:
    """Sites in the part of the rider-site graph that holds most outcomes: only these share an origin of difficulty."""
    if not sites:
        return np.zeros(0, dtype=bool)
    graph = visits(counts, sites)[:, :sites]
    riders = graph.shape[0]
    rows, columns = graph.nonzero()
    size = riders + sites
    adjacency = csr_matrix((np.ones(rows.size), (rows, riders + columns)), shape=(size, size))
    part = connected_components(adjacency, directed=False)[1][riders:]
    outcomes = np.asarray(graph.sum(axis=0)).ravel()
    largest = np.bincount(part, weights=outcomes).argmax()
    return (part == largest) & (outcomes > 0)


def _skills(data: Observations, gate: Gate, graph: Incidence, latent: LatentFit) -> Skills:
    mean, sd = latent.skills()
    core = np.flatnonzero(gate.core)
    outcomes = graph.outcomes.sum(axis=1)[core]
    bins = graph.bins_of_rider[core]
    usable = (outcomes >= USABLE_OUTCOMES) & (bins >= USABLE_BINS) & (sd[core] <= USABLE_SD)
    return Skills(tuple(data.riders[r] for r in core.tolist()), mean[core], sd[core], outcomes, bins, usable)
