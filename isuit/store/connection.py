"""DuckDB connections, the same everywhere, and DuckDB's errors as sentences.

Never open `store.duckdb` with Python's `open` while this process holds a connection to it: closing that second
descriptor drops DuckDB's lock (POSIX locks belong to the process).
"""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from isuit.errors import IsuitError, StoreBusy, StoreError

# The newest storage format that DuckDB 1.5 and 2.0 both read.
STORAGE_VERSION = "v1.5.0"
MEMORY = 10**9  # bytes of a connection's buffers; `Store.limit_memory` sets another limit


def connect(database: Path, spill: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection that spills into the store, downloads nothing and writes the storage version both DuckDBs read.

    Without a limit DuckDB takes most of the machine's memory: a transaction that records 10^8 outcomes grew to 11 GB.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "temp_directory": str(spill),
        "memory_limit": f"{MEMORY}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
    }
    # For whoever wants to search the file's bytes: compression would hide an ID from `grep` (docs/erasure.md).
    if compression := os.environ.get("ISUIT_FORCE_COMPRESSION"):
        config["force_compression"] = compression
    connection = duckdb.connect(str(database), read_only=read_only, config=config)
    # DuckDB 2.0 draws its bar on stdout, also where that is a pipe; refused as an option of connect. In a Jupyter
    # kernel without ipywidgets there is no bar, and DuckDB refuses every statement about it: so look first.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        connection.execute("SET enable_progress_bar = false")
    return connection


def busy(directory: Path) -> StoreBusy:
    return StoreBusy(f"the store {directory} is in use by another process; try again, or give --wait SECONDS.")


DAMAGED = (
    "a file of the store's parts/ is damaged and its rows cannot be read; `isuit verify` says which: restore the "
    "store's directory from a copy."
)
FULL = ("no space left", "file too large", "disk quota", "could not write all")
UNWRITABLE = ("permission denied", "read-only file system", "read only")
UNREADABLE = ("not a valid duckdb", "newer version", "version number", "checksum")


def explain(error: duckdb.Error | OSError, directory: Path) -> IsuitError | None:
    """What an error of DuckDB or the system means for the person at the terminal; None if it is a defect of ours.

    The original text is not repeated: DuckDB quotes values, and a value may be a rider's ID.
    """
    text = str(error).lower()

    def says(phrases: tuple[str, ...]) -> bool:
        return any(phrase in text for phrase in phrases)

    sentence = None
    if is_foreign_lock(error):
        return busy(directory)
    if says(FULL):
        sentence = f"the disk of the store {directory} is full; nothing was recorded: free some space and try again."
    elif says(UNWRITABLE):
        sentence = f"the store {directory} cannot be written; nothing was recorded: check its permissions."
    elif isinstance(error, duckdb.Error) and says(UNREADABLE):
        sentence = (
            f"{directory}/store.duckdb cannot be read by DuckDB {duckdb.__version__}: it is damaged or of another "
            "version; restore a copy or install the version that wrote it."
        )
    elif isinstance(error, duckdb.Error) and says(("parquet",)):
        sentence = DAMAGED
    elif isinstance(error, duckdb.OutOfMemoryException):
        sentence = f"memory and spill space for the store {directory} ran out; nothing was recorded."
    elif isinstance(error, (duckdb.IOException, duckdb.FatalException, duckdb.SerializationException)):
        sentence = f"DuckDB could not use the store {directory}; nothing was recorded: check the disk and its files."
    return StoreError(sentence) if sentence else None


def is_foreign_lock(error: BaseException) -> bool:
    """Whether another program, one that does not know LOCK, has the database open."""
    return isinstance(error, duckdb.IOException) and "lock" in str(error).lower()
