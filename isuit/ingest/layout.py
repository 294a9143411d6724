"""Which column of a source is which field of an outcome, and whether its type can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pyarrow as pa

from isuit.canonical import COLUMNS
from isuit.errors import InputError
from isuit.ingest.refusals import Refusals

OPTIONAL = ("site", "observed_at")
OTHER_NAME_OF_RIDER = "pseudonym"


def checked_mapping(columns: Mapping[str, str] | None) -> dict[str, str]:
    """A caller's mapping from our names to theirs."""
    mapping = dict(columns or {})
    unknown = [name for name in mapping if name not in COLUMNS]
    if unknown:
        raise InputError(f"no column is called {unknown[0]!r} here: map {', '.join(COLUMNS)}, as in rider=user_id")
    twice = [theirs for theirs, count in Counter(mapping.values()).items() if count > 1]
    if twice:
        raise InputError(f"column {twice[0]!r} is mapped twice: give each field a column of its own")
    return mapping


def parse_mapping(options: list[str] | None) -> dict[str, str]:
    """The mapping that repeated `--column name=theirs` options describe."""
    mapping: dict[str, str] = {}
    for option in options or []:
        ours, equals, theirs = option.partition("=")
        if not (ours and equals and theirs):
            raise InputError(f"--column {option!r} is not a mapping: write name=theirs, as in rider=user_id")
        if ours in mapping:
            raise InputError(f"column {ours} is mapped twice: give --column {ours}=... once")
        mapping[ours] = theirs
    return checked_mapping(mapping)


def locate(names: list[str], mapping: Mapping[str, str], file: str, refusals: Refusals) -> dict[str, str]:
    """Our names and theirs, for the columns that the source has. The names found are not listed in an error:
    the first line of a CSV without a header is a rider's."""
    found: dict[str, str] = {}
    counts = Counter(names)
    for ours in COLUMNS:
        theirs = mapping.get(ours, ours)
        if ours == "rider" and ours not in mapping and OTHER_NAME_OF_RIDER in counts:
            if "rider" in counts:
                refusals.add("rider", f"{file} has rider and pseudonym, choose one with --column rider=...")
                continue
            theirs = OTHER_NAME_OF_RIDER
        if counts[theirs] > 1:
            refusals.add(ours, f"{file} has {counts[theirs]} columns of that name")
        elif theirs in counts:
            found[ours] = theirs
        elif ours in mapping:
            refusals.add(ours, f"{file} has no column {theirs!r}, to which it is mapped")
        elif ours not in OPTIONAL:
            refusals.add(ours, f"{file} has no such column (map yours with --column {ours}=...)")
    return found


def kind_of(column: str, type_: pa.DataType) -> str | None:
    """What a column holds, in the terms in which files must agree; None where it cannot be read."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        type_ = type_.value_type
    if pa.types.is_null(type_):
        return "nulls"
    return next((kind for kind, holds in READABLE[column] if holds(type_)), None)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _is_number_or_boolean(type_: pa.DataType) -> bool:
    return _is_number(type_) or bool(pa.types.is_boolean(type_))


def _is_zoned_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz)


# What each column may hold, in words, and how its type tells; the first that holds counts.
_NAMES = (("text", _is_text), ("integers", pa.types.is_integer))
READABLE: dict[str, tuple[tuple[str, Callable[[pa.DataType], bool]], ...]] = {
    "rider": _NAMES,
    "site": _NAMES,
    "observed_at": (
        ("times with a zone", _is_zoned_time),
        ("times without a zone", pa.types.is_timestamp),
        ("text", _is_text),
    ),
    "metric": (("numbers", _is_number),),
    "outcome": (("numbers", _is_number_or_boolean),),
}
EXPECTED = {
    "rider": "text or integers",
    "site": "text or integers",
    "observed_at": "timestamps or ISO 8601 text",
    "metric": "numbers",
    "outcome": "0 and 1 or booleans",
}


class Agreement:
    """That several files describe their columns alike: otherwise one cohort would be read in two ways."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._kinds: dict[str, str] | None = None

    def check(self, types: Mapping[str, pa.DataType], file: str, is_csv: bool) -> set[str]:
        """The columns that can be read, of a source with these types."""
        kinds: dict[str, str] = {}
        for column, type_ in types.items():
            kind = "numbers" if is_csv and column in ("metric", "outcome") else kind_of(column, type_)
            if kind is None:
                self._refusals.add(column, f"{file} holds {type_} where {EXPECTED[column]} belong")
            else:
                kinds[column] = kind
        if self._kinds is None:
            self._kinds = dict(kinds)
            return set(kinds)
        for column in COLUMNS:
            before, now = self._kinds.get(column), kinds.get(column)
            if (before is None) != (now is None) and column in OPTIONAL and (column in types) == (now is not None):
                self._refusals.add(
                    column, f"{file} {'lacks it' if now is None else 'has it'}, unlike the files before it"
                )
            elif before and now and before != now:
                if "nulls" in (before, now):
                    self._kinds[column] = before if now == "nulls" else now
                else:
                    self._refusals.add(column, f"{file} holds {now}, the files before it {before}")
        return set(kinds)
