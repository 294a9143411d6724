"""What leaves the store as JSON, as pydantic models; `python -m isuit.schemas` writes `schemas/*.json` from them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from isuit.published_diagnostics import Diagnostics
from isuit.publishing import Published

__all__ = ["Diagnostics", "Published"]

HASH = r"^isuit-c1:[0-9a-f]{64}$"
FIT = r"^isuit-f1:[0-9a-f]{64}$"
HEAD = r"^[0-9a-f]{64}$"


class Identification(Published):
    """Whether skill and difficulty can be told apart in the cohort."""

    ok: bool
    reading: Literal["strict", "core"]
    shortfalls: list[str]
    core_share: float = Field(description="Share of outcomes in the core that pruning leaves.")
    core_riders: int
    riders: int
    bins: int


class Promotion(Published):
    """Whether skill earns its place: the likelihood-ratio test of no discrimination, and the held-out score."""

    ok: bool
    likelihood_ratio: float | None
    p_value: float | None
    shortfalls: list[str]


class HeldOut(Published):
    """Scores on outcomes that the fit did not see."""

    brier_skill: float
    brier_skill_se: float
    brier: float
    brier_single_curve: float
    outcomes: int
    split: Literal["rider", "time", "occasion"]


class Releasable(Published):
    """Whether the fit can enter a public release and, if not, what is missing."""

    ok: bool
    missing: list[str]


class CurvePoint(Published):
    """Difficulty at one metric and site; a null site is the curve that all sites share."""

    site: str | None
    metric: float
    difficulty: float | None
    difficulty_se: float | None
    suitability: float


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
    identification: Identification
    promotion: Promotion | None
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


class FitSummary(Published):
    """`isuit fit`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    recorded: bool = Field(description="False when the same fit was there already and is confirmed.")
    activity: str
    dimension: str
    kind: Literal["latent", "single-curve"]
    identification: Identification
    promotion: Promotion | None
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
    diagnostics: Diagnostics
    curves: list[CurvePoint]


class FitList(Published):
    """`isuit fits`, oldest first."""

    fits: list[FitRecord]


class ScoreReport(Published):
    """`isuit score FIT`: suitability for a declared skill, with its 95 % band."""

    fit_id: str = Field(pattern=FIT)
    kind: Literal["latent", "single-curve"]
    metric: float
    site: str | None
    skill: float | None = Field(description="Null for a single-curve fit, which answers for the population.")
    suitability: float
    lower: float | None
    upper: float | None
    from_anchor: bool = Field(description="The metric lies outside the observed range; the expert curve answers.")
    notes: list[str]


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
    drift: bool = Field(description="The change since the fit before is beyond what the two posteriors allow.")
    note: str | None


class Trajectory(Published):
    """`isuit trajectory RIDER`; the rider is not repeated."""

    points: list[TrajectoryPoint]


class Status(Published):
    """`isuit status`."""

    store_id: str
    cohorts: int
    outcomes: int
    fits: int
    riders: int
    sites: int
    suppressed: int
    receipts: int
    releases: int
    policy: dict[str, Any]
    tool_version: str
    log_length: int
    log_head: str = Field(pattern=HEAD)


class Disagreement(Published):
    """One thing that does not agree with the log."""

    table: str
    sentence: str


class VerifyReport(Published):
    """`isuit verify`."""

    ok: bool
    log_head: str = Field(pattern=HEAD)
    log_length: int
    known_head: str | None
    cohorts: int
    complete_cohorts: int
    fits: int
    erased_leaves: int = Field(description="Leaves whose rider was erased; each is covered by a receipt.")
    disagreements: list[Disagreement]


class RederiveReport(Published):
    """`isuit rederive FIT`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    verdict: Literal["identical", "equivalent", "erased", "diverged"]
    largest_difference: float | None = Field(description="Null where the two cannot be compared point by point.")
    curve_difference: float | None
    discrimination_difference: float | None
    skill_difference: float | None
    tolerance: float
    skills_compared: int
    recorded_version: str
    estimator_version: str
    notes: list[str]


class BundleManifest(Published):
    """`manifest.json` of a bundle: each file with its SHA-256, and the head up to which the log goes."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    with_cohort: bool
    log_head: str = Field(pattern=HEAD)
    tool_version: str
    made_on: date
    files: dict[str, str]


class BundleReport(Published):
    """`isuit bundle FIT --out DIR`."""

    fit_id: str = Field(pattern=FIT)
    files: list[str]
    with_cohort: bool
    log_head: str = Field(pattern=HEAD)


class PageWritten(Published):
    """`isuit report FIT --out FILE.html`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    out: str


class Created(Published):
    """`isuit init`."""

    store_id: str
    policy: dict[str, Any]
    log_head: str = Field(pattern=HEAD)


# The published schemas by file name.
SCHEMAS: dict[str, type[Published]] = {
    "fit": FitSummary,
    "fit-record": FitRecord,
    "fits": FitList,
    "show": FitDetail,
    "score": ScoreReport,
    "atlas": Atlas,
    "trajectory": Trajectory,
    "status": Status,
    "verify": VerifyReport,
    "rederive": RederiveReport,
    "bundle": BundleReport,
    "bundle-manifest": BundleManifest,
    "report": PageWritten,
    "init": Created,
}
