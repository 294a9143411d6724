"""How well a fit predicts what it has not seen, in its record; docs/explanation/diagnostics.md describes the scores.

A field with a default of None is one that only some fits have, or that an older version did not write.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isuit.record.values import described

Interval = tuple[float, float]  # the ends of a 95 % interval


@dataclass(frozen=True, kw_only=True)
class CalibrationGroup:
    """Held-out outcomes with forecasts of about the same size."""

    outcomes: int
    predicted: float
    observed: float


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """95 % intervals by a bootstrap over whole clusters."""

    clusters: int
    brier: Interval
    brier_single_curve: Interval
    brier_skill: Interval
    log_score: Interval
    log_score_single_curve: Interval
    log_score_gain: Interval


@dataclass(frozen=True, kw_only=True)
class ClusteredIntervals:
    """The same by two kinds of cluster; null with fewer than two clusters, or without times."""

    rider: Intervals | None
    day_and_site: Intervals | None


@dataclass(frozen=True, kw_only=True)
class BrierParts:
    """brier = reliability - resolution + uncertainty + within_groups."""

    reliability: float
    resolution: float
    uncertainty: float
    within_groups: float


@dataclass(frozen=True, kw_only=True)
class PartsOfBoth:
    """The parts of both forecasts' Brier scores."""

    latent: BrierParts
    single_curve: BrierParts


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Forecasts of outcomes that were kept back; Brier and log scores are losses, smaller is better."""

    rule: str | None = field(
        default=None, metadata=described("What is kept back, or how someone unknown is predicted.")
    )
    outcomes: int
    riders: int
    sites: int | None = field(default=None, metadata=described("Sites kept back, for new sites."))
    brier: float
    brier_single_curve: float
    brier_skill: float = field(metadata=described("1 - brier / brier_single_curve."))
    log_score: float = field(metadata=described("Mean of -log(probability of what happened), natural logarithm."))
    log_score_single_curve: float
    log_score_gain: float = field(metadata=described("log_score_single_curve - log_score."))
    intervals: ClusteredIntervals
    parts: PartsOfBoth


@dataclass(frozen=True, kw_only=True)
class ScoresOfAll:
    """Scores on held-out outcomes of known riders, on riders and on sites that the fit never saw."""

    held_out: Scores | None
    new_riders: Scores | None
    new_sites: Scores | None
    left_out: dict[str, str] = field(metadata=described("Why there are none."))
