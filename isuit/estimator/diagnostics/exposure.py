"""Who goes out in which conditions, and what that does to a curve.

Outcomes exist only for those who went out. The latent fit's curve with skill integrated out is an average over the
riders of the cohort; the single curve is an average over its outcomes, so of those who go out in each condition. The
two differ where stronger riders choose other conditions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isuit import columns
from isuit.domain import NO_SITE, NO_TIME, Exposure, FloatArray, Observations
from isuit.record.diagnostics import ExposureReport, MarginalComparison, PastOutcomes

from ..likelihood.latent import LatentFit
from ..likelihood.single_curve import SingleCurve
from ..model.counts import Counts
from ..model.curves import CurveSpace
from . import heldout

ESTIMAND = (
    "Outcomes exist only for those who went out: difficulty is that of the conditions people faced, skill is told "
    "within this cohort, and how those would have fared who stayed away is not in the data."
)
COMPARED = (
    "The latent fit's curve with skill integrated out is an average over riders; the single curve is an average over "
    "outcomes, of those who go out in each condition."
)
LIMIT = (
    "Conditions that riders choose by past outcomes, such as the next load after a success, are a limit: the model "
    "takes conditions as given."
)
# The skill-integrated curve and the single curve agree when they differ nowhere, over the central 95 % of outcomes, by
# more than the first of these, or the second over the root of the number of riders where that is larger: sampling alone
# gives that much in one cohort of a hundred (docs/explanation/model.md).
MARGINAL_TOLERANCE, MARGINAL_SAMPLING = 0.05, 0.5
STRONG_EXPOSURE = 0.2  # correlation of mean metric with skill from which the independence of the two is in doubt
# A correlation of the next metric with the last surprise from which it is told: see docs/explanation/diagnostics.md.
PAST_OUTCOMES = 0.1
_SURE = 3.0  # standard errors that it must be away from zero as well
_NOTHING = 1e-9  # of a standard deviation: with two steps in every series, the last metric tells the next
_MANY = 0.5  # share of outcomes without an order from which that is told
_MOST_ROWS = 200_000  # enough to know a correlation to 0.002
_METRICS = 101


def marginal_tolerance(riders: int) -> float:
    return max(MARGINAL_TOLERANCE, MARGINAL_SAMPLING / float(np.sqrt(riders)))


def along(counts: Counts, latent: LatentFit) -> FloatArray:
    """One number for the condition of each item: its metric, or, of several, the difficulty that the fit gives it."""
    if counts.item_metric.ndim == 1:
        return counts.item_metric
    return latent.condition_difficulty(counts.item_metric)


def compared(counts: Counts, space: CurveSpace, single: SingleCurve, latent: LatentFit) -> MarginalComparison:
    """The curve among those who go out minus the population's, over the central 95 % of outcomes."""
    scale = along(counts, latent)
    order = np.argsort(scale, kind="stable")
    below = np.cumsum(counts.item_trials[order])
    if counts.item_metric.ndim > 1:  # conditions that there were, equally many outcomes apart
        places = np.searchsorted(below, np.linspace(0.025, 0.975, _METRICS) * below[-1])
        chosen = order[np.minimum(places, order.size - 1)]
        condition, metric = counts.item_metric[chosen], scale[chosen]
    else:
        ends = np.searchsorted(below, np.array([0.025, 0.975]) * below[-1])
        low, high = scale[order][np.minimum(ends, order.size - 1)]
        condition = metric = np.linspace(low, high, _METRICS)
    own = single.suitability(space.design(condition, np.full(_METRICS, NO_SITE), 0.0))
    difference = own - latent.marginal(condition)
    at = int(np.argmax(np.abs(difference)))
    largest, tolerance = abs(float(difference[at])), marginal_tolerance(counts.riders)
    return MarginalComparison(
        matches=largest <= tolerance,
        largest_difference=largest,
        tolerance=tolerance,
        at_metric=float(metric[at]),
        signed_difference=float(difference[at]),
        mean_difference=float(difference.mean()),
        mean_absolute_difference=float(np.abs(difference).mean()),
        average="riders",
        compares=COMPARED,
    )


def exposure(
    data: Observations, counts: Counts, latent: LatentFit, comparison: MarginalComparison, assumed: Exposure
) -> ExposureReport:
    """Whether riders choose conditions by their skill or by their last outcome, with a sentence where it matters."""
    mean_metric = (counts.trials @ along(counts, latent)) / np.maximum(counts.rider_trials, 1.0)
    correlation = _correlation(mean_metric, latent.solution.at.posterior.mean)
    return ExposureReport(
        correlation_of_mean_metric_with_skill=correlation,
        sentence=_sentence(correlation, comparison, assumed),
        past_outcomes=past_outcomes(data, latent),
    )


def _correlation(one: FloatArray, other: FloatArray) -> float | None:
    if one.size < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _sentence(correlation: float | None, comparison: MarginalComparison, assumed: Exposure) -> str | None:
    strong = correlation is not None and abs(correlation) >= STRONG_EXPOSURE
    if not strong and comparison.matches:
        return None
    how = "choose conditions by skill" if strong else "may choose conditions by skill"
    measured = "" if correlation is None else f" (correlation of mean metric with skill {correlation:+.2f})"
    advice = (
        "difficulty is told from what each rider does in different conditions, and the curve is still not that of "
        "people who stayed away."
        if assumed == "correlated"
        else "use --exposure correlated, and do not read the curve as that of people who stayed away."
    )
    return (
        f"Riders {how}{measured}; among those who go out, suitability differs from the population's by "
        f"{comparison.signed_difference:+.2f} at {comparison.at_metric:.4g}: {advice}"
    )


