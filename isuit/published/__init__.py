"""What leaves the store as JSON, as models, in one room per audience; `make schemas` makes `schemas/*.json` from them.

`schemas.py` lists them by file name and says which commands print which. `reading.py` is the way back: it reads what
some version of the program wrote into a fit's record. A room is opened when something of it is asked for: whoever
checks a release need not wait until the models of a fit are built.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isuit.published.audit import (
        BundleManifest,
        BundleReport,
        Disagreement,
        HeadReport,
        KeyRotated,
        ProofCheck,
        Proved,
        RederiveReport,
        VerifyReport,
        Witnessed,
    )
    from isuit.published.base import FIT, HASH, HEAD, Published
    from isuit.published.cohorts import (
        Added,
        Canonicalised,
        CohortRead,
        CohortRefused,
        Defect,
        Pseudonymised,
        SeriesEntry,
        SeriesList,
    )
    from isuit.published.comparing import (
        Alias,
        Aliases,
        Changed,
        ComparedFit,
        ComparedPoint,
        Comparison,
        RankedSite,
        Ranking,
    )
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
        TrajectoryDay,
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
    from isuit.published.proofs import ConsistencyProof, InclusionProof, Proof
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
    "Added",
    "Alias",
    "Aliases",
    "Atlas",
    "AtlasPoint",
    "Binding",
    "BundleManifest",
    "BundleReport",
    "Canonicalised",
    "Changed",
    "CohortRead",
    "CohortRecord",
    "CohortRefused",
    "ComparedFit",
    "ComparedPoint",
    "Comparison",
    "ConsistencyProof",
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
    "HeadReport",
    "InclusionProof",
    "Kept",
    "KeyRotated",
    "MeanOverCohorts",
    "MetricDescription",
    "PageWritten",
    "Proof",
    "ProofCheck",
    "Proved",
    "Pseudonymised",
    "Published",
    "RankedSite",
    "Ranking",
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
    "SeriesEntry",
    "SeriesList",
    "Status",
    "TableCount",
    "Trajectory",
    "TrajectoryDay",
    "TrajectoryPoint",
    "VerifyReport",
    "Witnessed",
]


def _rooms() -> Iterator[ModuleType]:
    """Every room, those that cost least first."""
    from isuit.published import base

    yield base
    from isuit.published import proofs

    yield proofs
    from isuit.published import releases

    yield releases
    from isuit.published import audit

    yield audit
    from isuit.published import cohorts

    yield cohorts
    from isuit.published import persons

    yield persons
    from isuit.published import stores

    yield stores
    from isuit.published import experiment

    yield experiment
    from isuit.published import comparing

    yield comparing
    from isuit.published import fits

    yield fits


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _rooms():
            if name in vars(room):
                return vars(room)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
