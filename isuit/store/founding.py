"""Making a store and its key, and bringing an older store up to date."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import duckdb
import rfc8785

from isuit.errors import StoreError
from isuit.store.connection import connect
from isuit.store.migrations import Connection, Record, migrate
from isuit.store.paths import DIRECTORY_MODE, FILE_MODE, StorePaths, sync, write_secret

KEY_BYTES = 32


class Beside(Protocol):
    """What a migration does beside its tables, in its transaction."""

    def __call__(self, connection: Connection, paths: StorePaths) -> None: ...


def key_digest(key: bytes) -> str:
    """Says whether a key is the store's own without telling the key (256 random bits cannot be guessed)."""
    return hashlib.sha256(b"isuit/key/1\x00" + key).hexdigest()


def read_key(paths: StorePaths) -> bytes:
    try:
        key = paths.key.read_bytes()
    except FileNotFoundError:
        raise StoreError(f"the store {paths.directory} has no key file; restore it beside store.duckdb.") from None
    if len(key) != KEY_BYTES:
        raise StoreError(f"the key file of {paths.directory} is damaged; restore it beside store.duckdb.")
    return key


@dataclass(frozen=True)
class Founding:
    """Makes a new store: in the spill directory first, then renamed, so that there is never half a database."""

    paths: StorePaths
    policy: Mapping[str, Any]
    tool_version: str
    record: Record
    beside: Mapping[str, Beside]  # by migration

    def found(self) -> None:
        self.paths.spill.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        key = self._make_key()
        connection = connect(self.paths.founding, self.paths.spill, read_only=False)
        try:
            self._migrate(connection, lambda open_connection: self._describe(open_connection, key))
            connection.execute("CHECKPOINT")
        finally:
            connection.close()
        self.paths.founding.chmod(FILE_MODE)
        self.paths.founding.rename(self.paths.database)
        sync(self.paths.directory)

    def upgrade(self) -> None:
        connection = connect(self.paths.database, self.paths.spill, read_only=False)
        try:
            self._migrate(connection, lambda _: None)
        finally:
            connection.close()

    def _migrate(self, connection: Connection, found: Callable[[Connection], None]) -> None:
        beside = {name: partial(step, paths=self.paths) for name, step in self.beside.items()}
        migrate(connection, self.record, found, beside)

    def _make_key(self) -> bytes:
        # A key left by a founding that was killed was never used; a new one is as good.
        key = secrets.token_bytes(KEY_BYTES)
        write_secret(self.paths.key, key)
        return key

    def _describe(self, connection: duckdb.DuckDBPyConnection, key: bytes) -> None:
        store_id = secrets.token_hex(16)
        now = datetime.now(UTC).replace(tzinfo=None)
        policy = rfc8785.dumps(dict(self.policy)).decode()
        connection.execute(
            "INSERT INTO ledger.store VALUES (?, ?, ?, ?, ?)",
            [store_id, now, self.tool_version, key_digest(key), policy],
        )
        created: dict[str, object] = {"store_id": store_id, "policy": dict(self.policy)}
        self.record(connection, "store-created", created, {"ledger.store": [store_id]})
