"""The diagnostics in a fit's record; docs/explanation/diagnostics.md says what each tells.

A field with a default of None is one that only some fits have, or that an older version did not write.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal

from isuit.record.predictions import CalibrationGroup, ScoresOfAll
from isuit.record.values import described
from isuit.shown import record_as_html


@dataclass(frozen=True, kw_only=True)
class OutsideCore:
    """Shares that the gate's core leaves out."""

    riders: float
    outcomes: float


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How the fit ended."""

    gradient_norm: float = field(metadata=described("In standard errors."))
    steps: int


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """The metric of least difficulty, with its 95 % interval; all null where no end can be told."""

    location: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, kw_only=True)
class MarginalComparison:
    """The curve with skill integrated out, an average over riders, beside the single curve, one over outcomes."""

    matches: bool
    largest_difference: float = field(metadata=described("Absolute, over the central 95 % of outcomes."))
    tolerance: float
    at_metric: float | None = field(default=None, metadata=described("Where the difference is largest."))
    signed_difference: float | None = field(
        default=None, metadata=described("There: single curve minus the population's.")
    )
    mean_difference: float | None = field(default=None, metadata=described("Mean along the metric."))
    mean_absolute_difference: float | None = None
    average: Literal["riders"] = field(
        metadata=described("What the curve with skill integrated out is an average over.")
    )
    compares: str | None = None


@dataclass(frozen=True, kw_only=True)
class PastOutcomes:
    """Whether the next metric goes with the surprise of a rider's last outcome at the same site."""

    limit: str
    correlation: float | None = field(metadata=described("Null without times."))
    pairs: int
    simultaneous_share: float | None = field(
        metadata=described("Outcomes at an instant that the rider has another at.")
    )
    sentence: str | None


@dataclass(frozen=True, kw_only=True)
class ExposureReport:
    """Whether riders choose conditions by their skill or by their last outcome."""

    correlation_of_mean_metric_with_skill: float | None
    sentence: str | None
    past_outcomes: PastOutcomes | None = None


@dataclass(frozen=True, kw_only=True)
class ItemBand:
    """Successes in a band of the metric."""

    lower: float
    upper: float
    outcomes: float
    observed: float
    expected: float


@dataclass(frozen=True, kw_only=True)
class ScoreTest:
    """A test of something that the model takes for granted."""

    statistic: float
    degrees_of_freedom: int
    p_value: float
    sentence: str | None = field(metadata=described("Where the departure is both certain and large."))


@dataclass(frozen=True, kw_only=True)
class DiscriminationTest(ScoreTest):
    """Whether skill tells more apart at high metrics than at low ones."""

    relative_change_per_sd: float = field(
        metadata=described("About how discrimination changes over one sd of the metric.")
    )


@dataclass(frozen=True, kw_only=True)
class ClienteleTest(ScoreTest):
    """Whether difficulty along the metric differs between clienteles that meet at a site."""

    clienteles: int


@dataclass(frozen=True, kw_only=True)
class NormalityTest(ScoreTest):
    """Whether skill is normal among riders of a clientele: its density times 1 + asymmetry h3 + tails h4."""

    asymmetry: float
    tails: float


@dataclass(frozen=True, kw_only=True)
class AsymptoteTest(ScoreTest):
    """Whether a chance of success is left in the hardest conditions, or one of failure in the easiest."""

    size: float = field(metadata=described("About how large that chance is, one step from zero."))


