"""Stores for the tests of erasure: written by the store's own functions, with curves and skills that need no fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from isuit.domain import DifficultyCurve, Estimate, FitConfig, GateReport, HeldOut, PromotionReport, Skills
from isuit.ingest import read_cohort
from isuit.record import Diagnostics
from isuit.record.parameters import LatentParameters, Population
from isuit.service import series
from isuit.service.recording import record_fit
from isuit.service.stores import open_store
from isuit.store import parts
from isuit.store.part_files import gaps
from isuit.store.parts import VIEWS, listed, show
from isuit.store.query import rows

MARKED = "Zq7-marked-rider-Xw"  # its first 8 bytes are what a zone map would keep
SITES = {"north": (60.0, 10.0), "south": (45.5, -3.25)}
START = datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1e6


def cohort_table(seed: int, outcomes: int, riders: Sequence[str]) -> pa.Table:
    """Outcomes of the riders in turn, at two sites."""
    random = np.random.default_rng(seed)
    times = (START + random.integers(0, 10**13, outcomes)).astype(np.int64)
    return pa.table(
        {
            "rider": pa.array(riders).take(pa.array(np.arange(outcomes) % len(riders))),
            "site": pa.array(list(SITES)).take(pa.array(random.integers(0, 2, outcomes))),
            "observed_at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "metric": random.uniform(3, 35, outcomes),
            "outcome": random.integers(0, 2, outcomes).astype(np.int8),
        }
    )


def some_estimate(riders: Sequence[str]) -> Estimate:
    count = len(riders)
    random = np.random.default_rng(count)
    metric = np.linspace(3, 35, 20)
    curves = [
        DifficultyCurve(site, metric, ((metric - 18) / 8) ** 2 - 1, np.full(20, 0.1), np.full(20, 0.5))
        for site in (None, *SITES)
    ]
    return Estimate(
        kind="latent",
        estimator_version="1",
        discrimination=2.0,
        discrimination_se=0.1,
        log_likelihood=-100.0,
        identification=GateReport(True, "core", (), 1.0, count, count, 8),
        promotion=PromotionReport(True, 50.0, 1e-9, ()),
        held_out=HeldOut(0.2, 0.02, 0.15, 0.2, 100, "rider"),
        curves=tuple(curves),
        skills=Skills(
            tuple(riders),
            random.standard_normal(count),
            np.full(count, 0.3),
            np.full(count, 20),
            np.full(count, 4),
            np.ones(count, bool),
        ),
        parameters=LatentParameters(
            metric_range=(0.0, 30.0),
            inner_knots=(),
            degree=3,
            penalty_order=2,
            sites=(),
            site_size=None,
            anchor=None,
            coefficients=(0.0,) * 4,
            bands={},
            raw_discrimination=2.0,
            population=Population(mean=0.0, sd=1.0),
            discrimination_se=0.1,
        ),
        diagnostics=Diagnostics(estimand="a fit made for a test"),
    )


def small_parts(patch: pytest.MonkeyPatch, rows: int = 120, riders: int = 8) -> None:
    """Cut stores that are small enough for a test into many parts."""
    for table, parted in parts.PARTED.items():
        many = rows if table == "personal.outcomes" else riders
        patch.setitem(parts.PARTED, table, replace(parted, rows=many))


def add_cohort(store_path: Path, table: pa.Table, number: int = 0, dimension: str = "wind") -> str:
    """Record a cohort with a fit; its hash."""
    with read_cohort(table) as cohort, open_store(store_path, write=True, create=True) as store:
        config = FitConfig(activity="kitesurfing", dimension=dimension)
        fit_id = "isuit-f1:" + hashlib.sha256(f"{number}{cohort.cohort_hash}".encode()).hexdigest()
        riders = sorted(set(table.column("rider").to_pylist()))
        record_fit(store, fit_id, cohort, config, some_estimate(riders), SITES)
        return cohort.cohort_hash


def fit_series(store_path: Path, name: str = "kite", number: int = 0) -> str:
    """Record the union of a series with a fit, as `isuit fit --series` does; its hash."""
    with series.opened(store_path, series.Series(name), None, 10.0) as (source, metrics, shared):
        reading = read_cohort(source, metrics=metrics)
    with reading as cohort, open_store(store_path, write=True) as store:
        riders = sorted({rider for batch in cohort.batches() for rider in batch.column("rider").to_pylist()})
        fit_id = "isuit-f1:" + hashlib.sha256(f"{number}{cohort.cohort_hash}".encode()).hexdigest()
        config = FitConfig(activity="kitesurfing", dimension="wind")
        record_fit(store, fit_id, cohort, config, some_estimate(riders), SITES, shared)
        return cohort.cohort_hash


def shared_store(path: Path) -> Path:
    """The store of `small_store` with a third cohort and fit, of the other two's rows together, stored once."""
    small_store(path)
    for seed in (1, 2):
        series.add(path, "kite", cohort_table(seed, 600, [*rider_names(20), MARKED]))
    fit_series(path)
    return path