def past_outcomes(data: Observations, latent: LatentFit) -> PastOutcomes:
    """Whether the next metric goes with the last outcome's surprise, given the last metric, within a rider at a site.

    The surprise is the outcome minus what the fit expected of this rider in this condition. Minus the rider's mean
    outcome would not do: where weather lasts, the next metric follows the last one, on which the last outcome depends
    too (measured without any choice: a correlation of -0.34), and a mean of four outcomes is made of them (+0.19).

    Surprises alone would not do either. Where riders choose by skill and the fit takes exposure as independent, its
    curve is too flat, so surprises fall with the rider's metric; and of few metrics about their mean, the next is low
    where the last is high (measured without any choice by outcome: +0.12 with three outcomes per rider, +0.07 with
    four). Riders who get better and go further make both rise with time (+0.09). So the last metric and the place in
    the series are held: it is the partial correlation. Outcomes at one instant have no order, and are one step with
    their means.
    """
    found = PastOutcomes(limit=LIMIT, correlation=None, pairs=0, simultaneous_share=None, sentence=None)
    if data.observed_at is None or not bool(np.any(data.observed_at != NO_TIME)):
        return found
    data = data.rows(_sample(data) & (data.observed_at != NO_TIME))
    if not len(data):
        return found
    assert data.observed_at is not None
    site = np.full(len(data), NO_SITE) if data.site is None else data.site
    order = np.lexsort((data.outcome, data.metric.view(np.int64), data.observed_at, site, data.rider))
    condition = data.condition[order]
    rider, place, time = data.rider[order], site[order], data.observed_at[order]
    metric = latent.condition_difficulty(condition) if data.further else condition
    known = place.astype(np.int64) if latent.space.sites else np.full(rider.size, NO_SITE)
    surprise = data.outcome[order] - latent.predict(rider.astype(np.int64), condition, known)
    new_series = heldout.changes(rider, place)
    new_step = new_series | heldout.changes(time)
    steps, series = np.flatnonzero(new_step), np.cumsum(new_series) - 1
    size = np.diff(np.append(steps, rider.size))
    mean_metric = np.bincount(series, weights=metric) / np.bincount(series)
    departure = np.add.reduceat(metric - mean_metric[series], steps) / size
    last = np.add.reduceat(surprise, steps) / size
    # A pair is a step and the one before it in the same series.
    pair = np.flatnonzero(~new_series[steps])
    held = np.column_stack([departure[pair - 1], _places(new_series[steps])[pair - 1]])
    correlation = _partial_correlation(departure[pair], last[pair - 1], held)
    simultaneous = float(np.mean(np.repeat(size, size) > 1))
    sentences = []
    if correlation is not None and abs(correlation) >= max(PAST_OUTCOMES, _SURE / float(np.sqrt(pair.size))):
        sentences.append(
            f"The next condition goes with the last outcome (correlation of the next metric with the last surprise "
            f"{correlation:+.2f}): riders may choose it by how they fared, or change over time. The model sees "
            "neither, and takes part of it for exposure by skill."
        )
    if simultaneous >= _MANY:
        sentences.append(
            f"{simultaneous:.1%} of outcomes share their instant with another of the same rider and site: their order "
            "is not in the data, and a choice from one to the next cannot be seen."
        )
    return replace(
        found,
        correlation=correlation,
        pairs=int(pair.size),
        simultaneous_share=simultaneous,
        sentence=" ".join(sentences) or None,
    )


def _places(first: NDArray[np.bool_]) -> FloatArray:
    """Each row's position in its series, counted from the series' middle; `first` marks where a series begins."""
    starts = np.flatnonzero(first)
    length = np.diff(np.append(starts, first.size))
    return np.asarray(np.arange(first.size) - np.repeat(starts + (length - 1) / 2, length))


def _partial_correlation(one: FloatArray, other: FloatArray, held: FloatArray) -> float | None:
    """The correlation of what linear regressions on the columns of `held` leave; None where they leave nothing."""
    spread = np.ptp(held, axis=0) if len(held) else np.zeros(held.shape[1])
    held = np.column_stack([np.ones(len(held)), held[:, spread > 0] / spread[spread > 0]])

    def left(values: FloatArray) -> FloatArray:
        rest = values - held @ np.linalg.lstsq(held, values, rcond=None)[0]
        nothing = float(np.std(rest)) <= _NOTHING * float(np.std(values))
        return np.zeros_like(rest) if nothing else np.asarray(rest)

    return None if one.size < 2 else _correlation(left(one), left(other))


def _sample(data: Observations) -> NDArray[np.bool_]:
    """All rows, or all rows of as many riders as bound the cost, in the order of a fixed hash."""
    if len(data) <= _MOST_ROWS:
        return np.ones(len(data), dtype=bool)
    order = heldout.riders_in_fixed_order(data)
    taken = np.zeros(len(data.riders), dtype=bool)
    outcomes = columns.counted(data.rider, len(data.riders))[order]
    taken[order[: max(1, int(np.searchsorted(np.cumsum(outcomes), _MOST_ROWS, side="right")))]] = True
    return taken[data.rider]
