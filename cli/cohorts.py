"""`isuit hash` and `isuit canonicalise`: the cohort hash, and the very bytes it is the hash of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Column, Json, Timezone
from .output import note, print_json

if TYPE_CHECKING:
    from isuit.ingest import Cohort

Files = Annotated[
    list[str], typer.Argument(help="Parquet, CSV or Arrow files, a directory or a quoted glob: one cohort in all.")
]


def hash_cohort(files: Files, column: Column = None, timezone: Timezone = None, json: Json = False) -> None:
    """Print the hash of a cohort, and a report of what was read."""
    with _opened(files, column, timezone, json) as cohort:
        if json:
            print_json(_described(cohort))
        else:
            print(cohort.cohort_hash)
            note(_summary(cohort))


def canonicalise(
    files: Files,
    out: Annotated[Path, typer.Option("--out", help="The file to write; its SHA-256 is the cohort hash.")],
    column: Column = None,
    timezone: Timezone = None,
    json: Json = False,
) -> None:
    """Write the canonical form of a cohort, so that `sha256sum` gives its hash."""
    from isuit.ingest import refuse_to_overwrite, write_canonical

    refuse_to_overwrite(files, out)
    with _opened(files, column, timezone, json) as cohort:
        write_canonical(cohort, out)
        if json:
            print_json(_described(cohort) | {"out": str(out)})
        else:
            note(f"{cohort.cohort_hash}\n{_summary(cohort)}")


@contextmanager
def _opened(files: list[str], column: list[str] | None, timezone: str | None, json: bool) -> Iterator[Cohort]:
    from isuit.ingest import RefusedCohort, parse_mapping, read_cohort

    try:
        with read_cohort(files, columns=parse_mapping(column), timezone=timezone) as cohort:
            yield cohort
    except RefusedCohort as refused:
        if json:  # a program that asked for JSON gets the defects as JSON too
            print_json(refused.as_json())
        raise


def _described(cohort: Cohort) -> dict[str, Any]:
    return {"cohort_hash": cohort.cohort_hash} | cohort.report.as_json()


def _summary(cohort: Cohort) -> str:
    read = cohort.report.as_json()
    span = f"{read['observed_from']} to {read['observed_until']}" if read["observed_from"] else "without times"
    return (
        f"{read['outcomes']} outcomes, {read['riders']} riders, {read['sites']} sites, {span}, "
        f"{read['duplicates']} duplicates (kept), nothing refused"
    )
