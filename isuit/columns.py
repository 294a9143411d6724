"""Long columns of numbers: in memory while they are short, beyond that in a file without a name, mapped read-only.

What a fit reads in order, slice by slice, need not be in memory: the kernel keeps of a mapped file what fits and drops
the rest. The file has no name from the start, or loses it at once: nobody else can open it, and it is gone with the
last array that maps it, also when the process is killed. It holds codes and numbers, never a rider's ID.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isuit.errors import InputError

IN_MEMORY_BYTES = 1 << 27  # of one column: as many metrics as ingest sorts in memory
SLICE_ROWS = 1 << 17  # a slice's columns and what is computed from them stay in a processor's cache
DESIGN_ROWS = 1 << 14  # of rows that become a row of some twenty functions each


class Nameless:
    """A file without a name, which grows at its end."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self.size = folder, 0
        with self._writing():
            self.file: Any = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it

    def append(self, part: NDArray[Any]) -> None:
        with self._writing():
            self.file.seek(self.size)
            self.file.write(part.data)
            self.file.flush()
        self.size += part.nbytes

    def read(self, start: int, dtype: DTypeLike, count: int) -> NDArray[Any]:
        """So many numbers from this byte on, as memory of their own: a map would count as memory while it is read."""
        found = np.empty(count, dtype)
        self.file.seek(start)
        self.file.readinto(found.data)
        return found

    def close(self) -> None:
        self.file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = self._folder or tempfile.gettempdir()
            raise InputError(
                f"the cohort is larger than memory and writing it to {folder} failed ({error.strerror}): free some "
                "disk space or set TMPDIR to another directory"
            ) from None


class Column:
    """A column that grows at its end. `array` gives it whole, in memory or mapped, and ends its growth."""

    def __init__(self, dtype: DTypeLike, folder: Path | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._folder = folder
        self._parts: list[NDArray[Any]] = []
        self._size = 0
        self._file: Nameless | None = None

    def append(self, part: NDArray[Any]) -> None:
        self._parts.append(np.ascontiguousarray(part, dtype=self._dtype))
        self._size += part.size
        if self._size * self._dtype.itemsize > IN_MEMORY_BYTES:
            self._write()

    def _write(self) -> None:
        self._file = self._file or Nameless(self._folder)
        for part in self._parts:
            self._file.append(part)
        self._parts.clear()

    def array(self) -> NDArray[Any]:
        if self._file is None:
            whole = np.concatenate([np.empty(0, self._dtype), *self._parts])
            self._parts.clear()
            return whole
        mapped = np.memmap(self._file.file, self._dtype, mode="r", shape=(self._size,))
        self._file.close()
        return np.asarray(mapped)  # plain, so that what is computed from it is plain too


def slices(rows: int, of_rows: int | None = None) -> Iterator[slice]:
    """Slices of so many rows, one after the other."""
    step = of_rows or SLICE_ROWS
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def rider_slices(rider: NDArray[np.integer[Any]], of_rows: int | None = None) -> Iterator[slice]:
    """Slices of about so many rows that divide no rider's rows; rows that are not sorted by rider are one slice."""
    rows = rider.size
    if not is_sorted(rider):
        yield slice(0, rows)
        return
    start = 0
    while start < rows:
        end = min(start + (of_rows or SLICE_ROWS), rows)
        # The scalar keeps the column's own type: another one would make searchsorted convert the whole column.
        end = int(np.searchsorted(rider, rider[end - 1], side="right"))
        yield slice(start, end)
        start = end


def counted(code: NDArray[np.integer[Any]], codes: int, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """How often each code occurs, in the chosen rows; `bincount` of a whole column would convert it as a whole."""
    total = np.zeros(codes, np.int64)
    for part in slices(code.size):
        total += np.bincount(code[part] if chosen is None else code[part][chosen[part]], minlength=codes)
    return total


def mixed(column: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed pseudo-random number for each: the finaliser of splitmix64 (Steele, Lea and Flood).

    Every bit of the input moves every bit of the output, so that sums of mixed numbers collide no more than random
    ones do.
    """
    value = column + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def is_sorted(column: NDArray[Any]) -> bool:
    """Whether no element is smaller than the one before it."""
    for part in slices(column.size):
        here = column[max(0, part.start - 1) : part.stop]
        if np.any(here[1:] < here[:-1]):
            return False
    return True
