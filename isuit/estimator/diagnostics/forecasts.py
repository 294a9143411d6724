"""How well outcomes were predicted that a fit did not see: scores, their parts, and how certain they are.

Two forecasts are compared throughout: that of the latent fit, and that of the single curve, which knows nothing of
skill. Losses are rounded to multiples of a small power of two, so that adding them up is exact and every figure is the
same to the last bit whatever the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit  # of the normal and of Student's distribution

from isuit.domain import FloatArray, HeldOut, IntArray, Observations, Split
from isuit.record.predictions import (
    BrierParts,
    CalibrationGroup,
    ClusteredIntervals,
    Intervals,
    PartsOfBoth,
    Scores,
)

from . import heldout

GROUPS = 10  # of the calibration table and of the parts of the Brier score
LEAST_PROBABILITY = 1e-12  # below, a log score counts as this: one outcome cannot cost more than 27.6
REPLICATES, _AT_A_TIME = 1_000, 100
LEVEL = 0.95
MOST_CLUSTERS = 2_000  # resampled; more are dealt into so many groups
_SEED = 20_240_601  # any constant: intervals are part of a record that must come out the same again
_FIGURES = ("brier", "brier_single_curve", "brier_skill", "log_score", "log_score_single_curve", "log_score_gain")


@dataclass(frozen=True)
class Forecasts:
    """Kept-back outcomes with what the latent fit and the single curve said of them."""

    latent: FloatArray
    single: FloatArray
    outcome: IntArray
    rider: IntArray
    occasion: IntArray | None  # day and site, whose outcomes share their weather; None where some have no time
    mark: NDArray[np.uint64]  # a hash of metric and time, which puts clusters in an order that labels do not touch

    @classmethod
    def of(cls, test: Observations, latent: FloatArray, single: FloatArray) -> Forecasts:
        outcome, rider = test.outcome.astype(np.int64), test.rider.astype(np.int64)
        mark = heldout.marks(test.metric, test.observed_at)
        return cls(latent, single, outcome, rider, heldout.days_and_sites(test), mark)


@dataclass(frozen=True)
class _Losses:
    """Per row: squared errors and log losses of both forecasts."""

    columns: tuple[FloatArray, FloatArray, FloatArray, FloatArray]

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Losses:
        y = forecasts.outcome
        both = (forecasts.latent, forecasts.single)
        brier = [exact((p - y) ** 2) for p in both]
        log = [exact(-np.log(np.clip(np.where(y == 1, p, 1 - p), LEAST_PROBABILITY, None))) for p in both]
        return cls((brier[0], brier[1], log[0], log[1]))

    def sums(self, cluster: IntArray | None = None) -> FloatArray:
        """The number of outcomes and the losses, summed over all rows or by cluster."""
        if cluster is None:
            return np.array([self.columns[0].size, *(column.sum() for column in self.columns)])
        by_cluster = [np.bincount(cluster, weights=column) for column in self.columns]
        return np.stack([np.bincount(cluster).astype(np.float64), *by_cluster], axis=1)


def exact(values: FloatArray) -> FloatArray:
    """The values rounded to multiples of a power of two so small that nothing visible is lost.

    Sums of such values are exact in floating point, and so do not depend on the order of the rows. There are a few bits
    to spare, because the bootstrap adds some values up several times.
    """
    largest = max(float(np.max(np.abs(values), initial=0.0)), 1e-30)  # less is nothing beside a loss
    step = 2.0 ** np.ceil(np.log2(largest * max(1, values.size)) - 50)
    return np.asarray(np.rint(values / step) * step)


def _figures(sums: FloatArray) -> FloatArray:
    """Scores in the order of `_FIGURES` from (outcomes, losses), for one row of sums or many."""
    outcomes, *losses = np.moveaxis(sums, -1, 0)
    brier, brier_single, log, log_single = (loss / np.maximum(outcomes, 1.0) for loss in losses)
    # A baseline without error cannot be bettered.
    skill = 1.0 - np.divide(brier, brier_single, out=np.ones_like(brier), where=brier_single > 0)
    return np.stack([brier, brier_single, skill, log, log_single, log_single - log], axis=-1)


def held_out(forecasts: Forecasts, split: Split) -> HeldOut:
    """Brier scores, and the Brier skill over the single curve with a rider-clustered standard error."""
    losses = _Losses.of(forecasts)
    brier, brier_single, skill = (float(value) for value in _figures(losses.sums())[:3])
    by_rider = _in_fixed_order(losses, forecasts.rider, forecasts.mark)
    # Linearised ratio: the skill's influence of each rider.
    influence = by_rider[:, 1] - (1.0 - skill) * by_rider[:, 2]
    correction = len(by_rider) / max(1, len(by_rider) - 1)
    se = float(np.sqrt(correction * np.sum(influence**2)) / max(float(by_rider[:, 2].sum()), np.finfo(float).tiny))
    return HeldOut(
        brier_skill=skill,
        brier_skill_se=se,
        brier=brier,
        brier_single_curve=brier_single,
        outcomes=int(forecasts.outcome.size),
        split=split,
    )


def of_forecasts(forecasts: Forecasts) -> Scores:
    """All scores: figures, their intervals, and the parts of the Brier scores."""
    losses = _Losses.of(forecasts)
    figures = dict(zip(_FIGURES, _figures(losses.sums()).tolist(), strict=True))
    occasion = forecasts.occasion
    return Scores(
        outcomes=int(forecasts.outcome.size),
        riders=int(np.count_nonzero(np.bincount(forecasts.rider))),
        **figures,
        intervals=ClusteredIntervals(
            rider=_intervals(losses, forecasts.rider, forecasts.mark),
            day_and_site=None if occasion is None else _intervals(losses, occasion, forecasts.mark),
        ),
        parts=PartsOfBoth(
            latent=parts(forecasts.latent, forecasts.outcome),
            single_curve=parts(forecasts.single, forecasts.outcome),
        ),
    )


# Intervals


def _intervals(losses: _Losses, cluster: IntArray, mark: NDArray[np.uint64]) -> Intervals | None:
    """95 % intervals of all figures by percentiles of a bootstrap over whole clusters."""
    sums = _in_fixed_order(losses, cluster, mark)
    clusters = len(sums)
    if clusters < 2:
        return None
    replicates = _figures(_resampled(_dealt(sums)))
    tail = _tail(clusters)
    ends = np.quantile(replicates, [tail, 1 - tail], axis=0)
    return Intervals(clusters=clusters, **{name: tuple(ends[:, k].tolist()) for k, name in enumerate(_FIGURES)})


def _tail(clusters: int) -> float:
    """What is cut off at either end: a little less than 2.5 %, because few clusters show too little of their variance.

    The expanded percentile interval (Hesterberg 2015): for a mean it is as wide as Student's. Without it, intervals
    from ten clusters covered 86 %.
    """
    student = float(stdtrit(clusters - 1, (1 + LEVEL) / 2))
    return float(ndtr(-np.sqrt(clusters / (clusters - 1)) * student))


def _in_fixed_order(losses: _Losses, cluster: IntArray, mark: NDArray[np.uint64]) -> FloatArray:
    """Outcomes and losses of each cluster, one row each. The order of the rows decides whom the bootstrap draws.

    It is that of a hash of the cluster's metrics and times: another name for a rider draws nobody else.
    """
    sums = losses.sums(cluster)
    # The upper bits of each mark: sums of whole numbers below 2^53 are exact in any order.
    fingerprint = np.bincount(cluster, weights=(mark >> np.uint64(38)).astype(np.float64))
    present = np.flatnonzero(sums[:, 0] > 0)
    order = np.lexsort((*sums[present].T, fingerprint[present]))
    return sums[present[order]]


def _dealt(sums: FloatArray) -> FloatArray:
    """At most `MOST_CLUSTERS` groups of whole clusters.

    Clusters stand in the order of a hash, so dealing them out in turn is dealing them at random. Sums over groups of
    independent clusters are independent again and have the same total variance, so resampling groups gives the same
    interval, its width known to 1 / sqrt(2 * 2,000), or 1.6 %: less than the 2 % that 1,000 replicates leave. It bounds
    time and memory whatever the cohort. Multiplier weights for 100,000 clusters would need 10^8 random numbers.
    """
    if len(sums) <= MOST_CLUSTERS:
        return sums
    group = np.arange(len(sums)) % MOST_CLUSTERS
    return np.stack([np.bincount(group, weights=column) for column in sums.T], axis=1)


def _resampled(sums: FloatArray) -> FloatArray:
    """Sums over clusters drawn with replacement, one row for each replicate; some replicates at a time, to save memory.

    From the raw bits of PCG64, which numpy promises to keep; its methods for distributions may change.
    """
    clusters, bits, found = len(sums), np.random.PCG64(_SEED), []
    for _ in range(0, REPLICATES, _AT_A_TIME):
        raw = bits.random_raw(_AT_A_TIME * clusters)
        drawn = (((raw >> np.uint64(32)) * np.uint64(clusters)) >> np.uint64(32)).astype(np.int64)
        cell = drawn.reshape(_AT_A_TIME, clusters) + clusters * np.arange(_AT_A_TIME)[:, None]
        times = np.bincount(cell.ravel(), minlength=_AT_A_TIME * clusters).reshape(_AT_A_TIME, clusters)
        found.append(times.astype(np.float64) @ sums)
    return np.concatenate(found)


# Calibration, and the parts of the Brier score


@dataclass(frozen=True)
class _Grouped:
    """Forecasts in up to ten groups of about equal size."""

    group: IntArray  # of each row
    outcomes: FloatArray  # in each group
    predicted: FloatArray  # mean in each group
    observed: FloatArray

    @classmethod
    def of(cls, predicted: FloatArray, outcome: IntArray) -> _Grouped:
        # Equal forecasts stay together: divided, they would have to be put in some order, and none is fair.
        size = predicted.size
        ranks = np.arange(1, min(GROUPS, size)) * size // min(GROUPS, size)
        edges = np.unique(np.partition(predicted, ranks)[ranks]) if ranks.size else np.zeros(0)
        raw = np.searchsorted(edges, predicted, side="right")
        group = (np.cumsum(np.bincount(raw) > 0) - 1)[raw]
        outcomes = np.bincount(group).astype(np.float64)
        mean = np.bincount(group, weights=exact(predicted)) / outcomes
        return cls(group, outcomes, mean, np.bincount(group, weights=outcome) / outcomes)


def calibration(predicted: FloatArray, outcome: IntArray) -> tuple[CalibrationGroup, ...]:
    """Predicted against observed shares of success, in ten groups of about equal size."""
    found = _Grouped.of(predicted, outcome)
    return tuple(
        CalibrationGroup(outcomes=int(n), predicted=float(p), observed=float(y))
        for n, p, y in zip(found.outcomes, found.predicted, found.observed, strict=True)
    )


def parts(predicted: FloatArray, outcome: IntArray) -> BrierParts:
    """Murphy's parts of the Brier score in the groups of the calibration table.

    brier = reliability - resolution + uncertainty + within_groups; the last is what forecasts that differ inside a
    group leave: their variance there, minus twice their covariance with the outcome.
    """
    found = _Grouped.of(predicted, outcome)
    share = found.outcomes / outcome.size
    overall = float(outcome.mean())
    spread, surprise = predicted - found.predicted[found.group], outcome - found.observed[found.group]
    return BrierParts(
        reliability=float(share @ (found.predicted - found.observed) ** 2),
        resolution=float(share @ (found.observed - overall) ** 2),
        uncertainty=overall * (1 - overall),
        within_groups=float(exact(spread * (spread - 2 * surprise)).sum() / outcome.size),
    )
