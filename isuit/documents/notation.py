"""JSON from elsewhere: bounded before it is parsed, and without the values that JSON does not have."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

from isuit.documents.files import UnsafeDocument

DEEPEST = 64  # levels; ours have at most six
MOST_VALUES = 5_000_000  # about 500 MB as objects of Python
LARGEST_INTEGER = 2**53  # beyond it binary64 skips integers, and other programs read other numbers
MOST_LINES = 1_000_000

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTED = re.compile(rb'"[^"]*"')
_MARKS = b'[]{},"'
_OTHERS = bytes(set(range(256)) - set(_MARKS))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0, ord('"'): 0}
_SURROGATE = re.compile(r"\\u[dD][89abAB]")


class Refused(ValueError):
    """Why a document is refused, without the name of the document."""


def from_json(content: bytes | str, what: str) -> Any:
    """The value of a JSON document; ValueError where it is malformed, `UnsafeDocument` where it is refused."""
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    try:
        _require_bounds(text)
        value = json.loads(
            text, parse_int=integer, parse_float=finite, parse_constant=_no_number, object_pairs_hook=_object
        )
        if _SURROGATE.search(text):
            _require_unicode(value)
    except Refused as error:
        raise UnsafeDocument(f"{what} {error}") from None
    return value


def from_json_lines(content: bytes, what: str) -> list[Any]:
    """One value per line, each line ending in a line feed."""
    if content and not content.endswith(b"\n"):
        raise ValueError("the last line has no end")
    lines = list(islice(_lines(content), MOST_LINES + 1))
    if len(lines) > MOST_LINES:
        raise UnsafeDocument(f"{what} has more than the {MOST_LINES} lines that are read of such a file; check it")
    return [from_json(line, what) for line in lines]


def _lines(content: bytes) -> Iterator[bytes]:
    """Not `split`: ten bytes of list for every empty line of a large file."""
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield content[start:end]
        start = end + 1


def _require_bounds(text: str) -> None:
    """Depth and number of values, from the brackets and commas outside of strings; up to the first error it agrees
    with the parser, which goes no further."""
    marks = _ESCAPED.sub(b"", text.encode("utf-8", "surrogatepass")).translate(None, _OTHERS)
    marks = _QUOTED.sub(b"", marks)
    if len(marks) > MOST_VALUES:
        raise Refused(f"holds more than {MOST_VALUES} values; check it")
    if max(accumulate(map(_STEP.__getitem__, marks)), default=0) > DEEPEST:
        raise Refused(f"is nested more than {DEEPEST} levels deep; check it")


def integer(text: str) -> int:
    """An integer that every program reads alike; Python alone would take minutes for a million digits."""
    if len(text) > 20 or abs(number := int(text)) > LARGEST_INTEGER:
        raise Refused("holds an integer beyond 2^53, which programs read differently; correct it")
    return number


def finite(text: str) -> float:
    """A finite number. `Refused` where it is none or too large, ValueError where it is no number at all."""
    number = float(text)
    if not math.isfinite(number):
        raise Refused("holds a number that is not finite; correct it")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two values under one name, one program reads the first and another
    the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("has a name twice in one object, which programs read differently; correct it")
    return found


def _no_number(text: str) -> float:
    raise Refused("holds a number that is not finite; correct it")


def _require_unicode(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("holds half a character (a lone surrogate); correct it") from None
