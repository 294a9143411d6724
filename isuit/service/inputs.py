"""The small files beside a cohort: an expert's curve and the sites' coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isuit.documents import read_text
from isuit.domain import check_label
from isuit.errors import InputError
from isuit.ingest import Query, parse_csv, parse_mapping
from isuit.release.policy import read_policy as read_policy_file
from isuit.store.sites import Coordinates
from isuit.tables import read_table

__all__ = [
    "Query",
    "checked_label",
    "checked_points",
    "cohort_source",
    "dimension_of",
    "parse_csv",
    "parse_mapping",
    "read_anchor",
    "read_policy",
    "read_sites",
]

Points = tuple[tuple[float, float], ...]
CURVE_KEYS = ("points", "curve", "suitability")  # where a profile keeps the curve of a dimension
POINT_KEYS = ("x", "metric", "value")
LONGEST_LABEL = 100
ANCHOR, SITES = "the file of --anchor", "the file of --sites"


def cohort_source(files: Sequence[str], query: str | None) -> Sequence[str] | Query:
    """The files that are named, or, with a query, what it gives: then the one name is a database's address."""
    if query is None:
        return files
    if len(files) != 1:
        raise InputError("--query is asked of one database: give its address, and nothing else, as the cohort")
    return Query(files[0], query)


def dimension_of(metrics: Sequence[str] | None) -> str:
    """What the metric measures where nobody says it: of several, their names."""
    named = " + ".join(sorted(metrics or []))
    return named if metrics and len(metrics) > 1 and len(named) <= LONGEST_LABEL else "metric"


def read_anchor(path: Path, activity: str, dimension: str) -> Points:
    """An expert's suitability curve: (x, suitability) points as CSV or JSON, or a profile that holds such a curve.

    A profile is YAML or JSON: `{dimension: points}`, below `dimensions` or `curves` or not, with the points themselves
    or under `points`, `curve` or `suitability`; or `{activities: {activity: {dimension: ...}}}`.
    """
    if path.suffix.lower() in (".csv", ".tsv"):
        points = _csv_points(_text(path), "\t" if path.suffix.lower() == ".tsv" else ",")
    else:
        from isuit.documents.yaml import read_document

        points = _pairs(_curve(read_document(path, ANCHOR), activity, dimension))
    return checked_points(points)


def read_anchors(path: Path, activity: str, metrics: Sequence[str]) -> tuple[tuple[str, Points], ...]:
    """Of several metrics the curves that a profile has of them, by name; one at least."""
    if path.suffix.lower() in (".csv", ".tsv"):
        raise InputError("--anchor of several metrics is a profile with a curve for each by name, as JSON or YAML")
    found = []
    for name in sorted(metrics):
        try:
            found.append((name, read_anchor(path, activity, name)))
        except NoCurve:
            continue
    if not found:
        raise NoCurve("the profile of --anchor has a curve for none of the metrics; name its curves as the metrics are")
    return tuple(found)


class NoCurve(InputError):
    """A profile that has no curve of this name."""


def _text(path: Path) -> str:
    try:
        return read_text(path, ANCHOR)
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{ANCHOR} cannot be read; check its path and that it is text in UTF-8") from None


def _curve(document: Any, activity: str, dimension: str) -> Any:
    """The list of points in a profile."""
    if isinstance(document, Mapping) and isinstance(document.get("activities"), Mapping):
        document = document["activities"].get(activity)
        if document is None:
            raise InputError("the profile of --anchor has no such activity; name one of its activities with --activity")
    if isinstance(document, Mapping):
        for key in ("dimensions", "curves"):
            if isinstance(document.get(key), Mapping):
                document = document[key]
        if dimension in document:
            document = document[dimension]
        elif not any(key in document for key in CURVE_KEYS):
            raise NoCurve(
                f"the profile of --anchor has no curve for the dimension {dimension!r}; name one of its dimensions "
                "with --dimension"
            )
        if isinstance(document, Mapping):
            document = next((document[key] for key in CURVE_KEYS if key in document), None)
    if not isinstance(document, list):
        raise InputError("--anchor must hold a list of (x, suitability) points; see docs/how-to for the forms it takes")
    return document


def _pairs(entries: list[Any]) -> list[tuple[Any, Any]]:
    points = []
    for entry in entries:
        if isinstance(entry, Mapping):
            x = next((entry[key] for key in POINT_KEYS if key in entry), None)
            points.append((x, entry.get("suitability")))
        elif isinstance(entry, list) and len(entry) == 2:
            points.append((entry[0], entry[1]))
        else:
            raise InputError("every point of --anchor must be a pair (x, suitability)")
    return points


