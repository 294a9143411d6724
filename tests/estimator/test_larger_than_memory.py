"""A cohort that memory cannot hold is fitted, and to the same estimate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS, RIDERS = 7_000_000, 2000
CAP = 320 << 20  # bytes beyond what the imports take; the rows alone are 175 MB as sorted and 147 MB as columns

FIT = """
import json, resource, sys
import duckdb, pyarrow.parquet
from isuit import columns
from isuit.domain import FitConfig
from isuit.estimator.diagnostics import heldout
from isuit.estimator.diagnostics import forecasts
from isuit.estimator import fit
from isuit.ingest import cohort as reading
from isuit.ingest import read_cohort, sorting

path, small, cap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if small:
    sorting.IN_MEMORY_ROWS, columns.IN_MEMORY_BYTES = 1 << 16, 1 << 20
    reading.HASH_ROWS = 1 << 13
heldout.MOST_ROWS, forecasts.REPLICATES = 100_000, 50
if cap:
    # RLIMIT_DATA counts what is written to and has no file behind it: what cannot be dropped and read again.
    with open("/proc/self/status") as status:
        used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + cap, used + cap))
spill = 48 * 10**6 if small else sorting.SPILL_BYTES
with read_cohort(path, in_memory_rows=sorting.IN_MEMORY_ROWS, spill_bytes=spill) as cohort:
    data = cohort.observations()
found = fit(data, FitConfig())
curves = [(curve.difficulty.tolist(), curve.difficulty_se.tolist()) for curve in found.curves]
skills = [found.skills.mean.tolist(), found.skills.sd.tolist(), found.skills.outcomes.tolist()]
print(json.dumps([cohort.cohort_hash, found.discrimination, found.held_out.brier_skill, curves, skills]))
"""


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many rows of few riders in no order; the metric is in half units, so that the counts are small."""
    generator = np.random.default_rng(3)
    rider = generator.integers(0, RIDERS, ROWS).astype(np.int32)
    metric = generator.integers(6, 71, ROWS) / 2
    difficulty = ((metric - 18) / 8) ** 2 - 1
    skill = generator.normal(0, 1, RIDERS)
    outcome = generator.random(ROWS) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    columns = {
        "rider": pa.DictionaryArray.from_arrays(rider, [f"rider-{k:04d}" for k in range(RIDERS)]),
        "observed_at": pa.array(generator.integers(0, 10**15, ROWS), pa.timestamp("us", tz="UTC")),
        "metric": metric,
        "outcome": outcome,
    }
    path = tmp_path_factory.mktemp("large") / "cohort.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1 << 15)
    return path


def run(cohort: Path, temporary: Path, small: bool, cap: int) -> subprocess.CompletedProcess[str]:
    # Allocators that reserve address space in advance would meet the limit before a byte is used.
    calm = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    # So do the stacks of threads, 8 MB each, of which little is used.
    command = [
        "sh",
        "-c",
        'ulimit -s 512; exec "$@"',
        "sh",
        sys.executable,
        "-c",
        FIT,
        cohort,
        str(int(small)),
        str(cap),
    ]
    environment = os.environ | calm | {"TMPDIR": str(temporary)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data is Linux's")
def test_a_cohort_larger_than_memory(cohort: Path, tmp_path: Path) -> None:
    bounded = run(cohort, tmp_path, small=True, cap=CAP)
    assert bounded.returncode == 0, bounded.stderr
    assert list(tmp_path.iterdir()) == []
    unbounded = run(cohort, tmp_path, small=False, cap=0)
    assert json.loads(bounded.stdout) == json.loads(unbounded.stdout)
    assert "MemoryError" in run(cohort, tmp_path, small=False, cap=CAP).stderr, (
        "a limit that nobody feels shows nothing"
    )
