"""A limit on memory: what it may be, what it is too small for, and that no number depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.domain import FitConfig
from isuit.errors import InputError
from isuit.ingest import read_cohort, sorting
from isuit.limits import LEAST, SORTING, Memory, needed
from isuit.service import fitting, recording
from isuit.service.checks import verify
from isuit.store.opening import Store
from isuit.store.query import rows


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("4g", 4 * 10**9),
        (" 1.5 GiB ", 3 << 29),
        ("800M", 8 * 10**8),
        (2 * 10**9, 2 * 10**9),
        ("2000000000", 2 * 10**9),
    ],
)
def test_a_size_is_read_with_its_unit(text: str | int, size: int) -> None:
    assert Memory.of(text).total == size


@pytest.mark.parametrize("text", ["", "much", "-4GB", "4 XB", "4GB4", "1e9", "nan", "9" * 400, "٤GB"])
def test_what_is_no_size_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match="a memory limit is a number with a unit"):
        Memory.of(text)


def test_too_little_for_any_fit_is_refused() -> None:
    Memory.of(LEAST)
    with pytest.raises(InputError, match="too small for any fit"):
        Memory.of(LEAST - 1)


def test_the_parts_stay_within_the_whole() -> None:
    for size in ("500MB", "1GB", "2GB", "64GB"):
        memory = Memory.of(size)
        assert memory.total is not None
        assert max(memory.database, memory.sorting, memory.sorted_rows * SORTING) < memory.total
    assert Memory.of("64GB").database == Memory().database, "more is of no use to it"


def test_riders_beyond_the_limit_are_refused_with_the_figure_that_is_enough() -> None:
    memory = Memory.of("2GB")
    memory.require(outcomes=10**7, riders=10**5)
    memory.require(outcomes=10**9, riders=10**5)
    with pytest.raises(InputError, match="takes about") as refused:
        memory.require(outcomes=10**9, riders=10**7)
    figure = str(refused.value).split("takes about ")[1].split(" GB")[0]
    Memory.of(f"{figure}GB").require(outcomes=10**9, riders=10**7)
    Memory().require(outcomes=10**12, riders=10**9)  # nobody asked for a limit


def test_a_fit_in_little_memory_is_the_same(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = cohort_table(3)
    plain = fitting.fit(tmp_path / "plain", table, FitConfig())
    seen: list[str] = []
    spilled: list[int] = []
    record, spill = recording.record_fit, sorting._Spill

    def recorded(store: Store, *rest: object) -> bool:
        seen.append(rows(store.connection, "SELECT current_setting('memory_limit')")[0][0])
        return record(store, *rest)  # type: ignore[arg-type]

    def spilling(folder: Path | None, metrics: int, memory: int) -> sorting._Spill:
        spilled.append(memory)
        return spill(folder, metrics, memory)

    little = Memory(10**9, database=64 * 10**6, sorting=64 * 10**6, sorted_rows=50)
    monkeypatch.setattr(Memory, "of", lambda size: little)
    monkeypatch.setattr(fitting, "record_fit", recorded)
    monkeypatch.setattr(sorting, "_Spill", spilling)
    found = fitting.fit(tmp_path / "little", table, FitConfig(), memory="1GB")
    assert seen == ["61.0 MiB"]
    assert spilled == [64 * 10**6]
    assert found.cohort_hash == plain.cohort_hash
    assert found.detail.curves == plain.detail.curves
    assert found.discrimination == plain.discrimination
    assert verify(tmp_path / "little").disagreements == []


def test_nothing_is_recorded_where_it_is_too_little(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isuit.limits.RIDER", 10**9)
    with pytest.raises(InputError, match=r"more than the 0\.50 GB of --memory: give as much"):
        fitting.fit(tmp_path / "store", cohort_table(3), FitConfig(), memory="500MB")
    assert not (tmp_path / "store").exists()


def test_a_cohort_that_is_too_large_is_refused_before_it_is_read(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file says how many rows it has; of riders as many are known as were met, so what it says is the least
    that is needed."""
    table, told = cohort_table(3), []
    pq.write_table(table, tmp_path / "cohort.parquet")
    with read_cohort(tmp_path / "cohort.parquet", admit=lambda *least: told.append(least)):
        assert told == [(360, 0), (360, 24)]
    told.clear()
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))
    with read_cohort(stream, admit=lambda *least: told.append(least)):
        assert [rows for rows, _ in told] == [100, 200, 300, 360], "a stream is refused as soon as it is too long"
    monkeypatch.setattr("isuit.limits.ROW", 10**7)
    refused = r"at least 0 riders and 360 outcomes takes at least 4\.04 GB, more than the 2\.00 GB of --memory"
    with pytest.raises(InputError, match=refused):
        fitting.fit(tmp_path / "store", tmp_path / "cohort.parquet", FitConfig(), memory="2GB")
    assert not (tmp_path / "store").exists()


MEASURED = """
import sys, threading, time
from pathlib import Path
from isuit.domain import FitConfig
from isuit.service.fitting import fit

def anonymous():
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

peak = 0
def watch():
    global peak
    while True:
        peak = max(peak, anonymous())
        time.sleep(0.01)

threading.Thread(target=watch, daemon=True).start()
fit(Path(sys.argv[1]), sys.argv[2], FitConfig(), memory=sys.argv[3])
print(peak)
"""
LIBRARIES = 210_000_000  # of what is needed: pages of libraries' files, of which some systems map more and some less


@pytest.mark.long
def test_a_fit_keeps_to_what_it_was_given(tmp_path: Path) -> None:
    """Given as much as it is said to need, and not a byte more: its peak is about that. The sort is on
    disk."""
    outcomes, riders = 2_000_000, 100_000
    random = np.random.default_rng(5)
    rider = np.repeat(np.arange(riders, dtype=np.int32), outcomes // riders)
    metric, skill = random.uniform(5, 31, outcomes), random.normal(size=riders)
    outcome = (random.random(outcomes) < 1 / (1 + np.exp((metric - 18) / 4 - 1.3 * skill[rider]))).astype(np.int8)
    names = pa.array([f"rider-{number:06d}" for number in range(riders)])
    table = pa.table({"rider": names.take(pa.array(rider)), "metric": metric, "outcome": outcome})
    pq.write_table(table, tmp_path / "cohort.parquet")
    pq.write_table(table.slice(0, 20_000), tmp_path / "small.parquet")
    limit = needed(outcomes, riders)
    assert Memory.of(limit).sorted_rows < sorting.IN_MEMORY_ROWS

    def peak(name: str) -> int:
        command = [sys.executable, "-c", MEASURED, str(tmp_path / f"store-{name}"), str(tmp_path / name), str(limit)]
        alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        return int(subprocess.run(command, env=alone, capture_output=True, text=True, check=True).stdout)

    peak("small.parquet")  # loops are compiled, which takes memory of its own, once
    # What a process keeps of what it freed differs by some tens of megabytes from one environment to another.
    assert 0.7 * (limit - LIBRARIES) < peak("cohort.parquet") < 1.3 * (limit - LIBRARIES)
