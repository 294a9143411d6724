"""Rows in parts: cut at a rider's border, read as if they were in their table, named when they are not as written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cohort_stores import MARKED, contents, files_with, held, small_parts, small_store

from isuit.audit import subjects
from isuit.domain import FitConfig
from isuit.erasure import part_copies, rewrite
from isuit.errors import NotFound, StoreError, Unfinished, UnfinishedWarning
from isuit.service import history, recording
from isuit.service.checks import rederive, verify
from isuit.service.fitting import fit
from isuit.service.riders import delete_riders, show_rider
from isuit.service.stores import open_store
from isuit.store import migrations, parts
from isuit.store.cohorts import cohort_records, stored_outcomes
from isuit.store.query import rows

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cohorts and two fits, as a version before there were parts wrote them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
        patch.delitem(migrations.MIGRATIONS, "0004-parts")
        patch.setattr(recording, "has_parts", lambda connection, subject: False)
        return small_store(tmp_path_factory.mktemp("tables") / "store")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
    small_parts(monkeypatch)


@pytest.fixture
def store(tables: Path, tmp_path: Path, small: None) -> Path:
    """The same store, moved to parts by its first opening."""
    store = Path(shutil.copytree(tables, tmp_path / "store"))
    with open_store(store):
        pass
    return store


def files(store: Path) -> list[Path]:
    return sorted((store / "parts").iterdir())


def rows_of(store: Path) -> dict[str, Any]:
    """Everything but which steps the store has behind it."""
    return {table: found for table, found in contents(store).items() if table != "ledger.migrations"}


def test_an_older_store_is_moved_to_parts_and_holds_the_same(tables: Path, store: Path) -> None:
    with open_store(store) as opened:
        for table in parts.PARTED:
            assert rows(opened.connection, f"SELECT count(*) FROM {table}") == [(0,)]
        found = parts.listed(opened.connection)
    assert len(found) == len(files(store)) > 20
    assert rows_of(store) == rows_of(tables)
    assert verify(store).disagreements == []


def test_nobody_is_looked_at_by_verify_where_parts_agree(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete_riders(store, [MARKED])
    monkeypatch.delattr(subjects, "Leaves")
    report = verify(store)
    assert report.disagreements == []
    assert report.erased_leaves > 0


@pytest.mark.parametrize("place", [0, -1])
def test_parts_from_before_a_column_was_added_are_read(store: Path, place: int) -> None:
    with open_store(store) as opened:
        part = [part for part in parts.listed(opened.connection) if part.holds == "personal.skills"][place]
        before = rows(opened.connection, "SELECT count(*), count(path) FROM all_skills")
    file = part.path(store / "parts")
    shorter = pq.read_table(file).drop_columns(["path"])
    file.unlink()
    pq.write_table(shorter, file)
    with open_store(store) as opened:
        assert rows(opened.connection, "SELECT count(*), count(path) FROM all_skills") == before


def test_parts_end_at_a_riders_border_and_are_the_canonical_order(store: Path) -> None:
    with open_store(store) as opened:
        connection = opened.connection
        for cohort in cohort_records(connection):
            found = parts.parts_of(connection, "personal.outcomes", cohort.cohort_hash)
            assert len(found) > 3
            assert all(part.row_count >= 120 for part in found[:-1])
            riders = [set(pq.read_table(part.path(store / "parts")).column("rider").to_pylist()) for part in found]
            assert sum(map(len, riders)) == len(set().union(*riders)) == cohort.riders
            streamed = pa.Table.from_batches(stored_outcomes(connection, cohort.cohort_hash))
            assert streamed.equals(streamed.sort_by([(name, "ascending") for name in streamed.column_names]))
            assert streamed.num_rows == cohort.outcomes


def test_a_reader_sees_no_difference(
    tables: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = history.status(store), show_rider(store, MARKED)
    monkeypatch.undo()
    kept = Path(shutil.copytree(tables, tmp_path / "kept"))
    before = history.status(kept), show_rider(kept, MARKED)
    assert not (kept / "parts").exists()
    assert moved[1] == before[1]
    log = {"log_head", "log_length"}
    assert moved[0].model_dump(exclude=log) == before[0].model_dump(exclude=log)


KILLED = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
import pytest
from cohort_stores import small_parts
from isuit.service.stores import open_store
from isuit.store import parts

small_parts(pytest.MonkeyPatch())
left, genuine = [int(sys.argv[2])], parts.insert_parts

def insert(connection, found):
    genuine(connection, found)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), 9)

parts.insert_parts = insert
with open_store(Path(sys.argv[1])):
    pass
"""


