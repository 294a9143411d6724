"""The canonical bytes of a cohort, `isuit-c1` or `isuit-c2`, and their SHA-256: docs/canonical-form.md, in code.

    header(n)  then  lines(batch) for every batch of the sorted cohort  =  the bytes
    SHA-256 of the bytes, written `isuit-c1:<64 hex digits>`            =  the cohort hash

A cohort of one metric, whatever it measures, is `isuit-c1`, and its column is called `metric`. One of several is
`isuit-c2`: its columns have the names of the metrics, in their order as bytes, in the place of `metric`.

Nothing here validates or sorts: `isuit.ingest` hands over validated outcomes in canonical order. A line of text is
never built in Python: fixed-width parts are assembled from small tables of digits, and Arrow joins the parts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit.errors import InputError

FORMAT = "isuit-c1"
SEVERAL = "isuit-c2"  # of several metrics
ONE_METRIC = ("metric",)
MOST_METRICS = 6  # surfaces of more say little: with seven there are 21 pairs
COLUMNS = ("rider", "site", "observed_at", "metric", "outcome")
SHORTEST_PREFIX = 8  # digits; what a person can read out, and too long to meet by chance in one store

DAY = 86_400_000_000  # microseconds
MINUTE = 60_000_000
TIME_WIDTH = len("YYYY-MM-DDTHH:MM:SS.ffffffZ")


def _table(texts: Iterable[str]) -> NDArray[np.void]:
    """Equally long texts as opaque items, to be looked up by index."""
    items = [text.encode() for text in texts]
    return np.frombuffer(b"".join(items), dtype=f"V{len(items[0])}")


# Tables of texts are made when the first line is written: most commands write none.
@cache
def _hours_minutes() -> NDArray[np.void]:
    return _table(f"{minute // 60:02d}:{minute % 60:02d}:" for minute in range(24 * 60))


@cache
def _seconds_millis() -> NDArray[np.void]:
    return _table(f"{ms // 1000:02d}.{ms % 1000:03d}" for ms in range(60_000))


@cache
def _micros() -> NDArray[np.void]:
    return _table(f"{us:03d}Z" for us in range(1000))


@cache
def _four_digits() -> NDArray[np.void]:
    return _table(f"{word:04x}" for word in range(1 << 16))


_TIME = np.dtype([("day", "V11"), ("hour_minute", "V6"), ("second_milli", "V6"), ("micro_z", "V4")])


def columns_of(metrics: Sequence[str]) -> tuple[str, ...]:
    """The columns of a cohort with these metrics, in the order of the canonical form."""
    return (*COLUMNS[:3], *metrics, COLUMNS[-1])


def schema_of(metrics: Sequence[str]) -> pa.Schema:
    """What batches of such a cohort look like."""
    return pa.schema(
        [
            pa.field("rider", pa.string(), nullable=False),
            pa.field("site", pa.string()),
            pa.field("observed_at", pa.timestamp("us", tz="UTC")),
            *(pa.field(name, pa.float64(), nullable=False) for name in metrics),
            pa.field("outcome", pa.int8(), nullable=False),
        ]
    )


SCHEMA = schema_of(ONE_METRIC)


def metrics_of(schema: pa.Schema) -> tuple[str, ...]:
    """The metrics of batches with such a schema."""
    return tuple(schema.names[3:-1])


def format_of(metrics: Sequence[str]) -> str:
    return FORMAT if len(metrics) == 1 else SEVERAL


def header(outcomes: int, metrics: Sequence[str] = ONE_METRIC) -> bytes:
    """The three lines before the outcomes: format, column names, number of outcomes."""
    return f"{format_of(metrics)}\n{chr(9).join(columns_of(metrics))}\n{outcomes}\n".encode()


def lines(batch: pa.RecordBatch) -> pa.LargeBinaryArray:
    """The outcome lines of a batch with a schema of `schema_of`, each ending in LF, one array element per outcome.

    The bytes of consecutive lines are consecutive in memory: see `line_bytes`.
    """
    large = pa.large_binary()
    return pc.binary_join_element_wise(
        batch.column("rider").cast(pa.large_string()).cast(large),
        batch.column("site").cast(pa.large_string()).cast(large),
        _time_texts(batch.column("observed_at")).cast(large),
        _tails([batch.column(name) for name in metrics_of(batch.schema)], batch.column("outcome")).cast(large),
        pa.scalar(b"\t", large),
        null_handling="replace",
        null_replacement=b"",
    )


def line_bytes(array: pa.LargeBinaryArray) -> tuple[memoryview, NDArray[np.int64]]:
    """The bytes of `lines` as one buffer, and the offsets in it: line i is `buffer[offsets[i]:offsets[i + 1]]`.

    A rider's lines are one slice of it, so that hashing per rider copies nothing.
    """
    if not len(array):
        return memoryview(b""), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    return memoryview(data)[bounds[0] : bounds[-1]], bounds - bounds[0]


def chunks(
    outcomes: int, batches: Iterable[pa.RecordBatch], metrics: Sequence[str] = ONE_METRIC
) -> Iterator[bytes | memoryview]:
    """The canonical bytes, header first, of batches in canonical order."""
    yield header(outcomes, metrics)
    for batch in batches:
        yield line_bytes(lines(batch))[0]


def hash_of(content: Iterable[bytes | memoryview], metrics: Sequence[str] = ONE_METRIC) -> str:
    """The cohort hash of canonical bytes, given in chunks."""
    digest = hashlib.sha256()
    for chunk in content:
        digest.update(chunk)
    return f"{format_of(metrics)}:{digest.hexdigest()}"


def prefix_digits(text: str) -> str:
    """The hex digits of a cohort hash or of a prefix of it, with or without `isuit-c1:` or `isuit-c2:`."""
    digits = text.removeprefix(f"{FORMAT}:").removeprefix(f"{SEVERAL}:").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PREFIX},64}}", digits):
        raise InputError(
            f"a cohort hash is {FORMAT}: and 64 hex digits: give all of them, or the first {SHORTEST_PREFIX} or more"
        )
    return digits


def as_numpy(array: pa.Array) -> NDArray[Any]:
    """An array without nulls as numpy, read-only and without a copy."""
    if not len(array):
        return np.empty(0, array.type.to_pandas_dtype())
    if pa.types.is_boolean(array.type):  # Arrow keeps bits
        return np.from_dlpack(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def as_arrow(values: NDArray[Any], type_: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """A contiguous numpy array as an Arrow array of a type of the same width, without a copy."""
    validity, nulls = None, 0
    if missing is not None and missing.any():
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        nulls = int(np.count_nonzero(missing))
    return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(values)], nulls)


def _time_texts(times: pa.Array) -> pa.Array:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ`, null where there is no time."""
    if times.null_count == len(times):
        return pa.nulls(len(times), pa.binary(TIME_WIDTH))
    missing = as_numpy(times.is_null())
    micros = as_numpy(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).fill_null(0))
    text = np.empty(len(micros), _TIME)
    day = micros // DAY
    in_day = micros - day * DAY
    minute = in_day // MINUTE
    in_minute = in_day - minute * MINUTE
    milli = in_minute // 1000
    text["day"] = _day_texts(day)
    text["hour_minute"] = _hours_minutes()[minute]
    text["second_milli"] = _seconds_millis()[milli]
    text["micro_z"] = _micros()[in_minute - milli * 1000]
    return as_arrow(text, pa.binary(TIME_WIDTH), missing)


