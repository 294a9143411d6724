"""What hashing costs, beside DuckDB reading the same file and sorting it; and what `isuit --help` costs, beside typer.

    python benchmarks/hashing.py [--rows N] [--file cohort.parquet]

Every task runs in a process of its own; CPU time is user plus system time of that process with all its threads, and
memory its peak resident size, both as the operating system accounts for them. The interpreter and imports count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RIDERS, SITES = 100_000, 150

HASH = "import sys; from isuit.ingest import read_cohort; print(read_cohort(sys.argv[1]).cohort_hash)"
SORT = """
import sys, duckdb
query = "SELECT rider, site, observed_at, metric, outcome FROM read_parquet('%s') ORDER BY ALL" % sys.argv[1]
with duckdb.connect() as connection:
    connection.execute("SET enable_progress_bar = false")
    print(sum(batch.num_rows for batch in connection.sql(query).to_arrow_reader(1 << 17)))
"""
HELP = "import sys; from isuit.cli.app import main; sys.argv = ['isuit', '--help']; main()"
BARE = """
import sys, typer
app = typer.Typer()
def command(name: str = "x") -> None: "A command."
for number in range(int(sys.argv[1])): app.command(f"command-{number}")(command)
sys.argv = ["bare", "--help"]
app()
"""


def run(program: str, *arguments: str) -> tuple[float, float, str]:
    """CPU seconds, peak memory in GB and output of a Python program."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"a task failed:\n{program}")
        output.seek(0)
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return usage.ru_utime + usage.ru_stime, peak / 1e9, output.read()


def write_cohort(path: Path, rows: int) -> None:
    """Random tokens as riders, so that neither dictionary pages nor inlined strings make it easy for anyone."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(11)
    riders = pa.array([f"r{number:016x}" for number in random.integers(0, 2**63, RIDERS)])
    sites = pa.array([f"site-{number:03d}" for number in range(SITES)])
    year = 365 * 86_400 * 1_000_000
    writer = None
    for start in range(0, rows, 1_000_000):
        size = min(1_000_000, rows - start)
        table = pa.table(
            {
                "rider": riders.take(pa.array(random.integers(0, RIDERS, size))),
                "site": sites.take(pa.array(random.integers(0, SITES, size))),
                "observed_at": pa.array(1_700_000_000_000_000 + random.integers(0, year, size)).cast(
                    pa.timestamp("us", tz="UTC")
                ),
                "metric": random.uniform(0, 40, size),
                "outcome": random.integers(0, 2, size).astype(np.int8),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def hashing(path: Path, repeats: int) -> bool:
    ours, theirs = [], []
    for _ in range(repeats):  # in turn, so that a busy machine is busy for both
        theirs.append(run(SORT, str(path)))
        ours.append(run(HASH, str(path)))
    cpu, peak = min(cpu for cpu, _, _ in ours), max(peak for _, peak, _ in ours)
    sort_cpu, sort_peak = min(cpu for cpu, _, _ in theirs), max(peak for _, peak, _ in theirs)
    print(f"cohort of {int(theirs[0][2]):,} rows: {ours[0][2].strip()}")
    print(f"  duckdb, read and sort    {sort_cpu:7.2f} s CPU  {sort_peak:5.2f} GB")
    print(f"  isuit, read and hash     {cpu:7.2f} s CPU  {peak:5.2f} GB")
    print(f"  ratio                    {cpu / sort_cpu:7.2f}  (at most 1)")
    return cpu <= sort_cpu and peak < 4


def start_up(repeats: int) -> bool:
    from isuit.cli.app import COMMANDS

    commands = str(len(COMMANDS))
    run(HELP), run(BARE, commands)  # compiled modules are there from now on
    pairs = [(run(HELP)[0], run(BARE, commands)[0]) for _ in range(repeats)]
    ours, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"--help with {commands} commands")
    print(f"  bare typer app           {bare:7.3f} s CPU")
    print(f"  isuit                    {ours:7.3f} s CPU")
    print(f"  ratio                    {ours / bare:7.2f}  (at most 1.3)")
    return ours <= 1.3 * bare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--file", type=Path, help="a cohort of your own instead of a generated one")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.file
        if path is None:
            path = Path(folder) / "cohort.parquet"
            write_cohort(path, arguments.rows)
        holds = [hashing(path, arguments.repeats), start_up(7 * arguments.repeats)]
    sys.exit(0 if all(holds) else 1)


if __name__ == "__main__":
    main()
