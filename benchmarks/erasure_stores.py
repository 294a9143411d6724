"""Erasures in random stores: whether any is left locked, and whether any byte of the rider is left.

    python benchmarks/erasure_stores.py [--stores 300] [--first 0] [--threads 1 2 4 8 16] [--long-every 5]
        [--most 50000] [--in-turn] [--all-threads]

Each store has one to five cohorts; every fifth (`--long-every`) has a short one before one of three to four row groups,
where DuckDB leaves free blocks if it writes with several threads. The store is written uncompressed, so that a search
of its bytes says something; one rider, in every cohort, is erased from a copy of it with each number of threads, or
with `--in-turn` with one of the numbers, the next store's being the next.
Afterwards the store must open and hold nothing pending, no file of it may hold the ID or its first eight bytes (what a
zone map keeps), and at the end of each store's last erasure `verify` must agree.

`--all-threads` lets the copy be written with all threads, as it was once: it then counts the copies with free blocks,
and whether those hold a byte of the rider.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from isuit.erasure import rewrite
from isuit.errors import IsuitError
from isuit.service.checks import verify
from isuit.service.riders import delete_riders
from isuit.service.stores import open_store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "erasure"))
from cohort_stores import MARKED, add_cohort, cohort_table, files_with, rider_names


def sizes_of(random: np.random.Generator, short_before_long: bool, most: int) -> list[int]:
    """Outcomes of each cohort: from ten to `most`, or a short one before one of half a million."""
    cohorts = int(random.integers(1, 6))
    sizes = [int(10**power) for power in random.uniform(1, np.log10(most), cohorts)]
    if short_before_long:
        sizes = [int(random.integers(12, 60_000)), int(random.integers(369_000, 492_000))]
    return sizes


def make_store(path: Path, seed: int, long_every: int, most: int) -> list[int]:
    random = np.random.default_rng(seed)
    sizes = sizes_of(random, seed % long_every == 0, most)
    riders = [MARKED, *rider_names(int(10 ** random.uniform(1, 3.7)))]
    for number, outcomes in enumerate(sizes):
        add_cohort(path, cohort_table(seed * 10 + number, outcomes, riders[:outcomes]), number)
    return sizes


@contextmanager
def duckdb_threads(number: int) -> Iterator[None]:
    """Every connection that is made inside uses so many threads."""
    genuine = duckdb.connect

    def connect(*place: Any, config: dict[str, Any] | None = None, **how: Any) -> duckdb.DuckDBPyConnection:
        return genuine(*place, config={**(config or {}), "threads": number}, **how)

    duckdb.connect = connect
    try:
        yield
    finally:
        duckdb.connect = genuine


def erase(store: Path, threads: int) -> Counter[str]:
    """Erase the marked rider with so many threads; what was found afterwards."""
    with duckdb_threads(threads):
        try:
            delete_riders(store, [MARKED])
            with open_store(store) as opened:
                [(pending,)] = opened.connection.execute("SELECT count(*) FROM ledger.pending").fetchall()
                [(free,)] = opened.connection.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()
        except IsuitError:
            return Counter(erasures=1, locked=1)
    left = bool(files_with(store, MARKED.encode(), MARKED.encode()[:8]))
    return Counter(
        {"erasures": 1, "locked": int(pending > 0), "with free blocks": int(free > 0), "bytes left": int(left)}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first store's number: a long run in several")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--long-every", type=int, default=5, help="how often a store has a cohort of half a million")
    parser.add_argument("--most", type=int, default=50_000, help="outcomes of the largest cohort of other stores")
    parser.add_argument("--in-turn", action="store_true", help="each store with one number of threads")
    parser.add_argument("--all-threads", action="store_true", help="write the copy with all threads")
    parser.add_argument("--directory", type=Path, help="where to work; by default the system's temporary directory")
    options = parser.parse_args()
    if options.all_threads:
        rewrite._one_thread = nullcontext  # type: ignore[assignment]
    found: dict[int, Counter[str]] = {threads: Counter() for threads in options.threads}
    disagreements = 0
    os.environ["ISUIT_FORCE_COMPRESSION"] = "uncompressed"
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        store, copy = Path(folder) / "store", Path(folder) / "copy"
        for seed in range(options.first, options.first + options.stores):
            make_store(store, seed, options.long_every, options.most)
            numbers = [options.threads[seed % len(options.threads)]] if options.in_turn else options.threads
            for threads in numbers:
                shutil.copytree(store, copy)
                found[threads] += erase(copy, threads)
                if threads == numbers[-1]:
                    disagreements += len(verify(copy).disagreements)
                shutil.rmtree(copy)
            shutil.rmtree(store)
            print(f"{seed - options.first + 1} stores: {dict(sum(found.values(), Counter()))}", file=sys.stderr)
    print(f"{options.stores} stores, DuckDB {duckdb.__version__}, disagreements of verify {disagreements}")
    for threads, counts in found.items():
        names = ("erasures", "locked", "with free blocks", "bytes left")
        print(f"{threads:>2} threads: " + ", ".join(f"{name} {counts[name]}" for name in names))


if __name__ == "__main__":
    main()