def _day_texts(day: NDArray[np.int64]) -> NDArray[np.void]:
    """`YYYY-MM-DDT` of days since 1970, each day written once."""
    if not day.size:
        return np.empty(0, "V11")
    first, last = int(day.min()), int(day.max())
    if last - first < day.size:  # writing every day of the span costs less than finding those that occur
        days, index = np.arange(first, last + 1), day - first
    else:
        days, index = np.unique(day, return_inverse=True)
    return _table(f"{text}T" for text in days.astype("datetime64[D]").astype(str))[index]


def bits_text(values: pa.Array) -> pa.Array:
    """The 16 hex digits of each number's IEEE-754 bits."""
    return as_arrow(_digits(as_numpy(values)), pa.binary(16))


def _digits(values: NDArray[np.float64]) -> NDArray[np.void]:
    digits: NDArray[np.void] = _four_digits()[values.astype(">f8", order="C").view(">u2").reshape(-1, 4)]
    return digits


def _tails(metrics: Sequence[pa.Array], outcome: pa.Array) -> pa.Array:
    """Each metric and a TAB, the outcome, LF: adding 0.0 turns -0.0 into 0.0 and changes nothing else."""
    fields = [field for k in range(len(metrics)) for field in ((f"metric{k}", "V4", 4), (f"tab{k}", "u1"))]
    text = np.empty(len(outcome), np.dtype([*fields, ("outcome", "u1"), ("newline", "u1")]))
    for k, metric in enumerate(metrics):
        text[f"metric{k}"] = _digits(as_numpy(metric) + 0.0)
        text[f"tab{k}"] = ord("\t")
    text["outcome"] = as_numpy(outcome) + ord("0")
    text["newline"] = ord("\n")
    return as_arrow(text, pa.binary(text.dtype.itemsize))
