"""Files and Arrow objects as streams of record batches. Nothing is read whole, and only the columns asked for."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.documents import UnsafeDocument, require_regular
from isuit.errors import InputError
from isuit.ingest.dialects import Dialect, encoding_of, find, names_separator
from isuit.ingest.refusals import Refusals
from isuit.tables import SEPARATORS, format_in

PARQUET_ROWS = 1 << 20  # per batch; large, because each batch looks its distinct riders up once
PARQUET_BUFFER = 1 << 20  # bytes
CSV_BLOCK = 1 << 23  # bytes
LONGEST_HEADER = 1 << 20  # bytes
MOST_WRONG_ROWS = 100_000  # that are counted before a CSV is given up
UNREADABLE = (pa.ArrowException, OSError, EOFError)
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
SEPARATED = (".csv", ".tsv")
PACKED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}  # how they begin
WRONG_FIELDS = "a row with too many or too few fields"


class Unreadable(Exception):
    """A source broke off. It holds no cause: Arrow's own sentences may quote the content."""


@dataclass(frozen=True)
class Source:
    """One file or object: its columns, and batches of some of them."""

    label: str  # how an error calls it
    names: list[str]
    types: Callable[[str], pa.DataType]
    stream: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    is_csv: bool = False
    rows: int | None = None  # where the source says so without being read
    wrong_rows: list[int] = field(default_factory=list)  # of a CSV, filled while it is read: rows without all fields
    sample: str = ""  # of a CSV, how it begins
    dialect: Dialect | None = None  # of a CSV: its separator and encoding
    standard: Dialect | None = None  # of a CSV: what its name promises

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of these columns, with `Unreadable` for what a damaged file or a failing producer raises."""
        stream = self.stream(columns)
        while True:
            try:
                batch = next(stream, None)
            except (*UNREADABLE, UnicodeError):  # the latter: bytes that the file's encoding does not have
                raise Unreadable from None
            if batch is None:
                return
            yield batch


def open_file(
    path: Path, refusals: Refusals, wanted: Sequence[str] = (), csv_options: Mapping[str, str] | None = None
) -> Source | None:
    """A file as a source; None, and a refusal, where it cannot be read.

    `wanted` are the columns that a CSV must have, by which its separator is told; `csv_options` is what is declared.
    """
    label = path.name
    defect = f"{label} is no Parquet, CSV or Arrow file (or damaged)"
    try:
        require_regular(path, label)
        with path.open("rb") as file:
            start = file.read(8)
        kind = format_in(path, start)
        if kind == "parquet":
            return _parquet(path)
        if kind == "arrow":
            return _arrow(path, start)
        packed = next((ending for ending, magic in PACKED.items() if start.startswith(magic)), None)
        if packed and path.suffix.lower() in SEPARATED:
            raise UnsafeDocument(f"{label} is compressed and not called so: name it {path.name}{packed}")
        if start and kind is not None:
            return _csv(path, SEPARATORS[kind], wanted, csv_options or {})
        if path.suffix.lower() in SPREADSHEETS:
            defect = f"{label} is a spreadsheet, which is not read: save its sheet as CSV, in UTF-8 if you are asked"
        elif not start:
            defect = f"{label} is empty"
        elif path.suffix.lower() in (".txt", ".dat", ""):
            defect = f"{label} does not say what it is: call it .csv if it is text in columns"
    except UnsafeDocument as error:
        defect = str(error)
    except (*UNREADABLE, UnicodeDecodeError):  # the latter: the name of a column is no text
        # Arrow's own sentence may quote the file's content.
        defect = f"{label} cannot be read (truncated, damaged or not allowed)"
    refusals.add(None, defect)
    return None


def _parquet(path: Path) -> Source:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        text = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        # A buffer instead of whole column chunks: row groups may be large.
        with pq.ParquetFile(path, read_dictionary=text, buffer_size=PARQUET_BUFFER, pre_buffer=False) as file:
            for group in range(file.num_row_groups):  # a batch across two groups would be cut there
                for batch in file.iter_batches(
                    PARQUET_ROWS, row_groups=[group], columns=list(columns), use_threads=False
                ):
                    _require_indices(batch)
                    yield batch

    return Source(path.name, schema.names, lambda name: schema.field(name).type, batches, rows=metadata.num_rows)


def _require_indices(batch: pa.RecordBatch) -> None:
    """A damaged page may hold an index that its dictionary does not reach."""
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            found = pc.min_max(column.indices).as_py()
            if found["max"] is not None and not 0 <= found["min"] <= found["max"] < len(column.dictionary):
                raise pa.ArrowInvalid("an index is outside of its dictionary")


def _arrow(path: Path, start: bytes) -> Source:
    is_file = start.startswith(b"ARROW1")

    def reader(data: pa.NativeFile) -> Any:
        return pa.ipc.open_file(data) if is_file else pa.ipc.open_stream(data)

    with pa.memory_map(str(path)) as data:
        schema = reader(data).schema

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as data:
            opened = reader(data)
            stream = (opened.get_batch(i) for i in range(opened.num_record_batches)) if is_file else iter(opened)
            for batch in stream:
                chosen = batch.select(list(columns))
                # Offsets of a damaged file may point outside of it, and Arrow would follow them.
                chosen.validate(full=True)
                yield chosen

    return Source(path.name, schema.names, lambda name: schema.field(name).type, batches)


def _csv(path: Path, separator: str, wanted: Sequence[str], options: Mapping[str, str]) -> Source:
    import pyarrow.csv as pcsv

    start = _beginning(path)
    encoding = options.get("encoding") or encoding_of(start, _parts(path))
    text = _decoded(start, encoding)
    standard, named = Dialect(separator), names_separator(text)
    if named is not None:  # the line is none of the table
        text = text.partition("\n")[2]
        options = {"separator": named, **options}
    dialect = replace(find(text, standard, options, wanted), encoding=encoding)
    names = _header(path, text, dialect.separator)
    wrong_rows: list[int] = []

    def skip(row: Any) -> str:
        wrong_rows.append(row.number - 1)  # the header is row 1 there
        # A file of lines that are none must not fill memory with their numbers.
        return "skip" if len(wrong_rows) < MOST_WRONG_ROWS else "error"

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Everything is text: inference would read 007 as 7 and NA as nothing.
        convert = pcsv.ConvertOptions(
            column_types={name: pa.string() for name in columns},
            include_columns=list(columns),
            null_values=[""],
            strings_can_be_null=True,
            check_utf8=False,
        )
        parse = pcsv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=skip)
        read = pcsv.ReadOptions(
            use_threads=False, block_size=CSV_BLOCK, encoding=_codec(encoding), skip_rows=0 if named is None else 1
        )
        with (
            _silent(skip),
            pcsv.open_csv(str(path), read_options=read, parse_options=parse, convert_options=convert) as reader,
        ):
            yield from reader

    return Source(
        path.name,
        names,
        lambda _: pa.string(),
        batches,
        is_csv=True,
        wrong_rows=wrong_rows,
        sample=text,
        dialect=dialect,
        standard=standard,
    )


@contextmanager
def _silent(handler: Callable[[Any], str]) -> Iterator[None]:
    """Arrow hands a wrong row over as text. Where it is none, the row is an error, which is right; Python would print a
    traceback besides, because the exception has nowhere to go."""
    before = sys.unraisablehook

    def hook(error: Any) -> None:
        if error.object is not handler:
            before(error)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _beginning(path: Path) -> bytes:
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read(LONGEST_HEADER))


def _parts(path: Path) -> Iterator[bytes]:
    """All of a file, decompressed, in parts that overlap by the length of a character."""
    with pa.input_stream(str(path), compression="detect") as stream:
        end = b""
        while part := bytes(stream.read(LONGEST_HEADER)):
            yield end + part
            end = part[-3:]


def _decoded(start: bytes, encoding: str) -> str:
    if encoding == "utf-8":
        return start.decode("utf-8-sig", errors="surrogateescape")
    return start.decode(encoding, errors="ignore")


def _codec(encoding: str) -> str:
    return "utf8" if encoding.lower().replace("-", "") == "utf8" else encoding


def _header(path: Path, text: str, separator: str) -> list[str]:
    """The names in the first line; a compressed file of a few bytes can have one of gigabytes."""
    if len(text) >= LONGEST_HEADER // 4 and not {"\n", "\r"} & set(text):
        raise UnsafeDocument(f"{path.name} has a first line of more than {LONGEST_HEADER >> 20} MiB: it is no CSV")
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error:
        raise UnsafeDocument(f"{path.name} has no names of columns in its first line: it is no CSV") from None


def is_table(source: Any) -> bool:
    """Whether an object is a table in memory: one with the Arrow interface, arrays by name, or NumPy's records."""
    arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    return arrow or isinstance(source, (Mapping, np.ndarray)) or _is_records(source)


def _is_records(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(item, Mapping) for item in source)


def open_object(table: Any, label: str = "the table") -> Source:
    """Anything that speaks the Arrow PyCapsule interface; a mapping of arrays; a NumPy array with named fields; a list
    of records."""
    try:
        if _is_records(table):
            table = pa.Table.from_pylist(list(table))
        if isinstance(table, np.ndarray):
            if table.dtype.names is None:
                raise InputError("an array needs named fields: give {'rider': ..., 'metric': ..., 'outcome': ...}")
            table = {name: table[name] for name in table.dtype.names}
        if isinstance(table, Mapping):
            table = pa.table({name: np.asarray(column) for name, column in table.items()})
        if hasattr(table, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(table)
        else:
            batch = pa.record_batch(table)
            reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        raise InputError(
            "this object is no table of Arrow columns: name each column once, and convert them to text and numbers"
        ) from None

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.select(list(columns))

    schema = reader.schema
    return Source(label, schema.names, lambda name: schema.field(name).type, batches)
