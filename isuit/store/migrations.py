"""The tables of a store, made by named steps. A step and its record commit together, and are in the log.

No table has a primary key or an index: an index keeps its own copy of the values (more bytes to erase), and the
exclusive lock already serialises writers, who look before they insert. Times are UTC in TIMESTAMP columns, because
TIMESTAMPTZ needs DuckDB's ICU extension; JSON is canonical text (RFC 8785), so that its bytes can be hashed.

A step that changes a table must also log the new digests of its rows (`isuit.audit.log.append_event`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import duckdb

from isuit.canonical import MOST_METRICS
from isuit.errors import StoreError
from isuit.store.query import rows

Connection = duckdb.DuckDBPyConnection
# Appends an event: connection, kind, payload, and the rows it wrote as {table: [keys]}.
Record = Callable[[Connection, str, dict[str, object], dict[str, list[str]]], object]


def tables(connection: Connection) -> None:
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)


TABLES = """
CREATE SCHEMA ledger;
CREATE SCHEMA atlas;
CREATE SCHEMA personal;

CREATE TABLE ledger.migrations (
    name VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
CREATE TABLE ledger.store (
    store_id VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    tool_version VARCHAR NOT NULL,
    key_digest VARCHAR NOT NULL,
    policy VARCHAR NOT NULL
);
CREATE TABLE ledger.log (
    sequence BIGINT NOT NULL,
    logged_at TIMESTAMP NOT NULL,
    kind VARCHAR NOT NULL,
    payload VARCHAR NOT NULL,
    previous VARCHAR NOT NULL,
    head VARCHAR NOT NULL
);
CREATE TABLE ledger.cohorts (
    cohort_hash VARCHAR NOT NULL,
    outcomes BIGINT NOT NULL,
    riders BIGINT NOT NULL,
    sites BIGINT NOT NULL,
    observed_from TIMESTAMP,
    observed_until TIMESTAMP,
    untimed BIGINT NOT NULL,
    commitment VARCHAR NOT NULL,
    registered_at TIMESTAMP NOT NULL
);
CREATE TABLE ledger.fits (
    fit_id VARCHAR NOT NULL,
    cohort_hash VARCHAR NOT NULL,
    activity VARCHAR NOT NULL,
    dimension VARCHAR NOT NULL,
    configuration VARCHAR NOT NULL,
    estimator_version VARCHAR NOT NULL,
    tool_version VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    discrimination DOUBLE,
    discrimination_se DOUBLE,
    log_likelihood DOUBLE NOT NULL,
    identification VARCHAR NOT NULL,
    promotion VARCHAR,
    held_out VARCHAR,
    parameters VARCHAR NOT NULL,
    diagnostics VARCHAR NOT NULL,
    skills BIGINT NOT NULL,
    commitment VARCHAR,
    result_digest VARCHAR NOT NULL,
    recorded_at TIMESTAMP NOT NULL
);
CREATE TABLE ledger.leaves (
    subject VARCHAR NOT NULL,
    leaf VARCHAR NOT NULL
);
CREATE TABLE ledger.receipts (
    receipt_id VARCHAR NOT NULL,
    erased_at TIMESTAMP NOT NULL,
    receipt VARCHAR NOT NULL,
    completed_at TIMESTAMP,
    verification VARCHAR
);
CREATE TABLE ledger.pending (
    work VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    marked_at TIMESTAMP NOT NULL
);
CREATE TABLE ledger.releases (
    release_id VARCHAR NOT NULL,
    release_date DATE NOT NULL,
    policy VARCHAR NOT NULL,
    metadata VARCHAR NOT NULL,
    row_count BIGINT NOT NULL,
    cell_count BIGINT NOT NULL,
    digest VARCHAR NOT NULL,
    made_at TIMESTAMP NOT NULL
);
CREATE TABLE ledger.release_rows (
    release_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    line VARCHAR NOT NULL
);
CREATE TABLE ledger.release_bins (
    release_id VARCHAR NOT NULL,
    curve VARCHAR NOT NULL,
    bin BIGINT NOT NULL,
    riders BIGINT NOT NULL,
    computed_in VARCHAR NOT NULL
);
CREATE TABLE atlas.difficulty (
    fit_id VARCHAR NOT NULL,
    activity VARCHAR NOT NULL,
    dimension VARCHAR NOT NULL,
    site VARCHAR,
    metric DOUBLE NOT NULL,
    difficulty DOUBLE,
    difficulty_se DOUBLE,
    suitability DOUBLE NOT NULL
);
CREATE TABLE atlas.sites (
    site VARCHAR NOT NULL,
    latitude DOUBLE NOT NULL,
    longitude DOUBLE NOT NULL
);
CREATE TABLE personal.outcomes (
    cohort_hash VARCHAR NOT NULL,
    rider VARCHAR NOT NULL,
    site VARCHAR,
    observed_at TIMESTAMP,
    metric DOUBLE NOT NULL,
    outcome TINYINT NOT NULL
);
CREATE TABLE personal.skills (
    fit_id VARCHAR NOT NULL,
    rider VARCHAR NOT NULL,
    skill_mean DOUBLE NOT NULL,
    skill_sd DOUBLE NOT NULL,
    n_outcomes BIGINT NOT NULL,
    n_bins BIGINT NOT NULL,
    usable BOOLEAN NOT NULL
);
CREATE TABLE personal.commitments (
    subject VARCHAR NOT NULL,
    rider VARCHAR NOT NULL,
    salt BLOB NOT NULL,
    leaf VARCHAR NOT NULL
);
CREATE TABLE personal.pseudonyms (
    rider VARCHAR NOT NULL,
    token VARCHAR NOT NULL
);
CREATE TABLE personal.release_members (
    release_id VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    bin BIGINT NOT NULL,
    rider VARCHAR NOT NULL
);
CREATE TABLE personal.suppressed (
    digest VARCHAR NOT NULL
);
"""


def signing_key(connection: Connection) -> None:
    """No table: a store of this step has a signing key, whose public half is in the log (`isuit.audit.keys`)."""


def several_metrics(connection: Connection) -> None:
    """Cohorts of several metrics: what they are called, and columns for all but the first."""
    connection.execute(
        "CREATE TABLE ledger.metrics (cohort_hash VARCHAR NOT NULL, position BIGINT NOT NULL, metric VARCHAR NOT NULL)"
    )
    for number in range(2, MOST_METRICS + 1):
        connection.execute(f"ALTER TABLE personal.outcomes ADD COLUMN metric_{number} DOUBLE")


def parts(connection: Connection) -> None:
    """Files beside the database that hold rows of large cohorts and fits (`isuit.store.parts`)."""
    connection.execute(
        "CREATE TABLE ledger.parts (part VARCHAR NOT NULL, holds VARCHAR NOT NULL, subject VARCHAR NOT NULL, "
        "position BIGINT NOT NULL, row_count BIGINT NOT NULL, bytes BIGINT NOT NULL, digest VARCHAR NOT NULL)"
    )


def paths_of_skill(connection: Connection) -> None:
    """A fit of moving skill has a rider's skill day by day, in the row that holds the rider's skill."""
    connection.execute("ALTER TABLE personal.skills ADD COLUMN path VARCHAR")


def shared_rows(connection: Connection) -> None:
    """Cohorts whose rows are stored under other names than their own (`isuit.store.holders`)."""
    connection.execute(
        "CREATE TABLE ledger.holders (cohort_hash VARCHAR NOT NULL, position BIGINT NOT NULL, holder VARCHAR NOT NULL)"
    )


SHARED_ROWS = "0006-shared-rows"
MIGRATIONS: dict[str, Callable[[Connection], None]] = {
    "0001-tables": tables,
    "0002-signing-key": signing_key,
    "0003-several-metrics": several_metrics,
    "0004-parts": parts,
    "0005-paths-of-skill": paths_of_skill,
    SHARED_ROWS: shared_rows,
}


def applied(connection: Connection) -> set[str]:
    """The names of the steps this database has behind it; empty for a database without any table of ours."""
    try:  # asking the catalogue first would take 30 ms
        return {name for (name,) in rows(connection, "SELECT name FROM ledger.migrations")}
    except duckdb.CatalogException:
        return set()


def refuse_newer(connection: Connection) -> None:
    """A store of a newer version holds tables and rules that this version would break."""
    unknown = sorted(applied(connection) - MIGRATIONS.keys())
    if unknown:
        raise StoreError(
            f"this store was written by a newer version of isuit ({len(unknown)} unknown migrations); "
            "install that version to use it."
        )


def outstanding(connection: Connection) -> list[str]:
    """The steps still to take, in order."""
    done = applied(connection)
    return [name for name in MIGRATIONS if name not in done]


def migrate(
    connection: Connection,
    record: Record,
    found: Callable[[Connection], None],
    beside: Mapping[str, Callable[[Connection], None]],
) -> None:
    """Take every outstanding step, each in one transaction with its record.

    `found` runs within the very first, and what a step needs beside its tables, by its name, within its own.
    """
    for name in outstanding(connection):
        first = not applied(connection)
        connection.execute("BEGIN")
        try:
            MIGRATIONS[name](connection)
            if first:
                found(connection)
            if name in beside:
                beside[name](connection)
            connection.execute(
                "INSERT INTO ledger.migrations VALUES (?, ?)", [name, datetime.now(UTC).replace(tzinfo=None)]
            )
            record(connection, "migration-applied", {"name": name}, {"ledger.migrations": [name]})
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
