"""What an erasure costs, as a ratio to copying the store's tables into a new file once.

    python benchmarks/erasure.py [--outcomes 10000000] [--riders 100000] [--repeats 3]

Copying is the floor: whoever wants no byte left has to write a new file. The rest is searching, deleting, comparing the
copy with the original, and overwriting the old file. Ratios are of medians; seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

from isuit.service.riders import delete_riders, plan_erasure
from isuit.service.stores import open_store
from isuit.store.connection import STORAGE_VERSION

COHORT = "isuit-c1:" + "c" * 64
FIT = "isuit-f1:" + "f" * 64


def make_store(path: Path, outcomes: int, riders: int) -> None:
    """Rows written by SQL: their values do not matter here, their number and kind do."""
    with open_store(path, write=True, create=True) as store, store.transaction() as connection:
        connection.execute(
            f"INSERT INTO personal.outcomes SELECT '{COHORT}', sha256('rider' || i // {outcomes // riders})[:32], "
            "'site-' || i % 50, TIMESTAMP '2025-01-01' + INTERVAL 1 SECOND * (i * 7919 % 31536000), "
            f"3 + hash(i) % 32000 / 1000.0, hash(i * 7) % 2 FROM range({outcomes}) t(i)"
        )
        names = f"SELECT sha256('rider' || i)[:32] AS rider, i FROM range({riders}) t(i)"
        connection.execute(
            f"INSERT INTO personal.skills SELECT '{FIT}', rider, hash(i) % 4000 / 1000.0 - 2, 0.3, 100, 8, true "
            f"FROM ({names})"
        )
        for subject in (COHORT, FIT):
            connection.execute(
                f"INSERT INTO personal.commitments SELECT '{subject}', rider, sha256('salt' || i)::BLOB, "
                f"sha256('{subject}' || i) FROM ({names})"
            )
            connection.execute(
                f"INSERT INTO ledger.leaves SELECT subject, leaf FROM personal.commitments WHERE subject = '{subject}'"
            )


def copy_once(store: Path, target: Path) -> None:
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{store / 'store.duckdb'}' AS old (READ_ONLY)")
    connection.execute(f"ATTACH '{target}' AS new (STORAGE_VERSION '{STORAGE_VERSION}')")
    connection.execute("COPY FROM DATABASE old TO new")
    connection.execute("CHECKPOINT new")
    connection.close()
    target.unlink()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time; on a machine with other work the second is the one to compare."""
    start, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - processor


def some_riders(store: Path, start: int, count: int) -> list[str]:
    with open_store(store) as opened:
        found = opened.connection.execute(
            "SELECT DISTINCT rider FROM personal.skills ORDER BY rider LIMIT ? OFFSET ?", [count, start]
        ).fetchall()
    return [rider for (rider,) in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=10_000_000)
    parser.add_argument("--riders", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where to work; by default the system's temporary directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        store = Path(folder) / "store"
        make_store(store, options.outcomes, options.riders)
        size = (store / "store.duckdb").stat().st_size / 2**20
        print(f"{options.outcomes} outcomes of {options.riders} riders, {size:.0f} MiB, DuckDB {duckdb.__version__}")
        times: dict[str, list[tuple[float, float]]] = {"copy": [], "dry run": [], "one": [], "hundred": []}
        for repeat in range(options.repeats):
            one, hundred = some_riders(store, repeat, 1), some_riders(store, 500, 100)
            times["copy"].append(seconds(lambda: copy_once(store, Path(folder) / "copy.duckdb")))
            times["dry run"].append(seconds(partial(plan_erasure, store, one)))
            times["one"].append(seconds(partial(delete_riders, store, one)))
            times["hundred"].append(seconds(partial(delete_riders, store, hundred)))
        wall, processor = ({name: statistics.median(t[i] for t in times[name]) for name in times} for i in (0, 1))
        for name in times:
            print(
                f"{name:<8} {wall[name]:6.2f} s = {wall[name] / wall['copy']:.2f} copies; "
                f"processor {processor[name]:6.2f} s = {processor[name] / processor['copy']:.2f} copies"
            )
        print(
            f"100 riders in one call cost {wall['hundred'] / wall['one']:.2f} times one rider "
            f"(processor {processor['hundred'] / processor['one']:.2f})"
        )


if __name__ == "__main__":
    main()
