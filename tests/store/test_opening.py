"""The way into a store: creation, locking, what the dead leave behind, and what is refused."""

from __future__ import annotations

import fcntl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from isuit.audit.log import append_event, log_head, read_log
from isuit.errors import StoreBusy, StoreError
from isuit.service import stores
from isuit.service.stores import open_store
from isuit.store.migrations import MIGRATIONS


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with open_store(path, write=True, create=True):
        pass
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_private_and_its_log_starts(store_path: Path) -> None:
    assert mode(store_path) == 0o700
    assert {path.name for path in store_path.iterdir()} == {"LOCK", "store.duckdb", "key", "signing-key", "tmp"}
    assert mode(store_path / "store.duckdb") == mode(store_path / "key") == mode(store_path / "LOCK") == 0o600
    assert mode(store_path / "tmp") == 0o700
    with open_store(store_path) as store:
        events = read_log(store.connection)
        kinds = [event.kind for event in events]
        assert kinds[:4] == ["store-created", "migration-applied", "signing-key-made", "migration-applied"]
        assert kinds.count("migration-applied") == len(MIGRATIONS)
        assert [event.computed_head() for event in events] == [event.head for event in events]
        assert log_head(store.connection) == events[-1].head
        assert store.policy.items() >= {"k": 10, "lag_days": 90, "resolution": 7}.items()
        version = store.connection.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE NOT internal"
        ).fetchall()
        assert version == [("v1.5.0+",)]
        settings = dict(
            store.connection.execute(
                "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%known_extensions'"
            ).fetchall()
        )
        assert settings == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def test_reading_changes_no_byte(store_path: Path) -> None:
    before = (store_path / "store.duckdb").read_bytes()
    with open_store(store_path) as store:
        store.connection.execute("SELECT count(*) FROM ledger.log").fetchall()
    assert (store_path / "store.duckdb").read_bytes() == before


def test_a_transaction_is_all_or_nothing(store_path: Path) -> None:
    with open_store(store_path, write=True) as store:
        head = log_head(store.connection)
        with pytest.raises(ValueError, match="unsupported"), store.transaction() as connection:
            append_event(connection, append_event(connection, "test", {}), {"not JSON": object()})
        assert log_head(store.connection) == head
        with store.transaction() as connection:
            new = append_event(connection, "test", {})
    with open_store(store_path) as store:
        assert log_head(store.connection) == new


def test_readers_share_and_a_writer_waits(store_path: Path) -> None:
    with open_store(store_path, wait=0), open_store(store_path, wait=0):
        with pytest.raises(StoreBusy, match="in use") as caught, open_store(store_path, write=True, wait=0.1):
            pass
        assert caught.value.exit_code == 75
    with open_store(store_path, write=True, wait=0), pytest.raises(StoreBusy), open_store(store_path, wait=0.1):
        pass


def test_a_waiting_writer_gets_its_turn(store_path: Path) -> None:
    got = threading.Event()

    def write() -> None:
        with open_store(store_path, write=True, wait=20):
            got.set()

    with open_store(store_path):
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.2)
        assert not got.is_set()
    thread.join(timeout=20)
    assert got.is_set()


FOREIGN = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


