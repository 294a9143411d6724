"""Cohorts with a known truth, and a store that has something in every table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from quick_console import Console

from isuit.domain import FitConfig
from isuit.service import series
from isuit.service.fitting import fit
from isuit.service.pseudonymising import pseudonymise
from isuit.service.releases import export_atlas
from isuit.service.riders import delete_riders
from isuit.store.parts import PARTED

SITES = {"north": (60.0, 10.0), "south": (45.5, -3.25)}


def make_cohort(
    seed: int, riders: int = 24, outcomes: int = 15, sites: tuple[str, ...] = (), timed: bool = True, tag: str = "rider"
) -> pa.Table:
    """Outcomes drawn from the model: difficulty ((x - 18) / 8)^2 - 1, discrimination 2."""
    random = np.random.default_rng(seed)
    skill = random.standard_normal(riders)
    rider = np.repeat(np.arange(riders), outcomes)
    metric = random.uniform(3, 35, rider.size)
    difficulty = ((metric - 18) / 8) ** 2 - 1
    outcome = random.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    columns = {
        "rider": [f"{tag}-{number:04d}" for number in rider],
        "metric": metric,
        "outcome": outcome.astype(np.int8),
    }
    if sites:
        columns["site"] = [sites[number] for number in random.integers(0, len(sites), rider.size)]
    if timed:
        start = datetime(2025, 1, 1, tzinfo=UTC)
        times = [start + timedelta(minutes=int(minute)) for minute in random.integers(0, 200_000, rider.size)]
        columns["observed_at"] = pa.array(times, pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first: what is left for both processes at the end is short."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def cohort_table() -> Callable[..., pa.Table]:
    return make_cohort


def make_full_store(path: Path) -> Path:
    """Three fitted cohorts (one of two metrics, one the union of a series), sites, tokens, a release, an erased rider.

    There are rows in every table, all made by the program, so that tampering is found in what the program writes.
    """
    fit(path, make_cohort(1, sites=tuple(SITES)), FitConfig(activity="kitesurfing", dimension="wind"), sites=SITES)
    with pytest.MonkeyPatch.context() as patch:  # the leaves of this one are in parts
        patch.setitem(PARTED, "ledger.leaves", replace(PARTED["ledger.leaves"], rows=16))
        members = make_cohort(2, timed=False, tag="member")
        for part in (members.slice(0, 200), members.slice(200)):  # whose rows their union shares
            series.add(path, "members", part)
        fit(path, series.Series("members"), FitConfig(activity="kitesurfing", dimension="wave"))
    several = make_cohort(4, timed=False, tag="sailor").rename_columns(["rider", "wind_kn", "outcome"])
    several = several.append_column("wave_m", pa.array(np.random.default_rng(4).uniform(0, 3, several.num_rows)))
    fit(path, several, FitConfig(activity="sailing"), metrics=["wind_kn", "wave_m"])
    pq.write_table(make_cohort(3, riders=2, outcomes=3, tag="guest"), path.with_name("guests.parquet"))
    pseudonymise(path, [str(path.with_name("guests.parquet"))], path.with_name("tokens.parquet"))
    export_atlas(path, path.with_name("atlas.jsonl"), release=date(2026, 1, 1))
    delete_riders(path, ["rider-0003"])
    return path


@pytest.fixture(scope="session")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`make_full_store`; do not write into it."""
    return make_full_store(tmp_path_factory.mktemp("full") / "store")


@pytest.fixture
def store_copy(full_store: Path, tmp_path: Path) -> Path:
    """The same store, to be changed."""
    return Path(shutil.copytree(full_store, tmp_path / "store"))


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A console command `isuit` that starts in milliseconds; see `quick_console`."""
    opened = Console(tmp_path_factory.mktemp("console"))
    yield opened.path
    opened.close()


@pytest.fixture
def quick_isuit(console: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`isuit` on the path is the quick one."""
    monkeypatch.setenv("PATH", f"{console.parent}{os.pathsep}{os.environ['PATH']}")
