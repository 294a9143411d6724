"""A cohort in its canonical form, as a file from elsewhere: read in blocks, and refused where it is none.

The form is that of docs/canonical-form.md. Nothing here trusts it: whoever reads on computes the hash of what was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from isuit import canonical
from isuit.documents import require_regular
from isuit.errors import InputError

BLOCK = 1 << 23  # bytes


def read_canonical(path: Path) -> tuple[pa.RecordBatchReader, tuple[str, ...]]:
    """The outcomes of a canonical file, as a stream that `read_cohort` takes like any other table, and its metrics."""
    try:
        require_regular(path, path.name)
        with path.open("rb") as file:
            head = file.readline(BLOCK) + file.readline(BLOCK)
            start = file.tell()  # of the line that says how many; the hash covers it
    except OSError:
        raise InputError(f"{path.name} cannot be read; check its path") from None
    metrics = _metrics(head)
    if metrics is None:
        forms = f"{canonical.FORMAT} or {canonical.SEVERAL}"
        raise InputError(f"{path.name} is not in the canonical form {forms}")
    types = dict.fromkeys(metrics, pa.float64()) | {"outcome": pa.int8()}
    schema = pa.schema({name: types.get(name, pa.string()) for name in canonical.columns_of(metrics)})
    return pa.RecordBatchReader.from_batches(schema, _batches(path, start, metrics, schema)), metrics


def _metrics(head: bytes) -> tuple[str, ...] | None:
    """The metrics that the first two lines name; None where they are no header. The hash covers their order."""
    try:
        names = head.decode().split("\n")[1].split("\t")
    except (UnicodeDecodeError, IndexError):
        return None
    metrics = tuple(names[3:-1])
    known = 1 <= len(metrics) <= canonical.MOST_METRICS and len(set(names)) == len(names)
    if not known or (len(metrics) == 1 and metrics != canonical.ONE_METRIC):
        return None
    return metrics if head + b"0\n" == canonical.header(0, metrics) else None


def _batches(path: Path, start: int, metrics: tuple[str, ...], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """ArrowInvalid where a line is none: it passes through Arrow's stream, which keeps no other exception."""
    convert = pcsv.ConvertOptions(
        column_types=dict.fromkeys(schema.names, pa.string()), null_values=[""], strings_can_be_null=True
    )
    parse = pcsv.ParseOptions(delimiter="\t", quote_char=False, newlines_in_values=False)
    # From the line before the outcomes on: Arrow would take a byte order mark at the start for none of the text's.
    read = pcsv.ReadOptions(column_names=schema.names, skip_rows=1, use_threads=False, block_size=BLOCK)
    with path.open("rb") as file:
        file.seek(start)
        with pcsv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert) as lines:
            for batch in lines:
                columns = {name: batch.column(name) for name in schema.names}
                columns |= {name: _from_bits(columns[name]) for name in metrics}
                columns["outcome"] = _outcomes(columns["outcome"])
                yield pa.record_batch(list(columns.values()), schema=schema)


def _from_bits(digits: pa.Array) -> pa.Array:
    """Numbers from the 16 hex digits of their bits."""
    if digits.null_count or not pc.all(pc.match_substring_regex(digits, "^[0-9a-f]{16}$")).as_py():
        raise pa.ArrowInvalid("a metric is not in canonical form")
    return pa.array(np.frombuffer(bytes.fromhex("".join(digits.to_pylist())), ">f8").astype(np.float64))


def _outcomes(words: pa.Array) -> pa.Array:
    if words.null_count or not pc.all(pc.is_in(words, pa.array(["0", "1"]))).as_py():
        raise pa.ArrowInvalid("an outcome is not in canonical form")
    return words.cast(pa.int8())
