"""Cohorts: what is recorded of each, and its outcomes in canonical order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import duckdb
import pyarrow as pa

from isuit import canonical
from isuit.store import holders, parts
from isuit.store.query import first, rows


# The order of the canonical lines (docs/contract.md, section 3): a null is an empty field and comes first, TAB sorts
# below every character a text may hold, and the metric's bits sort negative values after positive ones, each by size.
def canonical_order(metrics: int = 1) -> str:
    """The order of a cohort with so many metrics, as SQL."""
    columns = ", ".join(f"{column} < 0, abs({column})" for column in metric_columns(metrics))
    return f"rider, site NULLS FIRST, observed_at NULLS FIRST, {columns}, outcome"


def metric_columns(metrics: int) -> list[str]:
    """Where metrics stand in `personal.outcomes`: in the order of their names, beginning with `metric`."""
    return ["metric", *(f"metric_{number}" for number in range(2, metrics + 1))]


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
    metrics: tuple[str, ...] = canonical.ONE_METRIC  # of several, their names (`ledger.metrics`)


def find_cohort(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> StoredCohort | None:
    row = first(connection, "SELECT * FROM ledger.cohorts WHERE cohort_hash = ?", [cohort_hash])
    return replace(StoredCohort(*row), metrics=cohort_metrics(connection, cohort_hash)) if row else None


def cohort_records(connection: duckdb.DuckDBPyConnection) -> list[StoredCohort]:
    found = rows(connection, "SELECT * FROM ledger.cohorts ORDER BY registered_at")
    return [replace(StoredCohort(*row), metrics=cohort_metrics(connection, row[0])) for row in found]


def cohort_metrics(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> tuple[str, ...]:
    """The names of a cohort's metrics, in the order of the canonical form."""
    if not cohort_hash.startswith(canonical.SEVERAL):
        return canonical.ONE_METRIC
    found = rows(connection, "SELECT metric FROM ledger.metrics WHERE cohort_hash = ? ORDER BY position", [cohort_hash])
    return tuple(name for (name,) in found)[: canonical.MOST_METRICS] or canonical.ONE_METRIC


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
    if len(record.metrics) > 1:
        named = [[record.cohort_hash, position, name] for position, name in enumerate(record.metrics)]
        connection.executemany("INSERT INTO ledger.metrics VALUES (?, ?, ?)", named)


def outcome_rows(holder: str, batch: pa.RecordBatch) -> pa.Table:
    """Rows of `personal.outcomes` under a name, from a batch of the canonical form (`isuit.canonical.schema_of`)."""
    metrics = canonical.metrics_of(batch.schema)
    return pa.table(
        {
            "cohort_hash": pa.repeat(holder, len(batch)),
            "rider": batch.column("rider"),
            "site": batch.column("site"),
            "observed_at": batch.column("observed_at").cast(pa.timestamp("us")),
            **{column: batch.column(name) for column, name in zip(metric_columns(len(metrics)), metrics, strict=True)},
            "outcome": batch.column("outcome"),
        }
    )


def stored_outcomes(
    connection: duckdb.DuckDBPyConnection, cohort_hash: str, *, ordered: bool = True
) -> Iterator[pa.RecordBatch]:
    """What is left of a cohort, with its canonical schema and in canonical order, or in any if that does not matter."""
    metrics = cohort_metrics(connection, cohort_hash)
    schema = canonical.schema_of(metrics)
    names = ["rider", "site", "observed_at", *metric_columns(len(metrics)), "outcome"]
    order = canonical_order(len(metrics)) if ordered else ""
    held = holders.holders_of(connection, cohort_hash)
    for batch in parts.in_order(connection, "personal.outcomes", held, names, order):
        columns = [
            column.cast(field.type) if field.name == "observed_at" else column
            for field, column in zip(schema, batch.select(names).columns, strict=True)
        ]
        yield pa.record_batch(columns, schema=schema)


def order_of(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> str:
    """The order of a cohort's rows, as SQL."""
    return canonical_order(len(cohort_metrics(connection, cohort_hash)))


def stored_commitments(connection: duckdb.DuckDBPyConnection, subject: str) -> Iterator[pa.RecordBatch]:
    """Rider, salt and leaf of a cohort or fit, by rider; read beside its rows."""
    columns = ["rider", "salt", "leaf"]
    return parts.in_order(connection, "personal.commitments", [subject], columns, "rider", at_once=True)


def stored_leaves(connection: duckdb.DuckDBPyConnection, subject: str) -> Iterator[pa.RecordBatch]:
    """The bare leaves of a cohort or fit, in any order."""
    return parts.in_order(connection, "ledger.leaves", [subject], ["leaf"], "")


def commitment_rows(subject: str, riders: pa.Array, salts: pa.Array, leaves: pa.Array) -> pa.Table:
    """Rows of `personal.commitments`: who stands behind which leaf."""
    return pa.table(_named(subject, len(riders)) | {"rider": riders, "salt": salts, "leaf": leaves})


def leaf_rows(subject: str, leaves: pa.Array) -> pa.Table:
    """Rows of `ledger.leaves`, which must come sorted by value: another order would tell whose they are."""
    return pa.table(_named(subject, len(leaves)) | {"leaf": leaves})


def _named(subject: str, count: int) -> dict[str, pa.Array]:
    return {"subject": pa.repeat(subject, count)}
