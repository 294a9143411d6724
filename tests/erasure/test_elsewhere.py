"""Where an ID stands besides the rows that an erasure removes: what blocks, what is counted, what is passed over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from isuit.erasure.elsewhere import Elsewhere, search_elsewhere
from isuit.erasure.personal import personal_tables, searching
from isuit.service.stores import open_store

NAME = "rider-0005"


@pytest.fixture
def connection(store_copy: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_store(store_copy, write=True) as store:
        yield store.connection


def found_after(connection: duckdb.DuckDBPyConnection, statement: str) -> Elsewhere:
    connection.execute("BEGIN")
    try:
        connection.execute(statement)
        with searching(connection, [NAME]):
            return search_elsewhere(connection, personal_tables(connection), frozenset({NAME}))
    finally:
        connection.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("table", "column", "value", "place"),
    [
        ("ledger.fits", "configuration", f"'{NAME}'", "ledger.fits.configuration"),
        ("ledger.fits", "diagnostics", f"""'{{"note": "{NAME}"}}'""", "ledger.fits.diagnostics:note"),
        ("ledger.fits", "diagnostics", f"""'{{"deep": [1, {{"er": ["{NAME}"]}}]}}'""", "ledger.fits.diagnostics:er"),
        ("ledger.fits", "diagnostics", f"""'["{NAME}"]'""", "ledger.fits.diagnostics:"),
        ("ledger.log", "payload", f"""'{{"note": "{NAME}", '""", "ledger.log.payload:text that is no JSON"),
        ("ledger.store", "policy", f"""'{{"k": "{NAME}"}}'""", "ledger.store.policy:k"),
        ("personal.commitments", "salt", f"'{NAME}'::BLOB", "personal.commitments.salt"),
    ],
)
def test_a_person_where_no_person_belongs_blocks(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, value: str, place: str
) -> None:
    other = "WHERE rider <> '" + NAME + "'" if table.startswith("personal.") else ""
    found = found_after(connection, f"UPDATE {table} SET {column} = {value} {other}")
    assert found.blocking == [place]
    assert found.same_names == {}


@pytest.mark.parametrize(
    ("statement", "places"),
    [
        (f"UPDATE atlas.sites SET site = '{NAME}' WHERE site = 'north'", {"atlas.sites.site": 1}),
        (
            f"""UPDATE ledger.fits SET parameters = '{{"sites": ["{NAME}", "south"]}}' WHERE dimension = 'wind'""",
            {"ledger.fits.parameters:sites": 1},
        ),
        (f"UPDATE personal.outcomes SET site = '{NAME}' WHERE rider = 'member-0001'", {"personal.outcomes.site": 15}),
    ],
)
def test_a_label_of_the_same_name_is_counted(
    connection: duckdb.DuckDBPyConnection, statement: str, places: dict[str, int]
) -> None:
    found = found_after(connection, statement)
    assert found.same_names == places
    assert found.blocking == []


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        (f"UPDATE ledger.fits SET kind = '{NAME}' WHERE dimension = 'wind'", "ledger.fits.kind"),
        (
            f"""UPDATE ledger.fits SET diagnostics = '{{"kind": "{NAME}"}}' WHERE dimension = 'wind'""",
            "ledger.fits.diagnostics:kind",
        ),
        (
            f"""UPDATE ledger.log SET payload = '{{"release": "{NAME}"}}' WHERE sequence = 3""",
            "ledger.log.payload:release",
        ),
    ],
)
def test_and_so_is_a_word_of_the_program(connection: duckdb.DuckDBPyConnection, statement: str, place: str) -> None:
    found = found_after(connection, statement)
    assert found.same_names == {place: 1}
    assert found.blocking == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger.fits SET kind = kind",  # the rider's own rows
        f"""UPDATE ledger.release_rows SET line = '{{"note": "{NAME}"}}'""",
        f"""UPDATE ledger.fits SET diagnostics = '{{"note": "{NAME}-and-more", "{NAME}": 1}}'""",
    ],
)
def test_own_rows_published_rows_parts_of_values_and_keys_are_passed_over(
    connection: duckdb.DuckDBPyConnection, statement: str
) -> None:
    found = found_after(connection, statement)
    assert (found.same_names, found.blocking) == ({}, [])
