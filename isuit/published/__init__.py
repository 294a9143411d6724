"""What leaves the store as JSON, as models, in one room per audience; `make schemas` makes `schemas/*.json` from them.

`schemas.py` lists them by file name and says which commands print which. `reading.py` is the way back: it reads what
some version of the program wrote into a fit's record.
"""

from isuit.published.audit import BundleManifest, BundleReport, Disagreement, RederiveReport, VerifyReport
from isuit.published.base import FIT, HASH, HEAD, Published
from isuit.published.cohorts import Canonicalised, CohortRead, CohortRefused, Defect, Pseudonymised
from isuit.published.experiment import ExperimentStats, MeanOverCohorts
from isuit.published.fits import (
    Atlas,
    AtlasPoint,
    CohortRecord,
    CurvePoint,
    FitDetail,
    FitList,
    FitRecord,
    FitSummary,
    PageWritten,
    Releasable,
    ScoredConditions,
    ScoreReport,
    Trajectory,
    TrajectoryPoint,
)
from isuit.published.persons import (
    Binding,
    EmptiedCohort,
    EmptiedFit,
    ErasurePlan,
    ErasureReceipt,
    ErasureVerification,
    Kept,
    Reinstated,
    RequesterCopy,
    RiderReport,
    SameName,
    TableCount,
)
from isuit.published.releases import (
    ExportReport,
    Format,
    MetricDescription,
    ReleaseCheck,
    ReleaseMetadata,
    ReleaseRederivation,
    ReleaseRow,
)
from isuit.published.stores import Created, Status

__all__ = [
    "FIT",
    "HASH",
    "HEAD",
    "Atlas",
    "AtlasPoint",
    "Binding",
    "BundleManifest",
    "BundleReport",
    "Canonicalised",
    "CohortRead",
    "CohortRecord",
    "CohortRefused",
    "Created",
    "CurvePoint",
    "Defect",
    "Disagreement",
    "EmptiedCohort",
    "EmptiedFit",
    "ErasurePlan",
    "ErasureReceipt",
    "ErasureVerification",
    "ExperimentStats",
    "ExportReport",
    "FitDetail",
    "FitList",
    "FitRecord",
    "FitSummary",
    "Format",
    "Kept",
    "MeanOverCohorts",
    "MetricDescription",
    "PageWritten",
    "Pseudonymised",
    "Published",
    "RederiveReport",
    "Reinstated",
    "Releasable",
    "ReleaseCheck",
    "ReleaseMetadata",
    "ReleaseRederivation",
    "ReleaseRow",
    "RequesterCopy",
    "RiderReport",
    "SameName",
    "ScoreReport",
    "ScoredConditions",
    "Status",
    "TableCount",
    "Trajectory",
    "TrajectoryPoint",
    "VerifyReport",
]
