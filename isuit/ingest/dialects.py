"""How a CSV is written: separator, decimal sign, encoding, dates and words for outcomes, declared or found by looking.

Whatever reads as the standard form (UTF-8, commas, decimal points, ISO 8601, 0 and 1) is read as such, so no hash
depends on what is found here: another form is looked for only where the standard form would be refused, and what was
found is said. `Csv` is what a caller declares, `Dialect` what a file turned out to be.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from isuit.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
WORDS = (
    ("yes", "no"), ("y", "n"), ("ja", "nein"), ("j", "n"), ("wahr", "falsch"), ("oui", "non"), ("o", "n"),
    ("vrai", "faux"), ("sí", "no"), ("si", "no"), ("sì", "no"), ("s", "n"), ("sim", "não"), ("ja", "nee"),
    ("ja", "nej"), ("t", "f"), ("success", "failure"), ("pass", "fail"),
)  # fmt: skip
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
DAY = r"(?P<a>\d{1,2})(?P<sep>[./])(?P<b>\d{1,2})[./](?P<year>\d{4})"
DAY_AND_TIME = re.compile(DAY + r"(?:[T ](?P<time>\d{1,2}:\d{2}(?::\d{2}(?:[.]\d+)?)?)(?P<zone>Z|[+-]\d{2}:?\d{2})?)?")
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
Dates = Literal["dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "yyyy-mm-dd"]
DATES: tuple[Dates, ...] = ("dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "yyyy-mm-dd")
# Signs between thousands, each with the decimal signs that it goes with.
THOUSANDS = ((".", ","), (",", "."), (" ", ",."), ("\u00a0", ",."), ("\u202f", ",."), ("'", ",."), ("\u2019", ",."))
SIGNS = {".": "point", ",": "comma", "'": "apostrophe", "\u2019": "apostrophe"}
SAMPLE_ROWS = 2000
MOST = 0.9  # of the times in a sample have a form, so that it is the file's
NOT_METRICS = ("rider", "site", "observed_at", "outcome")
KEYS = ("separator", "decimal", "encoding", "dates", "outcomes")


@dataclass(frozen=True)
class Dialect:
    """How one file is written; the defaults are the standard form, which needs no conversion."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    dates: Dates | None = None
    outcomes: tuple[str, str] | None = None  # the words for a success and a failure, in lower case; one may be empty
    thousands: str = ""  # the sign between thousands
    may_be_thousands: bool = False  # numbers with a point have all three digits after it

    def converted(self, column: str, values: pa.Array) -> pa.Array:
        """A column's text in the standard form; what does not have the dialect's form becomes unreadable."""
        if column == "outcome" and self.outcomes is not None:
            success, failure = self.outcomes
            if "" in self.outcomes:  # a cell with nothing in it, which is null
                values = values.fill_null("")
            lower = pc.utf8_lower(pc.utf8_trim_whitespace(values))
            return pc.if_else(pc.equal(lower, success), "1", pc.if_else(pc.equal(lower, failure), "0", values))
        if column == "observed_at" and self.dates is not None:
            return self._iso(values)
        if column not in NOT_METRICS and self.thousands:
            whole = pc.match_substring_regex(values, f"^{_grouped(self.thousands, self.decimal)}$")
            values = pc.if_else(whole, pc.replace_substring(values, self.thousands, ""), values)
        if column not in NOT_METRICS and self.decimal == ",":
            # A point would stand for thousands, or for a decimal sign: nobody can tell.
            without = pc.if_else(pc.match_substring(values, "."), "?", values)
            return pc.replace_substring(without, ",", ".", max_replacements=1)
        return values

    def _iso(self, values: pa.Array) -> pa.Array:
        """Days and times in the order of ISO 8601; a day without a time begins at midnight."""
        if self.dates == "yyyy-mm-dd":
            day = pc.match_substring_regex(values, f"^{ISO_DAY.pattern}$")
            return pc.if_else(day, pc.binary_join_element_wise(values, "T00:00", ""), values)
        sign = "[.]" if self.dates == "dd.mm.yyyy" else "/"
        parts = pc.extract_regex(
            values,
            rf"^(?P<a>\d{{1,2}}){sign}(?P<b>\d{{1,2}}){sign}(?P<year>\d{{4}})"
            r"(?:[T ](?P<time>\d{1,2}:\d{2}(?::\d{2}(?:[.]\d+)?)?)(?P<zone>Z|[+-]\d{2}:?\d{2})?)?$",
        )
        a, b, year, time, zone = (pc.struct_field(parts, name) for name in ("a", "b", "year", "time", "zone"))
        month, day = (a, b) if self.dates == "mm/dd/yyyy" else (b, a)
        time = pc.if_else(pc.equal(time, ""), "00:00", time)
        time = pc.if_else(
            pc.equal(pc.utf8_slice_codeunits(time, 1, 2), ":"), pc.binary_join_element_wise("0", time, ""), time
        )
        iso = pc.binary_join_element_wise(
            pc.binary_join_element_wise(year, pc.utf8_lpad(month, 2, "0"), pc.utf8_lpad(day, 2, "0"), "-"), time, "T"
        )
        # What has another form is left as it is, and refused as no time.
        return pc.coalesce(pc.binary_join_element_wise(iso, zone, ""), values)

    def described(self, standard: Dialect, midnight: bool = False) -> str:
        """What is other than the standard form, in words; empty where nothing is."""
        parts = []
        if self.separator != standard.separator:
            parts.append(f"separated by {SEPARATORS.get(self.separator, repr(self.separator))}")
        if self.decimal != ".":
            parts.append("decimal comma")
        if self.thousands:
            parts.append(f"{SIGNS.get(self.thousands, 'space')} between thousands")
        elif self.may_be_thousands and self.separator == ";":
            parts.append("decimal point, so that 1.234 is a little more than 1")
        if self.encoding != "utf-8":
            parts.append(f"encoded as {self.encoding}")
        if self.dates is not None:
            parts.append(f"dates as {self.dates}" + (", days without a time begin at midnight" if midnight else ""))
        if self.outcomes is not None:
            parts.append(f"outcomes as {'/'.join(self.outcomes)}")
        return ", ".join(parts)


