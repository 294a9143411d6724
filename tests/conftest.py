"""Cohorts with a known truth, and a store that has something in every table."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from isuit.audit.digests import rider_digest
from isuit.audit.log import append_event
from isuit.domain import FitConfig
from isuit.service.fitting import fit
from isuit.service.recording import canonical_json
from isuit.service.stores import open_store
from isuit.store.query import rows

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


@pytest.fixture(scope="session")
def cohort_table() -> Callable[..., pa.Table]:
    return make_cohort


@pytest.fixture(scope="session")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cohorts, two fits, sites, an erased rider, and rows in every table; do not write into it."""
    path = tmp_path_factory.mktemp("full") / "store"
    first = make_cohort(1, sites=tuple(SITES))
    fit(path, first, FitConfig(activity="kitesurfing", dimension="wind"), sites=SITES)
    fit(path, make_cohort(2, timed=False, tag="member"), FitConfig(activity="kitesurfing", dimension="wave"))
    with open_store(path, write=True) as store, store.transaction() as connection:
        now = datetime(2026, 1, 1)
        rider = "rider-0003"
        leaves: dict[str, list[str]] = {}
        for subject, leaf in rows(
            connection, "SELECT subject, leaf FROM personal.commitments WHERE rider = ? ORDER BY ALL", [rider]
        ):
            leaves.setdefault(subject, []).append(leaf)
        for table in ("outcomes", "skills", "commitments"):
            connection.execute(f"DELETE FROM personal.{table} WHERE rider = ?", [rider])
        receipt = {
            "cohorts": [{"cohort_hash": s, "leaves": found} for s, found in leaves.items() if s.startswith("isuit-c1")],
            "fits": [{"fit_id": s, "leaves": found} for s, found in leaves.items() if s.startswith("isuit-f1")],
        }
        connection.execute(
            "INSERT INTO ledger.receipts VALUES ('receipt-1', ?, ?, ?, '{}')", [now, canonical_json(receipt), now]
        )
        connection.execute("INSERT INTO personal.suppressed VALUES (?)", [rider_digest(store.key, rider)])
        connection.execute("INSERT INTO personal.pseudonyms VALUES ('someone', 'token')")
        connection.execute("INSERT INTO personal.release_members VALUES ('2026-01-01', 'cell', 3, 'rider-0001')")
        connection.execute(
            "INSERT INTO ledger.releases VALUES ('2026-01-01', '2026-01-01', '{}', '{}', 1, 1, 'digest', ?)", [now]
        )
        connection.execute("INSERT INTO ledger.release_rows VALUES ('2026-01-01', 0, '{}')")
        connection.execute("INSERT INTO ledger.release_bins VALUES ('2026-01-01', 'curve', 3, 12, '2026-01-01')")
        append_event(
            connection,
            "test-rows",
            {},
            rows={
                "ledger.receipts": ["receipt-1"],
                "ledger.releases": ["2026-01-01"],
                "ledger.release_rows": ["2026-01-01"],
                "ledger.release_bins": ["2026-01-01"],
            },
            tables=["personal.suppressed", "personal.pseudonyms", "personal.release_members"],
            key=store.key,
        )
    return path


@pytest.fixture
def store_copy(full_store: Path, tmp_path: Path) -> Path:
    """The same store, to be changed."""
    return Path(shutil.copytree(full_store, tmp_path / "store"))
