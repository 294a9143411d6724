"""`isuit hash` and `isuit canonicalise`: what a cohort is called, and the very bytes that its name is the hash of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isuit.ingest import Cohort, RefusedCohort, read_cohort, refuse_to_overwrite, write_canonical
from isuit.published import Canonicalised, CohortRead, CohortRefused, Defect

__all__ = ["RefusedCohort", "canonicalise", "read", "refusal"]


def read(
    files: Any,
    *,
    columns: Mapping[str, str] | None = None,
    metrics: Sequence[str] | None = None,
    timezone: str | None = None,
    csv: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> CohortRead:
    """Read a cohort (paths, or a table) and say what it holds."""
    with read_cohort(
        files, columns=columns, metrics=metrics, timezone=timezone, csv=csv, drop_missing=drop_missing
    ) as cohort:
        return CohortRead(**_described(cohort))


def canonicalise(
    files: Any,
    out: Path,
    *,
    columns: Mapping[str, str] | None = None,
    metrics: Sequence[str] | None = None,
    timezone: str | None = None,
    csv: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> Canonicalised:
    """Write the canonical form of a cohort, so that `sha256sum` gives its hash."""
    refuse_to_overwrite(files, out)
    with read_cohort(
        files, columns=columns, metrics=metrics, timezone=timezone, csv=csv, drop_missing=drop_missing
    ) as cohort:
        write_canonical(cohort, out)
        return Canonicalised(**_described(cohort), out=str(out))


def refusal(refused: RefusedCohort) -> CohortRefused:
    """Every defect of a cohort that was refused, for a program that asked for JSON."""
    defects = [Defect(**asdict(defect) | {"rows": list(defect.rows)}) for defect in refused.refusals]
    return CohortRefused(error=str(refused), refused=defects)


def _described(cohort: Cohort) -> dict[str, Any]:
    return {"cohort_hash": cohort.cohort_hash} | cohort.report.as_json()
