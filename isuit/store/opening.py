"""The way into a store: lock, clean up after the dead, connect.

Every command first tries LOCK exclusively without waiting. Having it, it empties the spill directory and finishes
pending work (an erasure whose rewrite was cut short, a migration); a reader then converts to a shared lock and looks
again, because another process may have got in between. A reader that finds work pending and cannot get the lock in
time gives up as if the store were in use, which it is.

Where pending work was tried and failed, a writer is refused and a reader is warned: what an erasure decided holds for
every reader, whatever became of the file.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from isuit.errors import StoreError, Unfinished, UnfinishedWarning
from isuit.store import parts
from isuit.store.connection import busy, connect, explain, is_foreign_lock
from isuit.store.founding import Beside, Founding, key_digest, read_key
from isuit.store.lock import StoreLock
from isuit.store.migrations import Record, outstanding, refuse_newer
from isuit.store.paths import DIRECTORY_MODE, FILE_MODE, StorePaths
from isuit.store.query import first

POLL_SECONDS = 0.05
# Finishes the work that `ledger.pending` lists. Called with the exclusive lock held and no connection open.
Finish = Callable[[StorePaths, bytes], None]
# Riders whose erasure is decided, and whose rows are still in parts because it could not be finished.
Hidden = Callable[[duckdb.DuckDBPyConnection, bytes], list[str]]


@dataclass
class Store:
    """An open store: valid inside the `with` block of `open_store` and nowhere else."""

    paths: StorePaths
    key: bytes = field(repr=False)
    writable: bool
    hidden: Hidden = field(default=lambda connection, key: [], repr=False)
    inspect: bool = False
    _connection: duckdb.DuckDBPyConnection | None = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self.take(connect(self.paths.database, self.paths.spill, read_only=not self.writable))
            assert self._connection is not None
        return self._connection

    def take(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Use a connection to the database: it gets the views of tables and parts together (`isuit.store.parts`)."""
        try:
            if parts.hides(connection):
                parts.hide(connection, self.hidden(connection, self.key))
            parts.show(connection, inspect=self.inspect)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def limit_memory(self, size: int) -> None:
        """Let the database keep so many bytes in memory; it spills the rest into `tmp/`."""
        self.connection.execute(f"SET memory_limit = '{int(size)}B'")

    @property
    def policy(self) -> dict[str, Any]:
        """The disclosure policy that the store was created with."""
        row = first(self.connection, "SELECT policy FROM ledger.store")
        return dict(json.loads(row[0])) if row else {}

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """All or nothing: commits at the end of the block, rolls back on any error."""
        connection = self.connection
        connection.execute("BEGIN")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # After a fatal error (a full disk) there is no transaction left to roll back.
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            raise

    def close_database(self) -> None:
        """Close the database but keep the lock; a writer's WAL goes into the file. `connection` reopens it."""
        if self._connection is not None:
            try:
                if self.writable:
                    self._connection.execute("CHECKPOINT")
            finally:
                self._connection.close()
                self._connection = None


@contextmanager
def open_store(
    path: Path,
    *,
    write: bool,
    wait: float,
    create: bool,
    policy: Mapping[str, Any],
    tool_version: str,
    record: Record,
    finish: Finish,
    hidden: Hidden,
    beside: Mapping[str, Beside],
    inspect: bool = False,
) -> Iterator[Store]:
    """Open the store at `path`; `create` makes one where there is none, with `policy`.

    `inspect` is for verification: it opens a store whatever its tables say, because saying what is wrong with them
    is the point.
    """
    paths = StorePaths(Path(path))
    with _explained(paths, OSError):
        _prepare_directory(paths, create=create)
        lock = StoreLock(paths.lock)
    try:
        found = Founding(paths, policy, tool_version, record, beside)
        how = _How(finish, hidden, write=write, create=create, inspect=inspect)
        with _explained(paths, duckdb.Error, OSError):
            store = _acquire(paths, lock, found, how, wait)
        # Inside the block an OSError is about the caller's own files.
        with _explained(paths, duckdb.Error):
            try:
                yield store
            finally:
                _close(store)
    finally:
        lock.close()


@contextmanager
def _explained(paths: StorePaths, *kinds: type[duckdb.Error] | type[OSError]) -> Iterator[None]:
    """Errors of DuckDB or the system as sentences. `from None`, because DuckDB's text may quote values."""
    try:
        yield
    except kinds as error:
        sentence = explain(error, paths.directory)
        if sentence is None:
            raise
        raise sentence from None


def _close(store: Store) -> None:
    # What was committed is safe in the WAL, and the next command takes it in. A disk that is full only now must not
    # turn a recorded fit into a message that says that nothing was recorded.
    with suppress(duckdb.Error):
        store.close_database()
    if store.writable and store.paths.database.exists():
        store.paths.database.chmod(FILE_MODE)


def is_store(path: Path) -> bool:
    """Whether there is a store at `path`; refuses a place where there is none and none can be made."""
    paths = StorePaths(Path(path))
    directory = paths.directory
    if directory.exists() and not directory.is_dir():
        raise StoreError(f"{directory} is a file, not a store; name a directory with --store.")
    if paths.database.exists():
        return True
    if directory.exists() and {entry.name for entry in directory.iterdir()} - paths.names():
        raise StoreError(f"{directory} holds other files and no store; name an empty or a new directory with --store.")
    existing = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise StoreError(f"no store can be made at {directory}: {existing} cannot be written; choose another place.")
    return False


