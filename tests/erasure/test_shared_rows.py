"""Cohorts that share rows: each row stored once, and every promise kept for every cohort."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from cohort_stores import (
    MARKED,
    add_cohort,
    cohort_table,
    files_with,
    fit_series,
    held,
    rider_names,
    shared_store,
    small_parts,
    storage_defects,
)

import isuit
from isuit.audit.log import append_event
from isuit.audit.verification import verify as verify_tables
from isuit.errors import NotFound
from isuit.ingest import read_cohort
from isuit.service import recording, series
from isuit.service.checks import verify
from isuit.service.riders import delete_riders, show_rider
from isuit.service.stores import open_store
from isuit.store.cohorts import cohort_records, find_cohort, stored_outcomes
from isuit.store.holders import holders, holders_of
from isuit.store.migrations import MIGRATIONS, SHARED_ROWS, applied
from isuit.store.query import rows

NAMES = [*rider_names(6), MARKED]
DAYS = [cohort_table(seed, 42, NAMES) for seed in (1, 2, 3)]


def joined(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables)


def stored_rows(store: Path) -> int:
    with open_store(store) as opened:
        return int(rows(opened.connection, "SELECT count(*) FROM held_outcomes")[0][0])


def rows_of(store: Path, cohort_hash: str) -> pa.Table:
    with open_store(store) as opened:
        return pa.Table.from_batches(stored_outcomes(opened.connection, cohort_hash))


@pytest.fixture(scope="module", params=["tables", "parts"])
def daily(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three days, each file with some of the day before, and a fit after each; in tables, and in parts of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
        if request.param == "parts":
            small_parts(patch, rows=20, riders=3)
        store = tmp_path_factory.mktemp("daily") / "store"
        for number, day in enumerate(DAYS):
            before = DAYS[number - 1].slice(20) if number else day.slice(0, 0)
            series.add(store, "kite", joined(before, day))
            fit_series(store, number=number)
        yield store


@pytest.fixture
def store(daily: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(daily, tmp_path / "store"))


def test_every_row_is_stored_once(daily: Path) -> None:
    assert stored_rows(daily) == sum(day.num_rows for day in DAYS)
    report = verify(daily)
    assert report.disagreements == []
    assert (report.cohorts, report.complete_cohorts) == (5, 5)  # the first day's union is the first day
    for number in (1, 2, 3):
        whole = isuit.hash(joined(*DAYS[:number])).cohort_hash
        assert isuit.hash(rows_of(daily, whole)).cohort_hash == whole
        with open_store(daily) as opened:
            assert len(holders_of(opened.connection, whole)) == number
            query = "SELECT count(*) FROM all_outcomes WHERE cohort_hash = ?"
            assert rows(opened.connection, query, [whole]) == [(42 * number,)]


def test_an_export_of_everything_adds_what_is_new(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in (1, 2, 3):
        report = series.add(store, "kite", joined(*DAYS[:number]))
        assert (report.outcomes, report.known_outcomes, report.parts) == (42, 42 * (number - 1), number)
    assert series.add(store, "kite", joined(*DAYS[1:])).added is False
    assert fit_series(store) == isuit.hash(joined(*DAYS)).cohort_hash
    assert stored_rows(store) == 3 * 42
    [entry] = series.listing(store).series
    assert (entry.series, entry.parts, entry.outcomes, entry.riders) == ("kite", 3, 126, 7)


def test_what_a_file_repeats_counts_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert series.add(store, "kite", joined(DAYS[0], DAYS[0])).outcomes == 42
    assert fit_series(store) == isuit.hash(DAYS[0]).cohort_hash


def test_a_person_leaves_every_cohort_and_every_byte(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
    assert files_with(store, MARKED.encode()) != []
    assert len(show_rider(store, MARKED).rows["personal.outcomes"]) == 18  # each of them once
    receipt = delete_riders(store, [MARKED])
    assert receipt.tables["personal.outcomes"].removed == 18
    assert files_with(store, MARKED.encode(), MARKED.encode()[:8]) == []
    assert storage_defects(store) == []
    assert held(store, MARKED) == 0
    report = verify(store)
    assert report.disagreements == []
    assert report.complete_cohorts == 0
    with open_store(store) as opened:
        assert {cohort.cohort_hash for cohort in cohort_records(opened.connection)} == {
            entry.cohort_hash for entry in receipt.cohorts
        }
    with pytest.raises(NotFound):
        show_rider(store, MARKED)


def test_rows_that_come_back_to_one_cohort_come_to_no_other(tmp_path: Path) -> None:
    """A rider who was erased before a union was made is in it with later rows only, whatever becomes of the parts."""
    store = tmp_path / "store"
    series.add(store, "kite", DAYS[0])
    delete_riders(store, [MARKED], suppress=False)
    series.add(store, "kite", DAYS[1])
    union = fit_series(store)
    left = DAYS[0].filter(pa.compute.not_equal(DAYS[0].column("rider"), MARKED))
    assert union == isuit.hash(joined(left, DAYS[1])).cohort_hash
    with read_cohort(DAYS[0]) as cohort, open_store(store, write=True) as opened:
        with opened.transaction() as connection:
            known = find_cohort(connection, cohort.cohort_hash)
            assert known is not None
            assert recording.return_rows(connection, cohort, known) == 1
        # The views of the same connection have it.
        query = "SELECT count(*) FROM all_outcomes WHERE cohort_hash = ?"
        assert rows(opened.connection, query, [cohort.cohort_hash]) == [(42,)]
        cohorts = {record.cohort_hash for record in cohort_records(opened.connection)}
        assert {name for (name,) in rows(opened.connection, "SELECT DISTINCT cohort_hash FROM all_outcomes")} == cohorts
    assert rows_of(store, union).num_rows == left.num_rows + 42
    assert rows_of(store, isuit.hash(DAYS[0]).cohort_hash).num_rows == 42
    assert verify(store).disagreements == []
    # The next union has them, and shares them.
    assert fit_series(store, number=1) == isuit.hash(joined(*DAYS[:2])).cohort_hash
    assert stored_rows(store) == 84
    assert verify(store).disagreements == []


@pytest.mark.long
def test_whoever_is_back_comes_with_the_file_and_under_the_old_hash(store: Path) -> None:
    whole = isuit.hash(joined(*DAYS)).cohort_hash
    delete_riders(store, [MARKED], suppress=False)
    assert fit_series(store, number=3) != whole
    again = [series.add(store, "kite", day) for day in DAYS]
    assert [report.outcomes for report in again] == [6, 6, 6]
    assert fit_series(store, number=4) == whole
    assert isuit.hash(rows_of(store, whole)).cohort_hash == whole
    assert verify(store).disagreements == []
    delete_riders(store, [MARKED])
    assert held(store, MARKED) == 0
    assert verify(store).disagreements == []
    assert series.add(store, "kite", joined(*DAYS)).added is False


def test_outcomes_without_a_time_come_back_only_with_their_rider(tmp_path: Path) -> None:
    store = tmp_path / "store"
    untimed = {"rider": ["a", "a", "b"], "metric": [1.0, 1.0, 2.0], "outcome": [1, 1, 0]}
    assert series.add(store, "kite", untimed).outcomes == 3
    assert series.add(store, "kite", untimed).added is False
    delete_riders(store, ["a"], suppress=False)
    assert series.add(store, "kite", untimed).outcomes == 2
    assert series.listing(store).series[0].outcomes == 3


def test_parts_that_overlap_are_copied(tmp_path: Path) -> None:
    """Parts of a version that did not look for what a series has: the union has fewer rows than they have together."""
    store = tmp_path / "store"
    for number, table in enumerate((joined(*DAYS[:2]), joined(*DAYS[1:]))):
        cohort_hash = add_cohort(store, table, number)
        with open_store(store, write=True) as opened, opened.transaction() as connection:
            append_event(connection, "series-extended", {"series": "kite", "cohort_hash": cohort_hash})
    union = fit_series(store)
    assert union == isuit.hash(joined(*DAYS)).cohort_hash
    with open_store(store) as opened:
        assert holders(opened.connection) == {}
    assert stored_rows(store) == 7 * 42
    assert verify(store).disagreements == []


def test_a_union_of_cohorts_that_share_rows_is_right(tmp_path: Path) -> None:
    """A second series whose parts are the first one's union and one of its parts: rows without a time count twice."""
    store = tmp_path / "store"
    one = {"rider": ["a", "b"], "metric": [1.0, 2.0], "outcome": [1, 0]}
    two = {"rider": ["a", "c"], "metric": [3.0, 4.0], "outcome": [0, 1]}
    both = {name: [*one[name], *two[name]] for name in one}
    series.add(store, "kite", one)
    series.add(store, "kite", two)
    assert fit_series(store) == isuit.hash(both).cohort_hash
    series.add(store, "other", both)
    series.add(store, "other", one)
    assert fit_series(store, "other") == isuit.hash({name: [*both[name], *one[name]] for name in one}).cohort_hash
    assert verify(store).disagreements == []


