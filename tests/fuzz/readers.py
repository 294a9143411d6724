"""Every reader of files from elsewhere, with good files that the program made, and one round of fuzzing of each.

A round writes a hostile version of a good file and reads it. It may be read or refused with one sentence; anything else
is a crash, and so is a sentence that holds a rider's ID.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import yaml
from mutations import damaged, other_json

from isuit import estimator
from isuit.audit import bundle, log, rederivation
from isuit.audit.digests import rows_digest, tagged
from isuit.domain import Estimate, FitConfig
from isuit.errors import IsuitError
from isuit.ingest import read_cohort
from isuit.ingest.canonical_file import read_canonical
from isuit.published import MetricDescription, ReleaseMetadata, ReleaseRow
from isuit.release import files as release_files
from isuit.release.checking import check_file
from isuit.release.format import lines_digest
from isuit.release.names import EXTENSIONS
from isuit.release.policy import Policy
from isuit.service import checks, inputs, riders
from isuit.service.fitting import fit
from isuit.tables import read_table

CANARY = "mallory-4711"  # an ID that is in every good file that holds IDs, and must be in no sentence
ANCHOR = [[3.0, 0.1], [18.0, 0.9], [35.0, 0.1]]


@dataclass(frozen=True)
class Reader:
    """Good files by name, what is changed in them, and how they are read."""

    name: str
    good: dict[str, bytes] = field(repr=False)
    read: Callable[[Path], Any]
    seal: Callable[[dict[str, bytes]], dict[str, bytes]] | None = None  # makes changed files agree again

    def round(self, seed: int, folder: Path) -> bool:
        """One hostile input; whether it was read. Raises what a crash raises."""
        told: list[Any] = []
        before, sys.unraisablehook = sys.unraisablehook, told.append
        try:
            return self._round(seed, folder)
        finally:
            sys.unraisablehook = before
            assert not told, "Python printed a traceback of its own"

    def _round(self, seed: int, folder: Path) -> bool:
        chance = random.Random(f"{self.name}/{seed}")
        files = dict(self.good)
        name = chance.choice(sorted(files))
        files[name] = _hostile(chance, name, files[name])
        if self.seal is not None and chance.random() < 0.8:
            files = self.seal(files)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.read(folder)
        except IsuitError as refusal:
            sentence = str(refusal)
            assert CANARY not in sentence, "a rider's ID is in the sentence"
            assert len(sentence) < 5000, "the sentence is no sentence"
            assert "\n" not in sentence.replace(str(folder), ""), "the sentence has lines"
            sentence.encode()
            return False
        return True


def _hostile(chance: random.Random, name: str, content: bytes) -> bytes:
    if chance.random() < 0.5:
        if name.endswith((".json", ".geojson")):
            return json.dumps(other_json(chance, json.loads(content))).encode()
        if name.endswith(".jsonl"):
            lines = [json.loads(line) for line in content.splitlines()]
            place = chance.randrange(len(lines))
            lines[place] = other_json(chance, lines[place])
            return "".join(json.dumps(line) + "\n" for line in lines).encode()
        if name.endswith((".yaml", ".yml")):
            return yaml.safe_dump(other_json(chance, yaml.safe_load(content))).encode()
        if name.endswith((".csv", ".tsv")):
            mark = b"\t" if name.endswith(".tsv") else b","
            cells = [line.split(mark) for line in content.split(b"\n")]
            row = chance.choice(cells)
            row[chance.randrange(len(row))] = json.dumps(other_json(chance, 1)).strip('"').encode()
            return b"\n".join(mark.join(line) for line in cells)
        if name.endswith(".gz"):
            return gzip.compress(_hostile(chance, name.removesuffix(".gz"), gzip.decompress(content)), 1)
    return damaged(chance, content)


def cohort_table() -> pa.Table:
    """Thirty riders, two sites, with times; one of them is the canary."""
    chance = random.Random(5)
    rows = [(CANARY if r == 0 else f"rider-{r:03d}", chance.uniform(3, 35), r, n) for r in range(30) for n in range(20)]
    outcome = [int(chance.random() < 1 / (1 + 2.7 ** (((x - 18) / 8) ** 2 - 1 - r / 15 + 1))) for _, x, r, _ in rows]
    return pa.table(
        {
            "rider": [rider for rider, *_ in rows],
            "site": [("north", "south")[n % 2] for *_, n in rows],
            "observed_at": [f"2025-0{1 + n % 9}-{1 + n % 28:02d}T08:00:00Z" for *_, n in rows],
            "metric": [x for _, x, *_ in rows],
            "outcome": pa.array(outcome, pa.int8()),
        }
    )


def _bytes(write: Callable[[Path], Any], folder: Path, name: str) -> dict[str, bytes]:
    write(folder / name)
    return {name: (folder / name).read_bytes()}


def _only(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda folder: read(next(folder.iterdir()))


def release() -> tuple[list[str], str]:
    """A small release by the models that make one."""
    cells = (("871f1d489ffffff", 7, 52.5, 13.4), ("global", None, None, None))
    rows = [
        ReleaseRow(
            release="2026-01-01", activity="kite", dimension="wind", h3=cell, h3_resolution=resolution,
            latitude=latitude, longitude=longitude, metric=5.0 + step,
            metric_lower=4.5 + step, metric_upper=5.5 + step, units=None, difficulty=0.25 * step, difficulty_se=0.3,
            expert_difficulty=None, contributors="10-19", status="estimated",
        )
        for cell, resolution, latitude, longitude in cells for step in range(4)
    ]  # fmt: skip
    lines = [row.line() for row in rows]
    metadata = ReleaseMetadata(
        release="2026-01-01", rows=8, cells=2, digest=lines_digest(lines), observed_before="2025-10-01",
        policy=Policy().model_dump(), weaker_than_default=[], citation="c", estimator_version="e", tool_version="0.1",
        metrics=[MetricDescription(activity="kite", dimension="wind", lower=0, upper=9, bins=9, width=1, units=None,
                                   standard_name="wind_speed", discrimination=1.8)],
    )  # fmt: skip
    return lines, metadata.line()


def _bundle(folder: Path) -> tuple[dict[str, bytes], Estimate]:
    """A bundle of a fit that the program made, and the estimate that a refit would give."""
    table = cohort_table()
    config = FitConfig(activity="kite", dimension="wind", anchor=tuple((x, s) for x, s in ANCHOR))
    found = fit(folder / "store", table, config)
    checks.bundle(folder / "store", found.fit_id, folder / "bundle", with_cohort=True)
    with read_cohort(table) as cohort:
        estimate = estimator.fit(cohort.observations(), config)
    return {path.name: path.read_bytes() for path in (folder / "bundle").iterdir()}, estimate


def sealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """A forger's work: the digest of the changed record and curves in the log, the chain and the manifest anew."""
    files = dict(files)
    try:
        values = json.loads(files["fit.json"])
        record = bundle.StoredFit(**(values | {"recorded_at": bundle._time(values["recorded_at"])}))
        connection = bundle.duckdb.connect()
        bundle.tables(connection)
        bundle.insert_fit(connection, record)
        lines = [json.loads(line) for line in files["log.jsonl"].splitlines()]
        previous = log.GENESIS
        for line in lines:
            if line["kind"] == "fit-recorded":
                line["payload"]["fit_id"] = record.fit_id
                line["payload"]["rows_digest"]["ledger.fits"] = rows_digest(connection, "ledger.fits", [record.fit_id])
            line["previous"] = previous
            entry = log.event_entry(line["sequence"], bundle._time(line["at"]), line["kind"], line["payload"], previous)
            line["head"] = previous = tagged(log.EVENT_TAG, entry)
        files["log.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        manifest = json.loads(files["manifest.json"])
        manifest["log_head"] = previous
        files["manifest.json"] = json.dumps(manifest).encode()
    except Exception:
        pass
    try:
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = {
            name: hashlib.sha256(files[name]).hexdigest() if name in files else digest
            for name, digest in manifest["files"].items()
        }
        files["manifest.json"] = json.dumps(manifest).encode()
    except Exception:
        pass
    return files


def _read_bundle(estimate: Estimate) -> Callable[[Path], Any]:
    """All that `rederive --bundle` does but the fit itself, which takes a second."""

    def read(folder: Path) -> Any:
        found = bundle.read_bundle(folder)
        if found.cohort is not None:
            stream, metrics = read_canonical(found.cohort)
            read_cohort(stream, metrics=metrics).close()
        checks._require_version(found.record)
        rederivation.recorded_config(found.record)
        compared = rederivation.compare(found.record, found.atlas, None, estimate, erased=False, disagreements=[])
        return checks._report(checks.Material(found.record, found.atlas, None), compared).model_dump_json()

    return read


def all_readers(folder: Path) -> list[Reader]:
    """Every reader with its good files; `folder` is for making them."""
    folder.mkdir(parents=True, exist_ok=True)
    table = cohort_table()
    policy = Policy().model_dump()
    profile = {
        "activities": {"kite": {"dimensions": {"wind": {"points": [{"x": x, "suitability": s} for x, s in ANCHOR]}}}}
    }
    sites = pa.table({"site": ["north", "south"], "latitude": [60.0, 45.5], "longitude": [10.0, -3.25]})
    conditions = pa.table({"metric": [5.0, 12.0], "site": ["north", None], "skill": ["expert", "0.5"]})
    lines, metadata = release()

    def anchor(path: Path) -> Any:
        return FitConfig(anchor=inputs.read_anchor(path, "kite", "wind")).as_json()

    def cohort(path: Path) -> Any:
        read_cohort(path).close()

    def stream(path: Path) -> None:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)

    def arrow(path: Path) -> None:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    text = _bytes(lambda path: pcsv.write_csv(table, path), folder, "cohort.csv")["cohort.csv"]
    points = b"x,suitability\n" + b"".join(b"%g,%g\n" % (x, s) for x, s in ANCHOR)
    single = [
        ("policy as JSON", {"policy.json": json.dumps(policy).encode()}, inputs.read_policy),
        ("policy as YAML", {"policy.yaml": yaml.safe_dump(policy).encode()}, inputs.read_policy),
        ("anchor as CSV", {"anchor.csv": points}, anchor),
        ("anchor as TSV", {"anchor.tsv": points.replace(b",", b"\t")}, anchor),
        ("anchor as JSON", {"anchor.json": json.dumps(profile).encode()}, anchor),
        ("anchor as YAML", {"anchor.yaml": yaml.safe_dump(profile).encode()}, anchor),
        ("sites as CSV", _bytes(lambda path: pcsv.write_csv(sites, path), folder, "sites.csv"), inputs.read_sites),
        ("sites as Parquet", _bytes(lambda path: pq.write_table(sites, path), folder, "s.parquet"), inputs.read_sites),
        ("conditions as CSV", _bytes(lambda path: pcsv.write_csv(conditions, path), folder, "c.csv"), read_table),
        (
            "conditions as Parquet",
            _bytes(lambda path: pq.write_table(conditions, path), folder, "c.parquet"),
            read_table,
        ),
        ("conditions as Arrow", _bytes(arrow, folder, "c.arrow"), read_table),
        ("list of IDs", {"ids": f"{CANARY}\nrider-001\n".encode()}, lambda path: riders.read_ids(path.read_bytes())),
        ("cohort as CSV", {"cohort.csv": text}, cohort),
        ("cohort as CSV, compressed", {"cohort.csv.gz": gzip.compress(text, 1)}, cohort),
        ("cohort as TSV", {"cohort.tsv": text.replace(b'"', b"").replace(b",", b"\t")}, cohort),
        ("cohort as Parquet", _bytes(lambda path: pq.write_table(table, path), folder, "cohort.parquet"), cohort),
        ("cohort as an Arrow file", _bytes(arrow, folder, "cohort.arrow"), cohort),
        ("cohort as an Arrow stream", _bytes(stream, folder, "stream.arrow"), cohort),
        ("event of the log", {"event.json": lines[0].encode()}, _event),
    ]
    found = [Reader(name, good, _only(read)) for name, good, read in single]
    for kind, extension in EXTENSIONS.items():
        name = f"atlas.{extension}"
        good = {path.name: content for path, content in release_files.files(Path(name), kind, lines, metadata).items()}
        found.append(Reader(f"release as {kind}", good, _check_release(name)))
    content, estimate = _bundle(folder)
    found.append(Reader("bundle", content, _read_bundle(estimate), sealed))
    return found


def _check_release(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        found = check_file(folder / name)
        assert CANARY not in str(found.problems)
        assert len("; ".join(found.problems)) < 20_000
        return repr(found)

    return read


def _event(path: Path) -> Any:
    """A payload as the store holds it; verification takes whatever follows as a disagreement."""
    payload = path.read_bytes().decode(errors="replace")
    event = log.Event(1, bundle.datetime(2026, 1, 1), "kind", payload, log.GENESIS, log.GENESIS)
    try:
        return event.computed_head(), event.content
    except (ValueError, TypeError) as error:
        raise IsuitError("the event cannot be read") from error