def declared(options: Mapping[str, str] | None) -> dict[str, str]:
    """What a caller declares of CSV files, checked: any of separator, decimal, encoding, dates, outcomes."""
    given = dict(options or {})
    unknown = [key for key in given if key not in KEYS]
    if unknown:
        raise InputError(f"--csv knows {', '.join(KEYS)}, and not {unknown[0]!r}; as in --csv separator=';'")
    names = {name: sign for sign, name in SEPARATORS.items()}
    if "separator" in given:
        given["separator"] = names.get(given["separator"], given["separator"])
        if len(given["separator"]) != 1 or given["separator"] in '"\n\r':
            raise InputError("--csv separator takes one character, or comma, semicolon, tab or bar")
    if given.get("decimal", ".") not in ("point", "comma", ".", ","):
        raise InputError("--csv decimal takes point or comma")
    if "decimal" in given:
        given["decimal"] = {"point": ".", "comma": ","}.get(given["decimal"], given["decimal"])
    if "encoding" in given:
        try:
            "".encode(given["encoding"])
        except LookupError:
            raise InputError("--csv encoding takes the name of one, such as utf-8, cp1252 or utf-16") from None
    if given.get("dates", DATES[0]) not in DATES:
        raise InputError(f"--csv dates takes one of {', '.join(DATES)}; ISO 8601 needs no declaration")
    if "outcomes" in given and not re.fullmatch(r"[^/]+/[^/]*|/[^/]+", given["outcomes"]):
        raise InputError(
            "--csv outcomes takes the words for a success and a failure, as in ja/nein, or x/ where a failure is empty"
        )
    return given


def parse_csv(options: list[str] | None) -> dict[str, str]:
    """What repeated `--csv name=value` options declare."""
    pairs = [option.partition("=") for option in options or []]
    if any(not (key and equals and value) for key, equals, value in pairs):
        raise InputError("--csv takes name=value, as in --csv separator=';' or --csv outcomes=ja/nein")
    return declared({key: value for key, _, value in pairs})


def encoding_of(start: bytes, whole: Iterator[bytes]) -> str:
    """UTF-8 wherever it can be; else what a byte order mark says, or Windows-1252, which every Latin export reads as.

    A file that mixes encodings is left as it is: its names may be the part that is UTF-8. `whole` gives all of the file
    and is taken only where the start is no UTF-8.
    """
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if _is_utf8(start):
        return "utf-8"
    multibyte = re.compile(rb"[\xc3-\xf4][\x80-\xbf]")
    return "utf-8" if any(multibyte.search(part) for part in whole) else "cp1252"


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start > len(start) - 4 and error.reason == "unexpected end of data"
    return True


def find(text: str, standard: Dialect, options: Mapping[str, str], wanted: Sequence[str]) -> Dialect:
    """The separator of a file with this beginning: the standard one, unless only another gives the columns wanted."""
    if "separator" in options:
        return replace(standard, separator=options["separator"])
    names = _header(text, standard.separator)
    if set(wanted) <= set(names):
        return standard
    folded = {fold(name) for name in wanted}

    def met(separator: str) -> tuple[int, int]:
        found = _header(text, separator)
        return len(folded & {fold(name) for name in found}), len(found)

    best = max((sign for sign in SEPARATORS if sign != standard.separator), key=met)
    return replace(standard, separator=best) if met(best) > met(standard.separator) else standard


