"""`isuit add --series NAME FILE`: outcomes that come day by day, and the union of them that is fitted.

What is added is a cohort of its own: hashed, committed to, verified and erased like every other, and stored once. The
union is made when it is fitted, by one rule: outcomes with a time that are equal in every field count once, however
many files have them, because exports overlap; outcomes without a time are all kept, because nothing tells two attempts
from one that was written down twice. A file that is there already adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from isuit import canonical
from isuit.audit.log import append_event, log_head
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError, NotFound, StoreBusy
from isuit.ingest import read_cohort
from isuit.published import Added
from isuit.service.recording import register_cohort
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.aliases import checked_alias
from isuit.store.cohorts import StoredCohort, find_cohort, stored_outcomes
from isuit.store.opening import Store, is_store
from isuit.store.query import BATCH_ROWS, first
from isuit.store.series import series


def add(
    store_path: Path,
    name: str,
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    metrics: Sequence[str] | None = None,
    timezone: str | None = None,
    csv: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    wait: float = DEFAULT_WAIT,
) -> Added:
    """Add a cohort to a series; what is in it already changes nothing."""
    checked_alias(name, "a series")
    opted_out = OptedOut()
    if is_store(store_path):
        with open_store(store_path, wait=wait) as store:
            opted_out = OptedOut.of(store)
    with (
        read_cohort(
            source,
            columns=columns,
            metrics=metrics,
            timezone=timezone,
            csv=csv,
            drop_missing=drop_missing,
            exclude=opted_out.exclude,
        ) as cohort,
        open_store(store_path, write=True, wait=wait, create=True) as store,
    ):
        if OptedOut.of(store).digests - opted_out.digests:
            raise StoreBusy("a rider opted out while this cohort was being read; run the command again")
        before = series(store.connection).get(name, [])
        _require_alike(store, before, cohort.metrics)
        new = cohort.cohort_hash not in before
        if new:
            with store.transaction() as connection:
                if first(connection, "SELECT 1 FROM all_commitments WHERE lower(rider) = lower(?)", [name]):
                    raise InputError("a rider of this store is called so: choose another name for the series")
                if find_cohort(connection, cohort.cohort_hash) is None:
                    register_cohort(connection, cohort)
                append_event(connection, "series-extended", {"series": name, "cohort_hash": cohort.cohort_hash})
        parts = _parts(store, [*before, *([cohort.cohort_hash] if new else [])])
        return Added(
            series=name,
            cohort_hash=cohort.cohort_hash,
            added=new,
            outcomes=cohort.report.outcomes,
            parts=len(parts),
            outcomes_of_all=sum(part.outcomes for part in parts),
            suppressed_rows=cohort.report.excluded_rows,
            notes=list(cohort.report.notes),
            log_head=log_head(store.connection),
        )


def _parts(store: Store, hashes: Sequence[str]) -> list[StoredCohort]:
    found = (find_cohort(store.connection, cohort_hash) for cohort_hash in hashes)
    return [part for part in found if part is not None]


def _require_alike(store: Store, before: Sequence[str], metrics: tuple[str, ...]) -> None:
    for part in _parts(store, before[:1]):
        if part.metrics != metrics:
            raise InputError(
                f"the series has the metrics {', '.join(part.metrics)}, and this cohort {', '.join(metrics)}: add it "
                "to another series"
            )


@dataclass(frozen=True)
class Series:
    """A series of the store, by its name, as what is to be fitted."""

    name: str


@contextmanager
def opened(
    store_path: Path, source: Any, metrics: Sequence[str] | None, wait: float
) -> Iterator[tuple[Any, Sequence[str] | None]]:
    """What is to be read, with the names of its metrics: the source itself, or the union of a series."""
    if not isinstance(source, Series):
        yield source, metrics
        return
    if metrics:
        raise InputError("a series has its metrics already: leave --metric out")
    with open_store(store_path, wait=wait) as store:
        parts = _parts(store, series(store.connection).get(source.name, []))
        if not parts:
            raise NotFound("this store has no series of that name; `isuit add --series NAME FILE` begins one")
        # A database of its own, which spills where the store does; it is read while the store is locked for reading.
        joined = duckdb.connect(config={"temp_directory": str(store.paths.spill), "memory_limit": "1GB"})
        try:
            yield _union(store, joined, parts), parts[0].metrics
        finally:
            joined.close()


def _union(store: Store, joined: duckdb.DuckDBPyConnection, parts: Sequence[StoredCohort]) -> pa.RecordBatchReader:
    """The outcomes of all parts by the rule above, in no order."""
    joined.register("incoming", canonical.schema_of(parts[0].metrics).empty_table())
    joined.execute("CREATE TABLE outcomes AS SELECT * FROM incoming")
    for part in parts:
        for batch in stored_outcomes(store.connection, part.cohort_hash):
            joined.register("incoming", pa.Table.from_batches([batch]))
            joined.execute("INSERT INTO outcomes SELECT * FROM incoming")
    joined.unregister("incoming")
    return joined.sql(
        "SELECT DISTINCT * FROM outcomes WHERE observed_at IS NOT NULL "
        "UNION ALL SELECT * FROM outcomes WHERE observed_at IS NULL"
    ).to_arrow_reader(BATCH_ROWS)
