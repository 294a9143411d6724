"""What is said of fits and their curves: fit, fits, show, report, score, atlas, trajectory."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from isuit.domain import GateReport, HeldOut, PromotionReport
from isuit.published.base import FIT, HASH, HEAD, Published
from isuit.record import Diagnostics


class Releasable(Published):
    """Whether the fit can enter a public release and, if not, what is missing."""

    ok: bool
    missing: list[str]


class CurvePoint(Published):
    """Difficulty at one metric and site; a null site is the curve that all sites share.

    Of several metrics a curve runs along the one that `dimension` names, with the others at their medians.
    """

    site: str | None
    dimension: str
    metric: float
    difficulty: float | None
    difficulty_se: float | None
    suitability: float
    suitability_lower: float | None = Field(
        description="Of a single curve, the lower end of its 95 % interval; null in a latent fit."
    )
    suitability_upper: float | None = Field(description="The upper end of the same interval.")


class FitRecord(Published):
    """`isuit fits`, a row of it; the head of `isuit show` and `isuit bundle`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    activity: str
    dimension: str
    kind: Literal["latent", "single-curve"]
    discrimination: float | None
    discrimination_se: float | None
    discrimination_interval: tuple[float, float] | None = Field(
        description="The 95 % interval of the discrimination, on its logarithm."
    )
    log_likelihood: float
    estimator_version: str
    tool_version: str = Field(description="The version of isuit that made the fit.")
    configuration: dict[str, Any]
    identification: GateReport
    promotion: PromotionReport | None
    held_out: HeldOut | None
    skills: int = Field(description="Number of riders with a skill when the fit was recorded.")
    commitment: str | None = Field(description="Root over the salted leaves of the skills.")
    result_digest: str
    recorded_at: datetime


class CohortRecord(Published):
    """A cohort as it was registered."""

    cohort_hash: str = Field(pattern=HASH)
    outcomes: int
    riders: int
    sites: int
    observed_from: datetime | None
    observed_until: datetime | None
    untimed: int
    commitment: str
    registered_at: datetime
    metrics: list[str] = Field(description="The names of several metrics; of one, the word metric.")


class FitSummary(Published):
    """`isuit fit`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    recorded: bool = Field(description="False when the same fit was there already and is confirmed.")
    activity: str
    dimension: str
    kind: Literal["latent", "single-curve"]
    identification: GateReport
    promotion: PromotionReport | None
    discrimination: float | None
    discrimination_se: float | None
    discrimination_interval: tuple[float, float] | None = Field(
        description="The 95 % interval of the discrimination, on its logarithm."
    )
    held_out: HeldOut | None
    outcomes: int
    riders: int
    sites: int
    skills: int
    suppressed_rows: int = Field(description="Rows left out because their rider opted out.")
    releasable: Releasable
    notes: list[str]
    log_head: str = Field(pattern=HEAD)


class FitDetail(Published):
    """`isuit show FIT`."""

    fit: FitRecord
    cohort: CohortRecord
    releasable: Releasable
    aliases: list[str] = Field(description="The operator's names for this fit.")
    aic: float | None = Field(
        description="-2 log-likelihood + 2 effective degrees of freedom; comparable between fits of the same outcomes. "
        "Null for a single curve."
    )
    diagnostics: Diagnostics
    curves: list[CurvePoint]


class FitList(Published):
    """`isuit fits`, oldest first."""

    fits: list[FitRecord]
    aliases: dict[str, str] = Field(description="The operator's names for fits, each with its fit id.")


class ScoreReport(Published):
    """`isuit score FIT`: suitability for a declared skill, with its 95 % band."""

    fit_id: str = Field(pattern=FIT)
    kind: Literal["latent", "single-curve"]
    metric: float | dict[str, float] = Field(description="Of several metrics the value of each, by name.")
    site: str | None
    skill: float | None = Field(description="Null for a single-curve fit, which answers for the population.")
    suitability: float
    lower: float | None
    upper: float | None
    from_anchor: bool = Field(description="The metric lies outside the observed range; the expert curve answers.")
    notes: list[str]


class ScoredConditions(Published):
    """`isuit score FIT --conditions FILE`: the scores themselves are in the file written."""

    rows: int
    not_scored: dict[str, int] = Field(description="Rows without a score, by reason; their column reason says it too.")
    out: str


class AtlasPoint(CurvePoint):
    """A point of the in-house atlas."""

    activity: str
    dimension: str
    latitude: float | None
    longitude: float | None
    discrimination: float | None
    kind: Literal["latent", "single-curve"]
    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    recorded_at: datetime


class Atlas(Published):
    """`isuit atlas`: the newest fit of every activity, dimension and site."""

    points: list[AtlasPoint]


class TrajectoryDay(Published):
    """A rider's skill on one day, in a fit in which skill moves, on that fit's scale."""

    day: date
    skill_mean: float
    skill_sd: float


class TrajectoryPoint(Published):
    """A rider's skill in one cohort, on its own scale and linked to that of the first comparable fit."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    activity: str
    dimension: str
    observed_from: datetime | None
    observed_until: datetime | None
    skill_mean: float
    skill_sd: float
    usable: bool
    linked_mean: float | None = Field(description="On the scale of the series' first fit; null if not comparable.")
    linked_sd: float | None
    drift: bool = Field(
        description="Between cohorts: the change since the fit before is beyond what the two posteriors allow."
    )
    moved: bool = Field(
        description="Within this cohort: from the first to the last day skill changed by more than its sds allow."
    )
    note: str | None = Field(description="Which of the two it was, and by how much; or why fits cannot be compared.")
    path: list[TrajectoryDay] | None = Field(description="Day by day, in a fit in which skill moves; else null.")


class Trajectory(Published):
    """`isuit trajectory RIDER`; the rider is not repeated."""

    points: list[TrajectoryPoint]


class PageWritten(Published):
    """`isuit report FIT --out FILE.html`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    out: str
