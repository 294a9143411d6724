"""What `isuit verify` costs beside the least it could: reading every stored cohort and hashing it.

    python benchmarks/verify.py STORE [--repeats 2]

STORE is a store that `isuit fit` made; nothing in it changes. CPU seconds of this process, all threads, and the peak of
resident memory. A large store is what counts: looking through catalogue and log takes some tenths of a second of any.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from peers.exchange import peak_megabytes

from isuit import canonical
from isuit.service.checks import verify
from isuit.service.stores import open_store
from isuit.store.cohorts import cohort_records, stored_outcomes


def hash_cohorts(store: Path) -> int:
    """Read and hash every cohort; how many outcomes they have."""
    with open_store(store) as opened:
        cohorts = cohort_records(opened.connection)
        for cohort in cohorts:
            batches = stored_outcomes(opened.connection, cohort.cohort_hash)
            canonical.hash_of(canonical.chunks(cohort.outcomes, batches, cohort.metrics), cohort.metrics)
        return sum(cohort.outcomes for cohort in cohorts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    for _ in range(asked.repeats):
        began = time.process_time()
        outcomes = hash_cohorts(asked.store)
        hashed = time.process_time()
        report = verify(asked.store)
        verified = time.process_time()
        floor, whole = hashed - began, verified - hashed
        print(
            f"{outcomes} outcomes: reading and hashing {floor:.2f} s, verify {whole:.2f} s, {whole / floor:.2f} times; "
            f"{'agrees' if report.ok else 'does not agree'}, peak {peak_megabytes():.0f} MB"
        )


if __name__ == "__main__":
    main()