@pytest.mark.parametrize("after", [1, 5])
def test_a_move_that_is_killed_is_begun_again(tables: Path, tmp_path: Path, small: None, after: int) -> None:
    store = Path(shutil.copytree(tables, tmp_path / "store"))
    assert subprocess.run([sys.executable, "-c", KILLED, str(store), str(after)], check=False).returncode == -9
    left = set(files(store))
    assert left, "the test must have what it is about"
    with open_store(store):
        pass
    with open_store(store):
        pass
    assert not left & set(files(store))
    assert rows_of(store) == rows_of(tables)
    assert verify(store).disagreements == []


def test_only_parts_of_the_person_are_written_and_no_byte_is_left(store: Path) -> None:
    before, others = set(files(store)), contents(store, without=[MARKED])
    assert files_with(store, MARKED.encode())
    receipt = delete_riders(store, [MARKED])
    assert receipt.tables["personal.outcomes"].removed == 56
    assert receipt.tables["personal.outcomes"].after == others["personal.outcomes"][0]
    assert files_with(store, MARKED.encode(), MARKED.encode()[:8]) == []
    assert contents(store) == others
    # One part of outcomes for each cohort, one of skills for each fit, one of commitments for each of both.
    assert len(before - set(files(store))) == len(set(files(store)) - before) == 8
    assert verify(store).disagreements == []
    assert verify(store).erased_leaves == 4


def test_several_riders_are_one_rewrite(store: Path) -> None:
    gone = [MARKED, "rider-00019", "rider-00018"]
    before, others = set(files(store)), contents(store, without=gone)
    holding = {path for path in before if any(rider.encode() in path.read_bytes() for rider in gone)}
    delete_riders(store, gone)
    after = set(files(store))
    assert contents(store) == others
    assert before - after == holding
    assert len(after - before) == len(holding) < len(before)
    assert verify(store).disagreements == []


def test_everybody_can_be_erased(store: Path) -> None:
    with open_store(store) as opened:
        riders = [rider for (rider,) in rows(opened.connection, "SELECT DISTINCT rider FROM all_commitments")]
    delete_riders(store, riders)
    assert files_with(store, b"rider-000", MARKED.encode()[:8]) == []
    assert verify(store).disagreements == []
    assert history.status(store).riders == 0


def test_an_erasure_that_cannot_be_finished_hides_the_rider(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = contents(store, without=[MARKED])

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "copy_parts", fail)
        with pytest.raises(Unfinished):
            delete_riders(store, [MARKED])
        with pytest.warns(UnfinishedWarning):
            assert history.status(store).riders == 20
        with ExitStack() as stack:
            with pytest.warns(UnfinishedWarning):
                opened = stack.enter_context(open_store(store))
            for view in ("all_outcomes", "all_skills", "all_commitments"):
                assert not rows(opened.connection, f"SELECT 1 FROM {view} WHERE rider = ?", [MARKED])
            for cohort in cohort_records(opened.connection):
                streamed = pa.Table.from_batches(stored_outcomes(opened.connection, cohort.cohort_hash))
                assert MARKED not in streamed.column("rider").to_pylist()
        with pytest.warns(UnfinishedWarning), pytest.raises(NotFound, match="was erased"):
            show_rider(store, MARKED)
        assert files_with(store, MARKED.encode()), "their bytes are there until it is finished"
        assert not files_with(store / "store.duckdb", MARKED.encode())
    assert history.status(store).riders == 20
    assert files_with(store, MARKED.encode()) == []
    assert contents(store) == others


def test_a_copy_that_differs_is_never_listed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(files(store))
    genuine = part_copies.PartFile.close

    def damaged(self: part_copies.PartFile) -> tuple[int, str]:
        found = genuine(self)
        table = pq.read_table(self.path)
        pq.write_table(table.slice(1), self.path)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(part_copies.PartFile, "close", damaged)
        with pytest.raises(Unfinished, match="not identical"):
            delete_riders(store, [MARKED])
        assert set(files(store)) == before
    assert history.status(store).riders == 20
    assert held(store, MARKED) == 0


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