def look(text: str, dialect: Dialect, options: Mapping[str, str], found: Mapping[str, str]) -> tuple[Dialect, bool]:
    """The rest of the dialect, from the first rows; `found` says which of our columns is which of theirs.

    Also whether a day stands without a time.
    """
    rows = _rows(text, dialect.separator)
    names = rows[0] if rows else []
    column = {
        ours: [row[names.index(theirs)].strip() for row in rows[1:] if len(row) == len(names)]
        for ours, theirs in found.items()
        if theirs in names
    }
    numbers = [value for ours, cells in column.items() if ours not in NOT_METRICS for value in cells]
    times = [value for value in column.get("observed_at", []) if value]
    thousands, decimal = _grouping(numbers, options.get("decimal"))
    dialect = replace(
        dialect,
        decimal=decimal or options.get("decimal") or _decimal(numbers),
        thousands=thousands,
        may_be_thousands=_may_be_thousands(numbers),
        dates=options.get("dates") or _dates(times),  # type: ignore[arg-type]  # checked when declared
        outcomes=_words(options["outcomes"]) if "outcomes" in options else _outcomes(column.get("outcome", [])),
    )
    return dialect, dialect.dates is not None and any(":" not in value for value in times)


def _rows(text: str, separator: str) -> list[list[str]]:
    """The first rows, as far as they can be read."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            rows.append(row)
            if len(rows) > SAMPLE_ROWS:
                break
    except csv.Error:
        pass
    return rows


def _decimal(numbers: Sequence[str]) -> str:
    """A comma where numbers have one and none has a point; 1,234 alone may be a thousand, and is not guessed."""
    commas = [value for value in numbers if DECIMAL_COMMA.fullmatch(value)]
    telling = any(not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", value) for value in commas)
    return "," if telling and not any("." in value for value in numbers) else "."


def _grouped(thousands: str, decimal: str) -> str:
    return rf"[+-]?\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+(?:{re.escape(decimal)}\d+)?"


def _grouping(numbers: Sequence[str], declared: str | None) -> tuple[str, str | None]:
    """The sign between thousands with the decimal sign beside it; none where it could be the decimal sign itself.

    1.234 alone may be a thousand or one; 1.234,5 and 1.234.567 can be read in one way only.
    """
    for sign, decimals in THOUSANDS:
        grouped = [value for value in numbers if sign in value]
        for decimal in decimals if grouped else "":
            form, plain = _grouped(sign, decimal), rf"[+-]?\d+(?:{re.escape(decimal)}\d+)?"
            telling = sign not in ".," or any(decimal in value or value.count(sign) > 1 for value in grouped)
            if not telling or declared not in (None, decimal):
                continue
            if all(re.fullmatch(form if sign in value else plain, value) for value in numbers if value):
                return sign, decimal
    return "", None


def _may_be_thousands(numbers: Sequence[str]) -> bool:
    pointed = [value for value in numbers if "." in value]
    return bool(pointed) and all(re.fullmatch(r"[+-]?[1-9]\d{0,2}[.]\d{3}", value) for value in pointed)


def _dates(times: Sequence[str]) -> Dates | None:
    """The form of the times, if the order of day and month can be told; a few without it are then refused by row."""
    if times and sum(ISO_DAY.fullmatch(value) is not None for value in times) >= MOST * len(times):
        return "yyyy-mm-dd"
    found = [DAY_AND_TIME.fullmatch(value) for value in times]
    matches = [match for match in found if match]
    if not matches or len(matches) < MOST * len(times):
        return None
    if all(match["sep"] == "." for match in matches):
        return "dd.mm.yyyy"
    first, second = max(int(match["a"]) for match in matches), max(int(match["b"]) for match in matches)
    if first > 12 >= second:
        return "dd/mm/yyyy"
    return "mm/dd/yyyy" if second > 12 >= first else None


def _outcomes(cells: Sequence[str]) -> tuple[str, str] | None:
    """A pair of words that all of the outcomes are, one of them for a success."""
    seen = {value.lower() for value in cells if value}
    return next((pair for pair in WORDS if seen and seen <= set(pair)), None)


def _words(option: str) -> tuple[str, str]:
    success, failure = option.lower().split("/")
    return success.strip(), failure.strip()


def names_separator(text: str) -> str | None:
    """The separator that a first line `sep=;` names, as spreadsheets write for each other; None without such a line."""
    found = re.match(r"\ufeff?sep=([^\w\s\"]|\t)\r?\n", text, re.IGNORECASE)
    return found[1] if found else None


def _header(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error:
        return []


def fold(name: str) -> str:
    """A column's name without what people write differently."""
    return re.sub(r"[\s_\-.]", "", name).casefold()


def is_header(names: Sequence[str]) -> bool:
    """Whether a first line can be shown: one that holds a number or an outcome is somebody's row."""
    words = {word for pair in WORDS for word in pair} | {"true", "false", ""}
    return not any(
        re.fullmatch(r"[+-]?[\d.,:/ TZ-]*\d[\d.,:/ TZ-]*", name) or name.strip().lower() in words for name in names
    )
