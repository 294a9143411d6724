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
_TYPES = {"metric": pa.float64(), "outcome": pa.int8()}
_SCHEMA = pa.schema({name: _TYPES.get(name, pa.string()) for name in canonical.COLUMNS})


def read_canonical(path: Path) -> pa.RecordBatchReader:
    """The outcomes of a canonical file, as a stream that `read_cohort` takes like any other table."""
    try:
        require_regular(path, path.name)
        with path.open("rb") as file:
            names = file.readline(BLOCK) + file.readline(BLOCK)
            file.readline(BLOCK)  # how many; the hash covers it
            start = file.tell()
    except OSError:
        raise InputError(f"{path.name} cannot be read; check its path") from None
    if names + b"0\n" != canonical.header(0):
        raise InputError(f"{path.name} is not in the canonical form {canonical.FORMAT}")
    return pa.RecordBatchReader.from_batches(_SCHEMA, _batches(path, start))


def _batches(path: Path, start: int) -> Iterator[pa.RecordBatch]:
    """ArrowInvalid where a line is none: it passes through Arrow's stream, which keeps no other exception."""
    convert = pcsv.ConvertOptions(
        column_types=dict.fromkeys(canonical.COLUMNS, pa.string()), null_values=[""], strings_can_be_null=True
    )
    parse = pcsv.ParseOptions(delimiter="\t", quote_char=False, newlines_in_values=False)
    read = pcsv.ReadOptions(column_names=list(canonical.COLUMNS), use_threads=False, block_size=BLOCK)
    with path.open("rb") as file:
        file.seek(start)
        with pcsv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert) as lines:
            for batch in lines:
                columns = {name: batch.column(name) for name in canonical.COLUMNS}
                columns["metric"] = _from_bits(columns["metric"])
                columns["outcome"] = _outcomes(columns["outcome"])
                yield pa.record_batch(list(columns.values()), schema=_SCHEMA)


def _from_bits(digits: pa.Array) -> pa.Array:
    """Numbers from the 16 hex digits of their bits."""
    if digits.null_count or not pc.all(pc.match_substring_regex(digits, "^[0-9a-f]{16}$")).as_py():
        raise pa.ArrowInvalid("a metric is not in canonical form")
    return pa.array(np.frombuffer(bytes.fromhex("".join(digits.to_pylist())), ">f8").astype(np.float64))


def _outcomes(words: pa.Array) -> pa.Array:
    if words.null_count or not pc.all(pc.is_in(words, pa.array(["0", "1"]))).as_py():
        raise pa.ArrowInvalid("an outcome is not in canonical form")
    return words.cast(pa.int8())