CHANGES: dict[str, Callable[[Path], object]] = {
    "is missing": Path.unlink,
    "is not the file that was written": flip,
    "is open to others": lambda path: path.chmod(0o640),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_a_part_that_is_not_as_written_is_named(store: Path, sentence: str) -> None:
    with open_store(store) as opened:
        chosen = {part.holds: part for part in parts.listed(opened.connection)}
    for table, part in chosen.items():
        copy = Path(shutil.copytree(store, store.parent / f"{table}-{sentence[:6]}"))
        CHANGES[sentence](part.path(copy / "parts"))
        report = verify(copy)
        assert any(one.table == table and sentence in one.sentence for one in report.disagreements), table


def test_no_answer_is_given_without_a_part(store: Path) -> None:
    files(store)[3].unlink()
    with pytest.raises(StoreError, match=r"1 of the files .* missing.*restore"):
        history.status(store)


@pytest.mark.parametrize("table", ["personal.outcomes", "personal.commitments"])
def test_a_damaged_part_is_one_sentence(store: Path, table: str) -> None:
    with open_store(store) as opened:
        damaged = next(part for part in parts.listed(opened.connection) if part.holds == table)
    path = damaged.path(store / "parts")
    path.write_bytes(path.read_bytes()[:-20])
    commands: tuple[Callable[[], object], ...] = (
        lambda: history.status(store),
        lambda: show_rider(store, MARKED),
        lambda: delete_riders(store, [MARKED]),
    )
    for command in commands:
        with pytest.raises(StoreError, match="damaged") as refusal:
            command()
        assert MARKED not in str(refusal.value)
    assert table in {one.table for one in verify(store).disagreements}


def test_rows_beside_the_parts_and_other_lists_are_named(store: Path) -> None:
    def named(statement: str) -> set[str]:
        copy = Path(shutil.copytree(store, store.parent / "changed"))
        with open_store(copy, write=True) as opened:
            opened.connection.execute(statement)
        report = verify(copy)
        shutil.rmtree(copy)
        return {one.table for one in report.disagreements}

    assert "personal.outcomes" in named("INSERT INTO personal.outcomes SELECT * FROM all_outcomes LIMIT 1")
    assert "ledger.parts" in named("UPDATE ledger.parts SET row_count = row_count + 1 WHERE position = 0")
    assert "ledger.parts" in named("INSERT INTO ledger.parts SELECT * FROM ledger.parts LIMIT 1")
    # A part that is no longer listed goes with the next command, and its rows are missed.
    assert {"ledger.parts", "personal.skills"} <= named("DELETE FROM ledger.parts WHERE holds = 'personal.skills'")


def test_a_file_that_nothing_lists_is_overwritten(store: Path) -> None:
    left = store / "parts" / "left.parquet"
    left.write_bytes(MARKED.encode() * 1000)
    assert [one.table for one in verify(store).disagreements] == ["parts"]
    with left.open("rb") as kept:
        with open_store(store):
            pass
        assert not left.exists()
        assert set(kept.read()) == {0}
    assert os.stat(store / "parts").st_mode & 0o777 == 0o700


def test_a_cohort_in_parts_is_fitted_again_and_its_rows_come_back(
    tmp_path: Path, small: None, cohort_table: Callable[..., pa.Table]
) -> None:
    store, table, config = tmp_path / "store", cohort_table(1), FitConfig(activity="kitesurfing", dimension="wind")
    fitted = fit(store, table, config)
    assert len(files(store)) > 8
    assert rederive(store, fitted.fit_id).verdict == "identical"
    delete_riders(store, ["rider-0003"], suppress=False)
    assert rederive(store, fitted.fit_id).verdict == "erased"
    fit(store, table, config)
    with open_store(store) as opened:
        assert rows(opened.connection, "SELECT count(*) FROM all_outcomes") == [(table.num_rows,)]
        assert rows(opened.connection, "SELECT DISTINCT rider FROM personal.outcomes") == [("rider-0003",)]
        [cohort] = cohort_records(opened.connection)
        streamed = pa.Table.from_batches(stored_outcomes(opened.connection, cohort.cohort_hash))
        riders = streamed.column("rider").to_pylist()
        assert riders == sorted(riders)
    assert verify(store).disagreements == []
    delete_riders(store, ["rider-0003"])
    assert files_with(store, b"rider-0003") == []
    assert verify(store).disagreements == []
