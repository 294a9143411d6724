"""Makes vectors.json and vectors-c2.json, the test vectors of docs/canonical-form.md.

    python tests/golden/make_vectors.py

It uses the standard-library implementation beside it, and nothing of isuit: the vectors test isuit, not the reverse.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "independent"))

from canonical import canonical, cohort_hash  # noqa: E402  # found through the line above

NOON = "2024-05-01T12:00:00Z"


def one(rider="r", site="s", observed_at=NOON, metric="1.5", outcome=1):
    return [rider, site, observed_at, metric, outcome]


def two(wind_kn, wave_m):
    return one(metric={"wind_kn": wind_kn, "wave_m": wave_m})


VECTORS = {
    "one outcome with every field": [one()],
    "no site": [one(site=None)],
    "no time": [one(observed_at=None)],
    "neither site nor time": [one(site=None, observed_at=None)],
    "the example of the specification": [
        one("ab", "Tarifa", "2024-05-01T09:30:00+02:00", "18.5", True),
        one("a", None, None, "-0.0", 0),
        one("ab", "Århus", "1969-12-31T23:59:59.999999Z", "5e-324", 1),
    ],
    "outcome 0": [one(outcome=0)],
    "outcomes as booleans": [one(outcome=True), one(outcome=False)],
    "metric -0.0 is 0.0": [one(metric="-0.0")],
    "metric 0.0": [one(metric="0.0")],
    "zeros of both signs are equal, and twice": [one(metric="0.0"), one(metric="-0.0")],
    "smallest subnormal": [one(metric="5e-324")],
    "largest subnormal": [one(metric="2.225073858507201e-308")],
    "smallest normal": [one(metric="2.2250738585072014e-308")],
    "largest finite": [one(metric="1.7976931348623157e308")],
    "negative metrics sort after positive ones": [one(metric=text) for text in ("-1", "-2", "1", "2", "0")],
    "0.1 is the nearest binary64": [one(metric="0.1")],
    "0.1 + 0.2 is not 0.3": [one(metric="0.30000000000000004"), one(metric="0.3")],
    "a float32's value": [one(metric="0.100000001490116119384765625")],
    "ties to even: 2^53 + 1 as decimal text": [one(metric="9007199254740993")],
    "more digits than a binary64 holds": [one(metric="3.14159265358979323846264338327950288")],
    "metric in exponent notation": [one(metric="1.85e1"), one(metric="18.5")],
    "duplicates are kept": [one(), one(), one()],
    "duplicates among others": [one("b"), one("a"), one("b"), one("a", outcome=0)],
    "riders that are prefixes of each other": [one(text) for text in ("ab", "a", "abc", "a b", "a!", "b")],
    "sites that are prefixes of each other": [one(site=text) for text in ("s1", "s", "s 1", "s!", None, "t")],
    "null site before every site": [one(site=None), one(site="!"), one(site="0")],
    "null time before every time": [one(observed_at=None), one(observed_at="0001-01-01T00:00:00Z")],
    "digits as text: 10 before 9, 007 is not 7": [one(text) for text in ("9", "10", "007", "7")],
    "upper case before lower case": [one(text) for text in ("a", "B", "b", "A")],
    "words that other formats read as null": [one(text, text) for text in ("null", "NA", "NaN", "None", "NULL", "-")],
    "two-byte text": [one("Åsa", "Malmö"), one("Åse", "Århus"), one("Asa", "Arhus")],
    "three-byte text": [one("波", "湘南"), one("バリ", "鎌倉")],
    "four-byte text sorts after U+FFFD, unlike in UTF-16": [one("\U0001f3c4"), one("\ufffd"), one("\uff5e"), one("z")],
    "look-alikes are different riders": [one("a"), one("а"), one("ａ")],
    "white space inside": [one("a b", "north  shore"), one("a\u00a0b")],
    "a zero-width joiner and a variation selector": [one("🏄‍♀️"), one("🏄")],
    "a byte order mark is no white space": [one("\ufeffa")],
    "a mark that has no composed form": [one("q\u0301")],
    "right-to-left text": [one("שלום", "חיפה")],
    "quotes, commas and backslashes": [one('a"b', "x,y"), one("a\\tb", "'s'")],
    "microseconds": [one(observed_at=f"2024-05-01T12:00:00.{text}Z") for text in ("000001", "999999", "5", "000000")],
    "an offset is an instant": [one(observed_at="2024-05-01T14:00:00+02:00"), one(observed_at=NOON)],
    "an offset across midnight and a year": [
        one(observed_at="2024-12-31T23:30:00-05:00"),
        one(observed_at="2024-01-01T00:15:00+05:45"),
    ],
    "before 1970": [one(observed_at="1969-12-31T23:59:59.999999Z"), one(observed_at="1850-01-01T00:00:00Z")],
    "first and last instant": [
        one(observed_at="0001-01-01T00:00:00.000000Z"),
        one(observed_at="9999-12-31T23:59:59.999999Z"),
    ],
    "leap days": [one(observed_at="2000-02-29T00:00:00Z"), one(observed_at="2024-02-29T23:59:59Z")],
    "years with fewer than four digits": [
        one(observed_at="0099-06-01T00:00:00Z"),
        one(observed_at="0999-06-01T00:00:00Z"),
    ],
    "integers as riders and sites": [one(42, -7), one(-1, 0), one(9007199254740991, 1)],
    "every field breaks a tie": [
        one("a", "s", NOON, "1", 0),
        one("a", "s", NOON, "1", 1),
        one("a", "s", NOON, "2", 0),
        one("a", "s", "2024-05-01T12:00:00.000001Z", "1", 0),
        one("a", "t", NOON, "1", 0),
        one("b", "s", NOON, "1", 0),
    ],
    "a thousand outcomes": [
        one(f"r{i * 7919 % 1000 % 37}", f"s{i % 5}", None, str(i * 7919 % 1000 / 8), i % 3 == 0) for i in range(1000)
    ],
}

C2_VECTORS = {
    "two metrics": [two("18.5", "1.2")],
    "the example of the specification": [
        ["ab", "Tarifa", "2024-05-01T09:30:00+02:00", {"wind_kn": "18.5", "wave_m": "0.5"}, True],
        ["a", None, None, {"wind_kn": "-0.0", "wave_m": "1.2"}, 0],
        ["ab", "Tarifa", "2024-05-01T07:30:00Z", {"wind_kn": "18", "wave_m": "0.5"}, 1],
    ],
    "names sort as bytes: Z before a, ~ before Å": [
        one(metric={"a": "1", "Z": "2", "Å": "3", "~": "4"}),
        one(metric={"a": "5", "Z": "2", "Å": "3", "~": "4"}),
    ],
    "a name of four bytes sorts after U+FFFD, unlike in UTF-16": [
        one(metric={"\U0001f3c4": "1", "\ufffd": "2", "\uff5e": "3"})
    ],
    "names with spaces and signs": [one(metric={"wind (kn)": "1", "wind/gust": "2", "wind, mean": "3"})],
    "one metric with a name is isuit-c1": [one(metric={"wind_kn": "1.5"})],
    "the same numbers under other names are another cohort": [one(metric={"gust_kn": "18.5", "swell_m": "1.2"})],
    "zeros of both signs in every metric": [two("-0.0", "-0.0"), two("0.0", "0.0"), two("-0.0", "0.0")],
    "the first metric sorts before the second": [two("2", "1"), two("1", "2"), two("1", "-1"), two("-1", "1")],
    "duplicates are kept, of all metrics": [two("1", "1"), two("1", "1"), two("1", "2")],
    "neither site nor time, of two metrics": [one(site=None, observed_at=None, metric={"x": "5e-324", "y": "-1e308"})],
    "six metrics": [one(metric={f"m{k}": str(k / 8) for k in range(6)}, outcome=k % 2) for k in range(3)],
    "every field breaks a tie, of two metrics": [
        ["a", "s", NOON, {"x": "1", "y": "1"}, 0],
        ["a", "s", NOON, {"x": "1", "y": "1"}, 1],
        ["a", "s", NOON, {"x": "1", "y": "2"}, 0],
        ["a", "s", NOON, {"x": "2", "y": "1"}, 0],
        ["a", "t", NOON, {"x": "1", "y": "1"}, 0],
        ["b", "s", NOON, {"x": "1", "y": "1"}, 0],
    ],
    "a thousand outcomes of three metrics": [
        one(
            f"r{i * 7919 % 37}",
            f"s{i % 5}",
            None,
            {"x": str(i % 7), "y": str(-(i * 7919 % 11)), "z": str(i * 31 % 5 / 8)},
            i % 3 == 0,
        )
        for i in range(1000)
    ],
}


def vectors(of):
    for shows, outcomes in of.items():
        vector = {"shows": shows, "outcomes": outcomes, "cohort_hash": cohort_hash(outcomes)}
        if len(outcomes) < 100:
            vector["canonical"] = canonical(outcomes).decode()
        yield vector


def text(of) -> str:
    """One vector per line, so that a change shows as a changed line."""
    return "[\n" + ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors(of)) + "\n]\n"


if __name__ == "__main__":
    (HERE / "vectors.json").write_text(text(VECTORS), encoding="utf-8")
    (HERE / "vectors-c2.json").write_text(text(C2_VECTORS), encoding="utf-8")
