"""The store's lock: `flock` on LOCK, shared to read and exclusive to write.

DuckDB has a lock of its own, but it knows nothing of the spill directory, of a database file that is swapped, or of
waiting. `flock` goes with the process: a killed command never leaves a lock behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from isuit.errors import StoreError
from isuit.store.paths import FILE_MODE


def flock() -> ModuleType:
    """The module with `flock`, which systems like Linux and macOS have and Windows has not."""
    try:
        import fcntl
    except ImportError:
        raise StoreError(
            "a store needs the locks of Linux or macOS, which this system does not have: fit without a store from "
            "Python (isuit.fit), or work in WSL."
        ) from None
    return fcntl


class StoreLock:
    """One process's hold on LOCK. Neither try waits: waiting is the opener's, who has the deadline."""

    def __init__(self, path: Path) -> None:
        self._fcntl = flock()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError:
            # A store on read-only media can be read, and flock needs no write permission.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def try_exclusive(self) -> bool:
        return self._try(self._fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Also converts an exclusive lock; another process may get in between, so look again afterwards."""
        return self._try(self._fcntl.LOCK_SH)

    def release(self) -> None:
        self._fcntl.flock(self._descriptor, self._fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)

    def _try(self, operation: int) -> bool:
        try:
            self._fcntl.flock(self._descriptor, operation | self._fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
