"""What a person at a terminal sees while a fit works: stage, share, iterations, time spent and time left."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pseudo_terminal import received

from isuit.ingest import read_cohort

pytestmark = pytest.mark.usefixtures("quick_isuit")


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Stdout, and what the terminal on stderr was sent, without its control sequences."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(["isuit", *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = received(ours)
        assert process.stdout is not None
        out = process.stdout.read().decode()
    assert process.returncode == 0, seen
    return out, seen


def test_a_fit_tells_its_stage_its_iterations_and_the_time_left(
    tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    cohort = tmp_path / "cohort.parquet"
    pq.write_table(cohort_table(7, riders=40, outcomes=25), cohort)
    asked = ["fit", "--cohort", str(cohort), "--store", str(tmp_path / "store")]
    out, terminal = on_a_terminal(*asked)
    assert "step" not in out
    for stage in ("read", "hash", "fit", "record"):
        assert re.search(rf"{stage} .*%.* step \d+ +\d+:\d\d:\d\d left +[-\d]", terminal), (stage, terminal)
    assert any(int(step) > 1 for step in re.findall(r"fit .* step (\d+)", terminal)), "iterations are counted"
    assert "step" not in on_a_terminal(*asked, "--json")[1]


def test_reading_tells_its_share(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    told: list[tuple[str, float]] = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(cohort_table(7, riders=4, outcomes=10), path, row_group_size=10)
    read_cohort(tmp_path, progress=lambda stage, share: told.append((stage, share))).close()
    assert told == [("read", k / 8) for k in range(1, 9)] + [("hash", 1.0)]
