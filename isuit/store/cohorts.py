"""Cohorts: what is recorded of each, and its outcomes in canonical order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from isuit import canonical
from isuit.store.query import batches, first, insert, rows

# The order of the canonical lines (docs/contract.md, section 3): a null is an empty field and comes first, TAB sorts
# below every character a text may hold, and the metric's bits sort negative values after positive ones, each by size.
CANONICAL_ORDER = "rider, site NULLS FIRST, observed_at NULLS FIRST, metric < 0, abs(metric), outcome"


@dataclass(frozen=True)
class StoredCohort:
    """A row of `ledger.cohorts`: the cohort as it was registered, whatever was erased since."""

    cohort_hash: str
    outcomes: int
    riders: int
    sites: int
    observed_from: datetime | None
    observed_until: datetime | None
    untimed: int  # outcomes without a time
    commitment: str  # root over the riders' leaves
    registered_at: datetime


def find_cohort(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> StoredCohort | None:
    row = first(connection, "SELECT * FROM ledger.cohorts WHERE cohort_hash = ?", [cohort_hash])
    return StoredCohort(*row) if row else None


def cohort_records(connection: duckdb.DuckDBPyConnection) -> list[StoredCohort]:
    return [StoredCohort(*row) for row in rows(connection, "SELECT * FROM ledger.cohorts ORDER BY registered_at")]


def insert_cohort(connection: duckdb.DuckDBPyConnection, record: StoredCohort) -> None:
    connection.execute(
        "INSERT INTO ledger.cohorts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            record.cohort_hash,
            record.outcomes,
            record.riders,
            record.sites,
            record.observed_from,
            record.observed_until,
            record.untimed,
            record.commitment,
            record.registered_at,
        ],
    )


def insert_outcomes(connection: duckdb.DuckDBPyConnection, cohort_hash: str, batch: pa.RecordBatch) -> None:
    """Append a batch with the canonical schema (`isuit.canonical.SCHEMA`)."""
    data = pa.table(
        {
            "rider": batch.column("rider"),
            "site": batch.column("site"),
            "observed_at": batch.column("observed_at").cast(pa.timestamp("us")),
            "metric": batch.column("metric"),
            "outcome": batch.column("outcome"),
        }
    )
    connection.register("incoming", data)
    try:
        connection.execute("INSERT INTO personal.outcomes SELECT ?, * FROM incoming", [cohort_hash])
    finally:
        connection.unregister("incoming")


def stored_outcomes(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> Iterator[pa.RecordBatch]:
    """What is left of a cohort, with the canonical schema and in canonical order."""
    query = (
        "SELECT rider, site, observed_at, metric, outcome FROM personal.outcomes "
        f"WHERE cohort_hash = ? ORDER BY {CANONICAL_ORDER}"
    )
    for batch in batches(connection, query, [cohort_hash]):
        columns = [
            batch.column(field.name).cast(field.type) if field.name == "observed_at" else batch.column(field.name)
            for field in canonical.SCHEMA
        ]
        yield pa.record_batch(columns, schema=canonical.SCHEMA)


def insert_commitments(
    connection: duckdb.DuckDBPyConnection, subject: str, riders: list[str], salts: list[bytes], leaves: list[str]
) -> None:
    """Who stands behind which leaf: personal."""
    columns = {"rider": riders, "salt": pa.array(salts, pa.binary()), "leaf": leaves}
    insert(connection, "personal.commitments", pa.table(_named(subject, len(riders)) | columns))


def insert_leaves(connection: duckdb.DuckDBPyConnection, subject: str, leaves: list[str]) -> None:
    """Bare leaves, which must come sorted by value: another order would tell whose they are."""
    insert(connection, "ledger.leaves", pa.table(_named(subject, len(leaves)) | {"leaf": leaves}))


def _named(subject: str, count: int) -> dict[str, pa.Array | list[str]]:
    return {"subject": pa.array([subject] * count, pa.string())}
