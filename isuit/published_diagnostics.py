"""The diagnostics in a fit's record as they leave the store; docs/explanation/diagnostics.md says what each tells.

A key that an older version did not write is null.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from isuit.publishing import Published

Interval = Annotated[list[float], Field(min_length=2, max_length=2, description="The ends of a 95 % interval.")]


class OutsideCore(Published):
    """Shares that the gate's core leaves out."""

    riders: float
    outcomes: float


class Convergence(Published):
    """How the fit ended."""

    gradient_norm: float = Field(description="In standard errors.")
    steps: int


class Minimum(Published):
    """The metric of least difficulty, with its 95 % interval; all null where no end can be told."""

    location: float | None
    lower: float | None
    upper: float | None


class MarginalComparison(Published):
    """The curve with skill integrated out, an average over riders, beside the single curve, one over outcomes."""

    matches: bool
    largest_difference: float = Field(description="Absolute, over the central 95 % of outcomes.")
    tolerance: float
    at_metric: float | None = Field(None, description="Where the difference is largest.")
    signed_difference: float | None = Field(None, description="There: single curve minus the population's.")
    mean_difference: float | None = Field(None, description="Mean along the metric.")
    mean_absolute_difference: float | None = None
    average: Literal["riders"] = Field(description="What the curve with skill integrated out is an average over.")
    compares: str | None = None


class PastOutcomes(Published):
    """Whether the next metric goes with the surprise of a rider's last outcome at the same site."""

    limit: str
    correlation: float | None = Field(description="Null without times.")
    pairs: int
    simultaneous_share: float | None = Field(description="Outcomes at an instant that the rider has another at.")
    sentence: str | None


class ExposureReport(Published):
    """Whether riders choose conditions by their skill or by their last outcome."""

    correlation_of_mean_metric_with_skill: float | None
    sentence: str | None
    past_outcomes: PastOutcomes | None = None


class ItemBand(Published):
    """Successes in a band of the metric."""

    lower: float
    upper: float
    outcomes: float
    observed: float
    expected: float


class ScoreTest(Published):
    """A test of something that the model takes for granted."""

    statistic: float
    degrees_of_freedom: int
    p_value: float
    sentence: str | None = Field(description="Where the departure is both certain and large.")


class DiscriminationTest(ScoreTest):
    """Whether skill tells more apart at high metrics than at low ones."""

    relative_change_per_sd: float = Field(description="About how discrimination changes over one sd of the metric.")


class ClienteleTest(ScoreTest):
    """Whether difficulty along the metric differs between clienteles that meet at a site."""

    clienteles: int


class NormalityTest(ScoreTest):
    """Whether skill is normal among riders of a clientele: its density times 1 + asymmetry h3 + tails h4."""

    asymmetry: float
    tails: float


class Assumptions(Published):
    """Score tests; null where the cohort has too few riders, one metric or one clientele."""

    discrimination_by_metric: DiscriminationTest | None
    difficulty_by_clientele: ClienteleTest | None
    normality_of_skill: NormalityTest | None


class CalibrationGroup(Published):
    """Held-out outcomes with forecasts of about the same size."""

    outcomes: int
    predicted: float
    observed: float


class Intervals(Published):
    """95 % intervals by a bootstrap over whole clusters."""

    clusters: int
    brier: Interval
    brier_single_curve: Interval
    brier_skill: Interval
    log_score: Interval
    log_score_single_curve: Interval
    log_score_gain: Interval


class ClusteredIntervals(Published):
    """The same by two kinds of cluster; null with fewer than two clusters, or without times."""

    rider: Intervals | None
    day_and_site: Intervals | None


class BrierParts(Published):
    """brier = reliability - resolution + uncertainty + within_groups."""

    reliability: float
    resolution: float
    uncertainty: float
    within_groups: float


class PartsOfBoth(Published):
    """The parts of both forecasts' Brier scores."""

    latent: BrierParts
    single_curve: BrierParts


class Scores(Published):
    """Forecasts of outcomes that were kept back; Brier and log scores are losses, smaller is better."""

    rule: str | None = Field(None, description="What is kept back, or how someone unknown is predicted.")
    outcomes: int
    riders: int
    sites: int | None = Field(None, description="Sites kept back, for new sites.")
    brier: float
    brier_single_curve: float
    brier_skill: float = Field(description="1 - brier / brier_single_curve.")
    log_score: float = Field(description="Mean of -log(probability of what happened), natural logarithm.")
    log_score_single_curve: float
    log_score_gain: float = Field(description="log_score_single_curve - log_score.")
    intervals: ClusteredIntervals
    parts: PartsOfBoth


class ScoresOfAll(Published):
    """Scores on held-out outcomes of known riders, on riders and on sites that the fit never saw."""

    held_out: Scores | None
    new_riders: Scores | None
    new_sites: Scores | None
    left_out: dict[Literal["new_riders", "new_sites"], str] = Field(description="Why there are none.")


class Diagnostics(Published):
    """What a fit says about itself. A single-curve fit has only the first few."""

    estimand: str | None = None
    outside_core: OutsideCore | None = None
    log_precisions: list[float] | None = None
    calibration: list[CalibrationGroup] | None = None
    scores: ScoresOfAll | None = None
    convergence: Convergence | None = None
    effective_degrees_of_freedom: float | None = None
    minimum: Minimum | None = None
    marginal: MarginalComparison | None = None
    incomparable_sites: list[str] | None = None
    exposure: ExposureReport | None = None
    marginal_reliability: float | None = None
    item_fit: list[ItemBand] | None = None
    assumptions: Assumptions | None = None
