"""Cohorts: their hash, the very bytes it is the hash of, and the series they are added to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isuit.reading import Reading

from .options import DEFAULT_STORE, DEFAULT_WAIT, READING, Files, Json, Query, Store, Wait, reads
from .output import note, print_json, print_table

if TYPE_CHECKING:
    from isuit.published import CohortRead


@reads(READING)
def hash_cohort(files: Files, query: Query = None, *, reading: Reading, json: Json = False) -> None:
    """Print the hash of a cohort, and a report of what was read."""
    from isuit.service import cohorts
    from isuit.service.inputs import cohort_source

    with _defects_as_json(json):
        found = cohorts.read(cohort_source(files, query), **reading)
    if json:
        print_json(found)
    else:
        print(found.cohort_hash)
        note(_summary(found))


@reads(READING)
def add(
    series: Annotated[str, typer.Option("--series", help="The series' name, such as kite; its first file begins it.")],
    files: Files,
    query: Query = None,
    *,
    reading: Reading,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Add today's outcomes to a series; `isuit fit --series` fits the union, in which equal outcomes count once."""
    from isuit.service import series as service
    from isuit.service.inputs import cohort_source

    with _defects_as_json(json):
        found = service.add(store, series, cohort_source(files, query), wait=wait, **reading)
    for sentence in found.notes:
        note(f"note: {sentence}")
    if json:
        print_json(found)
        return
    how = f"{found.outcomes} outcomes added" if found.added else "there already: nothing was added"
    if found.added and found.known_outcomes:
        note(f"note: {found.known_outcomes} outcomes were left out: the series has them, or the file repeats them")
    print(f"cohort    {found.cohort_hash} ({how})")
    print(f"series    {found.series}: {found.parts} parts, {found.outcomes_of_all} outcomes")
    print(f"log head  {found.log_head}")


def series_list(store: Store = DEFAULT_STORE, wait: Wait = DEFAULT_WAIT, json: Json = False) -> None:
    """List the series of the store, by name, with what each holds now."""
    from isuit.service.series import listing

    found = listing(store, wait)
    if json:
        print_json(found)
        return
    columns = ["series", "parts", "outcomes", "riders", "from", "until", "last added", "metrics"]
    rows = [
        (
            each.series,
            str(each.parts),
            str(each.outcomes),
            str(each.riders),
            f"{each.observed_from:%Y-%m-%d}" if each.observed_from else "-",
            f"{each.observed_until:%Y-%m-%d}" if each.observed_until else "-",
            f"{each.extended_at:%Y-%m-%d %H:%M}",
            ", ".join(each.metrics),
        )
        for each in found.series
    ]
    if rows:
        print_table(columns, rows, ("  ".join(row) for row in rows))
    note(f"{len(rows)} series")


@reads(READING)
def canonicalise(
    files: Files,
    out: Annotated[Path, typer.Option("--out", help="The file to write; its SHA-256 is the cohort hash.")],
    query: Query = None,
    *,
    reading: Reading,
    json: Json = False,
) -> None:
    """Write the canonical form of a cohort, so that `sha256sum` gives its hash."""
    from isuit.service import cohorts
    from isuit.service.inputs import cohort_source

    with _defects_as_json(json):
        written = cohorts.canonicalise(cohort_source(files, query), out, **reading)
    if json:
        print_json(written)
    else:
        note(f"{written.cohort_hash}\n{_summary(written)}")


@contextmanager
def _defects_as_json(json: bool) -> Iterator[None]:
    """A program that asked for JSON gets the defects of a refused cohort as JSON too."""
    from isuit.service.cohorts import RefusedCohort, refusal

    try:
        yield
    except RefusedCohort as refused:
        if json:
            print_json(refusal(refused))
        raise


def _summary(read: CohortRead) -> str:
    span = f"{read.observed_from} to {read.observed_until}" if read.observed_from else "without times"
    for sentence in read.notes:
        note(f"note: {sentence}")
    return (
        f"{read.outcomes} outcomes, {read.riders} riders, {read.sites} sites, {span}, "
        f"{read.duplicates} duplicates (kept), nothing refused"
    )
