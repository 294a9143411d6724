"""A laboratory for releases: crafted cohorts, the command line in this process, and exporters with one rule removed."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isuit.cli.app import main

FIRST, SECOND = "2026-01-01", "2026-04-01"
OLD = datetime(2025, 3, 1, 8, 30, tzinfo=UTC)  # more than 90 days before the first release
RECENT = datetime(2025, 12, 1, tzinfo=UTC)  # less


@dataclass(frozen=True)
class Row:
    """One outcome of a crafted cohort."""

    rider: str
    metric: float
    outcome: int
    site: str | None = None
    observed_at: datetime | None = OLD


@dataclass(frozen=True)
class Answer:
    """What a command said, and the file it was to write (None where it wrote none)."""

    code: int
    out: str
    err: str
    file: bytes | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of a JSON Lines release; none where nothing was released."""
        if self.file is None:
            return []
        return [json.loads(line) for line in self.file.decode().splitlines()[:-1]]

    @property
    def metadata(self) -> dict[str, Any]:
        assert self.file is not None, self.err
        return dict(json.loads(self.file.decode().splitlines()[-1]))

    @property
    def cells(self) -> set[str]:
        return {row["h3"] for row in self.rows}

    @property
    def values(self) -> list[dict[str, Any]]:
        """The rows without the release's own name, which every release changes."""
        return [{name: value for name, value in row.items() if name != "release"} for row in self.rows]


def difficulty(metric: float) -> float:
    return ((metric - 18) / 8) ** 2 - 1


def draw(
    riders: int | Iterable[str] = 24,
    outcomes: int = 18,
    *,
    seed: int = 1,
    site: str | None = None,
    tag: str = "rider",
    skills: dict[str, float] | None = None,
    low: float = 0.5,
    high: float = 35.5,
) -> list[Row]:
    """Outcomes from the model, discrimination 2; every rider's metrics are spread evenly, so that all bins are met."""
    random = np.random.default_rng(seed)
    names = [f"{tag}-{number:03d}" for number in range(riders)] if isinstance(riders, int) else list(riders)
    found = []
    for name in names:
        skill = random.standard_normal()
        if skills is not None:
            skill = skills.setdefault(name, skill)
        places = low + (np.arange(outcomes) + random.random(outcomes)) * (high - low) / outcomes
        for number, metric in enumerate(places.tolist()):
            success = random.random() < 1 / (1 + np.exp(-2 * (skill - difficulty(metric))))
            at = OLD + timedelta(hours=int(random.integers(0, 2000)), minutes=number)
            found.append(Row(name, round(metric, 3), int(success), site, at))
    return found


def table(rows: list[Row]) -> pa.Table:
    columns: dict[str, Any] = {
        "rider": [row.rider for row in rows],
        "metric": [row.metric for row in rows],
        "outcome": [row.outcome for row in rows],
    }
    if any(row.site is not None for row in rows):
        columns["site"] = pa.array([row.site for row in rows], pa.string())
    if any(row.observed_at is not None for row in rows):
        columns["observed_at"] = pa.array([row.observed_at for row in rows], pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


def _without_proof(content: bytes) -> bytes:
    """JSON Lines without the proof that the log has the release: it is the store's own, and about no outcome."""
    *lines, last = content.split(b"\n")[:-1] or [b""]
    if not last.startswith(b'{"metadata"'):
        return content
    about = {name: value for name, value in json.loads(last).items() if name != "proof"}
    return b"\n".join([*lines, json.dumps(about, separators=(",", ":"), ensure_ascii=False).encode(), b""])


class Lab:
    """Stores made from crafted cohorts, and releases from them, all through the console script's entry point."""

    def __init__(
        self,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        known: dict[str, Path],
    ) -> None:
        self.directory, self._patch, self._capsys, self._made = directory, monkeypatch, capsys, 0
        self._known = known

    def path(self, name: str) -> Path:
        self._made += 1
        return self.directory / f"{self._made:03d}-{name}"

    def isuit(self, *arguments: str | Path) -> Answer:
        self._patch.setattr(sys, "argv", ["isuit", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        written = self._capsys.readouterr()
        code = stop.value.code
        return Answer(int(code or 0) if not isinstance(code, str) else 1, written.out, written.err)

    def store(
        self,
        *cohorts: list[Row],
        sites: dict[str, tuple[float, float]] | None = None,
        policy: dict[str, Any] | None = None,
        options: tuple[str, ...] = (),
    ) -> Path:
        """A store with these cohorts fitted in order. Rules of releases have no part in fits, so stores are kept."""
        name = hashlib.sha256(repr((cohorts, sites, policy, options)).encode()).hexdigest()
        if name not in self._known:
            self._known[name] = self._new_store(cohorts, sites, policy, options)
        return self.copy(self._known[name])

    def _new_store(
        self,
        cohorts: tuple[list[Row], ...],
        sites: dict[str, tuple[float, float]] | None,
        policy: dict[str, Any] | None,
        options: tuple[str, ...],
    ) -> Path:
        store = self.path("store")
        # Without noise, unless told: what differs between two stores is then what the rule under test lets through.
        file = self.path("policy.json")
        file.write_text(json.dumps({"noise": 0.0, **(policy or {})}))
        assert self.isuit("init", "--store", store, "--policy", file).code == 0
        for rows in cohorts:
            self.fit(store, rows, sites=sites, options=options)
        return store

    def fit(
        self,
        store: Path,
        rows: list[Row],
        *,
        sites: dict[str, tuple[float, float]] | None = None,
        options: tuple[str, ...] = (),
        topic: tuple[str, str] = ("kitesurfing", "wind_speed_kn"),
        pseudonymised_in: Path | None = None,
    ) -> None:
        file = self.path("cohort.parquet")
        pq.write_table(table(rows), file)
        if pseudonymised_in is not None:
            raw, file = file, self.path("tokens.parquet")
            assert self.isuit("pseudonymise", raw, "--out", file, "--store", pseudonymised_in).code == 0
        arguments: list[str | Path] = ["--store", store, "--activity", topic[0], "--dimension", topic[1]]
        used = {row.site for row in rows} - {None}
        if sites is not None and used & sites.keys():
            places = self.path("sites.csv")
            lines = [f"{name},{sites[name][0]!r},{sites[name][1]!r}" for name in sorted(used & sites.keys())]
            places.write_text("\n".join(["site,latitude,longitude", *lines]) + "\n")
            arguments += ["--sites", places]
        answer = self.isuit("fit", "--cohort", file, *arguments, *options, "--json")
        assert answer.code == 0, answer.err

    def export(self, store: Path, release: str = FIRST, *options: str, extension: str = "jsonl") -> Answer:
        file = self.path(f"atlas.{extension}")
        answer = self.isuit("export-atlas", "--store", store, "--out", file, "--release", release, *options)
        return replace(answer, file=_without_proof(file.read_bytes()) if file.exists() else None)

    def release(self, *cohorts: list[Row], **options: Any) -> Answer:
        """The first release of a new store with these cohorts."""
        return self.export(self.store(*cohorts, **options))

    def copy(self, store: Path) -> Path:
        return Path(shutil.copytree(store, self.path("copy")))

    def opt_out(self, store: Path, *riders: str) -> None:
        answer = self.isuit("delete-rider", *riders, "--store", store, "--yes")
        assert answer.code == 0, answer.err


Mutant = Callable[..., None]
