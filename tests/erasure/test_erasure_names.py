"""Riders whose IDs are unlucky or unkind: words of the program, JSON, another rider's ID in brackets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cohort_stores import add_cohort, cohort_table, contents, held

from isuit.domain import FitConfig
from isuit.erasure.elsewhere import search_elsewhere
from isuit.erasure.personal import personal_tables, searching
from isuit.service.checks import bundle, verify
from isuit.service.fitting import fit
from isuit.service.pseudonymising import pseudonymise
from isuit.service.releases import export_atlas
from isuit.service.riders import delete_riders, reinstate
from isuit.service.stores import open_store
from isuit.store.query import rows

VICTIM = "rider-004"
UNKIND = [
    *('["rider-004","kite"]', '{"rider":"rider-004"}', '{"rider-004"', '[["rider-004"]]', '"rider-004"', "[rider-004]"),
    *('{"site":["rider-004"]}', '{"name":"rider-004"}', '["rider-004"', "{}", "[]"),
]
WORDS = ["0001-tables", "kite", "latent", "rider-erased", "isuit-erasure-receipt/1", "bare leaves and roots", "erasure"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    riders = [VICTIM, "somebody", *UNKIND, *WORDS]
    path = tmp_path / "store"
    for number in (1, 2):
        add_cohort(path, cohort_table(number, 600, riders), number, dimension="kite")
    return path


def test_an_id_that_quotes_another_does_not_keep_it(store: Path) -> None:
    others = contents(store, without=[VICTIM])
    receipt = delete_riders(store, [VICTIM])
    assert receipt.same_names == []
    assert held(store, VICTIM) == 0
    assert contents(store) == others
    assert verify(store).disagreements == []
    delete_riders(store, UNKIND)
    assert sum(held(store, rider) for rider in UNKIND) == 0
    assert verify(store).disagreements == []


@pytest.mark.long
def test_a_word_of_the_program_is_a_same_name_and_does_not_block(store: Path) -> None:
    places = {}
    for word in WORDS:
        receipt = delete_riders(store, [word])
        assert held(store, word) == 0
        places[word] = {same.place for same in receipt.same_names}
    assert places["0001-tables"] == {"ledger.migrations.name", "ledger.log.payload:name"}
    assert places["kite"] >= {"ledger.fits.dimension", "atlas.difficulty.dimension"}
    assert places["latent"] >= {"ledger.fits.kind"}
    assert "ledger.log.kind" in places["rider-erased"]
    assert "ledger.receipts.receipt:what" in places["bare leaves and roots"]
    assert verify(store).disagreements == []


@pytest.fixture
def everything(tmp_path: Path, cohort_table: Any) -> Path:
    """A store in which every command has written what it writes."""
    path = tmp_path / "everything"
    sites = {"north": (60.0, 10.0), "south": (45.5, -3.25)}
    anchor = ((3.0, 0.1), (18.0, 0.9), (35.0, 0.1))
    table: pa.Table = cohort_table(1, riders=60, outcomes=30, sites=tuple(sites))
    made = fit(path, table, FitConfig(activity="kite", dimension="wind", anchor=anchor), sites=sites)
    fit(path, cohort_table(2, riders=3, outcomes=3, timed=False), FitConfig(activity="kite", dimension="wave"))
    pq.write_table(cohort_table(3, tag="raw"), tmp_path / "raw.parquet")
    pseudonymise(path, [str(tmp_path / "raw.parquet")], tmp_path / "tokens.parquet")
    fit(path, str(tmp_path / "tokens.parquet"), FitConfig(observed_until=date(2025, 6, 1)))
    bundle(path, made.fit_id, tmp_path / "bundle", with_cohort=True)
    export_atlas(path, tmp_path / "atlas.jsonl", release=date(2026, 1, 1))
    delete_riders(path, ["rider-0003"])
    reinstate(path, "rider-0003")
    return path


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def test_no_string_that_the_program_writes_blocks_a_rider_of_that_name(everything: Path) -> None:
    with open_store(everything) as store:
        connection = store.connection
        tables = personal_tables(connection)
        names = {column for table in tables for column in table.rider_columns}
        columns = rows(
            connection,
            "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() "
            "WHERE NOT internal AND database_name = current_database() AND data_type = 'VARCHAR'",
        )
        found: set[str] = set()
        for table, column in columns:
            if column in names:
                continue
            for (value,) in rows(connection, f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"):
                found.update(strings(json.loads(value)) if value[:1] in ("{", "[") else [value])
        assert {"0001-tables", "kite", "latent", "north", "release-made", "bundle-made"} <= found
        with searching(connection, found):
            assert search_elsewhere(connection, tables, frozenset(found)).blocking == []
