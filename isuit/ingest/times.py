"""Instants: timestamps of any unit, ISO 8601 text, and local times of a declared zone, as microseconds since 1970 UTC.

Every function returns what it read together with the defects it met, as (sentence, rows) pairs: refusing is the
caller's. Local times go through `zoneinfo`, which brings its own zone database; Arrow would need the system's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit.canonical import as_numpy
from isuit.domain import NO_TIME
from isuit.errors import InputError

Micros = NDArray[np.int64]
Rows = NDArray[np.bool_]
Defects = list[tuple[str, Rows]]

NAIVE = "a time without a zone (declare it with --timezone)"
TOO_FINE = "a time finer than microseconds"
OUT_OF_RANGE = "a time outside the years 0001 to 9999"
NOT_A_TIME = "not an ISO 8601 time such as 2024-05-01T09:30:00Z"
AMBIGUOUS = "a local time that occurs twice, when clocks go back"
NONEXISTENT = "a local time that does not exist, when clocks go forward"

SECOND = 1_000_000
HOUR = 3_600 * SECOND
UNITS = {"s": SECOND, "ms": 1_000, "us": 1}
EARLIEST = -62_135_596_800 * SECOND  # 0001-01-01T00:00:00Z
LATEST = 253_402_300_800 * SECOND - 1  # 9999-12-31T23:59:59.999999Z
EPOCH = datetime(1970, 1, 1)

ISO_8601 = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[T ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.](?P<fraction>[0-9]{1,18}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)


def zone_named(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # a key that is no path, a folder, or no such zone
        raise InputError(f"no time zone is named {name!r}: give a name such as UTC or Europe/Rome") from None


def from_timestamps(array: pa.Array, zone: ZoneInfo | None) -> tuple[Micros, Defects]:
    """Arrow timestamps; those without a zone are local times of `zone`."""
    count = array.cast(pa.int64())
    if not array.null_count and array.type.tz and array.type.unit == "us":  # almost every cohort: nothing to convert
        micros = as_numpy(count)
        if not len(micros) or EARLIEST <= micros.min() <= micros.max() <= LATEST:
            return micros, []
    missing = as_numpy(array.is_null())
    count = as_numpy(count.fill_null(0))
    defects: Defects = []
    if array.type.unit == "ns":
        micros = count // 1_000
        defects.append((TOO_FINE, micros * 1_000 != count))
        outside = np.zeros(len(count), bool)  # nanoseconds in 64 bits end in 2262
    else:
        scale = UNITS[array.type.unit]
        outside = (count < -(-EARLIEST // scale)) | (count > LATEST // scale)
        micros = np.where(outside, 0, count) * scale
    if array.type.tz is None:
        if zone is None:
            defects.append((NAIVE, ~missing))
        else:
            micros, local_defects = from_local(micros, zone, ~missing & ~outside)
            defects.extend(local_defects)
    outside |= (micros < EARLIEST) | (micros > LATEST)
    defects.append((OUT_OF_RANGE, outside & ~missing))
    return np.where(missing, NO_TIME, micros), defects


def from_text(array: pa.Array, zone: ZoneInfo | None) -> tuple[Micros, Defects]:
    """ISO 8601 text; what carries no offset is a local time of `zone`."""
    missing = as_numpy(array.is_null())
    parts = pc.extract_regex(array.fill_null(""), ISO_8601)
    matched = as_numpy(parts.is_valid())

    def number(name: str) -> NDArray[np.int64]:
        text = pc.struct_field(parts, name).fill_null("0")
        return as_numpy(pc.cast(pc.if_else(pc.equal(text, ""), "0", text), pa.int64()))

    year, month, day = number("year"), number("month"), number("day")
    hour, minute, second = number("hour"), number("minute"), number("second")
    in_calendar = (year >= 1) & (month >= 1) & (month <= 12)
    months = (np.where(in_calendar, year, 1970) - 1970) * 12 + np.where(in_calendar, month, 1) - 1
    first_day = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    in_calendar &= (day >= 1) & (day <= next_first - first_day) & (hour < 24) & (minute < 60) & (second < 60)

    fraction = pc.utf8_rpad(pc.struct_field(parts, "fraction").fill_null(""), 18, "0")
    micro = as_numpy(pc.cast(pc.utf8_slice_codeunits(fraction, 0, 6), pa.int64()))
    finer = as_numpy(pc.cast(pc.utf8_slice_codeunits(fraction, 6, 18), pa.int64())) > 0
    seconds = (first_day + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    readable = matched & in_calendar
    micros = np.where(readable, seconds * SECOND + micro, 0)

    offsets, aware, good_offset = _offsets(pc.struct_field(parts, "zone").fill_null(""))
    readable &= good_offset
    micros -= np.where(aware & readable, offsets, 0)
    defects: Defects = [(NOT_A_TIME, ~readable & ~missing), (TOO_FINE, finer & readable)]
    naive = readable & ~aware
    if zone is None:
        defects.append((NAIVE, naive))
    elif naive.any():
        micros, local_defects = from_local(micros, zone, naive)
        defects.extend(local_defects)
    defects.append((OUT_OF_RANGE, ((micros < EARLIEST) | (micros > LATEST)) & readable))
    return np.where(missing, NO_TIME, micros), defects


def _offsets(texts: pa.Array) -> tuple[Micros, Rows, Rows]:
    """Of `Z`, `+01`, `+0100`, `+01:00` or nothing: microseconds east of UTC, whether it is there, whether it is one."""
    codes = texts.dictionary_encode()
    distinct = codes.dictionary.to_pylist()
    minutes, valid = [], []
    for text in distinct:
        digits = text[1:].replace(":", "")
        hours, rest = int(digits[:2] or 0), int(digits[2:] or 0)
        minutes.append((-1 if text.startswith("-") else 1) * (hours * 60 + rest))
        valid.append(hours < 24 and rest < 60)
    index = as_numpy(codes.indices)
    aware = np.array([text != "" for text in distinct], bool)[index]
    return np.array(minutes, np.int64)[index] * (60 * SECOND), aware, np.array(valid, bool)[index]


def from_local(local: Micros, zone: ZoneInfo, rows: Rows) -> tuple[Micros, Defects]:
    """UTC of local times, looked up once per hour; only in an hour that touches a change of clocks, time by time."""
    result = local.copy()
    ambiguous, nonexistent = np.zeros(len(local), bool), np.zeros(len(local), bool)
    chosen = np.flatnonzero(rows)
    hours, index = np.unique(local[chosen] // HOUR, return_inverse=True)
    offset = np.empty(len(hours), np.int64)
    changing = np.zeros(len(hours), bool)
    for position, hour in enumerate(hours.tolist()):
        start = EPOCH + timedelta(hours=hour)
        ends = (start, start + timedelta(microseconds=HOUR - 1))
        found = {_offset(end.replace(tzinfo=zone, fold=fold)) for end in ends for fold in (0, 1)}
        changing[position] = len(found) > 1
        offset[position] = found.pop()
    result[chosen] = local[chosen] - offset[index]
    for row in chosen[changing[index]].tolist():
        before, after = (
            _offset((EPOCH + timedelta(microseconds=int(local[row]))).replace(tzinfo=zone, fold=fold))
            for fold in (0, 1)
        )
        # PEP 495: in a fold the first reading has the larger offset, in a gap the smaller one.
        ambiguous[row], nonexistent[row] = before > after, before < after
        result[row] = local[row] - before
    return result, [(AMBIGUOUS, ambiguous), (NONEXISTENT, nonexistent)]


def _offset(time: datetime) -> int:
    offset = time.utcoffset()
    assert offset is not None  # a ZoneInfo always has one
    return offset // timedelta(microseconds=1)
