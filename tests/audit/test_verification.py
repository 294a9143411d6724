"""Whatever is changed in a store with plain DuckDB, verification names the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from isuit.audit import catalogue
from isuit.audit.log import log_head, read_log
from isuit.audit.verification import Verification, verify
from isuit.service.checks import report_of
from isuit.service.stores import open_store
from isuit.store.query import rows

# How a value of each type is changed: an SQL expression in which {c} is the column.
CHANGES = {
    "VARCHAR": ["{c} || 'x'", "reverse({c}) || ' '", "upper({c}) || lower({c})"],
    "DOUBLE": ["{c} + 1e-9 * greatest(1, abs({c}))", "-{c} - 1", "{c} * 2 + 1"],
    "BIGINT": ["{c} + 1", "{c} - 1"],
    "TINYINT": ["1 - {c}", "{c} + 1"],
    "BOOLEAN": ["NOT {c}"],
    "TIMESTAMP": ["{c} + INTERVAL 1 MICROSECOND", "{c} - INTERVAL 1 DAY"],
    "DATE": ["{c} + 1"],
    "BLOB": ["{c} || 'x'::BLOB"],
}
FOR_NULL = {"VARCHAR": "'x'", "DOUBLE": "0.5", "TIMESTAMP": "TIMESTAMP '2025-05-05'"}


class Tampering:
    """Changes inside a transaction that is rolled back, so that one store serves every test."""

    def __init__(self, store: Any) -> None:
        self.connection: duckdb.DuckDBPyConnection = store.connection
        self._key = store.key
        self._catalogue = catalogue._catalogue(self.connection)

    def verdict(self, *statements: str, known_head: str | None = None) -> Verification:
        self.connection.execute("BEGIN")
        try:
            for statement in statements:
                self.connection.execute(statement)
            with pytest.MonkeyPatch.context() as patch:
                # Rows that change leave the catalogue as it is, and to list it is a fifth of a verification.
                if all(statement.startswith(("UPDATE ", "DELETE ", "INSERT ")) for statement in statements):
                    patch.setattr(catalogue, "_catalogue", lambda _: self._catalogue)
                return verify(self.connection, self._key, known_head)
        finally:
            self.connection.execute("ROLLBACK")

    def columns(self) -> list[tuple[str, str, str, bool]]:
        return rows(
            self.connection,
            "SELECT schema_name || '.' || table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
            "WHERE schema_name IN ('ledger', 'atlas', 'personal') ORDER BY ALL",
        )

    def row_ids(self, table: str) -> list[int]:
        return [number for (number,) in rows(self.connection, f"SELECT rowid FROM {table} ORDER BY rowid")]


@pytest.fixture
def tampering(store_copy: Path) -> Iterator[Tampering]:
    with open_store(store_copy, write=True) as store:
        yield Tampering(store)


def named(found: Verification) -> set[str]:
    return {table for table, _ in found.disagreements}


def test_an_untouched_store_agrees(tampering: Tampering) -> None:
    found = tampering.verdict()
    assert found.disagreements == []
    assert (found.cohorts, found.complete_cohorts, found.fits) == (5, 4, 3)
    assert found.erased_leaves >= 2
    assert found.log_head == log_head(tampering.connection)
    assert found.log_length == len(read_log(tampering.connection))


@pytest.mark.long
def test_a_change_of_any_value_names_its_table(tampering: Tampering) -> None:
    chance = random.Random(5)
    tried = 0
    for table, column, kind, nullable in tampering.columns():
        ids = tampering.row_ids(table)
        if table == "ledger.pending":
            continue  # empty while nobody is at work; a row in it is the next test's
        assert ids, f"{table} is empty in the store of these tests: put a row into it"
        row = chance.choice(ids)
        change = chance.choice(CHANGES[kind]).format(c=f'"{column}"')
        change = f'CASE WHEN "{column}" IS NULL THEN {FOR_NULL.get(kind, "NULL")} ELSE {change} END'
        if nullable and chance.random() < 0.3:
            known = rows(tampering.connection, f'SELECT "{column}" IS NULL FROM {table} WHERE rowid = {row}')
            change = change if known == [(True,)] else "NULL"
        found = tampering.verdict(f'UPDATE {table} SET "{column}" = {change} WHERE rowid = {row}')
        assert table in named(found), f"{table}.{column} row {row} set to {change}: {found.disagreements}"
        tried += 1
    assert tried > 80


# What no column of its type should hold: each must be reported, none may end in an exception.
EXTREMES = {
    "VARCHAR": ["''", "chr(0)", "repeat('[', 50000)", "repeat('7', 6000)", "'NaN'", "'{\"a\":{}}'", "'null'", "'[]'"],
    "DOUBLE": ["'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1.7e308"],
    "BIGINT": ["9223372036854775807", "-9223372036854775808"],
    "TINYINT": ["127", "-128"],
    "TIMESTAMP": ["'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMP", "'290000-01-01'::TIMESTAMP"],
    "DATE": ["'infinity'::DATE", "'-infinity'::DATE"],
    "BLOB": ["''::BLOB", "repeat('x', 100000)::BLOB"],
    "BOOLEAN": [],
}
OTHER_SHAPES = [
    *("ALTER {c} TYPE VARCHAR USING 'text'", "ALTER {c} TYPE INTEGER[] USING [1, 2]"),
    *("ALTER {c} TYPE BOOLEAN USING true", "ALTER {c} TYPE BLOB USING '\\xFF'::BLOB", "DROP {c}"),
]


def odd_edits(tampering: Tampering) -> Iterator[tuple[str, str, list[str]]]:
    """Tables and columns with an edit of them: a spread sample of all pairs of a column and what it should not hold.

    Every column is there with an extreme value, and with a null or another shape in turn; every extreme and every shape
    is there with some column of its type. A text that holds a document is parsed, so it meets several extremes.
    `python tests/fuzz/edits.py` draws any pair at random.
    """
    alike: dict[str, list[tuple[str, str, int]]] = {}
    for number, (table, column, kind, nullable) in enumerate(tampering.columns()):
        if table == "ledger.pending":
            continue
        name = f'"{column}"'
        found = f"SELECT rowid, {name}::VARCHAR FROM {table} WHERE {name} IS NOT NULL LIMIT 1"
        filled = rows(tampering.connection, found)
        row, value = filled[0] if filled else (tampering.row_ids(table)[0], "")
        document = kind == "VARCHAR" and value.startswith(("{", "["))
        alike.setdefault("document" if document else kind, []).append((table, column, row))
        if filled and number % 2:
            lift = [] if nullable else [f"ALTER TABLE {table} ALTER {name} DROP NOT NULL"]
            yield table, column, [*lift, f"UPDATE {table} SET {name} = NULL WHERE rowid = {row}"]
        else:
            alone = sum(other == table for other, *_ in tampering.columns()) == 1
            shapes = OTHER_SHAPES[: -1 if alone else None]
            yield table, column, [f"ALTER TABLE {table} {shapes[number // 2 % len(shapes)].format(c=name)}"]
    for kind, columns in alike.items():
        extremes = EXTREMES["VARCHAR" if kind == "document" else kind]
        tried = max(len(columns) * (3 if kind == "document" else 1), len(extremes)) if extremes else 0
        for turn in range(tried):
            table, column, row = columns[turn % len(columns)]
            # In a further round a column meets another value, also where each round has all of them.
            shift = turn // len(columns) if len(columns) % len(extremes) == 0 else 0
            extreme = extremes[(turn + shift) % len(extremes)]
            yield table, column, [f'UPDATE {table} SET "{column}" = {extreme} WHERE rowid = {row}']


@pytest.mark.long
def test_nulls_extremes_and_other_types_in_any_column_are_reported(tampering: Tampering) -> None:
    tried: list[str] = []
    columns = {(table, column) for table, column, *_ in tampering.columns() if table != "ledger.pending"}
    for table, column, edit in list(odd_edits(tampering)):
        found = tampering.verdict(*edit)
        assert report_of(found, None).disagreements, edit
        assert table in named(found), (edit, found.disagreements)
        tried += edit
        columns.discard((table, column))
    assert not columns
    everything = "\n".join(tried)
    for values in EXTREMES.values():
        assert [value for value in values if f"= {value} WHERE" not in everything] == []
    for shape in OTHER_SHAPES:
        assert (shape.partition("{c}")[2] or ' DROP "') in everything


@pytest.mark.long
def test_two_rows_that_change_places_end_in_a_report(tampering: Tampering) -> None:
    for table, column, *_ in tampering.columns()[::2]:  # tests/fuzz/edits.py tries all
        ids = tampering.row_ids(table)
        if len(ids) > 1:
            first, last = ids[0], ids[-1]
            other = f"CASE {table}.rowid WHEN {first} THEN {last} ELSE {first} END"
            value = f'(SELECT it."{column}" FROM {table} AS it WHERE it.rowid = {other})'
            swap = f'UPDATE {table} SET "{column}" = {value} WHERE rowid IN ({first}, {last})'
            report_of(tampering.verdict(swap), None)


def test_signs_of_zero_and_empty_texts_are_changes(tampering: Tampering) -> None:
    row = tampering.row_ids("personal.outcomes")[0]
    zero = f"UPDATE personal.outcomes SET metric = '-0.0'::DOUBLE WHERE rowid = {row}"
    assert "not in canonical form" in str(tampering.verdict(zero).disagreements)
    blank = f"UPDATE personal.outcomes SET site = '' WHERE rowid = {row}"
    assert "not in canonical form" in str(tampering.verdict(blank).disagreements)


def test_a_deleted_row_of_any_table_is_missed(tampering: Tampering) -> None:
    tables = sorted({table for table, *_ in tampering.columns()} - {"ledger.pending"})
    for table in tables:
        row = tampering.row_ids(table)[0]
        found = tampering.verdict(f"DELETE FROM {table} WHERE rowid = {row}")
        assert table in named(found), table
        assert "KeyError" not in str(found.disagreements), "that entries are gone is what is told"


def test_an_added_row_in_any_table_is_found(tampering: Tampering) -> None:
    for table in sorted({table for table, *_ in tampering.columns()}):
        if table == "ledger.pending":
            statement = "INSERT INTO ledger.pending VALUES ('erasure', 'x', TIMESTAMP '2026-01-01')"
        else:
            row = tampering.row_ids(table)[0]
            statement = f"INSERT INTO {table} SELECT * FROM {table} WHERE rowid = {row}"
        assert table in named(tampering.verdict(statement)), table


def test_a_metric_that_a_cohort_does_not_have_is_named(tampering: Tampering) -> None:
    """No line and no leaf speaks of it, so nothing else would tell."""
    found = tampering.verdict("UPDATE personal.outcomes SET metric_2 = 1 WHERE rider = 'rider-0007'")
    assert "hold metrics that it does not have" in str(found.disagreements)
    assert named(found) == {"personal.outcomes"}


def test_another_key_is_named(tampering: Tampering) -> None:
    found = verify(tampering.connection, bytes(32))
    assert ("ledger.store", "the key file is not the one the store was made with") in found.disagreements


def test_a_rider_removed_by_hand_is_not_an_erasure(tampering: Tampering) -> None:
    statements = [
        f"DELETE FROM personal.{table} WHERE rider = 'rider-0007'" for table in ("outcomes", "skills", "commitments")
    ]
    found = tampering.verdict(*statements)
    assert {"personal.outcomes", "personal.skills"} <= named(found)
    assert "no receipt says why" in str(found.disagreements)


def test_a_table_that_nobody_made_is_named(tampering: Tampering) -> None:
    found = tampering.verdict("CREATE TABLE atlas.extra (site VARCHAR)")
    assert named(found) == {"atlas.extra"}
    assert named(tampering.verdict("DROP TABLE atlas.sites")) >= {"atlas.sites"}


def test_a_cut_or_rewritten_tail_is_caught_by_a_known_head(tampering: Tampering) -> None:
    head = log_head(tampering.connection)
    earlier = read_log(tampering.connection)[2].head
    assert tampering.verdict(known_head=earlier).disagreements == []
    assert tampering.verdict(known_head=head.upper()).disagreements == []
    cut = tampering.verdict(
        "DELETE FROM ledger.log WHERE sequence = (SELECT max(sequence) FROM ledger.log)", known_head=head
    )
    assert "known head" in str(cut.disagreements)
    assert "ledger.log" in named(tampering.verdict(known_head="f" * 64))


def test_no_disagreement_names_a_rider(tampering: Tampering) -> None:
    found = tampering.verdict(
        "UPDATE personal.outcomes SET metric = metric + 1 WHERE rider = 'rider-0009'",
        "UPDATE personal.skills SET rider = 'someone-else' WHERE rider = 'rider-0009'",
    )
    assert found.disagreements
    assert "rider-0009" not in str(found.disagreements)
    assert "someone-else" not in str(found.disagreements)


def test_an_event_that_follows_another_one_than_the_last_is_noticed(tampering: Tampering) -> None:
    """Its own head is right: only the chain tells that the event before it was passed over."""
    events = read_log(tampering.connection)
    branch = replace(events[-1], previous=events[-3].head)
    found = tampering.verdict(
        f"UPDATE ledger.log SET previous = '{branch.previous}', head = '{branch.computed_head()}' "
        f"WHERE sequence = {branch.sequence}"
    )
    assert found.disagreements == [
        ("ledger.log", f"event {branch.sequence} of the log does not follow the one before it")
    ]
