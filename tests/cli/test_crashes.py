"""Kills, crowds, full disks and places where nothing can be written: a fit is there wholly or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.service import checks, history
from isuit.service.stores import open_store
from isuit.store.opening import is_store
from isuit.store.query import rows

TRIALS = 12  # kills at random moments; `python tests/fuzz/kills.py` does hundreds, of other commands as well


class Child:
    """One `isuit` process."""

    def __init__(self, server: Server, pid: int, output: Path) -> None:
        self._server, self.pid, self._output = server, pid, output

    def wait(self) -> int:
        return int(self._server.ask({"wait": self.pid}))

    @property
    def err(self) -> str:
        return (self._output / "err").read_text()


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, cwd: Path, *args: str | Path, **limits: int) -> Child:
        pid, output = self.ask({"args": [str(arg) for arg in args], "cwd": str(cwd), **limits})
        return Child(self, pid, Path(output))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = Path(__file__).parent / "fork_server.py"
    folder = tmp_path_factory.mktemp("output")
    with subprocess.Popen(
        [sys.executable, str(program), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def cohorts(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> Callable[[int], Path]:
    """A small cohort for every number."""

    def make(number: int) -> Path:
        path = tmp_path / f"cohort-{number}.parquet"
        pq.write_table(cohort_table(number, riders=20, outcomes=12), path)
        return path

    return make


def contents(store: Path) -> tuple[int, int]:
    """Cohorts and fits of a store that must agree with itself, whatever happened to it."""
    report = checks.verify(store)
    assert report.disagreements == []
    return report.cohorts, report.fits


def work_done(pid: int, until: float) -> float:
    """Wait until a process has had so much processor time or has ended: moments that a busy machine does not shift."""
    nanoseconds = 0.0
    while nanoseconds < until:
        if " Z " in Path(f"/proc/{pid}/stat").read_text():
            break
        nanoseconds = max(nanoseconds, float(Path(f"/proc/{pid}/schedstat").read_text().split()[0]))
        time.sleep(0.001)
    return nanoseconds


@pytest.mark.long
def test_kill_9_at_random_moments(server: Server, cohorts: Callable[[int], Path], tmp_path: Path) -> None:
    chance = random.Random(3)
    for number in (1000, 1001):  # in a new installation the first compiles what the server did not need
        whole = server.start(tmp_path, "fit", "--cohort", cohorts(number), "--store", "whole")
        usual = work_done(whole.pid, until=float("inf"))
        assert whole.wait() == 0
    killed = 0
    after = (0, 0)
    for trial in range(TRIALS):
        store = tmp_path / f"store-{trial // 4}"  # every fourth meets a store that is not there yet
        before = after if trial % 4 else (0, 0)
        child = server.start(tmp_path, "fit", "--cohort", cohorts(trial), "--store", store)
        # Spread over the run, and every other kill in its last part, where the store is written.
        moment = (trial + chance.random()) / TRIALS
        work_done(child.pid, until=usual * (0.6 + 0.4 * moment if trial % 2 else moment))
        os.kill(child.pid, signal.SIGKILL)
        code = child.wait()
        killed += code == -signal.SIGKILL
        after = contents(store) if is_store(store) else (0, 0)
        assert after in (before, (before[0] + 1, before[1] + 1)), "half a fit"
        if code == 0:
            assert after != before
        assert not is_store(store) or set(os.listdir(store)) == {"LOCK", "store.duckdb", "key", "signing-key", "tmp"}
    assert killed >= 3
    # What was cut short can be done again.
    for trial in range(0, TRIALS, 4):
        assert server.start(tmp_path, "fit", "--cohort", cohorts(trial), "--store", f"store-{trial // 4}").wait() == 0


@pytest.mark.long
def test_two_fits_at_once(server: Server, cohorts: Callable[[int], Path], tmp_path: Path) -> None:
    store, recorded = tmp_path / "store", 0
    for trial in range(6):
        pair = [
            server.start(tmp_path, "fit", "--cohort", cohorts(2 * trial + side), "--store", store) for side in (0, 1)
        ]
        codes = [child.wait() for child in pair]
        assert set(codes) <= {0, 75}, [child.err for child in pair]
        recorded += codes.count(0)
    assert contents(store) == (recorded, recorded)
    assert recorded > 6
    with open_store(store) as opened:
        assert rows(opened.connection, "SELECT count(*) FROM personal.outcomes") == [(recorded * 20 * 12,)]


def test_a_store_in_use_is_exit_75(server: Server, cohorts: Callable[[int], Path], tmp_path: Path) -> None:
    store = tmp_path / "store"
    history.init(store)
    with open_store(store):
        child = server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", store, "--wait", "0.1")
        assert child.wait() == 75
        assert child.err.count("\n") == 1
        assert "in use" in child.err
    assert contents(store) == (0, 0)


def test_a_full_disk_records_nothing(
    server: Server, cohorts: Callable[[int], Path], cohort_table: Callable[..., pa.Table], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    assert server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", store).wait() == 0
    size = (store / "store.duckdb").stat().st_size
    pq.write_table(cohort_table(2, riders=400, outcomes=30), tmp_path / "large.parquet")
    refused = 0
    # A limit on the size of files, as a full disk has one; some let nothing through, some almost everything.
    for limit in (4096, 100_000, 300_000, 600_000, 1_000_000, size, size + 500_000):
        child = server.start(tmp_path, "fit", "--cohort", "large.parquet", "--store", store, fsize=limit)
        code = child.wait()
        assert code in (0, 2), child.err
        if code == 0:  # the WAL had room; what the checkpoint lacked, the next command finds in the WAL
            assert contents(store) == (2, 2)
            break
        refused += 1
        assert child.err.count("\n") == 1, child.err
        assert "disk" in child.err
        assert contents(store) == (1, 1)
    assert refused
    assert server.start(tmp_path, "fit", "--cohort", "large.parquet", "--store", store).wait() == 0
    assert contents(store) == (2, 2)


def test_a_full_disk_makes_no_store(server: Server, cohorts: Callable[[int], Path], tmp_path: Path) -> None:
    for limit in (5_000, 20_000):
        child = server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", "store", fsize=limit)
        assert child.wait() == 2
        assert "disk" in child.err
        assert child.err.count("\n") == 1, child.err
        assert not is_store(tmp_path / "store")
    assert server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", "store").wait() == 0
    assert contents(tmp_path / "store") == (1, 1)


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """A directory that another user can enter; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_place_that_cannot_be_written(server: Server, cohorts: Callable[[int], Path], readable_by_all: Path) -> None:
    cohort = readable_by_all / "cohort.parquet"
    cohort.write_bytes(cohorts(1).read_bytes())
    place = readable_by_all / "read-only"
    place.mkdir(mode=0o555)
    somebody = {"uid": 65534} if os.geteuid() == 0 else {}  # permissions do not bind root
    child = server.start(readable_by_all, "fit", "--cohort", cohort, "--store", place / "store", **somebody)
    assert child.wait() == 2
    assert "cannot be written" in child.err
    assert child.err.count("\n") == 1
    assert list(place.iterdir()) == []


def test_places_that_are_no_store(server: Server, cohorts: Callable[[int], Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    file = server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", "file")
    assert (file.wait(), "is a file" in file.err) == (2, True)
    assert (tmp_path / "file").read_text() == "mine"
    history.init(tmp_path / "newer")
    connection = duckdb.connect(str(tmp_path / "newer" / "store.duckdb"))
    connection.execute("INSERT INTO ledger.migrations VALUES ('9999-later', TIMESTAMP '2030-01-01')")
    connection.close()
    newer = server.start(tmp_path, "fit", "--cohort", cohorts(1), "--store", "newer")
    assert (newer.wait(), "newer version" in newer.err) == (2, True)
    missing = server.start(tmp_path, "status", "--store", "nowhere")
    assert (missing.wait(), "no store" in missing.err) == (2, True)
