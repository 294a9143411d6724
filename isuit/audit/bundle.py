"""What an auditor takes away: one fit, its curves, the log up to a head, and on request the canonical cohort.

Every file is plain text that other tools read. `manifest.json` has their SHA-256; `cohort.tsv` is the canonical form,
so its own SHA-256 is the cohort hash. A bundle is checked without the store: `read_bundle` rebuilds the two tables
in memory and holds them against the log's events.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from isuit.audit.digests import rows_digest
from isuit.audit.log import GENESIS, Event, instant
from isuit.documents import finite, from_json, from_json_lines, read_bytes, require_regular
from isuit.documents.records import record_of
from isuit.documents.tables import csv_rows
from isuit.errors import InputError
from isuit.files import whole_directory
from isuit.published import FIT, HASH
from isuit.store.fits import StoredFit, insert_atlas, insert_fit
from isuit.store.migrations import tables
from isuit.store.paths import DIRECTORY_MODE

COLUMNS = ("site", "metric", "difficulty", "difficulty_se", "suitability")
SEVERAL = ("site", "dimension", *COLUMNS[1:])  # of several metrics, each of which has its curves
FILES = {"README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl"}
LARGEST_LOG = 256 << 20  # bytes; an event takes about 500
VERSION = r"^[0-9A-Za-z.+_-]{1,40}$"
README = """\
# One fit of an isuit store

- `fit.json`: the record: configuration, estimator version, gates, discrimination, parameters, result digest
- `atlas.csv`: its curves; numbers are written so that reading them gives the same bits
- `log.jsonl`: the store's log up to the head in `manifest.json`, one event per line, each naming the head before it
- `manifest.json`: the SHA-256 of every file here
- `cohort.tsv`, if it is here: the outcomes in the canonical form `isuit-c1`; personal data, to be kept as such

To check it:

    sha256sum cohort.tsv                        # the cohort hash, without its isuit-c1: prefix
    isuit rederive --bundle .                   # with cohort.tsv here
    isuit rederive --bundle . --cohort FILE     # with your own copy of the cohort

The second and third check the files, the chain, the record against the log, and fit again. This is in-house material:
curves at full precision are not for publication.
"""


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and agrees with itself."""

    record: StoredFit
    atlas: pa.Table
    cohort: Path | None
    log_head: str


