"""Outcomes in canonical order, by codes instead of text: in memory with numpy, or with DuckDB when there are many.

Lines sort as bytes. TAB is below every byte that text may hold, so the order of lines is the order of (rider, site,
time, bits of each metric, outcome) with nulls first, and codes that follow the order of the texts may stand for them.
What goes to disk therefore holds no rider's ID: codes, times, metrics and outcomes.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isuit.canonical import as_numpy
from isuit.columns import Nameless
from isuit.errors import InputError
from isuit.ingest.values import NULL

LEFT_OUT = -1  # rank of a rider whose rows do not enter
IN_MEMORY_ROWS = 1 << 24  # about 1.5 GB while sorting
HELD_BYTES = 1 << 25  # of sorted outcomes, which wait to be recorded while a fit needs the memory
RANGE_ROWS = 1 << 16
MOST_RANGES = 256  # a range's number is one byte, which sorts fastest
NO_PROGRESS_BAR = "SET enable_progress_bar = false"  # DuckDB draws it on stdout, also where that is no terminal
SPILL_BYTES = 1500 * 10**6  # DuckDB's; beyond it, it writes to the temporary directory
READING_BYTES = 64 * 10**6  # its share once it is sorted, which is read in order while a fit needs the memory


@dataclass(frozen=True)
class Outcomes:
    """Columns of coded outcomes. No site is `NULL`, and 0 once codes are ranks; times as in `domain`."""

    rider: NDArray[np.int32]
    site: NDArray[np.int32]
    observed_at: NDArray[np.int64]
    metrics: tuple[NDArray[np.uint64], ...]  # the bits of each, in the order of their names
    outcome: NDArray[np.int8]

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> Outcomes:
        rider, site, observed_at, *metrics, outcome = columns
        return cls(rider, site, observed_at, tuple(metrics), outcome)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """In the order in which they sort."""
        return (self.rider, self.site, self.observed_at, *self.metrics, self.outcome)

    def at(self, index: Any) -> Outcomes:
        return Outcomes.of([column[index] for column in self.columns])

    @property
    def rows(self) -> int:
        return len(self.rider)


class Ranks(NamedTuple):
    """The place of each code in the order of texts; riders that are left out have `LEFT_OUT`, no site has 0."""

    rider: NDArray[np.int32]
    site: NDArray[np.int32]  # the last one is for the code NULL, which is -1 and so indexes it


class Sorter:
    """Takes outcomes in any order, gives them back in canonical order, as often as asked."""

    def __init__(
        self, temporary: Path | None = None, in_memory_rows: int = IN_MEMORY_ROWS, spill_bytes: int = SPILL_BYTES
    ) -> None:
        self.temporary = temporary
        self._limit, self._spill_bytes = in_memory_rows, spill_bytes
        self._held: list[Outcomes] = []
        self._rows = 0
        self._sorted = _Pieces(temporary)
        self._spill: _Spill | None = None

    def append(self, outcomes: Outcomes) -> None:
        self._held.append(outcomes)
        self._rows += outcomes.rows
        if self._rows > self._limit:
            self._spill = self._spill or _Spill(self.temporary, len(outcomes.metrics), self._spill_bytes)
            self._write()

    def _write(self) -> None:
        if self._spill and self._held:
            self._spill.insert(joined(self._held))
            self._held.clear()
            self._rows = 0

    def sort(self, ranks: Ranks) -> None:
        if self._spill:
            self._write()
            self._spill.sort(ranks)
            return
        pieces: list[list[Outcomes]] = [[] for _ in range(min(1 + self._rows // RANGE_ROWS, MOST_RANGES))]
        self._held.reverse()
        while self._held:  # one by one, so that what was split is freed
            for number, piece in enumerate(split(ranked(self._held.pop(), ranks), len(ranks.rider), len(pieces))):
                pieces[number].append(piece)
        for parts in pieces:
            outcomes = joined(parts)
            parts.clear()
            self._sorted.append(outcomes.at(canonical_order(outcomes)))
        self._sorted.keep()

    def count(self) -> int:
        """How many outcomes were kept; known once they are sorted."""
        return self._spill.count() if self._spill else self._sorted.rows

    def slices(self, rows: int) -> Iterator[Outcomes]:
        if self._spill:
            yield from self._spill.slices(rows)
        for piece in self._sorted:
            for start in range(0, piece.rows, rows):
                yield piece.at(slice(start, start + rows))

    def close(self) -> None:
        self._held.clear()
        self._sorted.close()
        if self._spill:
            self._spill.close()


class _Pieces:
    """Sorted pieces, one after the other: few in memory, more in a file without a name."""

    def __init__(self, temporary: Path | None) -> None:
        self._temporary = temporary
        self._held: list[Outcomes] = []
        self._file: Nameless | None = None
        self._written: list[tuple[int, int]] = []  # of each piece in the file: its first byte and its rows
        self._types: list[np.dtype[Any]] = []
        self.rows = 0

    def append(self, piece: Outcomes) -> None:
        self._held.append(piece)
        self.rows += piece.rows
        if sum(column.nbytes for held in self._held for column in held.columns) > HELD_BYTES:
            self._write()

    def _write(self) -> None:
        self._file = self._file or Nameless(self._temporary)
        for piece in self._held:
            self._written.append((self._file.size, piece.rows))
            self._types = [column.dtype for column in piece.columns]
            for column in piece.columns:
                self._file.append(np.ascontiguousarray(column))
        self._held.clear()

    def keep(self) -> None:
        """All pieces are there: what is left of them follows the others into their file."""
        if self._file:
            self._write()

    def __iter__(self) -> Iterator[Outcomes]:
        for start, rows in self._written:
            assert self._file is not None
            widths = [rows * dtype.itemsize for dtype in self._types]
            starts = itertools.accumulate(widths, initial=start)
            yield Outcomes.of([self._file.read(*at, rows) for at in zip(starts, self._types, strict=False)])
        yield from self._held

    def close(self) -> None:
        self._held.clear()
        self._written.clear()
        if self._file:
            self._file.close()


def joined(parts: list[Outcomes]) -> Outcomes:
    return Outcomes.of([np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True)])


def ranked(outcomes: Outcomes, ranks: Ranks) -> Outcomes:
    """With ranks instead of codes, and without the riders that are left out."""
    outcomes = replace(outcomes, rider=ranks.rider[outcomes.rider], site=ranks.site[outcomes.site])
    kept = outcomes.rider != LEFT_OUT
    return outcomes if kept.all() else outcomes.at(kept)


def split(outcomes: Outcomes, riders: int, ranges: int) -> Iterator[Outcomes]:
    """By ranges of riders, in order. A range fits a processor's cache, where sorting is several times as fast."""
    if ranges == 1:
        yield outcomes
        return
    number = (outcomes.rider.astype(np.int64) * ranges // riders).astype(np.uint8)
    outcomes = outcomes.at(np.argsort(number, kind="stable"))
    ends = np.cumsum(np.bincount(number, minlength=ranges)).tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        yield outcomes.at(slice(start, end))


def canonical_order(outcomes: Outcomes) -> NDArray[np.intp]:
    """The permutation that sorts. The leading fields go into one 64-bit key; ties in it are settled by what is left."""
    if not outcomes.rows:
        return np.empty(0, np.intp)
    key, used = np.zeros(outcomes.rows, np.uint64), 0
    for column in outcomes.columns:
        field = _ordinal(column)
        width = int(field.max()).bit_length()
        taken = min(width, 64 - used)
        if taken:
            key <<= np.uint64(taken % 64)  # only an empty key is shifted by all of its 64 bits
            key |= field >> np.uint64(width - taken)
        used += taken
        if taken < width:
            break
    order = np.argsort(key)
    key = key[order]
    same = key[1:] == key[:-1]
    if same.any():
        tied = np.concatenate(([False], same)) | np.concatenate((same, [False]))
        rows = order[tied]
        metrics = [bits[rows] for bits in reversed(outcomes.metrics)]
        rest: list[NDArray[Any]] = [outcomes.outcome[rows], *metrics, outcomes.observed_at[rows], key[tied]]
        order[tied] = rows[np.lexsort(rest)]
    return order


def _ordinal(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Unsigned numbers in the order of the column, as small as can be: NO_TIME becomes 0, the first time 1."""
    if column.dtype == np.uint64:
        return column
    if column.dtype != np.int64:
        return column.astype(np.uint64)
    missing = column == np.iinfo(np.int64).min
    if missing.all():
        return np.zeros(len(column), np.uint64)
    first = column[~missing].min()
    return np.where(missing, 0, column - np.where(missing, column, first - 1)).astype(np.uint64)


class _Spill:
    """A DuckDB database in a private directory of its own.

    Not one in memory that spills: measured with a limit of 64 MB, that one can no longer sort 16 million rows, which
    this one can. What can be sorted grows with the square of the limit.
    """

    def __init__(self, temporary: Path | None, metrics: int, memory: int) -> None:
        import duckdb

        self._metrics = [f"metric{number}" for number in range(metrics)]
        self._memory = memory
        self._failed: type[Exception] = duckdb.Error
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="isuit-", dir=temporary))  # mode 0700
        except OSError as error:
            raise InputError(
                f"no temporary directory for a cohort larger than memory: {error.strerror}; set TMPDIR to one"
            ) from None
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._database = duckdb.connect(
            self.folder / "outcomes.duckdb",
            config={
                "temp_directory": str(self.folder),
                "memory_limit": f"{memory}B",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._run(NO_PROGRESS_BAR)
        self._run("SET force_compression = 'uncompressed'")  # written once and read twice: a quarter of the time saved
        bits = ", ".join(f"{name} UBIGINT" for name in self._metrics)
        self._run(f"CREATE TABLE unsorted (rider INTEGER, site INTEGER, observed_at BIGINT, {bits}, outcome TINYINT)")

    def _run(self, sql: str, **tables: pa.Table) -> None:
        try:
            for name, table in tables.items():
                self._database.register(name, table)
            self._database.execute(sql)
            for name in tables:
                self._database.unregister(name)
        except self._failed:
            self.close()
            raise self._refused() from None

    def _refused(self) -> InputError:
        return InputError(
            f"the cohort is larger than memory and sorting it in {self.folder.parent} failed: free some disk space"
        )

    def insert(self, outcomes: Outcomes) -> None:
        names = ("rider", "site", "observed_at", *self._metrics, "outcome")
        self._run("INSERT INTO unsorted FROM rows", rows=pa.table(dict(zip(names, outcomes.columns, strict=True))))

    def sort(self, ranks: Ranks) -> None:
        riders = pa.table({"code": np.arange(len(ranks.rider), dtype=np.int32), "rank": ranks.rider})
        codes = np.append(np.arange(len(ranks.site) - 1, dtype=np.int32), np.int32(NULL))
        self._run(
            f"""
            CREATE TABLE sorted AS
            SELECT r.rank AS rider, s.rank AS site, observed_at, {", ".join(self._metrics)}, outcome
            FROM unsorted JOIN riders r ON r.code = rider JOIN sites s ON s.code = site
            WHERE r.rank <> {LEFT_OUT}
            ORDER BY ALL
            """,
            riders=riders,
            sites=pa.table({"code": codes, "rank": ranks.site}),
        )
        self._run("DROP TABLE unsorted")
        self._run(f"SET memory_limit = '{min(self._memory, READING_BYTES)}B'")  # gives back what sorting took

    def slices(self, rows: int) -> Iterator[Outcomes]:
        # A cursor of its own, so that two readers do not disturb each other. Scans keep the order of insertion.
        with self._database.cursor() as cursor:
            cursor.execute(NO_PROGRESS_BAR)
            reader = cursor.sql("FROM sorted").to_arrow_reader(rows)
            while True:
                try:
                    batch = next(reader, None)
                except (self._failed, OSError):  # Arrow's name for whatever its producer met
                    raise self._refused() from None
                if batch is None:
                    return
                yield Outcomes.of([as_numpy(column) for column in batch.columns])

    def count(self) -> int:
        (count,) = self._database.sql("SELECT count(*) FROM sorted").fetchall()[0]
        return int(count)

    def close(self) -> None:
        self._database.close()
        self._remove()
