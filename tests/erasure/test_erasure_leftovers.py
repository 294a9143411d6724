"""What killed commands leave beside the database, and a rewrite that must not happen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cohort_stores import MARKED, add_cohort, cohort_table, contents, files_with, held, rider_names, small_store

from isuit.erasure import erasure, rewrite
from isuit.errors import StoreError, UnfinishedWarning
from isuit.service.checks import bundle, verify
from isuit.service.history import fits
from isuit.service.riders import delete_riders
from isuit.service.stores import open_store
from isuit.store.opening import Store

HERE = Path(__file__).parent
IMPORT = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
import cohort_stores
from isuit.ingest import read_cohort
from isuit.service.recording import register_cohort
from isuit.service.stores import open_store

with open_store(Path(sys.argv[1]), write=True) as store:
    store.connection.execute("SET checkpoint_threshold = '1GB'")
    with read_cohort(cohort_stores.cohort_table(9, 3000, [cohort_stores.MARKED, "someone-else"])) as cohort:
        with store.transaction() as connection:
            register_cohort(connection, cohort)
            if sys.argv[2] == "before the commit":
                os.kill(os.getpid(), 9)
        os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return small_store(tmp_path / "store")


@pytest.mark.parametrize("moment", ["after the commit", "torn", "before the commit"])
def test_a_wal_left_by_a_killed_import(store: Path, moment: str) -> None:
    subprocess.run([sys.executable, "-c", IMPORT, str(store), moment], check=False)
    wal = store / "store.duckdb.wal"
    assert wal.exists() == (moment != "before the commit")
    if moment == "torn":  # as a power cut leaves it
        assert MARKED.encode() in wal.read_bytes()
        os.truncate(wal, wal.stat().st_size - 100)
    receipt = delete_riders(store, [MARKED])
    assert receipt.tables["personal.outcomes"].removed == 56 + (1500 if moment == "after the commit" else 0)
    assert files_with(store, MARKED.encode(), MARKED.encode()[:8]) == []
    assert not wal.exists()
    assert verify(store).disagreements == []


def test_a_spill_file_left_by_a_killed_sort(store: Path) -> None:
    (store / "tmp" / "duckdb_temp_storage-0.tmp").write_bytes(f"row of {MARKED}".encode())
    (store / "tmp" / "isuit-sort").mkdir()
    (store / "tmp" / "isuit-sort" / "part").write_bytes(MARKED.encode())
    delete_riders(store, [MARKED])
    assert files_with(store, MARKED.encode()) == []


def test_a_copy_that_differs_is_never_swapped_in(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(store, write=True) as opened:
        erasure.decide(opened, [MARKED], suppress=True, bindings=[])
    # What a failing disk would do: a row of the copy is not the one that was read.
    genuine = rewrite.fingerprints

    def broken(connection, tables):  # type: ignore[no-untyped-def]
        if "new.personal.skills" in tables:
            connection.execute(
                "UPDATE new.personal.skills SET skill_mean = skill_mean + 1e-15 WHERE rider = 'rider-00001'"
            )
        return genuine(connection, tables)

    monkeypatch.setattr(rewrite, "fingerprints", broken)
    before = (store / "store.duckdb").read_bytes()
    refusal = r"copy of personal\.skills is not identical"
    with pytest.raises(StoreError, match=refusal), open_store(store, write=True):
        pass
    with pytest.warns(UnfinishedWarning, match=refusal), open_store(store):
        pass
    assert held(store, MARKED) == 0
    assert (store / "store.duckdb").read_bytes() == before
    monkeypatch.undo()
    assert verify(store).disagreements == []


def test_only_bundles_of_cohorts_that_held_the_rider_are_counted(store: Path, tmp_path: Path) -> None:
    cohort_hash = add_cohort(store, cohort_table(7, 200, rider_names(10)), 7)  # without the rider
    bundle(store, cohort_hash, tmp_path / "others", with_cohort=True)
    bundle(store, fits(store)[0].fit_id, tmp_path / "theirs", with_cohort=True)
    assert delete_riders(store, [MARKED]).bundles_with_rows == 1


def test_an_erasure_that_the_disk_has_no_room_for_is_not_begun(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewrite needs the size of the database and some more; a little less than that is free."""
    before, size = contents(store), (store / "store.duckdb").stat().st_size
    usage = shutil.disk_usage(store)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=size + (16 << 20)))
    with pytest.raises(StoreError, match="nothing was erased"):
        delete_riders(store, [MARKED])
    monkeypatch.undo()
    assert contents(store) == before
    assert held(store, MARKED)


def test_the_room_that_is_asked_for_holds_database_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store.duckdb").write_bytes(b"x" * 1000)
    store = SimpleNamespace(paths=SimpleNamespace(database=tmp_path / "store.duckdb", directory=tmp_path))
    parts, usage = 40 << 20, shutil.disk_usage(tmp_path)
    needed = int((1000 + parts) * 1.1) + (16 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=needed))
    erasure._require_space(cast(Store, store), parts)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=needed - 1))
    with pytest.raises(StoreError, match="needs 60 MiB of free disk"):
        erasure._require_space(cast(Store, store), parts)


def test_a_deletion_that_reaches_others_is_rolled_back(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(store)
    genuine = rewrite.fingerprints

    def after_a_wide_delete(connection, tables):  # type: ignore[no-untyped-def]
        if tables.get("personal.skills") == "true":
            connection.execute("DELETE FROM personal.skills WHERE rider = 'rider-00001'")
        return genuine(connection, tables)

    monkeypatch.setattr(erasure, "fingerprints", after_a_wide_delete)
    with pytest.raises(StoreError, match="other riders' rows"):
        delete_riders(store, [MARKED])
    monkeypatch.undo()
    assert contents(store) == before


def test_a_second_name_of_the_database_itself_is_not_overwritten(store: Path) -> None:
    """A kill between link and rename leaves the database under two names; its bytes must survive."""
    before = contents(store)
    os.link(store / "store.duckdb", store / "store.duckdb.retired")
    with open_store(store):
        pass
    assert not (store / "store.duckdb.retired").exists()
    assert contents(store) == before
    assert held(store, MARKED)


def test_a_retired_file_is_overwritten_before_it_goes(store: Path) -> None:
    retired = store / "store.duckdb.retired"
    retired.write_bytes(MARKED.encode() * 100_000)
    with retired.open("rb") as kept:
        with open_store(store):
            pass
        assert not retired.exists()
        assert set(kept.read()) == {0}


def test_the_file_that_an_erasure_replaces_is_overwritten(store: Path) -> None:
    with (store / "store.duckdb").open("rb") as replaced:
        delete_riders(store, [MARKED])
        assert set(replaced.read()) == {0}
