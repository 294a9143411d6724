"""How much memory a fit may take, and what that leaves to those who can work on disk instead.

What grows with outcomes goes to disk: sorting beyond so many rows, the database beyond its limit, long columns. What
grows with riders does not: their names, their posteriors, their skills. So a limit that a cohort exceeds is refused
before the fit begins, with the figure that is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from isuit.errors import InputError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE = re.compile(r"\s*([0-9]{1,12}(?:[.][0-9]{1,6})?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE | re.ASCII)
LEAST = 500 * 10**6  # the interpreter, its libraries and a small cohort
LIBRARIES = 315 * 10**6  # before the first rider: compiled loops, and the buffers of a file's reader
# Measured with `--memory` at 0.3 to 10 million outcomes, of 5 and of 100 for each rider, with refits and diagnostics:
# all peaks are within a tenth of the sum, in one environment, and 17 % above it in another.
RECORDING = 125 * 10**6  # what any cohort of some size takes while it is written down
RIDER = 340  # bytes of a rider: name, counts, posterior, bins, leaf
ROW = 60  # bytes of an outcome: columns, and counts of the cohort and of a refit
MAPPED = 1 << 24  # outcomes beyond which columns and counts are in files that the system may drop from memory
SORTING = 80  # bytes of memory for each outcome that is sorted there, before the loops are loaded


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
        return cls(
            total, min(cls.database, free // 2), min(cls.sorting, free // 2), min(cls.sorted_rows, free // SORTING)
        )

    def require(self, outcomes: int, riders: int, *, known: bool = True) -> None:
        """Refuse a cohort that needs more than the limit; what is on disk does not count.

        While a cohort is read it is not `known`: there are at least so many.
        """
        if self.total is None or needed(outcomes, riders) <= self.total:
            return
        least, figure = "" if known else "at least ", ceil(needed(outcomes, riders) / 10**7) / 100
        raise InputError(
            f"a fit of {least}{riders} riders and {outcomes} outcomes takes {least or 'about '}{figure:.2f} GB, more "
            f"than the {self.total / 10**9:.2f} GB of --memory: give as much"
        )


def needed(outcomes: int, riders: int) -> int:
    """Bytes that a fit takes, to within a fifth."""
    return LIBRARIES + RECORDING + RIDER * riders + ROW * min(outcomes, MAPPED)
