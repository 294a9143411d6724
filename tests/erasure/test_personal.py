"""Which tables hold persons: each is found, and one that cannot be searched stops every erasure."""

from __future__ import annotations

import duckdb
import pytest

from isuit.erasure.personal import FEW_NAMES, personal_tables, searching
from isuit.errors import StoreError


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("CREATE SCHEMA personal; CREATE SCHEMA ledger")
    made.execute("CREATE TABLE personal.outings (rider VARCHAR, metric DOUBLE)")
    made.execute("CREATE TABLE personal.suppressed (digest VARCHAR)")
    made.execute("CREATE TABLE ledger.log (kind VARCHAR)")
    return made


def test_tables_of_persons_are_searched_and_others_are_not(connection: duckdb.DuckDBPyConnection) -> None:
    assert [(table.name, table.rider_columns) for table in personal_tables(connection)] == [
        ("personal.outings", ("rider",))
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("personal.notes (text VARCHAR)", "personal.notes has no column rider"),
        ("ledger.notes (rider VARCHAR)", "ledger.notes names riders outside personal"),
    ],
)
def test_a_table_that_cannot_be_searched_is_refused(
    connection: duckdb.DuckDBPyConnection, table: str, said: str
) -> None:
    connection.execute(f"CREATE TABLE {table}")
    with pytest.raises(StoreError, match=said):
        personal_tables(connection)


@pytest.mark.parametrize("number", [2, FEW_NAMES, FEW_NAMES + 1])
def test_names_are_visible_while_they_are_searched_for_and_not_afterwards(
    connection: duckdb.DuckDBPyConnection, number: int
) -> None:
    with searching(connection, (f"rider-{k}" for k in range(number))):
        assert connection.execute("SELECT count(*) FROM persons").fetchall() == [(number,)]
    left = {name for (name,) in connection.execute("SELECT name FROM duckdb_variables()").fetchall()}
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT count(name) FROM persons").fetchall()
    assert not left
