"""Queries that leave nothing open: DuckDB 2.0 refuses new work on a connection whose last result is not drained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

BATCH_ROWS = 1 << 16


def quoted(text: str) -> str:
    """A text as it stands in a statement, for the few places that take no argument."""
    return "'" + text.replace("'", "''") + "'"


def rows(connection: duckdb.DuckDBPyConnection, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of the answer."""
    return list(connection.execute(query, list(arguments)).fetchall())


def first(connection: duckdb.DuckDBPyConnection, query: str, arguments: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a short answer, or None."""
    found = rows(connection, query, arguments)
    return found[0] if found else None


def arrow(connection: duckdb.DuckDBPyConnection, query: str, arguments: Sequence[Any] = ()) -> pa.Table:
    """The answer as an Arrow table."""
    return connection.sql(query, params=list(arguments)).to_arrow_table()


def batches(
    connection: duckdb.DuckDBPyConnection, query: str, arguments: Sequence[Any] = ()
) -> Iterator[pa.RecordBatch]:
    """The answer batch by batch; use the connection for nothing else until it is drained."""
    yield from connection.sql(query, params=list(arguments)).to_arrow_reader(BATCH_ROWS)


def insert(connection: duckdb.DuckDBPyConnection, table: str, data: pa.Table) -> None:
    """Insert an Arrow table whose columns are the table's, by name."""
    connection.register("incoming", data)
    try:
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
    finally:
        connection.unregister("incoming")
