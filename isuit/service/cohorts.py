"""`isuit hash` and `isuit canonicalise`: what a cohort is called, and the very bytes that its name is the hash of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

from isuit.ingest import Cohort, RefusedCohort, read_cohort, refuse_to_overwrite, write_canonical
from isuit.published import Canonicalised, CohortRead, CohortRefused, Defect
from isuit.reading import Reading

__all__ = ["RefusedCohort", "canonicalise", "read", "refusal"]


def read(files: Any, **reading: Unpack[Reading]) -> CohortRead:
    """Read a cohort (paths, or a table) and say what it holds."""
    with read_cohort(files, **reading) as cohort:
        return CohortRead(**_described(cohort))


def canonicalise(files: Any, out: Path, **reading: Unpack[Reading]) -> Canonicalised:
    """Write the canonical form of a cohort, so that `sha256sum` gives its hash."""
    refuse_to_overwrite(files, out)
    with read_cohort(files, **reading) as cohort:
        write_canonical(cohort, out)
        return Canonicalised(**_described(cohort), out=str(out))


def refusal(refused: RefusedCohort) -> CohortRefused:
    """Every defect of a cohort that was refused, for a program that asked for JSON."""
    defects = [Defect(**asdict(defect) | {"rows": list(defect.rows)}) for defect in refused.refusals]
    return CohortRefused(error=str(refused), refused=defects)


def _described(cohort: Cohort) -> dict[str, Any]:
    return {"cohort_hash": cohort.cohort_hash} | cohort.report.as_json()
