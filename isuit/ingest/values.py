"""Text, metrics and outcomes: Arrow arrays of any accepted type as codes and numbers, with the defects met."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit.canonical import as_arrow, as_numpy
from isuit.ingest.times import Defects

NULL = -1  # code of a null; it indexes the last place of an array by codes, which is kept for it
MISSING = "missing"
NOT_UTF8 = "text that is not UTF-8"
EMPTY = "empty text"
CONTROL = "text with a control character"
WHITE_SPACE = "text with leading or trailing white space"
NOT_NFC = "text that is not in Unicode normal form C (NFC)"
NOT_A_NUMBER = "not a number"
NOT_FINITE = "not a finite number"
NOT_EXACT = "an integer that no binary64 holds"
NOT_AN_OUTCOME = "not 0, 1, true or false"

NOTHING = ("na", "n/a", "nan", "null", "none", "#n/a", "#na", "#nv")  # the last as Excel writes it in German
# RFC 8259's numbers, and what spreadsheets write beside them: a plus sign, a bare point.
NUMBER = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
NON_FINITE = r"(?i)^[+-]?(nan|inf|infinity)$"
EXACT_INTEGERS = 2**53


class TextCodes:
    """One code per distinct text, in order of appearance; a text is checked once, when it is first seen."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._defects: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def texts(self) -> list[str]:
        return list(self._codes)

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], Defects]:
        """Codes of an array of text or integers, `NULL` where it is null."""
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        indices = array.indices.fill_null(NULL) if array.null_count else array.indices
        index = as_numpy(indices).astype(np.int64, copy=False)
        # Only values that occur: a dictionary may hold more than its array uses, and may itself hold nulls.
        occurs = np.bincount(index + 1, minlength=len(array.dictionary) + 1)[1:] > 0
        used = np.flatnonzero(occurs)
        code_of = np.full(len(array.dictionary) + 1, NULL, np.int32)  # the last one is for index NULL
        code_of[used] = self._codes_of(array.dictionary.take(as_arrow(used, pa.int64())))
        codes = code_of[index]
        defects: Defects = []
        for defect in dict.fromkeys(self._defects.values()):
            bad = [code for code, found in self._defects.items() if found == defect]
            defects.append((defect, np.isin(codes, bad)))
        return codes, defects

    def _codes_of(self, values: pa.Array) -> list[int]:
        known: dict[str | None, int] = self._codes  # type: ignore[assignment]  # None is never a key, and may be asked for
        texts = _python_texts(values)
        codes = list(map(known.get, texts))  # in C: almost all are known after the first batches
        return [
            code if code is not None else NULL if text is None else self._code_of_new(text)
            for code, text in zip(codes, texts, strict=True)
        ]

    def _code_of_new(self, text: str) -> int:
        code = self._codes.setdefault(text, len(self._codes))
        if defect := defect_of(text):
            self._defects[code] = defect
        return code


def _python_texts(values: pa.Array) -> list[str | None]:
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:  # Arrow does not check what a file claims to be UTF-8
        raw = values.cast(pa.binary() if pa.types.is_string(values.type) else pa.large_binary())
        return [None if item is None else item.decode(errors="surrogateescape") for item in raw.to_pylist()]


def defect_of(text: str) -> str | None:
    """Why a text cannot be a rider or a site; None where it can."""
    if text.isascii() and text.isprintable() and text and text[0] != " " and text[-1] != " ":
        return None
    checks = (
        (EMPTY, not text),
        (NOT_UTF8, any("\ud800" <= character <= "\udfff" for character in text)),
        (CONTROL, any(unicodedata.category(character) == "Cc" for character in text)),
        (WHITE_SPACE, text != text.strip()),
        (NOT_NFC, not unicodedata.is_normalized("NFC", text)),
    )
    return next((defect for defect, found in checks if found), None)


def encoded(array: pa.Array) -> pa.Array:
    """The array without run ends and without views, for which Arrow lacks functions; a dictionary may stay."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_dictionary(array.type) and pa.types.is_string_view(array.type.value_type):
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array


def plain(array: pa.Array) -> pa.Array:
    """The same, without a dictionary."""
    array = encoded(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def metrics(array: pa.Array) -> tuple[NDArray[np.uint64], Defects]:
    """The bits of binary64 metrics, -0.0 as 0.0."""
    missing = as_numpy(array.is_null())
    values, defects = _numbers(array)
    readable = ~missing
    for _, bad in defects:
        readable = readable & ~bad
    defects.append((MISSING, missing))
    defects.append((NOT_FINITE, readable & ~np.isfinite(values)))
    with np.errstate(invalid="ignore"):  # a signalling NaN, which is among the defects
        return (values + 0.0).view(np.uint64), defects


def outcomes(array: pa.Array) -> tuple[NDArray[np.int8], Defects]:
    """0 or 1, from numbers, booleans, or the text of either."""
    missing = as_numpy(array.is_null())
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif _is_text(array.type):
        lower = pc.utf8_lower(array) if _valid_utf8(array) else array
        array = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", array))
    values, unreadable = _numbers(array)
    bad = ~missing & (values != 0) & (values != 1)
    for _, rows in unreadable:
        bad = bad | rows
    return np.where(bad, 0, values == 1).astype(np.int8), [(MISSING, missing), (NOT_AN_OUTCOME, bad)]


def _numbers(array: pa.Array) -> tuple[NDArray[np.float64], Defects]:
    """Numbers of any type as binary64; 0 where null, and where the defects say so."""
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())  # decimal text has one nearest binary64; Arrow's own cast may miss it
    if _is_text(array.type):
        return _numbers_from_text(array)
    if pa.types.is_null(array.type):
        return np.zeros(len(array)), []
    if pa.types.is_integer(array.type):
        integers = as_numpy(array.fill_null(0))
        values = integers.astype(np.float64)
        inexact = np.abs(values) >= EXACT_INTEGERS
        for row in np.flatnonzero(inexact):
            inexact[row] = int(values[row]) != int(integers[row])
        return values, [(NOT_EXACT, inexact)]
    return as_numpy(array.cast(pa.float64()).fill_null(0.0)), []


def _numbers_from_text(array: pa.Array) -> tuple[NDArray[np.float64], Defects]:
    array = array.fill_null("0")
    number = pc.match_substring_regex(array, NUMBER)
    non_finite = as_numpy(pc.match_substring_regex(array, NON_FINITE))
    readable = pc.if_else(number, array, "0")
    unsigned = pc.replace_substring_regex(readable, r"^[+]", "")
    values = as_numpy(unsigned.cast(pa.float64()))
    values = np.where(non_finite, np.inf, values)
    return values, [(NOT_A_NUMBER, ~as_numpy(number) & ~non_finite)]


def absent(array: pa.Array) -> NDArray[np.bool_]:
    """Where a number's or an outcome's text is a word of R, SQL or a spreadsheet for nothing; false for other types."""
    array = plain(array)
    if not _is_text(array.type) or not _valid_utf8(array):
        return np.zeros(len(array), bool)
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(array)).cast(pa.large_string())
    return as_numpy(pc.is_in(lower, pa.array(NOTHING, pa.large_string())))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _valid_utf8(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
