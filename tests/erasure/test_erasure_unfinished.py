"""A rewrite that fails, or failed in an earlier version, never locks a store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cohort_stores import (
    MARKED,
    add_cohort,
    cohort_table,
    contents,
    files_with,
    held,
    rider_names,
    small_parts,
    small_store,
    storage_defects,
)

from isuit.erasure import rewrite
from isuit.errors import StoreError, Unfinished, UnfinishedWarning
from isuit.service import history
from isuit.service.checks import verify
from isuit.service.riders import delete_riders
from isuit.service.stores import open_store
from isuit.store.query import rows

PREFIX = MARKED.encode()[:8]
# A short row group before full ones: DuckDB puts them together a second time if it writes with several threads.
COHORTS = (334, 719, 18_510, 427_912)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unfinished") / "store"
    riders = [*rider_names(2_999), MARKED]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
        small_parts(patch, rows=1 << 30, riders=1 << 30)  # none: these tests are about the database
        for number, outcomes in enumerate(COHORTS):
            # The marked rider is in every cohort, also in the smallest.
            add_cohort(path, cohort_table(number, outcomes, riders[-min(outcomes, 3_000) :]), number)
    return path


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "store"))


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several, on a machine with one core too; and nothing compressed, so that a search of the bytes says something."""
    monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
    genuine = rewrite.connect

    def connect(*place: Any, **how: Any) -> duckdb.DuckDBPyConnection:
        connection = genuine(*place, **how)
        connection.execute("SET threads = 4")
        return connection

    monkeypatch.setattr(rewrite, "connect", connect)


def free_blocks(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return int(rows(connection, "SELECT free_blocks FROM pragma_database_size()")[0][0])


def assert_gone(store: Path, others: dict[str, Any]) -> None:
    assert held(store, MARKED) == 0
    assert files_with(store, MARKED.encode(), PREFIX) == []
    assert contents(store) == others
    assert verify(store).disagreements == []


@pytest.mark.long
def test_a_copy_with_several_threads_has_no_free_block(store: Path) -> None:
    others = contents(store, without=[MARKED])
    delete_riders(store, [MARKED])
    assert storage_defects(store) == []
    assert_gone(store, others)


def test_free_blocks_hold_no_byte_and_do_not_lock(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = contents(store, without=[MARKED])
    monkeypatch.setattr(rewrite, "_THREADS", 4)
    delete_riders(store, [MARKED])
    assert free_blocks(store / "store.duckdb") > 0, "the test must have what it is about"
    assert_gone(store, others)


@pytest.fixture
def locked(store: Path) -> Iterator[Path]:
    """A store as the version before left it: the decision is committed, and every command is refused."""

    def refuse_free_blocks(connection: duckdb.DuckDBPyConnection) -> None:
        if rows(connection, "SELECT free_blocks FROM pragma_database_size() WHERE database_name = 'new'") != [(0,)]:
            raise StoreError("the rewritten database has free blocks and was dropped")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite, "_THREADS", 4)
        patch.setattr(rewrite, "_inspect", refuse_free_blocks)
        commands: tuple[Callable[[], object], ...] = (
            lambda: delete_riders(store, [MARKED]),
            lambda: history.status(store),
            lambda: verify(store),
        )
        for command in commands:
            with pytest.raises(StoreError, match="free blocks"):
                command()
    return store


@pytest.mark.long
def test_a_store_that_the_version_before_locked_is_finished(locked: Path, original: Path) -> None:
    others = contents(original, without=[MARKED])
    assert files_with(locked, PREFIX), "their bytes are there until the rewrite"
    assert history.status(locked).receipts == 1
    assert storage_defects(locked) == []
    assert_gone(locked, others)
    with duckdb.connect(str(locked / "store.duckdb"), read_only=True) as connection:
        assert rows(connection, "SELECT count(*) FROM ledger.pending") == [(0,)]


FAILURES = {
    "hidden rows": ("_inspect", Unfinished("the rewritten table holds rows that no query shows")),
    "full disk": ("_swap", OSError(28, "No space left on device")),
    "damaged copy": ("_copy", duckdb.IOException("Could not read enough bytes")),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_rewrite_that_fails_can_be_read_beside(failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store(tmp_path / "store")
    others = contents(store, without=[MARKED])
    step, error = FAILURES[failure]

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, step, fail)
        with pytest.raises(Unfinished):
            delete_riders(store, [MARKED])
        for _ in range(2):
            with pytest.warns(UnfinishedWarning):
                assert history.status(store).riders == 20
        with pytest.warns(UnfinishedWarning):
            assert [one.table for one in verify(store).disagreements] == ["ledger.pending"]
        with pytest.raises(Unfinished), open_store(store, write=True):
            pass
    assert history.status(store).receipts == 1
    assert_gone(store, others)
