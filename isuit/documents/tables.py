"""Small tables from elsewhere, CSV and Parquet, that are read whole."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from isuit.documents.files import LARGEST_FILE, UnsafeDocument, require_regular

MOST_ROWS = 1_000_000
MOST_BYTES = 256 << 20  # of a table in memory
_BATCH_ROWS = 4096
_THRIFT = 16 << 20  # bytes of a footer's strings and entries of its lists


def csv_rows(text: str, what: str, separator: str = ",") -> list[list[str]]:
    """The fields of every line that holds any."""
    rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) > MOST_ROWS:
                raise UnsafeDocument(f"{what} has more than the {MOST_ROWS} rows that are read of such a file")
    except csv.Error:
        raise UnsafeDocument(f"{what} is no CSV, or has a field of more than 100 kB; correct it") from None
    return rows


def read_parquet(path: Path, what: str, most_rows: int = MOST_ROWS) -> tuple[pa.Table, dict[bytes, bytes]]:
    """A Parquet file's table and the metadata of its footer, where both are small; what its footer claims is looked at
    before anything is read, and what is read is counted while it is.

    A page of a few bytes can stand for a gigabyte, so texts stay a dictionary until their total length is known.
    """
    require_regular(path, what, LARGEST_FILE)
    try:
        with pq.ParquetFile(
            path, thrift_string_size_limit=_THRIFT, thrift_container_size_limit=MOST_ROWS, pre_buffer=False
        ) as file:
            metadata, schema = file.metadata, file.schema_arrow
        claimed = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        if metadata.num_rows > most_rows or claimed > MOST_BYTES:
            raise _too_large(what)
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        batches, rows, size = [], 0, 0
        with pq.ParquetFile(path, read_dictionary=texts, buffer_size=1 << 20, pre_buffer=False) as file:
            for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows > most_rows or size > MOST_BYTES:
                    raise _too_large(what)
                batches.append(_plain(batch, what))
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    except (MemoryError, pa.ArrowException) as error:
        raise ValueError(type(error).__name__) from None
    if sum(batch.nbytes for batch in batches) > MOST_BYTES:
        raise _too_large(what)
    return table, dict(metadata.metadata or {})


def _plain(batch: pa.RecordBatch, what: str) -> pa.RecordBatch:
    """Dictionaries as the values they stand for."""
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # a damaged page may hold an index that the dictionary does not reach
            lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
            if (pc.sum(lengths).as_py() or 0) > MOST_BYTES:
                raise _too_large(what)
            column = column.dictionary_decode()  # noqa: PLW2901 - the same column, written out
        columns.append(column)
    return pa.record_batch(columns, names=batch.schema.names)


def _too_large(what: str) -> UnsafeDocument:
    return UnsafeDocument(f"{what} holds far more than a file of its kind: it is not read; check where it comes from")
