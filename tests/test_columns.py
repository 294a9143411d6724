"""Columns in memory and on disk are the same, slices divide no rider, and nothing is left behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isuit import columns
from isuit.columns import Column, Nameless, is_sorted, rider_slices, slices
from isuit.errors import InputError

PARTS = [np.arange(5), np.zeros(0), np.array([7.0]), np.arange(300)]


def column(dtype: type, folder: Path | None = None) -> np.ndarray:
    made = Column(dtype, folder)
    for part in PARTS:
        made.append(part)
    return made.array()


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("limit", [0, 100, 1 << 20])
def test_a_column_holds_what_was_appended(
    dtype: type, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", limit)
    found = column(dtype, tmp_path)
    assert found.tobytes() == np.concatenate(PARTS).astype(dtype).tobytes()
    assert found.dtype == dtype
    assert isinstance(found.base, np.memmap) is (limit < found.nbytes)
    assert type(found) is np.ndarray
    assert list(tmp_path.iterdir()) == [], "the file has no name, not even while it is in use"


def test_a_file_without_a_name_grows_at_its_end_wherever_it_was_read(tmp_path: Path) -> None:
    file, first, second = Nameless(tmp_path), np.arange(9), np.array([0.5, -0.0])
    file.append(first)
    assert file.read(16, np.int64, 3).tolist() == [2, 3, 4]
    file.append(second)
    assert file.size == 88
    assert file.read(72, np.float64, 2).tobytes() == second.tobytes()
    assert file.read(0, np.int64, 9).tolist() == first.tolist()
    assert list(tmp_path.iterdir()) == []
    file.close()


def test_an_empty_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", 0)
    assert Column(np.int32).array().tolist() == []


def test_a_mapped_column_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", 0)
    with pytest.raises(ValueError, match="read-only"):
        column(np.float64, tmp_path)[0] = 1.0


def test_a_folder_that_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "IN_MEMORY_BYTES", 0)
    with pytest.raises(InputError, match="TMPDIR"):
        column(np.float64, tmp_path / "absent")


FULL_DISK = """
import resource, signal
import numpy as np
from isuit import columns
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
columns.IN_MEMORY_BYTES = 0
made = columns.Column(np.float64)
made.append(np.zeros(1 << 16))
"""


def test_a_full_disk_is_a_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=False)
    assert "InputError: the cohort is larger than memory and writing it to" in done.stderr.splitlines()[-1]


WAITS = """
import sys, time
from isuit import columns
from isuit.ingest import read_cohort
columns.IN_MEMORY_BYTES = 0
cohort = read_cohort(sys.argv[1])
data = cohort.observations()
print(type(data.metric.base).__name__, float(data.metric.sum()), flush=True)
time.sleep(60)
"""


def test_nothing_is_left_when_the_process_is_killed(tmp_path: Path) -> None:
    """A map of a file that has no name dies with its process, whatever kills it."""
    cohort, temporary = tmp_path / "cohort.csv", tmp_path / "temporary"
    cohort.write_text("rider,metric,outcome\n" + "".join(f"r{k % 9},{k},{k % 2}\n" for k in range(90)))
    temporary.mkdir()
    command = [sys.executable, "-c", WAITS, str(cohort)]
    with subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline().split() == ["memmap", "4005.0"]
        reader.send_signal(signal.SIGKILL)
    assert list(temporary.iterdir()) == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 70), st.sampled_from([np.int32, np.int64]))
def test_slices_hold_every_row_and_divide_no_rider(rows: list[int], size: int, dtype: type) -> None:
    rider = np.array(sorted(rows), dtype=dtype)
    parts = list(rider_slices(rider, size))
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(rider.size))
    assert len(parts) <= -(-rider.size // size)
    for before, after in itertools.pairwise(parts):
        assert rider[before.stop - 1] < rider[after.start]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 70))
def test_rows_that_are_not_sorted_are_one_slice(rows: list[int], size: int) -> None:
    rider = np.array(rows, dtype=np.int32)
    if rows != sorted(rows):
        assert list(rider_slices(rider, size)) == [slice(0, rider.size)]


@pytest.mark.parametrize("place", [0, 3, 6, 7, 8, 18])
def test_a_fall_is_seen_wherever_it_is(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SLICE_ROWS", 7)
    column = np.arange(20)
    assert is_sorted(column)
    column[place] = 30
    assert not is_sorted(column)


def test_plain_slices() -> None:
    assert list(slices(7, 3)) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert list(slices(0, 3)) == []


def test_mixed_numbers_are_those_of_splitmix64() -> None:
    """The published outputs of the generator for the seed 1234567: each is its finaliser of the next state."""
    step = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + turn * step) % 2**64 for turn in range(5)], dtype=np.uint64)
    assert columns.mixed(states).tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
