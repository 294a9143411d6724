"""What an auditor takes away: one fit, its curves, the log up to a head, and on request the canonical cohort.

Every file is plain text that other tools read. `manifest.json` has their SHA-256; `cohort.tsv` is the canonical form,
so its own SHA-256 is the cohort hash. A bundle is checked without the store: `read_bundle` rebuilds the two tables
in memory and holds them against the log's events.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from isuit.audit.digests import rows_digest
from isuit.audit.log import GENESIS, Event, instant
from isuit.errors import InputError
from isuit.store.fits import StoredFit, insert_atlas, insert_fit
from isuit.store.migrations import tables
from isuit.store.paths import DIRECTORY_MODE

COLUMNS = ("site", "metric", "difficulty", "difficulty_se", "suitability")
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
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} is not an empty directory; name a new one with --out")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".bundle-", dir=directory.parent))
    except OSError as error:
        raise InputError(f"{directory} cannot be written ({error.strerror}); name another place with --out") from None
    try:
        building.chmod(DIRECTORY_MODE)
        (building / "README.md").write_text(README)
        (building / "fit.json").write_text(json.dumps(_record_json(record), indent=1, ensure_ascii=False) + "\n")
        _write_atlas(building / "atlas.csv", atlas)
        with (building / "log.jsonl").open("w") as log:
            log.writelines(json.dumps(event.as_json(), ensure_ascii=False) + "\n" for event in events)
        if cohort is not None:
            with (building / "cohort.tsv").open("wb") as file:
                file.writelines(cohort)
        files = sorted(path.name for path in building.iterdir())
        digests = {name: _sha256(building / name) for name in files}
        manifest = about | {"log_head": events[-1].head, "with_cohort": cohort is not None, "files": digests}
        (building / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        if directory.exists():
            directory.rmdir()
        os.replace(building, directory)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return [*files, "manifest.json"]


def _record_json(record: StoredFit) -> dict[str, Any]:
    """Every column; JSON columns stay text, because their bytes are what the log's digest covers."""
    return asdict(record) | {"recorded_at": instant(record.recorded_at)}


def _write_atlas(path: Path, atlas: pa.Table) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in atlas.select(list(COLUMNS)).to_pylist():
            # repr gives the shortest text that reads back as the same bits.
            writer.writerow(
                ["" if value is None else value if name == "site" else repr(value) for name, value in row.items()]
            )


def read_bundle(directory: Path) -> Bundle:
    """Read a bundle and check it: files, chain, and the record and curves against the log."""
    try:
        manifest = json.loads((directory / "manifest.json").read_text())
        wrong = [name for name, digest in manifest["files"].items() if _sha256(directory / name) != digest]
        if wrong:
            raise InputError(f"the bundle is damaged: {', '.join(sorted(wrong))} is not what its manifest says")
        record = _read_record(directory / "fit.json")
        atlas = _read_atlas(directory / "atlas.csv")
        events = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
        _check(record, atlas, [_event(event) for event in events], manifest["log_head"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{directory} is not a whole bundle ({type(error).__name__}); ask for it again") from None
    cohort = directory / "cohort.tsv"
    return Bundle(record, atlas, cohort if cohort.exists() else None, manifest["log_head"])


def _check(record: StoredFit, atlas: pa.Table, events: list[Event], head: str) -> None:
    previous = GENESIS
    for event in events:
        if event.previous != previous or event.computed_head() != event.head:
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
    return Event(
        sequence=values["sequence"],
        at=_time(values["at"]),
        kind=values["kind"],
        payload=json.dumps(values["payload"]),
        previous=values["previous"],
        head=values["head"],
    )


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def _read_record(path: Path) -> StoredFit:
    values = json.loads(path.read_text())
    return StoredFit(**(values | {"recorded_at": _time(values["recorded_at"])}))


def _read_atlas(path: Path) -> pa.Table:
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    columns = {"site": pa.array([row["site"] or None for row in found], pa.string())}
    for name in COLUMNS[1:]:
        columns[name] = pa.array([float(row[name]) if row[name] else None for row in found], pa.float64())
    return pa.table(columns)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
