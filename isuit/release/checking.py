"""The check of a release's file by itself: rows, digest, schema and proof.

Whoever reads the atlas has no store and should not wait for what makes a release: of the libraries only those are
imported that the file's own format needs, and for JSON Lines none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isuit.audit.notes import VerifierKey
from isuit.documents import UnsafeDocument, finite, from_json, from_json_lines, read_bytes
from isuit.documents.notation import Refused, integer
from isuit.documents.schema import Schema, violations
from isuit.errors import InputError
from isuit.release.format import line_of, lines_digest
from isuit.release.names import FLOATS, INTEGERS, METADATA_KEY, format_of, metadata_path
from isuit.release.proof import unproved
from isuit.schemas import published_schema  # type: ignore[import-not-found]  # in the tree it is schemas/

if TYPE_CHECKING:
    from isuit.published.releases import Format

RELEASE = "the release"  # how a refusal calls it
LARGEST = 256 << 20  # bytes; a row takes about 400
MOST_LISTED = 20  # rows that are named one by one


@dataclass(frozen=True)
class ReadRelease:
    """A file as it was read: rows and metadata still unchecked."""

    rows: list[Any]
    metadata: Any  # None where it is missing


@dataclass(frozen=True)
class Checked:
    """What a check found, with the fields of the published report (`ReleaseCheck`)."""

    format: Format
    rows: int
    problems: list[str]
    release: str | None = None
    digest: str | None = None
    origin: str | None = None
    key: str | None = None
    trusted: bool = False

    @property
    def ok(self) -> bool:
        return not self.problems


def _damage(kind: Format) -> tuple[type[Exception], ...]:
    """What a file may raise that holds other values than a release's. H3 takes a cell of 400 digits for an integer."""
    found = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
    if kind == "jsonl":
        return found
    import h3
    import pyarrow as pa

    return (*found, pa.ArrowException, h3.H3BaseException)


def check_file(path: Path, trusted: VerifierKey | None = None) -> Checked:
    """Row count, digest, schema and proof of a release's file; every problem is listed, none quotes a value.

    With a key that is trusted the file must prove that a log under this key has the release.
    """
    kind = format_of(path)
    readers: dict[Format, Callable[[Path], ReadRelease]] = {
        "jsonl": _read_jsonl,
        "csv": _read_csv,
        "geojson": _read_geojson,
        "geoparquet": _read_geoparquet,
        "html": _read_page,
    }
    try:
        found = readers[kind](path)
    except OSError:
        raise InputError("the release cannot be read; check its path and, for a CSV, its metadata file.") from None
    except Refused as error:
        raise UnsafeDocument(f"{RELEASE} {error}") from None
    except _damage(kind) as error:
        problem = f"the file is damaged or cut short: it cannot be read as {kind} ({type(error).__name__})"
        return Checked(kind, 0, [problem])
    problems: list[str] = []
    schema = published_schema("release-row")
    rows = list(_following(schema, found.rows, "row", problems))
    digest = lines_digest(line_of(row, schema["properties"]) for row in rows)
    metadata = None
    if found.metadata is None:
        problems.append("the metadata are missing: the file is cut short, or its metadata file is not beside it")
    else:
        described = _following(published_schema("release-metadata"), [found.metadata], "metadata", problems)
        metadata = next(described, None)
    if metadata is not None:
        problems.extend(_disagreements(rows, len(found.rows), digest, metadata))
        problems.extend(unproved(metadata, digest, trusted))
    key = ((metadata or {}).get("proof") or {}).get("key")
    return Checked(
        kind,
        len(found.rows),
        problems,
        release=None if metadata is None else metadata["release"],
        digest=digest,
        origin=None if key is None else key.partition("+")[0],
        key=key,
        trusted=trusted is not None and key is not None and not problems,
    )


