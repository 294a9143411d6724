"""Where things are in a store's directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


@dataclass(frozen=True)
class StorePaths:
    """The files of one store. Everything a store writes is below `directory`."""

    directory: Path

    @property
    def lock(self) -> Path:
        return self.directory / "LOCK"

    @property
    def database(self) -> Path:
        return self.directory / "store.duckdb"

    @property
    def wal(self) -> Path:
        return self.directory / "store.duckdb.wal"

    @property
    def key(self) -> Path:
        return self.directory / "key"

    @property
    def signing_key(self) -> Path:
        """The seed of the key that signs heads; `next_signing_key` holds its successor while keys are rotated."""
        return self.directory / "signing-key"

    @property
    def next_signing_key(self) -> Path:
        return self.directory / "signing-key.next"

    @property
    def spill(self) -> Path:
        """DuckDB's spill directory; also where a new database is made before it is renamed into place."""
        return self.directory / "tmp"

    @property
    def founding(self) -> Path:
        return self.spill / "founding.duckdb"

    @property
    def rewritten(self) -> Path:
        """The new database of a rewrite, until it replaces the old one; swept with the spill directory."""
        return self.spill / "rewritten.duckdb"

    @property
    def retired(self) -> Path:
        """The database that a rewrite replaced, until its bytes are overwritten."""
        return self.directory / "store.duckdb.retired"

    @property
    def parts(self) -> Path:
        """Where rows of large cohorts and fits are, in files of their own (`isuit.store.parts`)."""
        return self.directory / "parts"

    def names(self) -> set[str]:
        """Every name that a store's directory may hold; anything else is not ours."""
        keys = (self.key, self.signing_key, self.next_signing_key)
        return {path.name for path in (self.lock, self.database, self.wal, *keys, self.spill, self.parts, self.retired)}


def write_secret(path: Path, content: bytes) -> None:
    """Write a key's bytes where nothing else stands, readable by the owner alone, and make them last."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)


def sync(path: Path) -> None:
    """Make what was written to a file, or renamed in a directory, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
