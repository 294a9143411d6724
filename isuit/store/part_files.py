"""One part of a table as a file: written once, never changed, replaced as a whole.

A part is a Parquet file with a random name in the store's `parts/`. Parquet fits what is asked of it: it has no free
blocks, so a file that was written without a person holds nothing of them; its footer tells the smallest and the largest
rider, so that most files need not be opened to look for somebody; and DuckDB reads a list of them as a table.

Which files there are is what `ledger.parts` says (`isuit.store.parts`), and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from isuit.errors import StoreError
from isuit.store.connection import DAMAGED
from isuit.store.paths import DIRECTORY_MODE, FILE_MODE, sync

if TYPE_CHECKING:
    import pyarrow.parquet as pq

NAME_BYTES = 16
ROW_GROUP = 1 << 16
SUFFIX = ".parquet"
OVERWRITE_BYTES = 1 << 20
# Columns whose values repeat. Numbers and salts do not: looking for repetitions in them costs twice the time.
SUBJECTS = ("cohort_hash", "fit_id", "subject")
REPEATED = (*SUBJECTS, "site")


@dataclass(frozen=True)
class Part:
    """A row of `ledger.parts`."""

    part: str  # the file's name without its ending: random, so that nothing can be guessed from it
    holds: str  # the table whose rows these are
    subject: str  # their cohort or fit
    position: int  # among the parts of the subject's rows in that table
    row_count: int
    bytes: int
    digest: str  # SHA-256 of the file

    def path(self, folder: Path) -> Path:
        return folder / (self.part + SUFFIX)


class PartFile:
    """A part that is being written: rows are added in order, `close` makes it last."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        folder.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        self.name = secrets.token_hex(NAME_BYTES)
        self.path = folder / (self.name + SUFFIX)
        self.rows = 0
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        self._file = os.fdopen(descriptor, "wb")
        repeated = _repeated(schema.names)
        compression = "zstd"
        if os.environ.get("ISUIT_FORCE_COMPRESSION") == "uncompressed":  # see `isuit.store.connection`
            compression, repeated = "none", []
        self._writer = pq.ParquetWriter(
            self._file, schema, compression=compression, use_dictionary=repeated, store_schema=False
        )

    def add(self, data: pa.Table) -> None:
        self._writer.write_table(data, row_group_size=ROW_GROUP)
        self.rows += data.num_rows

    def close(self) -> tuple[int, str]:
        """Make the file last; its bytes and their digest, as they are read back."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync(self.path.parent)
        return self.path.stat().st_size, file_digest(self.path)

    def discard(self) -> None:
        """Nothing lists the file: it goes."""
        with suppress(Exception):  # what went wrong before this is what the caller hears of
            self._writer.close()
        self._file.close()
        self.path.unlink(missing_ok=True)


class DamagedPart(StoreError):
    """A part that is no Parquet file any more."""


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError):  # whose text may quote values
        raise DamagedPart(DAMAGED) from None


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def batches_of(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a part, in their order."""
    import pyarrow.parquet as pq

    with _readable(), pq.ParquetFile(path) as file:
        yield from file.iter_batches(ROW_GROUP, columns=columns)


def batches_to_copy(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The same for copying without somebody, and their schema: what is one name in all rows stays a dictionary.

    No other column may: rows that are left out would stay in its dictionary, and a writer writes that as a whole.
    """
    import pyarrow.parquet as pq

    with _readable():
        metadata = pq.read_metadata(path)
        subject = [name for name in metadata.schema.names if name in SUBJECTS]
        file = pq.ParquetFile(path, metadata=metadata, read_dictionary=subject)

    def batches() -> Iterator[pa.RecordBatch]:
        with _readable(), file:
            yield from file.iter_batches(ROW_GROUP)

    return file.schema_arrow, batches()


def _repeated(names: list[str]) -> list[str]:
    """Columns whose texts repeat; riders do among outcomes alone."""
    return [name for name in names if name in REPEATED or (name == "rider" and "outcome" in names)]


MAGIC = 4  # bytes: "PAR1" at both ends, and the footer's length before the last


def gaps(path: Path) -> int:
    """Bytes of the file that are neither a column of its rows nor its footer."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    columns = (
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    return int(path.stat().st_size - sum(columns) - metadata.serialized_size - 3 * MAGIC)


def may_hold(path: Path, names: list[str]) -> bool:
    """Whether one of the sorted names lies between the smallest and the largest rider of a group of rows."""
    import pyarrow.parquet as pq

    with _readable():
        metadata = pq.read_metadata(path)
    column = metadata.schema.names.index("rider")
    groups = (metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups))
    return any(_between(statistics, names) for statistics in groups)


def _between(statistics: pq.Statistics | None, names: list[str]) -> bool:
    if statistics is None or not statistics.has_min_max:  # very long names have none
        return True
    smallest, largest = (_bytes(value) for value in (statistics.min_raw, statistics.max_raw))
    return any(smallest <= name.encode() <= largest for name in names)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def overwrite(path: Path, tell: Callable[[], None] = lambda: None) -> None:
    """Zeros over every byte of a file, on the disk when this returns; `tell` is called after each block."""
    nothing = bytes(OVERWRITE_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        left = os.fstat(descriptor).st_size
        while left > 0:
            left -= os.write(descriptor, nothing[:left])
            tell()
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
