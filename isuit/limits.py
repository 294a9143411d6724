"""How much memory a fit may take, and what that leaves to those who can work on disk instead.

What grows with outcomes goes to disk: sorting beyond so many rows, the database beyond its limit, long columns. What
grows with riders does not: their names, their counts, their skills. So a limit that the riders alone exceed is refused
before the fit begins, with the figure that is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from isuit.errors import InputError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE = re.compile(r"\s*([0-9]{1,12}(?:[.][0-9]{1,6})?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE | re.ASCII)
LEAST = 500 * 10**6  # the interpreter, its libraries and a small cohort
LIBRARIES = 350 * 10**6  # measured: before the first rider, with compiled loops and the buffers of a file's reader
RIDER = 950  # bytes of a rider at the most: name, counts of the cohort and of a refit, posterior, leaf
SORTED_ROW = 80  # bytes of an outcome while it is sorted in memory
HELD_ROW = 25  # bytes of an outcome that waits in memory to be recorded


@dataclass(frozen=True)
class Memory:
    """A limit in bytes; the defaults are what a fit does that is told none."""

    total: int | None = None
    database: int = 5 * 10**8  # of the store's DuckDB, which spills into the store's tmp/
    sorting: int = 1500 * 10**6  # of the DuckDB that sorts what is too long for memory
    sorted_rows: int = 1 << 24  # outcomes that are sorted in memory

    @classmethod
    def of(cls, size: str | int | None) -> Memory:
        """From bytes, or a text such as `4GB`, `1.5 GiB` or `800M`."""
        if size is None:
            return cls()
        found = SIZE.fullmatch(str(size))
        if not found:
            raise InputError("a memory limit is a number with a unit, such as 4GB or 800MB")
        total = int(float(found[1]) * UNITS[(found[2] or "").lower()])
        if total < LEAST:
            raise InputError(f"a memory limit below {LEAST // 10**6} MB is too small for any fit: give more")
        # Sorting, fitting and recording follow one another: each may take what the libraries leave.
        free = total - LIBRARIES
        return cls(total, min(cls.database, free // 2), min(cls.sorting, free // 2), min(1 << 24, free // SORTED_ROW))

    def require(self, outcomes: int, riders: int) -> None:
        """Refuse a cohort whose riders need more than the limit; what is on disk does not count."""
        held = HELD_ROW * outcomes if outcomes <= self.sorted_rows else 0
        needed = LIBRARIES + RIDER * riders + held
        if self.total is not None and needed > self.total:
            raise InputError(
                f"a fit of {riders} riders and {outcomes} outcomes takes about {needed / 10**9:.1f} GB, more than the "
                f"{self.total / 10**9:.1f} GB of --memory: give as much"
            )