def rider_names(count: int) -> list[str]:
    return [f"rider-{number:05d}" for number in range(count)]


def small_store(path: Path, extra: Sequence[str] = (MARKED,), outcomes: int = 600) -> Path:
    """Two cohorts, two fits, 20 riders and the extra ones."""
    names = [*rider_names(20), *extra]
    for seed in (1, 2):
        add_cohort(path, cohort_table(seed, outcomes, names), seed)
    return path


def contents(store_path: Path, without: Sequence[str] = ()) -> dict[str, Any]:
    """A digest of every table but the log, the receipts and the suppressed, of all rows not about `without`."""
    connection = duckdb.connect(str(store_path / "store.duckdb"), read_only=True)
    show(connection)
    try:
        found = {}
        for table in rows(connection, "SELECT schema_name || '.' || table_name FROM duckdb_tables() ORDER BY ALL"):
            name = table[0]
            if name in ("ledger.log", "ledger.receipts", "ledger.pending", "ledger.parts", "personal.suppressed"):
                continue
            columns = [column for column, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
            named = [column for column in ("rider", "token") if column in columns]
            where = " AND ".join(f"NOT list_contains(?, {column})" for column in named) or "true"
            found[name] = rows(
                connection,
                "SELECT count(*), sum((md5_number(line) >> 32)::HUGEINT) "  # whatever the order of the rows
                f"FROM (SELECT t::VARCHAR AS line FROM {VIEWS.get(name, name)} t WHERE {where})",
                [list(without)] * len(named),
            )[0]
        return found
    finally:
        connection.close()


def held(store_path: Path, rider: str) -> int:
    """Rows about a rider, over all personal tables."""
    connection = duckdb.connect(str(store_path / "store.duckdb"), read_only=True)
    try:
        show(connection)
        tables = ("all_outcomes", "all_skills", "all_commitments", "personal.pseudonyms", "personal.release_members")
        return sum(rows(connection, f"SELECT count(*) FROM {table} WHERE rider = ?", [rider])[0][0] for table in tables)
    finally:
        connection.close()


def files_with(store_path: Path, *needles: bytes) -> list[str]:
    """The files below the store whose name or bytes hold one of the needles."""
    return [
        f"{path.name}: {needle!r}"
        for path in sorted(store_path.rglob("*"))
        for needle in needles
        if needle in path.name.encode() or (path.is_file() and needle in path.read_bytes())
    ]


def storage_defects(store_path: Path) -> list[Any]:
    """Columns with more physical than logical rows, and free blocks."""
    connection = duckdb.connect(str(store_path / "store.duckdb"), read_only=True)
    try:
        defects: list[Any] = []
        for (name,) in rows(connection, "SELECT schema_name || '.' || table_name FROM duckdb_tables()"):
            [(logical,)] = rows(connection, f"SELECT count(*) FROM {name}")
            physical = rows(
                connection,
                f"SELECT column_name, segment_type, sum(count) FROM pragma_storage_info('{name}') GROUP BY ALL",
            )
            defects += [(name, *row) for row in physical if row[2] != logical]
        defects += [row for row in rows(connection, "SELECT free_blocks FROM pragma_database_size()") if row != (0,)]
        files = {part.path(store_path / "parts") for part in listed(connection)}
        defects += [path.name for path in files if gaps(path)]
        if (store_path / "parts").is_dir():
            defects += [path.name for path in set((store_path / "parts").iterdir()) ^ files]
        return defects
    finally:
        connection.close()


def as_text(value: Any) -> str:
    return json.dumps(value, default=str)
