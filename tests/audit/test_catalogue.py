"""Nothing stands in a store's catalogue that no migration made, and nothing there can hide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from isuit.audit.catalogue import strange_entries
from isuit.service.stores import open_store

ADDED = {
    "ALTER TABLE personal.outcomes ADD COLUMN nickname VARCHAR": "personal.outcomes",
    "ALTER TABLE ledger.fits ADD COLUMN extra INTEGER DEFAULT 1": "ledger.fits",
    "ALTER TABLE atlas.sites ALTER site DROP NOT NULL": "atlas.sites",
    "ALTER TABLE atlas.sites ALTER latitude SET DEFAULT 0": "atlas.sites",
    "CREATE VIEW atlas.riders AS SELECT rider FROM personal.outcomes": "atlas.riders",
    "CREATE MACRO main.sum(x) AS 0": "main.sum",
    "CREATE MACRO ledger.answer() AS TABLE SELECT 42": "ledger.answer",
    "CREATE INDEX riders ON personal.outcomes (rider)": "personal.riders",
    "CREATE SEQUENCE atlas.numbers": "atlas.numbers",
    "CREATE SCHEMA mine": "mine",
    "CREATE TYPE personal.name AS ENUM ('rider-0007')": "personal.name",
    "CREATE TABLE main.copy AS SELECT rider FROM personal.outcomes": "main.copy",
    "COMMENT ON TABLE atlas.sites IS 'rider-0007'": "atlas.sites",
    "COMMENT ON COLUMN atlas.sites.site IS 'rider-0007'": "atlas.sites",
    "COMMENT ON SCHEMA atlas IS 'rider-0007'": "atlas",
    "DROP TABLE atlas.sites": "atlas.sites",
}


@pytest.fixture
def connection(store_copy: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_store(store_copy, write=True) as store:
        yield store.connection


def test_the_program_makes_what_the_migrations_say(connection: duckdb.DuckDBPyConnection) -> None:
    """Also in a file that an erasure has rewritten, as that of this store was."""
    assert list(strange_entries(connection)) == []


@pytest.mark.parametrize(("statement", "name"), ADDED.items())
def test_what_no_migration_made_is_named(connection: duckdb.DuckDBPyConnection, statement: str, name: str) -> None:
    try:
        connection.execute(statement)
    except (duckdb.NotImplementedException, duckdb.ParserException):
        pytest.skip("this DuckDB cannot do it")
    found = list(strange_entries(connection))
    assert [entry for entry, _ in found] == [name]
    assert "rider-0007" not in str(found)


def test_a_macro_cannot_hide_itself(connection: duckdb.DuckDBPyConnection) -> None:
    for function in ("duckdb_functions", "duckdb_tables", "duckdb_columns"):
        connection.execute(f"CREATE MACRO main.{function}() AS TABLE SELECT 'x' AS schema_name LIMIT 0")
    connection.execute("CREATE MACRO main.current_database() AS 'elsewhere'")
    assert {name for name, _ in strange_entries(connection)} == {
        *("main.duckdb_functions", "main.duckdb_tables", "main.duckdb_columns", "main.current_database"),
    }
