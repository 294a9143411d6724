"""`isuit add --series NAME FILE`: outcomes that come day by day, and the union of them that is fitted.

What a file adds is a cohort of its own: hashed, committed to, verified and erased like every other, and stored once.
It is what the series does not have yet, by one rule: outcomes with a time that are equal in every field count once,
however many files have them, because exports overlap; outcomes without a time are all kept, because nothing tells two
attempts from one that was written down twice. A file that is there already adds nothing but the outcomes of riders who
were erased and may be here again.

The union that is fitted is all parts together, so it is listed under their names and stores no row again
(`isuit.store.holders`). Parts of versions that did not look for overlaps may repeat outcomes; their union is a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import duckdb
import pyarrow as pa

from isuit import canonical
from isuit.audit.log import append_event, log_head
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError, NotFound, StoreBusy
from isuit.ingest import Cohort, read_cohort
from isuit.published import Added, SeriesEntry, SeriesList
from isuit.reading import Reading
from isuit.service.recording import register_cohort, return_rows
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.aliases import checked_alias
from isuit.store.cohorts import StoredCohort, find_cohort, stored_outcomes
from isuit.store.holders import Shared, shared_by
from isuit.store.opening import Store, is_store
from isuit.store.query import BATCH_ROWS, first, rows
from isuit.store.series import Step, series


def add(
    store_path: Path,
    name: str,
    source: Any,
    *,
    wait: float = DEFAULT_WAIT,
    **reading: Unpack[Reading],
) -> Added:
    """Add a cohort to a series; what is in it already changes nothing."""
    checked_alias(name, "a series")
    opted_out = OptedOut()
    if is_store(store_path):
        with open_store(store_path, wait=wait) as store:
            opted_out = OptedOut.of(store)
    with (
        read_cohort(source, exclude=opted_out.exclude, **reading) as cohort,
        open_store(store_path, write=True, wait=wait, create=True) as store,
    ):
        if OptedOut.of(store).digests - opted_out.digests:
            raise StoreBusy("a rider opted out while this cohort was being read; run the command again")
        before = series(store.connection).get(name, [])
        _require_alike(store, before, cohort.metrics)
        with _new_outcomes(store, before, cohort) as new:
            if new is not None:
                _extend(store, name, before, cohort, new)
            outcomes = new.report.outcomes if new is not None else 0
            parts = _parts(store, series(store.connection).get(name, []))
            return Added(
                series=name,
                cohort_hash=(new or cohort).cohort_hash,
                added=new is not None,
                outcomes=outcomes,
                known_outcomes=cohort.report.outcomes - outcomes,
                parts=len(parts),
                outcomes_of_all=sum(part.outcomes for part in parts),
                suppressed_rows=cohort.report.excluded_rows,
                notes=list(cohort.report.notes),
                log_head=log_head(store.connection),
            )


def _extend(store: Store, name: str, before: Sequence[Step], cohort: Cohort, new: Cohort) -> None:
    """Register what is new; where it is a cohort that the store has, its erased riders may come back."""
    with store.transaction() as connection:
        if first(connection, "SELECT 1 FROM all_commitments WHERE lower(rider) = lower(?)", [name]):
            raise InputError("a rider of this store is called so: choose another name for the series")
        known = find_cohort(connection, new.cohort_hash)
        if known is None:
            register_cohort(connection, new)
        else:
            return_rows(connection, new, known)
        if new.cohort_hash not in (step.cohort_hash for step in before):
            payload = {"series": name, "cohort_hash": new.cohort_hash, "read": cohort.cohort_hash}
            append_event(connection, "series-extended", payload)


@contextmanager
def _new_outcomes(store: Store, before: Sequence[Step], cohort: Cohort) -> Iterator[Cohort | None]:
    """What the series does not have of a cohort: the cohort itself, a smaller one, or None."""
    parts, report = _parts(store, before), cohort.report
    again = cohort.cohort_hash in (step.read for step in before)
    beside: list[StoredCohort] = []
    if report.observed_from is not None and report.observed_until is not None:
        start, end = (
            time.astimezone(UTC).replace(tzinfo=None) for time in (report.observed_from, report.observed_until)
        )
        beside = [
            part
            for part in parts
            if part.observed_from and part.observed_until and part.observed_from <= end and start <= part.observed_until
        ]
    if not (again or beside or report.duplicates):
        yield cohort
        return
    with _scratch(store) as scratch:
        _fill(scratch, "incoming", cohort.metrics, cohort.batches())
        had = (batch for part in beside for batch in stored_outcomes(store.connection, part.cohort_hash, ordered=False))
        _fill(scratch, "had", cohort.metrics, had)
        untimed = "SELECT * FROM incoming WHERE observed_at IS NULL"
        if again:  # nothing tells which of them are there, but of a rider who is not there at all none is
            scratch.register("here", _riders(store, parts))
            untimed += " AND rider NOT IN (SELECT rider FROM here)"
        scratch.execute(
            "CREATE TABLE fresh AS (SELECT * FROM incoming WHERE observed_at IS NOT NULL EXCEPT SELECT * FROM had) "
            f"UNION ALL {untimed}"
        )
        [(left,)] = rows(scratch, "SELECT count(*) FROM fresh")
        if left in (0, report.outcomes):
            yield cohort if left else None
            return
        with read_cohort(scratch.sql("FROM fresh").to_arrow_reader(BATCH_ROWS), metrics=cohort.metrics) as new:
            yield new


def _riders(store: Store, parts: Sequence[StoredCohort]) -> pa.Table:
    query = "SELECT DISTINCT rider FROM all_commitments WHERE list_contains(?, subject)"
    return store.connection.sql(query, params=[[part.cohort_hash for part in parts]]).to_arrow_table()


@contextmanager
def _scratch(store: Store) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of its own, which spills where the store does; used while the store is locked."""
    connection = duckdb.connect(config={"temp_directory": str(store.paths.spill), "memory_limit": "1GB"})
    try:
        yield connection
    finally:
        connection.close()


