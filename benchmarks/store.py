"""What the store costs: `isuit fit` end to end by stage, and `isuit verify`.

    python benchmarks/store.py [--rows 1000000] [--riders 20000] [--sites 150] [--fits 20] [--out FILE.json]

Stages are given in wall time and in processor time, which says more on a machine that others use too: reading and
hashing the cohort, the estimator, recording (rows, commitments, curves, skills, log, checkpoint). The fits after the
first are recorded from the same estimate under other names of activity, since verification does not care how an
estimate came about and 20 estimates would take 20 times as long.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isuit import estimator
from isuit.audit.results import fit_id
from isuit.domain import FitConfig
from isuit.ingest import read_cohort
from isuit.service import checks
from isuit.service.recording import record_fit
from isuit.service.stores import open_store


def cohort(rows: int, riders: int, sites: int, path: Path) -> None:
    """Outcomes drawn from the model, with riders and sites of unequal size."""
    random = np.random.default_rng(1)
    rider = random.integers(0, riders, rows)
    home = random.integers(0, sites, riders)
    site = np.where(random.random(rows) < 0.7, home[rider], random.integers(0, sites, rows))
    skill, level = random.standard_normal(riders), random.normal(0, 0.4, sites)
    metric = random.uniform(3, 35, rows)
    logit = 2 * (skill[rider] - ((metric - 18) / 8) ** 2 + 1 - level[site])
    outcome = random.random(rows) < 1 / (1 + np.exp(-logit))
    times = np.datetime64("2025-01-01", "us") + random.integers(0, 3 * 10**13, rows)
    names = np.array([f"{number:032x}" for number in random.integers(0, 2**62, riders)])
    table = {
        "rider": names[rider],
        "site": np.array([f"site-{number:03d}" for number in range(sites)])[site],
        "observed_at": pa.array(times, pa.timestamp("us", tz="UTC")),
        "metric": metric,
        "outcome": outcome.astype(np.int8),
    }
    pq.write_table(pa.table(table), path)


def show(options: argparse.Namespace, seconds: dict[str, float], processor: dict[str, float], size: int) -> None:
    stages = ("read and hash", "gate and fit", "record")
    whole = sum(seconds[stage] for stage in stages)
    work = sum(processor[stage] for stage in stages)
    print(f"{options.rows} outcomes, {options.riders} riders, {options.sites} sites, {options.fits} fits")
    print(f"{'':<24} {'wall':>10} {'processor':>10} {'share':>7}")
    for stage in stages:
        print(f"{stage:<24} {seconds[stage]:8.2f} s {processor[stage]:8.2f} s {processor[stage] / work:7.1%}")
    print(f"{'isuit fit, in all':<24} {whole:8.2f} s {work:8.2f} s")
    more = max(1, options.fits - 1)
    print(
        f"{'record one more fit':<24} {seconds['record the other fits'] / more:8.2f} s "
        f"{processor['record the other fits'] / more:8.2f} s"
    )
    print(f"{'isuit verify':<24} {seconds['verify']:8.2f} s {processor['verify']:8.2f} s")
    print(f"{'store.duckdb':<24} {size / 1e6:8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--riders", type=int, default=20_000)
    parser.add_argument("--sites", type=int, default=150)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seconds: dict[str, float] = {}
    processor: dict[str, float] = {}
    clock = (time.perf_counter(), time.process_time())

    def lap(stage: str) -> None:
        nonlocal clock
        now = (time.perf_counter(), time.process_time())
        seconds[stage], processor[stage] = now[0] - clock[0], now[1] - clock[1]
        clock = now

    with tempfile.TemporaryDirectory() as folder:
        file, store_path = Path(folder) / "cohort.parquet", Path(folder) / "store"
        cohort(options.rows, options.riders, options.sites, file)
        clock = (time.perf_counter(), time.process_time())
        config = FitConfig(activity="benchmark-0", dimension="wind")
        with read_cohort(file) as read:
            observations = read.observations()
            lap("read and hash")
            estimate = estimator.fit(observations, config)
            lap("gate and fit")
            for number in range(options.fits):
                named = replace(config, activity=f"benchmark-{number}")
                name = fit_id(read.cohort_hash, named.as_json(), estimator.ESTIMATOR_VERSION)
                with open_store(store_path, write=True, create=True) as store:
                    record_fit(store, name, read, named, estimate, {})
                if number == 0:
                    lap("record")
            lap("record the other fits")
        report = checks.verify(store_path)
        assert report.ok, report.disagreements[:3]
        assert report.fits == options.fits
        lap("verify")
        size = (store_path / "store.duckdb").stat().st_size
    show(options, seconds, processor, size)
    if options.out:
        result = {
            "on": date.today().isoformat(),
            "options": vars(options) | {"out": None},
            "seconds": seconds,
            "processor": processor,
        }
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