def write_bundle(
    directory: Path,
    record: StoredFit,
    atlas: pa.Table,
    events: list[Event],
    cohort: Iterable[bytes | memoryview] | None,
    about: dict[str, Any],
) -> list[str]:
    """Write a bundle into a new or empty directory, whole or not at all; the names of its files."""
    with whole_directory(directory, DIRECTORY_MODE) as building:
        (building / "README.md").write_text(README)
        (building / "fit.json").write_text(json.dumps(_record_json(record), indent=1, ensure_ascii=False) + "\n")
        columns = SEVERAL if len(set(atlas.column("dimension").to_pylist())) > 1 else COLUMNS
        (building / "atlas.csv").write_bytes(_curves_csv(atlas, columns))
        with (building / "log.jsonl").open("w") as log:
            log.writelines(json.dumps(event.as_json(), ensure_ascii=False) + "\n" for event in events)
        if cohort is not None:
            with (building / "cohort.tsv").open("wb") as file:
                file.writelines(cohort)
        files = sorted(path.name for path in building.iterdir())
        digests = {name: _sha256(building / name) for name in files}
        manifest = about | {"log_head": events[-1].head, "with_cohort": cohort is not None, "files": digests}
        (building / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return [*files, "manifest.json"]


def _record_json(record: StoredFit) -> dict[str, Any]:
    """Every column; JSON columns stay text, because their bytes are what the log's digest covers."""
    return asdict(record) | {"recorded_at": instant(record.recorded_at)}


def _curves_csv(atlas: pa.Table, columns: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in atlas.select(list(columns)).to_pylist():
        # repr gives the shortest text that reads back as the same bits.
        writer.writerow(
            [
                "" if value is None else value if name in ("site", "dimension") else repr(value)
                for name, value in row.items()
            ]
        )
    return text.getvalue().encode()


def read_bundle(directory: Path) -> Bundle:
    """Read a bundle and check it: files, chain, and the record and curves against the log.

    It comes from elsewhere: anything in it may have been made to mislead, to hang or to fill memory.
    """
    try:
        manifest = from_json(read_bytes(directory / "manifest.json", "manifest.json"), "manifest.json")
        if manifest["files"].keys() - FILES:
            raise InputError("the bundle's manifest names files that no bundle has; ask for it again")
        if any((directory / name).exists() for name in FILES - manifest["files"].keys()):
            raise InputError("the bundle has files that its manifest does not name; ask for it again")
        wrong = [name for name, digest in manifest["files"].items() if _sha256(directory / name) != digest]
        if wrong:
            raise InputError(f"the bundle is damaged: {', '.join(sorted(wrong))} is not what its manifest says")
        record = _read_record(directory / "fit.json")
        atlas = _read_atlas(directory / "atlas.csv")
        lines = from_json_lines(read_bytes(directory / "log.jsonl", "log.jsonl", LARGEST_LOG), "log.jsonl")
        head = str(manifest["log_head"])
        _check(record, atlas, [_event(event) for event in lines], head)
        cohort = directory / "cohort.tsv"
        named = {"fit_id": record.fit_id, "cohort_hash": record.cohort_hash, "with_cohort": cohort.exists()}
        if any(manifest[name] != value for name, value in named.items()):
            raise InputError("the bundle's manifest is about another bundle; ask for it again")
        if cohort.exists() and _sha256(cohort) != record.cohort_hash.partition(":")[2]:
            raise InputError("the bundle's cohort does not have the hash of the fit's: this is another cohort")
        return Bundle(record, atlas, cohort if cohort.exists() else None, head)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, duckdb.Error) as error:
        raise InputError(f"{directory} is not a whole bundle ({type(error).__name__}); ask for it again") from None


def _check(record: StoredFit, atlas: pa.Table, events: list[Event], head: str) -> None:
    previous = GENESIS
    for place, event in enumerate(events, start=1):
        if event.sequence != place or event.previous != previous or event.computed_head() != event.head:
            raise InputError("the bundle's log is not a chain: an event was changed or is missing")
        previous = event.head
    if previous != head:
        raise InputError("the bundle's log does not end with the head of its manifest")
    recorded = [event.content for event in events if event.kind == "fit-recorded"]
    logged = [content for content in recorded if content["fit_id"] == record.fit_id]
    connection = duckdb.connect()
    try:
        tables(connection)
        insert_fit(connection, record)
        insert_atlas(connection, record.fit_id, record.activity, record.dimension, atlas)
        digests = {name: rows_digest(connection, name, [record.fit_id]) for name in ("ledger.fits", "atlas.difficulty")}
    finally:
        connection.close()
    if [content["rows_digest"] for content in logged] != [digests]:
        raise InputError("the bundle's record or curves are not the ones that its log speaks of")


def _event(values: dict[str, Any]) -> Event:
    payload = json.dumps(values["payload"]) if isinstance(values["payload"], dict) else None
    return record_of(Event, values | {"at": _time(values["at"]), "payload": payload})


def _time(text: str) -> datetime:
    """An instant in the one spelling of the log: `strptime` alone takes a space for a zero."""
    time = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    if instant(time) != text:
        raise ValueError("a time is spelled otherwise")
    return time


def _read_record(path: Path) -> StoredFit:
    values = from_json(read_bytes(path, path.name), path.name)
    values["recorded_at"] = _time(values["recorded_at"])
    record = record_of(StoredFit, values)
    for text, form in (
        (record.fit_id, FIT),
        (record.cohort_hash, HASH),
        (record.estimator_version, VERSION),
        (record.tool_version, VERSION),
    ):
        if re.fullmatch(form, text) is None:  # these are printed, so they are nothing else
            raise ValueError("an identifier is none")
    return record


def _read_atlas(path: Path) -> pa.Table:
    content = read_bytes(path, path.name)
    lines = csv_rows(content.decode(), path.name)
    names = tuple(lines[0]) if lines else ()
    if names not in (COLUMNS, SEVERAL) or any(len(line) != len(names) for line in lines):
        raise ValueError("a line has not the fields of the header")
    columns = {name: pa.nulls(len(lines) - 1, pa.string()) for name in ("site", "dimension")}
    for place, name in enumerate(names):
        if name in columns:
            columns[name] = pa.array([line[place] or None for line in lines[1:]], pa.string())
            continue
        columns[name] = pa.array([finite(line[place]) if line[place] else None for line in lines[1:]], pa.float64())
    atlas = pa.table(columns)
    if _curves_csv(atlas, names) != content:  # another spelling of the same numbers is not what was written
        raise ValueError("the curves are spelled otherwise")
    return atlas


def _sha256(path: Path) -> str:
    require_regular(path, path.name)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