def _prepare_directory(paths: StorePaths, *, create: bool) -> None:
    if is_store(paths.directory):
        return
    if not create:
        raise StoreError(
            f"there is no store at {paths.directory}; make one with `isuit init`, or name one with --store."
        )
    paths.directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    paths.directory.chmod(DIRECTORY_MODE)


@dataclass(frozen=True)
class _How:
    """What an opening was asked for."""

    finish: Finish
    hidden: Hidden
    write: bool
    create: bool
    inspect: bool


def _acquire(paths: StorePaths, lock: StoreLock, founding: Founding, how: _How, wait: float) -> Store:
    """Exclusive first, clean up, then what was asked for; until the deadline (docs/contract.md, section 5)."""
    deadline = time.monotonic() + wait
    while True:
        try:
            if lock.try_exclusive():
                ready, unfinished = None, False
                try:
                    ready = _clean_up(paths, founding, how)
                except Unfinished as error:
                    if how.write:
                        raise
                    warnings.warn(str(error), UnfinishedWarning, stacklevel=2)
                    unfinished = True
                if how.write:
                    return _connected(paths, how, ready)
                if lock.try_shared():
                    store = _ready_reader(paths, how, unfinished=unfinished)
                    if store:
                        return store
            elif not how.write and lock.try_shared():
                store = _ready_reader(paths, how)
                if store:
                    return store
        except duckdb.IOException as error:
            # A foreign client holds DuckDB's own lock: the same situation, the same waiting, the same sentence.
            if not is_foreign_lock(error) or time.monotonic() >= deadline:
                raise
        lock.release()
        if time.monotonic() >= deadline:
            raise busy(paths.directory)
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _ready_reader(paths: StorePaths, how: _How, *, unfinished: bool = False) -> Store | None:
    """A reader's store, or None when someone must first finish pending work, unless it is known to be `unfinished`."""
    if not paths.database.exists() or (paths.retired.exists() and not unfinished):
        return None
    store = _connected(paths, how)
    pending = not unfinished and _pending(store.connection)
    if not how.inspect and (pending or outstanding(store.connection)):
        store.close_database()
        return None
    return store


def _connected(paths: StorePaths, how: _How, connection: duckdb.DuckDBPyConnection | None = None) -> Store:
    store = Store(paths, read_key(paths), how.write, how.hidden, how.inspect)
    if connection is not None:
        store.take(connection)
    if not how.inspect:
        refuse_newer(store.connection)
    if how.write:
        row = first(store.connection, "SELECT key_digest FROM ledger.store")
        if row != (key_digest(store.key),):
            store.close_database()
            raise StoreError(
                f"the key file of {paths.directory} is not the one this store was made with; restore the original, "
                "or suppressed riders would come back."
            )
    return store


def _clean_up(paths: StorePaths, founding: Founding, how: _How) -> duckdb.DuckDBPyConnection | None:
    """What only the holder of the exclusive lock may do: sweep; found, or look what is left to do; upgrade; finish.

    Touches nothing when there is nothing to do. A writer who finds all in order gets the connection that looked.
    """
    sweep(paths.spill)
    if not paths.database.exists():
        if not how.create:
            raise StoreError(f"there is no store at {paths.directory}; make one with `isuit init`.")
        founding.found()
        return None
    key = read_key(paths)
    left, connection = _look(paths, write=how.write, inspect=how.inspect)
    if left.behind:
        founding.upgrade()
    if left.pending:
        _finish(paths, key, how)
    return connection


@dataclass(frozen=True)
class _Left:
    """What is left to do before a store can be used."""

    behind: bool  # it lacks migrations
    pending: bool  # a command was cut short

    def __bool__(self) -> bool:
        return self.behind or self.pending


def _look(paths: StorePaths, *, write: bool, inspect: bool) -> tuple[_Left, duckdb.DuckDBPyConnection | None]:
    """What is left to do, and the connection that looked, for a writer when that is nothing: opening takes 30 ms."""
    connection = connect(paths.database, paths.spill, read_only=not (write or paths.wal.exists()))
    keep = False
    try:
        if not inspect:
            refuse_newer(connection)
        behind = not inspect and bool(outstanding(connection))
        left = _Left(behind, _pending(connection) or paths.retired.exists())
        if not inspect:
            parts.remove_unlisted(connection)
        keep = write and not left
        return left, connection if keep else None
    finally:
        if not keep:
            connection.close()


def _finish(paths: StorePaths, key: bytes, how: _How) -> None:
    """Finish pending work. A mark that no command made has no work behind it: verification names it, others refuse."""
    try:
        how.finish(paths, key)
    except (LookupError, ValueError, TypeError):
        if not how.inspect:
            raise StoreError(
                f"the store {paths.directory} is marked as having unfinished work and holds none: run `isuit verify`"
            ) from None


def sweep(spill: Path) -> None:
    """Empty the spill directory; only for the holder of the exclusive lock."""
    if spill.is_dir():
        for entry in spill.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _pending(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a command was cut short. A database without the table has no pending work that we know of."""
    try:
        return first(connection, "SELECT 1 FROM ledger.pending LIMIT 1") is not None
    except duckdb.CatalogException:
        return False
