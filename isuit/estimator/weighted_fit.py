"""Curves by site from weighted outcomes, and what any one rider changes in them: all that a release asks of estimation.

A release fits outcomes that it has screened and weighted, and publishes difficulty only where it hangs on no one:

    outcomes = WeightedOutcomes(...)
    fit = fit_weighted(outcomes, config)      raises `Unfit`, with the reasons, where there is no difficulty
    fit.difficulty(metric, site)              with its standard error; `suitability` with skill integrated out
    fit.difficulty_at(probability)            where the whole population succeeds so often
    fit.leaving_out()                         how difficulty moves without a rider (`likelihood.leaving_out`)
    comparable(...)                           sites that share an origin of difficulty, whoever is left out

The gates are those of any fit (`promotion`). The held-out score is not asked: it is about predicting a rider, and
curves by site predict none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from isuit.domain import FitConfig, FloatArray, IntArray
from isuit.errors import EstimationError

from .gate import Gate, check, check_each, incidence
from .likelihood import threads
from .likelihood.latent import Band, LatentFit
from .likelihood.leaving_out import LeavingOut, leaving_out
from .likelihood.prepared import Prepared
from .model.anchor import anchor_of
from .model.basis import spline_for
from .model.components import linked_without_any_one, visited
from .model.counts import Counts, count, count_conditions
from .model.curves import CurveSpace
from .model.surface import surface_for
from .promotion import candidate

__all__ = ["Band", "LeavingOut", "Unfit", "WeightedFit", "WeightedOutcomes", "comparable", "fit_weighted"]


class Unfit(Exception):
    """The outcomes give no latent fit; `reasons` name bins and numbers, never riders."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


@dataclass(frozen=True)
class WeightedOutcomes:
    """Outcomes as columns, each with a site and a weight. Riders and sites are codes from zero."""

    rider: IntArray
    riders: int
    site: IntArray
    sites: int
    metric: FloatArray
    outcome: IntArray
    weight: FloatArray  # how many outcomes a row counts as
    # Curves span at least this, so that they do not end at a rider's own extreme; of several metrics that of each.
    metric_range: tuple[float, float] | tuple[tuple[float, float], ...]
    metrics: tuple[str, ...] = ()  # the names of several: `metric` has a row of them for each outcome


@threads.one_thread()
def fit_weighted(outcomes: WeightedOutcomes, config: FitConfig) -> WeightedFit:
    """Fit the curves of all sites together; raises `Unfit` where skill and difficulty cannot be told apart."""
    counts, space, gate = (_surface if outcomes.metrics else _curve)(outcomes, config)
    try:
        tried = candidate(Prepared(counts, space), gate.report, config)
    except EstimationError as error:
        raise Unfit(str(error)) from None
    if tried.latent is None or tried.shortfalls:
        raise Unfit(*tried.shortfalls)
    return WeightedFit(outcomes, counts, tried.latent)


def _curve(outcomes: WeightedOutcomes, config: FitConfig) -> tuple[Counts, CurveSpace, Gate]:
    several = outcomes.sites > 1
    spline = spline_for(np.concatenate([outcomes.metric, np.ravel(outcomes.metric_range)]))
    space = CurveSpace(spline, outcomes.sites if several else 0, anchor_of(config.anchor, spline))
    counts = count(
        outcomes.rider,
        outcomes.metric,
        outcomes.outcome,
        spline,
        outcomes.riders,
        outcomes.site if several else None,
        outcomes.weight,
    )
    return counts, space, check(incidence(outcomes.rider, outcomes.metric, outcomes.riders, config.gate_bins), config)


def _surface(outcomes: WeightedOutcomes, config: FitConfig) -> tuple[Counts, CurveSpace, Gate]:
    several, conditions = outcomes.sites > 1, tuple(np.ascontiguousarray(outcomes.metric.T))
    ranges = np.reshape(outcomes.metric_range, (-1, 2))
    spanned = [np.append(metric, ends) for metric, ends in zip(conditions, ranges, strict=True)]
    surface = surface_for(outcomes.metrics, tuple(spanned), config.anchors)
    counts = count_conditions(
        outcomes.rider,
        conditions,
        outcomes.outcome,
        surface.splines,
        outcomes.riders,
        outcomes.site if several else None,
        weight=outcomes.weight,
    )
    graphs = [incidence(outcomes.rider, metric, outcomes.riders, config.gate_bins) for metric in conditions]
    space = CurveSpace(surface, outcomes.sites if several else 0)
    return counts, space, check_each(graphs, outcomes.metrics, config)


def comparable(rider: IntArray, riders: int, site: IntArray, sites: int) -> NDArray[np.bool_]:
    """By site, whether riders link it to the sites that hold most riders, and would do so without any one of them.

    Sites that nobody links have no common origin of difficulty. A link by one rider alone would make the level of a
    site that rider's own, and its loss would tell who it was.
    """
    return linked_without_any_one(visited(rider, riders, site, sites))


@dataclass(frozen=True)
class WeightedFit:
    """A latent fit of weighted outcomes; one site alone is the shared curve itself, and its code does not matter."""

    outcomes: WeightedOutcomes
    counts: Counts
    latent: LatentFit

    @property
    def discrimination(self) -> float:
        return self.latent.discrimination

    def difficulty(self, metric: FloatArray, site: int) -> Band:
        return self.latent.difficulty(metric, site)

    def suitability(self, metric: FloatArray, site: int) -> FloatArray:
        """Of the whole population: skill is integrated out."""
        return self.latent.marginal(metric, site)

    def expert_difficulty(self, metric: FloatArray, discrimination: float) -> FloatArray | None:
        """What the expert's curve says under this discrimination; None without an expert."""
        anchor = self.latent.space.anchor
        return None if anchor is None else np.asarray(anchor.log_odds(metric, discrimination)[0] / discrimination)

    def difficulty_at(self, probability: float) -> float:
        """The difficulty at which the whole population succeeds with this probability."""
        discrimination, units = self.latent.discrimination, self.latent.units
        # The population's mixture in units of its total skill, as difficulty is.
        theta, weight = units.nodes
        theta = (theta - units.mean) / units.sd

        def excess(difficulty: float) -> float:
            return float(expit(discrimination * (theta - difficulty)) @ weight) - probability

        reach = 10.0 + 10.0 / discrimination
        return float(brentq(excess, -reach, reach))

    def leaving_out(self) -> LeavingOut:
        """How difficulty moves when a rider is left out."""
        given = self.outcomes
        return leaving_out(self.latent, self.counts, visited(given.rider, given.riders, given.site, given.sites))