def _fill(
    scratch: duckdb.DuckDBPyConnection, table: str, metrics: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> None:
    """A table of outcomes, in no order."""
    scratch.register("batch", canonical.schema_of(metrics).empty_table())
    scratch.execute(f"CREATE TABLE {table} AS SELECT * FROM batch")
    for batch in batches:
        scratch.register("batch", pa.Table.from_batches([batch]))
        scratch.execute(f"INSERT INTO {table} SELECT * FROM batch")
    scratch.unregister("batch")


def _parts(store: Store, steps: Sequence[Step]) -> list[StoredCohort]:
    found = (find_cohort(store.connection, step.cohort_hash) for step in steps)
    return [part for part in found if part is not None]


def _require_alike(store: Store, before: Sequence[Step], metrics: tuple[str, ...]) -> None:
    for part in _parts(store, before[:1]):
        if part.metrics != metrics:
            raise InputError(
                f"the series has the metrics {', '.join(part.metrics)}, and this cohort {', '.join(metrics)}: add it "
                "to another series"
            )


def listing(store_path: Path, wait: float = DEFAULT_WAIT) -> SeriesList:
    """Every series of the store, by name, with what it holds now."""
    with open_store(store_path, wait=wait) as store:
        return SeriesList(
            series=[_entry(store, name, steps) for name, steps in sorted(series(store.connection).items())]
        )


def _entry(store: Store, name: str, steps: Sequence[Step]) -> SeriesEntry:
    parts = _parts(store, steps)
    query = (
        "SELECT count(*), count(DISTINCT rider), min(observed_at), max(observed_at) FROM all_outcomes "
        "WHERE list_contains(?, cohort_hash)"
    )
    row = first(store.connection, query, [[part.cohort_hash for part in parts]])
    outcomes, riders, start, end = row or (0, 0, None, None)
    return SeriesEntry(
        series=name,
        parts=len(parts),
        outcomes=outcomes,
        riders=riders,
        metrics=list(parts[0].metrics) if parts else [],
        observed_from=start,
        observed_until=end,
        extended_at=steps[-1].added_at,
    )


@dataclass(frozen=True)
class Series:
    """A series of the store, by its name, as what is to be fitted."""

    name: str


class Opened(NamedTuple):
    """What is to be read, the names of its metrics, and what may hold its rows already."""

    source: Any
    metrics: Sequence[str] | None
    shared: Shared | None = None


@contextmanager
def opened(store_path: Path, source: Any, metrics: Sequence[str] | None, wait: float) -> Iterator[Opened]:
    """The source itself, or the union of a series."""
    if not isinstance(source, Series):
        yield Opened(source, metrics)
        return
    if metrics:
        raise InputError("a series has its metrics already: leave --metric out")
    with open_store(store_path, wait=wait) as store:
        parts = _parts(store, series(store.connection).get(source.name, []))
        if not parts:
            raise NotFound("this store has no series of that name; `isuit add --series NAME FILE` begins one")
        with _scratch(store) as joined:
            shared = shared_by(store.connection, [part.cohort_hash for part in parts])
            yield Opened(_union(store, joined, parts), parts[0].metrics, shared)


def _union(store: Store, joined: duckdb.DuckDBPyConnection, parts: Sequence[StoredCohort]) -> pa.RecordBatchReader:
    """The outcomes of all parts by the rule above, in no order."""
    every = (batch for part in parts for batch in stored_outcomes(store.connection, part.cohort_hash, ordered=False))
    _fill(joined, "outcomes", parts[0].metrics, every)
    return joined.sql(
        "SELECT DISTINCT * FROM outcomes WHERE observed_at IS NOT NULL "
        "UNION ALL SELECT * FROM outcomes WHERE observed_at IS NULL"
    ).to_arrow_reader(BATCH_ROWS)