def _csv_points(text: str, separator: str) -> list[tuple[Any, Any]]:
    from isuit.documents.tables import csv_rows

    lines = csv_rows(text, ANCHOR, separator)
    if not lines:
        raise InputError("the file of --anchor is empty; it needs at least two points (x, suitability)")
    names = [name.strip().lower() for name in lines[0]]
    columns = (0, 1)
    if not _is_number(lines[0][0]):
        lines = lines[1:]
        if "suitability" in names:
            x = next((names.index(key) for key in POINT_KEYS if key in names), 0)
            columns = (x, names.index("suitability"))
    if any(len(line) <= max(columns) for line in lines):
        raise InputError("every line of --anchor must hold x and suitability")
    return [(line[columns[0]], line[columns[1]]) for line in lines]


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, bool)


def checked_points(points: list[tuple[Any, Any]]) -> Points:
    """Sorted by x, finite, in range, at least two, and a function."""
    if not all(_is_number(x) and _is_number(s) for x, s in points):
        raise InputError("--anchor holds a point that is no pair of numbers; correct it")
    numbers = sorted({(float(x) + 0.0, float(s) + 0.0) for x, s in points})
    if not all(math.isfinite(x) and math.isfinite(s) for x, s in numbers):
        raise InputError("--anchor holds a point that is not finite; correct it")
    if any(not 0 <= s <= 1 for _, s in numbers):
        raise InputError("--anchor holds a suitability outside 0 to 1; an expert's suitability is between them")
    if len({x for x, _ in numbers}) < len(numbers):
        raise InputError("--anchor is not a function: one x has two suitabilities; keep one of them")
    if len(numbers) < 2:
        raise InputError("--anchor needs at least two points (x, suitability)")
    return tuple(numbers)


def read_sites(path: Path) -> dict[str, Coordinates]:
    """Coordinates by site, from a table with the columns site, latitude and longitude."""
    import pyarrow as pa

    table = read_table(path, text_columns=["site"])
    if any(table.column_names.count(name) != 1 for name in ("site", "latitude", "longitude")):
        raise InputError(f"{SITES} needs the columns site, latitude and longitude, each of them once")
    try:
        names = table.column("site").cast(pa.string()).to_pylist()
        latitudes = table.column("latitude").cast(pa.float64()).to_pylist()
        longitudes = table.column("longitude").cast(pa.float64()).to_pylist()
    except pa.ArrowException:
        raise InputError(
            f"{SITES} cannot be read; it must hold site, and latitude and longitude as numbers in degrees"
        ) from None
    return checked_sites(zip(names, latitudes, longitudes, strict=True))


def sites_of(given: Mapping[str, Coordinates]) -> dict[str, Coordinates]:
    """Coordinates that a caller of the Python interface gives, validated like those of a file."""
    try:
        rows = [(site, float(latitude), float(longitude)) for site, (latitude, longitude) in given.items()]
    except (TypeError, ValueError):
        raise InputError("sites maps each site's name to its latitude and longitude in degrees") from None
    if not all(isinstance(site, str) for site, *_ in rows):
        raise InputError("sites maps each site's name to its latitude and longitude in degrees")
    return checked_sites(rows)


def checked_sites(found: Iterable[tuple[str | None, float | None, float | None]]) -> dict[str, Coordinates]:
    sites: dict[str, Coordinates] = {}
    for row, (site, latitude, longitude) in enumerate(found, start=1):
        if not site or latitude is None or longitude is None:
            raise InputError(f"row {row} of --sites lacks a site, a latitude or a longitude; complete or remove it")
        # Written so that NaN fails too.
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise InputError(
                f"row {row} of --sites has coordinates out of range; latitude is -90 to 90, longitude -180 to 180"
            )
        place = (latitude + 0.0, longitude + 0.0)
        if sites.setdefault(site, place) != place:
            raise InputError(f"row {row} of --sites gives a site a second place; keep one row for each site")
    return sites


def checked_label(text: str, option: str) -> str:
    """An activity or a dimension as it was typed, without the spaces around it."""
    label = text.strip() if isinstance(text, str) else text
    check_label(label, option)
    return label


def read_policy(path: Path) -> dict[str, Any]:
    """A disclosure policy from JSON or YAML: any of its fields, the others as they are by default."""
    return read_policy_file(path).model_dump()
