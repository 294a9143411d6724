"""Which column of a source is which field of an outcome, and whether its type can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from isuit.canonical import COLUMNS, MOST_METRICS, ONE_METRIC, columns_of
from isuit.errors import InputError
from isuit.ingest.refusals import Refusals
from isuit.ingest.values import defect_of

OPTIONAL = ("site", "observed_at")
OTHER_NAME_OF_RIDER = "pseudonym"
RESERVED = (*COLUMNS, OTHER_NAME_OF_RIDER)
LONGEST_NAME = 100  # of a metric


def checked_metrics(
    metrics: Sequence[str] | None, columns: Mapping[str, str] | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The metrics in the order of the canonical form, and the mapping from our names to a source's.

    One metric is `metric`, whatever a source calls it: its name is a mapping, of which the cohort's hash knows nothing.
    """
    if isinstance(metrics, str):
        raise InputError("metrics is a list of names; give one")
    given = tuple(metrics or ONE_METRIC)
    mapping = checked_mapping(columns, given)
    if len(given) == 1:
        (name,) = given
        if name not in ONE_METRIC:
            _check_name(name)
            if "metric" in mapping:
                raise InputError(f"metric is mapped by --column and named {name!r} by --metric: give one of the two")
            mapping["metric"] = mapping.pop(name, name)
        return ONE_METRIC, checked_mapping(mapping)
    if len(set(given)) < len(given):
        twice = next(name for name, count in Counter(given).items() if count > 1)
        raise InputError(f"the metric {twice!r} is given twice: name each metric once")
    if len(given) > MOST_METRICS:
        raise InputError(f"{len(given)} metrics are more than the {MOST_METRICS} that one fit takes: leave some out")
    for name in given:
        _check_name(name)
    # As bytes; UTF-8 sorts as code points do, and so does Python's text.
    return tuple(sorted(given)), mapping


def _check_name(name: str) -> None:
    """A metric's name stands in a header line between TABs, and beside the names of other columns."""
    if not isinstance(name, str) or defect_of(name) or len(name) > LONGEST_NAME:
        raise InputError(
            f"a metric's name is text of at most {LONGEST_NAME} characters in NFC, without control characters"
        )
    if name in RESERVED:
        raise InputError(
            f"a metric cannot be called {name!r}, which is a column of its own: call it otherwise and map it with "
            f"--column NAME={name}"
        )
    if "=" in name:
        raise InputError(f"a metric's name holds no equals sign, as {name!r} does: map it with --column NAME=theirs")


def checked_mapping(columns: Mapping[str, str] | None, metrics: Sequence[str] = ONE_METRIC) -> dict[str, str]:
    """A caller's mapping from our names to theirs."""
    if columns is not None and not isinstance(columns, Mapping):
        raise InputError("columns are mapped by a dict, as in columns={'rider': 'user_id'}")
    mapping = dict(columns or {})
    known = columns_of(metrics)
    alone = ONE_METRIC if len(metrics) == 1 else ()
    unknown = [name for name in mapping if name not in known and name not in alone]
    if unknown:
        raise InputError(f"no column is called {unknown[0]!r} here: map {', '.join(known)}, as in rider=user_id")
    twice = [theirs for theirs, count in Counter(mapping.values()).items() if count > 1]
    if twice:
        raise InputError(f"column {twice[0]!r} is mapped twice: give each field a column of its own")
    return mapping


def parse_mapping(options: list[str] | None, metrics: Sequence[str] | None = None) -> dict[str, str]:
    """The mapping that repeated `--column name=theirs` options describe."""
    mapping: dict[str, str] = {}
    for option in options or []:
        ours, equals, theirs = option.partition("=")
        if not (ours and equals and theirs):
            raise InputError(f"--column {option!r} is not a mapping: write name=theirs, as in rider=user_id")
        if ours in mapping:
            raise InputError(f"column {ours} is mapped twice: give --column {ours}=... once")
        mapping[ours] = theirs
    return checked_mapping(mapping, tuple(metrics or ONE_METRIC))


def wanted(mapping: Mapping[str, str], metrics: Sequence[str]) -> list[str]:
    """The columns that a source must have, by their names there."""
    return [mapping.get(ours, ours) for ours in columns_of(metrics) if ours not in OPTIONAL]


def locate(
    names: list[str],
    mapping: Mapping[str, str],
    file: str,
    refusals: Refusals,
    metrics: Sequence[str] = ONE_METRIC,
) -> dict[str, str]:
    """Our names and theirs, for the columns that the source has. The names found are not listed in an error:
    the first line of a CSV without a header is a rider's."""
    found: dict[str, str] = {}
    counts = Counter(names)
    for ours in columns_of(metrics):
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
    return next((kind for kind, holds in READABLE.get(column, READABLE["metric"]) if holds(type_)), None)


def _named(type_: pa.DataType) -> str:
    """A type in a word; how it is packed is no matter of the reader's."""
    packed = pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_)
    inner = type_.value_type if packed else type_
    return "text" if _is_text(inner) else str(inner)


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
        ("days", pa.types.is_date),
        ("text", _is_text),
    ),
    "metric": (("numbers", _is_number),),
    "outcome": (("numbers", _is_number_or_boolean),),
}
EXPECTED = {
    "rider": "text or integers",
    "site": "text or integers",
    "observed_at": "timestamps, days or ISO 8601 text",
    "metric": "numbers",
    "outcome": "0 and 1 or booleans",
}


class Agreement:
    """That several files describe their columns alike: otherwise one cohort would be read in two ways."""

    def __init__(self, refusals: Refusals, metrics: Sequence[str] = ONE_METRIC) -> None:
        self._refusals, self._columns = refusals, columns_of(metrics)
        self._numbers = (*metrics, "outcome")
        self._kinds: dict[str, str] | None = None

    def check(self, types: Mapping[str, pa.DataType], file: str, is_csv: bool) -> set[str]:
        """The columns that can be read, of a source with these types."""
        kinds: dict[str, str] = {}
        for column, type_ in types.items():
            kind = "numbers" if is_csv and column in self._numbers else kind_of(column, type_)
            if kind is None:
                self._refusals.add(
                    column, f"{file} holds {_named(type_)} where {EXPECTED.get(column, EXPECTED['metric'])} belong"
                )
            else:
                kinds[column] = kind
        if self._kinds is None:
            self._kinds = dict(kinds)
            return set(kinds)
        for column in self._columns:
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
