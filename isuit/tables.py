"""Tables as files: which ending is which format, for every command that reads or writes one.

rider.parquet, .pq      Parquet
.arrow, .ipc, .feather  Arrow; .feather is compressed
.csv, .tsv              text with a header; with .gz, .zst or .bz2 after it, compressed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from isuit.documents import UnsafeDocument, require_regular
from isuit.errors import InputError
from isuit.files import whole

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "arrow", "feather", "csv", "tsv"]
ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".csv.gz": "csv",
    ".tsv.gz": "tsv",
    ".csv.zst": "csv",
    ".tsv.zst": "tsv",
    ".csv.bz2": "csv",
    ".tsv.bz2": "tsv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "feather",
}
SEPARATORS: dict[Format, str] = {"csv": ",", "tsv": "\t"}
LARGEST, MOST_ROWS = 256 << 20, 10_000_000  # bytes and rows of a table that is read whole


def format_of(path: Path) -> Format | None:
    """The format that the ending names; None where it names none."""
    name = path.name.lower()
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def format_in(path: Path, start: bytes) -> Format | None:
    """The format of a file that begins with these bytes: Parquet and Arrow say it themselves, text by its ending."""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    named = format_of(path)
    return named if named in SEPARATORS else None


def read_table(path: Path, text_columns: Iterable[str] = ()) -> pa.Table:
    """A small table, whole. What names no format is read as CSV.

    In a CSV, numbers are recognised except in `text_columns`, and an empty field is null.
    """
    import pyarrow as pa
    import pyarrow.csv as pcsv

    from isuit.documents.tables import read_parquet

    require_regular(path, path.name, LARGEST)
    try:
        kind = format_in(path, _start(path))
        if kind == "parquet":
            return _validated(read_parquet(path, path.name, MOST_ROWS)[0])
        if kind == "arrow":
            with pa.memory_map(str(path)) as data:
                return _validated(_arrow_reader(data).read_all())
        convert = pcsv.ConvertOptions(
            strings_can_be_null=True, null_values=[""], column_types=dict.fromkeys(text_columns, pa.string())
        )
        parse = pcsv.ParseOptions(delimiter=SEPARATORS[kind or "csv"])
        with pa.input_stream(str(path), compression=_compression(path)) as stream:
            text = stream.read(LARGEST + 1)  # of a compressed file, far more than its size
        if len(text) > LARGEST:
            raise UnsafeDocument(f"{path.name} holds more than {LARGEST >> 20} MiB of text; divide it")
        return _validated(pcsv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert))
    except (pa.ArrowException, OSError, EOFError, ValueError):
        # Arrow's own sentence may quote the file's content.
        raise InputError(f"{path.name} cannot be read as CSV, Parquet or Arrow; check its path and form") from None


def _validated(table: pa.Table) -> pa.Table:
    """ArrowException or ValueError for what a damaged file holds: offsets that point outside of it, names that are no
    text."""
    table.validate(full=True)
    table.schema.names  # noqa: B018 - Arrow decodes them only here
    return table


def _compression(path: Path) -> str | None:
    return {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}.get(path.suffix.lower())


def _start(path: Path) -> bytes:
    """A file's first bytes."""
    with path.open("rb") as file:
        return file.read(8)


def _arrow_reader(data: pa.NativeFile) -> Any:
    import pyarrow as pa

    start = data.read(6)
    data.seek(0)
    return pa.ipc.open_file(data) if start == b"ARROW1" else pa.ipc.open_stream(data)


def write_table(table: pa.Table, path: Path, mode: int | None = None) -> None:
    """The table in the format of the path's ending, whole or not at all."""
    write_batches(table.schema, table.to_batches(), path, mode)


def write_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path, mode: int | None = None) -> None:
    """The same for a table that need not be in memory."""
    require_format(path)
    with whole(path, mode) as part:
        write_into(part, schema, batches, path)


def write_into(part: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write the batches to `part`, in the format of `path`."""
    require_format(path)
    with _writer(part, schema, path) as write:
        for batch in batches:
            write(batch)


def require_format(path: Path) -> None:
    """Refuse a file to be written whose ending names no format, before anything is computed."""
    if format_of(path) is None:
        raise InputError(f"the ending of {path.name} names no format; use {', '.join(ENDINGS)}")


@contextmanager
def _writer(part: Path, schema: pa.Schema, path: Path) -> Iterator[Any]:
    """A function that writes a batch."""
    import pyarrow as pa
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    kind = format_of(path)
    with pa.output_stream(str(part), compression=_compression(path)) as sink:
        if kind == "parquet":
            writer = pq.ParquetWriter(sink, schema)
        elif kind in SEPARATORS:
            writer = pcsv.CSVWriter(sink, schema, write_options=pcsv.WriteOptions(delimiter=SEPARATORS[kind]))
        else:
            options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "feather" else None)
            writer = pa.ipc.new_file(sink, schema, options=options)
        with writer as file:
            yield file.write_batch