def test_every_edit_of_what_is_shared_is_named(daily: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(daily, tmp_path / "store"))
    whole = isuit.hash(joined(*DAYS)).cohort_hash
    edits = {
        f"DELETE FROM ledger.holders WHERE cohort_hash = '{whole}'": "ledger.holders",
        f"DELETE FROM ledger.holders WHERE cohort_hash = '{whole}' AND position = 1": "ledger.holders",
        "UPDATE ledger.holders SET position = position + 7": "ledger.holders",
        f"UPDATE ledger.holders SET holder = '{whole}' WHERE position = 0": "ledger.holders",
        "INSERT INTO ledger.holders SELECT * FROM ledger.holders LIMIT 1": "ledger.holders",
        # Rows under a name that nobody reads, and under that of a cohort which has them elsewhere.
        "INSERT INTO personal.outcomes SELECT * REPLACE ('x' AS cohort_hash) FROM held_outcomes LIMIT 1": (
            "personal.outcomes"
        ),
        f"INSERT INTO personal.outcomes SELECT * REPLACE ('{whole}' AS cohort_hash) FROM held_outcomes LIMIT 1": (
            "personal.outcomes"
        ),
    }
    with open_store(store, write=True) as opened:
        for statement, table in edits.items():
            opened.connection.execute("BEGIN")
            opened.connection.execute(statement)
            named = {place for place, _ in verify_tables(opened.connection, opened.key).disagreements}
            opened.connection.execute("ROLLBACK")
            assert table in named, statement


def test_a_store_of_the_version_before_agrees_and_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    with monkeypatch.context() as patch:
        patch.delitem(MIGRATIONS, SHARED_ROWS)
        small_parts(patch, rows=20, riders=3)
        before = add_cohort(store, DAYS[0])
    assert verify(store).disagreements == []  # and migrates nothing
    with open_store(store, inspect=True) as opened:
        assert SHARED_ROWS not in applied(opened.connection)
    series.add(store, "kite", DAYS[0])
    series.add(store, "kite", DAYS[1])
    fit_series(store)
    assert stored_rows(store) == 84
    assert isuit.hash(rows_of(store, before)).cohort_hash == before
    assert verify(store).disagreements == []


def test_a_copied_store_with_parts_shares_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,200 outcomes in 22 files the union has none of its own, and reads them in canonical order."""
    small_parts(monkeypatch)
    store = shared_store(tmp_path / "store")
    assert stored_rows(store) == 1200
    union = isuit.hash(joined(*(cohort_table(seed, 600, [*rider_names(20), MARKED]) for seed in (1, 2)))).cohort_hash
    assert rows_of(store, union).num_rows == 1200
    assert verify(store).complete_cohorts == 3
