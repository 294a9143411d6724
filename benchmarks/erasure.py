"""What an erasure costs: processor time and bytes written, for one rider and for a hundred.

    python benchmarks/erasure.py [--outcomes 10000000] [--riders 100000] [--repeats 3]
    python benchmarks/erasure.py --store STORE      # of a store that `isuit fit` made: riders are erased from it

The floor of writing everything anew is copying the store's rows once, which is measured beside it. Seconds depend on
the machine and what else runs there, so processor time is what counts; bytes do not depend on it.
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
import pyarrow as pa

from isuit.service.riders import delete_riders, plan_erasure
from isuit.service.stores import open_store
from isuit.store.parts import listed, writing
from isuit.store.query import arrow

COHORT = "isuit-c1:" + "c" * 64
FIT = "isuit-f1:" + "f" * 64
CHUNK = 1 << 20


def make_store(path: Path, outcomes: int, riders: int) -> None:
    """Rows written by SQL: their values do not matter here, their number, order and kind do."""
    each = outcomes // riders
    who = "lpad({i}::VARCHAR, 8, '0') || sha256('rider' || {i})[:24]"
    with open_store(path, write=True, create=True) as store, store.transaction() as connection:

        def write(table: str, subject: str, count: int, query: str) -> None:
            with writing(connection, table, subject, count) as add:
                for start in range(0, count, CHUNK):
                    rows = arrow(connection, f"{query} FROM range({start}, {min(count, start + CHUNK)}) t(i)")
                    add(pa.Table.from_batches(rows.to_batches(1 << 16)))

        outcome = (
            f"SELECT '{COHORT}' AS cohort_hash, {who.format(i=f'(i // {each})')} AS rider, 'site-' || i % 50 AS site, "
            "TIMESTAMP '2025-01-01' + INTERVAL 1 SECOND * (i * 7919 % 31536000) AS observed_at, "
            "3 + hash(i) % 32000 / 1000.0 AS metric, (hash(i * 7) % 2)::TINYINT AS outcome"
        )
        write("personal.outcomes", COHORT, outcomes, outcome)
        skill = (
            f"SELECT '{FIT}' AS fit_id, {who.format(i='i')} AS rider, hash(i) % 4000 / 1000.0 - 2 AS skill_mean, "
            "hash(i * 3) % 4000 / 1000.0 AS skill_sd, 100 AS n_outcomes, 8 AS n_bins, true AS usable"
        )
        write("personal.skills", FIT, riders, skill)
        for subject in (COHORT, FIT):
            leaf = f"sha256('{subject}' || i) AS leaf"
            salt = f"unhex(sha256('salt' || '{subject}' || i)) AS salt"
            commitment = f"SELECT '{subject}' AS subject, {who.format(i='i')} AS rider, {salt}, {leaf}"
            write("personal.commitments", subject, riders, commitment)
            write("ledger.leaves", subject, riders, f"SELECT '{subject}' AS subject, {leaf}")


def copy_once(store: Path, target: Path) -> None:
    """Every row into one new file."""
    with open_store(store) as opened:
        for view in ("all_outcomes", "all_skills", "all_commitments", "all_leaves"):
            opened.connection.execute(f"COPY (SELECT * FROM {view}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
            target.unlink()


def written() -> int:
    """Bytes that this process has sent to a disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("write_bytes"))


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of processor time, and megabytes written."""
    processor, bytes_before = time.process_time(), written()
    work()
    return time.process_time() - processor, (written() - bytes_before) / 1e6


def some_riders(store: Path, start: int, count: int) -> list[str]:
    with open_store(store) as opened:
        found = opened.connection.execute(
            "SELECT rider FROM all_skills ORDER BY hash(rider) LIMIT ? OFFSET ?", [count, start]
        ).fetchall()
    return [rider for (rider,) in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=10_000_000)
    parser.add_argument("--riders", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--directory", type=Path, help="where to work, on a disk; by default the system's temporary one"
    )
    parser.add_argument("--store", type=Path, help="a store to erase from, instead of one that is made")
    parser.add_argument("--no-copy", action="store_true", help="leave out copying everything once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        store = options.store or Path(folder) / "store"
        if not options.store:
            print(f"{options.outcomes} outcomes of {options.riders} riders")
            make_store(store, options.outcomes, options.riders)
        with open_store(store) as opened:
            parts = listed(opened.connection)
        size = sum(part.bytes for part in parts) / 1e6
        database = (store / "store.duckdb").stat().st_size / 1e6
        print(f"{len(parts)} parts of {size:.0f} MB, database {database:.1f} MB, DuckDB {duckdb.__version__}")
        found: dict[str, list[tuple[float, float]]] = {"copy": [], "dry run": [], "one": [], "hundred": []}
        for repeat in range(options.repeats):
            one, hundred = some_riders(store, repeat, 1), some_riders(store, 500, 100)
            if not options.no_copy:
                found["copy"].append(cost(partial(copy_once, store, Path(folder) / "copy.parquet")))
            found["dry run"].append(cost(partial(plan_erasure, store, one)))
            found["one"].append(cost(partial(delete_riders, store, one)))
            found["hundred"].append(cost(partial(delete_riders, store, hundred)))
        measured = {name: costs for name, costs in found.items() if costs}
        seconds, megabytes = (
            {name: statistics.median(t[i] for t in measured[name]) for name in measured} for i in (0, 1)
        )
        for name in measured:
            print(f"{name:<8} {seconds[name]:6.2f} s of processor time, {megabytes[name]:7.1f} MB written")
        print(f"100 riders in one call cost {seconds['hundred'] / seconds['one']:.1f} times one rider")


if __name__ == "__main__":
    main()
