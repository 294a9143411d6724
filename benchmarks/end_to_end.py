"""`isuit fit` from a file to the record, in a process of its own: processor time, memory, and what the store costs.

    python benchmarks/end_to_end.py --outcomes 10000000 --riders 2000000
    python benchmarks/end_to_end.py --outcomes 100000000 --riders 1000000 --directory DIRECTORY

Memory is the peak of what is resident, and of that the peak of what is anonymous: the rest are maps of files, which the
system drops when it needs the room, and libraries. `--memory` is passed on to `isuit fit`. Loops are compiled before.
With `--directory` cohort and store stay there; `verify.py` and `erasure.py --store` beside this go on with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isuit.experiment.cohort import REFERENCE_SEED

AT_A_TIME = 1_000_000  # outcomes
LOOK = 0.05  # seconds between looks at memory
SCHEMA = pa.schema([("rider", pa.string()), ("metric", pa.float64()), ("outcome", pa.int8())])


def write_cohort(path: Path, outcomes: int, riders: int) -> None:
    """A cohort with a known truth, written some riders at a time."""
    generator, each, digits = np.random.default_rng(REFERENCE_SEED), outcomes // riders, len(str(riders))
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for first in range(0, riders, max(1, AT_A_TIME // each)):
            some = min(riders, first + max(1, AT_A_TIME // each)) - first
            skill, metric = generator.standard_normal((some, 1)), generator.uniform(5.0, 31.0, (some, each))
            odds = np.exp(1.3 * (skill - 0.03 * (metric - 17.0) ** 2 + 1.0))
            outcome = generator.random((some, each)) < odds / (1.0 + odds)
            names = pa.array([f"rider-{rider:0{digits}d}" for rider in range(first, first + some)])
            rider = names.take(pa.array(np.repeat(np.arange(some, dtype=np.int32), each)))
            writer.write_table(pa.table([rider, metric.ravel(), outcome.ravel().astype(np.int8)], schema=SCHEMA))


def anonymous(process: int) -> int:
    """Bytes of memory that no file stands behind."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def run(command: list[str]) -> dict[str, Any]:
    """Processor seconds and peaks of a command."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak, used = 0, None
    while used is None:
        process, status, found = os.wait4(running.pid, os.WNOHANG)
        if process:
            running.returncode, used = os.waitstatus_to_exitcode(status), found
        else:
            peak = max(peak, anonymous(running.pid))
            time.sleep(LOOK)
    return {
        "exit_code": running.returncode,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_megabytes": used.ru_maxrss * 1024 / 1e6,
        "peak_anonymous_megabytes": peak / 1e6,
    }


def fit(source: Path, store: Path, *further: str) -> dict[str, Any]:
    program = [sys.executable, "-m", "isuit", "fit", "--cohort", str(source), "--store", str(store)]
    return run([*program, "--json", *further])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=10_000_000)
    parser.add_argument("--riders", type=int, default=2_000_000)
    parser.add_argument("--memory", help="as of `isuit fit`")
    parser.add_argument("--directory", type=Path, help="a new one that stays; by default a temporary one")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = asked.directory or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(folder)
        small, cohort, store = folder / "small.parquet", folder / "cohort.parquet", folder / "store"
        write_cohort(small, 100_000, 2_000)
        fit(small, folder / "warm")
        write_cohort(cohort, asked.outcomes, asked.riders)
        found = fit(cohort, store, *(["--memory", asked.memory] if asked.memory else []))
        cohort_size, size = cohort.stat().st_size, sum(one.stat().st_size for one in store.rglob("*") if one.is_file())
        sizes = {"file_megabytes": cohort_size / 1e6, "store_megabytes": size / 1e6}
        print(json.dumps({"outcomes": asked.outcomes, "riders": asked.riders} | found | sizes, indent=2), flush=True)


if __name__ == "__main__":
    main()
