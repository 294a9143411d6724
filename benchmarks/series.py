"""A series that grows every day: how large its store becomes, and what reading, verifying and erasing cost.

    python benchmarks/series.py [--days 60] [--outcomes 2000] [--riders 1000] [--every]

Every day a file is added and the union registered as `isuit fit --series` does it, without the estimator, whose results
take the same room however rows are stored. `--every` makes each file hold all days before it too, as an export of
everything does. Prints JSON: after 12 days and after all, the bytes of the store and of its outcomes, and the processor
time of reading the newest union back, of `verify` (unless `--no-verify`) and of erasing one rider from a copy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from isuit.ingest import read_cohort
from isuit.service import checks, recording, riders, series
from isuit.service.stores import open_store
from isuit.store.cohorts import find_cohort, stored_outcomes
from isuit.store.query import rows


def day_of(number: int, outcomes: int, people: int) -> pa.Table:
    """One day's outcomes of some of the riders."""
    chance = np.random.default_rng([20, number])
    seconds = 1_750_000_000 + number * 86_400 + chance.integers(0, 86_400, outcomes)
    return pa.table(
        {
            "rider": [f"r{code:010x}" for code in chance.integers(0, people, outcomes) * 2_654_435_761 % (1 << 40)],
            "site": [f"site {code}" for code in chance.integers(0, 40, outcomes)],
            "observed_at": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
            "metric": np.round(chance.gamma(4.0, 4.0, outcomes), 1),
            "outcome": chance.integers(0, 2, outcomes),
        }
    )


def register_union(store_path: Path) -> str:
    """What `isuit fit --series` registers."""
    source = series.Series("kite")
    with series.opened(store_path, source, None, 10.0) as opened:
        reading = read_cohort(opened[0], metrics=opened[1])
    with reading as cohort, open_store(store_path, write=True) as store, store.transaction() as connection:
        if find_cohort(connection, cohort.cohort_hash) is None:
            recording.register_cohort(connection, cohort, *opened[2:])
        return cohort.cohort_hash


def spent(work: Any) -> float:
    start = process_time()
    work()
    return round(process_time() - start, 3)


def measured(store_path: Path, newest: str, verify: bool) -> dict[str, Any]:
    sizes = [path.stat().st_size for path in store_path.rglob("*") if path.is_file()]
    with open_store(store_path) as store:
        query = (
            "SELECT (SELECT count(*) FROM personal.outcomes) + (SELECT coalesce(sum(row_count), 0) FROM ledger.parts "
            "WHERE holds = 'personal.outcomes')"
        )
        [(held,)] = rows(store.connection, query)
        reading = [spent(lambda: list(stored_outcomes(store.connection, newest))) for _ in range(3)]
    found: dict[str, Any] = {"bytes": sum(sizes), "files": len(sizes), "rows": held, "read_s": min(reading)}
    if verify:
        found["verify_s"] = spent(lambda: checks.verify(store_path))
    with tempfile.TemporaryDirectory(dir=store_path.parent) as place:
        copy = Path(place) / "store"
        shutil.copytree(store_path, copy)
        somebody = day_of(0, 1, 1)["rider"][0].as_py()
        found["erase_s"] = spent(lambda: riders.delete_riders(copy, [somebody]))
        found["bytes_after_erasure"] = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--outcomes", type=int, default=2000)
    parser.add_argument("--riders", type=int, default=1000)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--no-verify", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store_path, so_far = Path(place) / "store", []
        adding, registering = 0.0, 0.0
        for number in range(options.days):
            today = day_of(number, options.outcomes, options.riders)
            so_far.append(today)
            file = pa.concat_tables(so_far) if options.every else today
            adding = spent(lambda file=file: series.add(store_path, "kite", file))
            newest: list[str] = []
            registering = spent(lambda newest=newest: newest.append(register_union(store_path)))
            if number + 1 in (12, options.days):
                what = measured(store_path, newest[0], not options.no_verify)
                print(json.dumps({"days": number + 1, "add_s": adding, "register_s": registering} | what), flush=True)


if __name__ == "__main__":
    main()