def _disagreements(rows: list[dict[str, Any]], number: int, digest: str, metadata: dict[str, Any]) -> Iterator[str]:
    if number != (told := metadata["rows"]):
        yield f"the file has {number} rows and its metadata speak of {told}: rows are missing or were added"
    if digest != metadata["digest"]:
        yield "the rows do not have the digest in the metadata: a row was changed, added, moved or removed"
    if len({row["h3"] for row in rows}) != metadata["cells"]:
        yield "the number of cells is not the one in the metadata"
    if any(row["release"] != metadata["release"] for row in rows):
        yield "rows and metadata name different releases"
    keys = [(row["activity"], row["dimension"], row["h3"], row["metric"]) for row in rows]
    if keys != sorted(set(keys)):
        yield "the rows are not sorted by activity, dimension, cell and metric, or one is there twice"


def _following(schema: Schema, values: list[Any], what: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The values that follow a schema; of the others the first are named."""
    wrong = 0
    for number, value in enumerate(values, start=1):
        broken = violations(schema, value)
        if not broken:
            yield value
            continue
        wrong += 1
        if wrong <= MOST_LISTED:
            # A name that is no field is content of the file, and not repeated.
            known = {name: name for name in schema["properties"]} | {"": what}
            named = sorted({known.get(name, "a name that is no field") for name in broken})
            problems.append(f"{what} {number} does not follow the schema: {', '.join(named)}")
    if wrong > MOST_LISTED:
        problems.append(f"{wrong - MOST_LISTED} more of {what} do not follow the schema")


def _read_jsonl(path: Path) -> ReadRelease:
    content = read_bytes(path, RELEASE, LARGEST)
    if not content:
        raise ValueError("the file is empty")
    documents = from_json_lines(content, RELEASE)
    last = documents[-1] if documents else None
    if isinstance(last, dict) and last.get("metadata") is True:
        return ReadRelease(documents[:-1], last)
    return ReadRelease(documents, None)


def _read_page(path: Path) -> ReadRelease:
    from isuit.release.page import read_page

    return ReadRelease(*read_page(path))


def _read_csv(path: Path) -> ReadRelease:
    from isuit.documents.tables import csv_rows

    lines = csv_rows(read_bytes(path, RELEASE, LARGEST).decode("utf-8"), RELEASE)
    names = lines[0] if lines else []
    if len(set(names)) < len(names) or any(len(line) != len(names) for line in lines):
        raise ValueError("a line has not the fields of the header")
    rows = [_typed(dict(zip(names, line, strict=True))) for line in lines[1:]]
    beside = metadata_path(path)
    about = from_json(read_bytes(beside, "the metadata file of the release"), RELEASE) if beside.exists() else None
    return ReadRelease(rows, about)


def _typed(row: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in row.items():
        if name in (*FLOATS, *INTEGERS) or name == "units":
            number = integer if name in INTEGERS else str if name == "units" else finite
            found[name] = number(text) if text else None
        else:
            found[name] = text
    return found


def _read_geojson(path: Path) -> ReadRelease:
    from isuit.release.cells import shape

    document = from_json(read_bytes(path, RELEASE, LARGEST), RELEASE)
    rows = [feature["properties"] for feature in document["features"]]
    for feature in document["features"]:
        outline = shape(feature["properties"]["h3"])
        if feature["geometry"] != (None if outline is None else outline.geojson()):
            raise ValueError("a geometry is not its cell's")
    return ReadRelease(rows, document.get("metadata"))


def _read_geoparquet(path: Path) -> ReadRelease:
    from isuit.documents.tables import read_parquet
    from isuit.release.cells import shape

    table, footer = read_parquet(path, RELEASE)
    outlines = table.column("geometry").to_pylist()
    rows = table.drop_columns(["geometry"]).to_pylist()
    for row, geometry in zip(rows, outlines, strict=True):
        outline = shape(row["h3"])
        if geometry != (None if outline is None else outline.wkb()):
            raise ValueError("a geometry is not its cell's")
    from_json(footer[b"geo"], RELEASE)
    return ReadRelease(rows, from_json(footer[METADATA_KEY], RELEASE) if METADATA_KEY in footer else None)