@dataclass(frozen=True, kw_only=True)
class SkillDistribution:
    """How skill is distributed among the riders, in units of its sd, where a density was asked for.

    And where the declared levels stand in it.
    """

    estimated: bool
    sentence: str | None = field(
        metadata=described("Why there is no estimated density that was asked for, or that it is normal.")
    )
    degrees_of_freedom: float = field(metadata=described("What the density takes: zero where skill is normal."))
    skill: tuple[float, ...]
    density: tuple[float, ...]
    lower: tuple[float, ...] = field(metadata=described("Of a 95 % band; equal to the density where it is given."))
    upper: tuple[float, ...]
    percentiles: dict[str, float] = field(metadata=described("Of the declared levels of skill."))


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Score tests; null where the cohort has too few riders, one metric or one clientele."""

    discrimination_by_metric: DiscriminationTest | None
    difficulty_by_clientele: ClienteleTest | None
    normality_of_skill: NormalityTest | None
    lower_asymptote: AsymptoteTest | None = None
    upper_asymptote: AsymptoteTest | None = None


@dataclass(frozen=True, kw_only=True)
class TermReport:
    """A term of a surface: a main effect of one metric, or the interaction of two."""

    metrics: tuple[str, ...]
    sd: float = field(metadata=described("Of difficulty (of log odds in a single curve), over the outcomes."))
    degrees_of_freedom: float = field(metadata=described("Effective; near zero where shrinkage took the term away."))
    p_value: float = field(metadata=described("Of the approximate test that the term is zero."))
    is_zero: bool = field(metadata=described("Whether the term is told to be zero: the test does not reject at 5 %."))
    explained_by_others: float = field(
        metadata=described("Share of the variance of the term's functions that the other terms can take over.")
    )
    sentence: str | None = field(
        metadata=described(
            "Where metrics move together so much that they are hard to tell apart, or one hardly changes for a rider."
        )
    )
    within_riders: float | None = field(
        default=None, metadata=described("Of a main effect: the share of its metric's variance that is within riders.")
    )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """By how much skill has grown on average, so many years after a rider's first occasion."""

    years: float
    skill: float = field(metadata=described("In sds of skill."))
    se: float


@dataclass(frozen=True, kw_only=True)
class Movement:
    """Whether riders' skill stands still or moves with time, and how."""

    moves: bool = field(metadata=described("Whether the fit is one of moving skill."))
    sentence: str | None = field(
        metadata=described("What to do about skill that moves, or why the fit asked for is one of standing skill.")
    )
    test: str | None = field(metadata=described("score: from the fit of standing skill; likelihood-ratio: of both."))
    statistic: float | None
    p_value: float | None
    walk_per_year: float | None = field(
        default=None, metadata=described("The sd, in sds of skill, by which a rider's skill moves in a year.")
    )
    walk_per_year_se: float | None = None
    half_life_years: float | None = field(
        default=None,
        metadata=described("With correlated exposure: after so long a past day counts half for where a rider goes."),
    )
    growth: tuple[Growth, ...] | None = None
    occasions: int | None = field(default=None, metadata=described("Days of riders, on each of which skill is told."))


@dataclass(frozen=True, kw_only=True)
class DiscriminationCurve:
    """The discrimination along one metric, with the others at their medians."""

    metric: str
    at: tuple[float, ...]
    discrimination: tuple[float, ...]
    lower: tuple[float, ...] = field(metadata=described("The ends of its 95 % band."))
    upper: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class VaryingDiscrimination:
    """How the discrimination changes with conditions, in a fit that was asked for it."""

    varies: bool = field(metadata=described("Whether the fit is one of a discrimination that changes."))
    sentence: str | None = field(metadata=described("Why it does not, or that the outcomes give no reason for it."))
    degrees_of_freedom: float = field(metadata=described("Of its change: 0 where it is the same everywhere."))
    curves: tuple[DiscriminationCurve, ...]


@dataclass(frozen=True, kw_only=True)
class Nearby:
    """How alike the levels of sites near one another are, in a fit in which they tell of one another."""

    sites: int = field(metadata=described("With coordinates."))
    share: float = field(metadata=described("Of the variance of sites' levels, that goes with where a site is."))
    range_km: float | None = field(
        metadata=described("At this distance two sites have about half of that in common; null where the share is 0.")
    )
    gain: float = field(metadata=described("Of the log-likelihood of the levels, over sites that tell nothing."))
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """What a fit says about itself. A single-curve fit has only the first few."""

    estimand: str | None = None
    outside_core: OutsideCore | None = None
    log_precisions: tuple[float, ...] | None = None
    calibration: tuple[CalibrationGroup, ...] | None = None
    scores: ScoresOfAll | None = None
    convergence: Convergence | None = None
    effective_degrees_of_freedom: float | None = None
    minimum: Minimum | None = None
    marginal: MarginalComparison | None = None
    incomparable_sites: tuple[str, ...] | None = None
    exposure: ExposureReport | None = None
    marginal_reliability: float | None = None
    item_fit: tuple[ItemBand, ...] | None = None
    assumptions: Assumptions | None = None
    skill_distribution: SkillDistribution | None = None
    terms: tuple[TermReport, ...] | None = None
    movement: Movement | None = None
    discrimination: VaryingDiscrimination | None = None
    nearby: Nearby | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return record_as_html("Diagnostics", asdict(self))