def test_a_foreign_client_is_the_same_sentence(store_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FOREIGN, str(store_path / "store.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as client:
        assert client.stdout is not None
        assert client.stdin is not None
        client.stdout.readline()
        for write in (True, False):
            with pytest.raises(StoreBusy, match="in use by another"), open_store(store_path, write=write, wait=0.1):
                pass
        client.stdin.close()
    with open_store(store_path, write=True):
        pass


def test_what_a_killed_command_left_is_swept(store_path: Path) -> None:
    (store_path / "tmp" / "duckdb_temp_storage-0.tmp").write_bytes(b"rows in plain text")
    (store_path / "tmp" / "folder").mkdir()
    with open_store(store_path):
        assert list((store_path / "tmp").iterdir()) == []


def test_nothing_is_swept_under_a_reader(store_path: Path) -> None:
    with open_store(store_path):
        spilled = store_path / "tmp" / "duckdb_temp_storage-0.tmp"
        spilled.write_bytes(b"in use")
        with open_store(store_path):
            assert spilled.exists()


def test_a_store_killed_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    (path / "LOCK").touch()
    (path / "key").write_bytes(b"half")
    (path / "tmp").mkdir()
    (path / "tmp" / "founding.duckdb").write_bytes(b"half a database")
    with pytest.raises(StoreError, match="no store"), open_store(path):
        pass
    with open_store(path, write=True, create=True) as store:
        assert len(read_log(store.connection)) == 2 + len(MIGRATIONS)


def test_a_wal_left_by_a_killed_writer_is_taken_in(store_path: Path) -> None:
    program = (
        "import sys, os; from pathlib import Path; from isuit.service.stores import open_store\n"
        "from isuit.audit.log import append_event\n"
        "with open_store(Path(sys.argv[1]), write=True) as store:\n"
        "    with store.transaction() as c: append_event(c, 'test', {})\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(store_path)], check=False)
    assert (store_path / "store.duckdb.wal").exists()
    with open_store(store_path) as store:
        assert len(read_log(store.connection)) == 3 + len(MIGRATIONS)
    assert not (store_path / "store.duckdb.wal").exists()


def test_pending_work_is_finished_before_anyone_gets_the_store(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store_path, write=True) as store:
        store.connection.execute("INSERT INTO ledger.pending VALUES ('test', 'x', TIMESTAMP '2026-01-01')")
    calls = []

    def finish(paths: stores.StorePaths, key: bytes) -> None:
        calls.append(len(key))
        connection = duckdb.connect(str(paths.database))
        connection.execute("DELETE FROM ledger.pending")
        connection.close()

    monkeypatch.setattr(stores, "finish_pending", finish)
    with open_store(store_path):
        assert calls == [32]


def test_a_reader_that_cannot_finish_pending_work_is_refused(store_path: Path) -> None:
    connection = duckdb.connect(str(store_path / "store.duckdb"))
    connection.execute("INSERT INTO ledger.pending VALUES ('test', 'x', TIMESTAMP '2026-01-01')")
    connection.close()
    with (store_path / "LOCK").open() as lock:  # another reader, who came before the work was marked
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(StoreBusy), open_store(store_path, wait=0.1):
            pass


class TestRefused:
    """One sentence, exit 2, nothing written."""

    def test_no_store(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="no store at"), open_store(tmp_path / "none"):
            pass
        assert not (tmp_path / "none").exists()

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "store").write_text("mine")
        with pytest.raises(StoreError, match="is a file"), open_store(tmp_path / "store", write=True, create=True):
            pass
        assert (tmp_path / "store").read_text() == "mine"

    def test_someone_elses_directory(self, tmp_path: Path) -> None:
        (tmp_path / "holiday.jpg").touch()
        with pytest.raises(StoreError, match="holds other files"), open_store(tmp_path, write=True, create=True):
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]

    def test_a_database_that_is_none(self, store_path: Path) -> None:
        (store_path / "store.duckdb").write_bytes(b"not a database" * 1000)
        with pytest.raises(StoreError, match="damaged or of another version"), open_store(store_path):
            pass

    def test_a_newer_store(self, store_path: Path) -> None:
        connection = duckdb.connect(str(store_path / "store.duckdb"))
        connection.execute("INSERT INTO ledger.migrations VALUES ('0999-future', TIMESTAMP '2030-01-01')")
        connection.close()
        for write in (True, False):
            with pytest.raises(StoreError, match="newer version of isuit"), open_store(store_path, write=write):
                pass

    def test_a_missing_and_a_foreign_key(self, store_path: Path) -> None:
        (store_path / "key").write_bytes(b"k" * 32)
        with pytest.raises(StoreError, match="not the one this store was"), open_store(store_path, write=True):
            pass
        (store_path / "key").unlink()
        with pytest.raises(StoreError, match="no key file"), open_store(store_path):
            pass


def test_a_system_without_flock_can_import_and_is_told(tmp_path: Path) -> None:
    """Windows has no fcntl: everything is imported there, and a store says why it cannot be."""
    script = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import isuit, isuit.cli.app, isuit.service.notebook, isuit.service.proving, isuit.audit.witness\n"
        "try: isuit.open(sys.argv[1]).init()\n"
        "except isuit.IsuitError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "s")], check=False, capture_output=True, text=True
    )
    assert "a store needs the locks of Linux or macOS" in done.stdout, done.stderr
