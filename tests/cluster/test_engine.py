"""A fit on real Dask workers, processes of their own: the same bits, also after kill -9, and nobody's name in Dask."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.client import FuturesCancelledError
from far_cohorts import bits, cohort

import isuit
from isuit import estimator
from isuit.cluster import engine as engines
from isuit.cluster.engine import DaskEngine, engine_of
from isuit.domain import FitConfig
from isuit.errors import InputError
from isuit.estimator.likelihood import errands, grids
from isuit.service.fitting import fit
from isuit.service.riders import delete_riders

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]  # Dask's own, of versions and ports


class Some(DaskEngine):
    """The first few workers, one of which can be killed before a call, or a little later."""

    def __init__(self, client: Any, count: int = 5, kills: Mapping[int, float] | None = None) -> None:
        self._count, self._kills, self.calls, self.lost = count, kills or {}, 0, 0
        super().__init__(client)

    def workers(self) -> Sequence[str]:
        return super().workers()[: self._count]

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        self.calls += 1
        if self.calls in self._kills:
            victim = next(iter(requests))
            pid = self._client.run(os.getpid, workers=[victim])[victim]
            self.lost += 1
            Timer(self._kills[self.calls], os.kill, (pid, signal.SIGKILL)).start()
        return super().ask(requests)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=5,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            host="127.0.0.1",
        ) as cluster,
        distributed.Client(cluster, timeout="120s") as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _small_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "LANE_ENTRIES", 300)


@pytest.mark.parametrize("sites", [0, 12])
def test_workers_find_what_one_process_finds(client: Any, sites: int) -> None:
    alone = bits(estimator.fit(cohort(sites)))
    for count in (1, 2, 5):
        engine = Some(client, count)
        with estimator.riders_on(engine):
            assert bits(estimator.fit(cohort(sites))) == alone
        assert engine.calls


def test_workers_find_a_discrimination_that_varies_along_two_metrics(client: Any) -> None:
    data, config = cohort(12), FitConfig(discrimination="varying")
    wave = np.random.default_rng(2).uniform(0.0, 3.0, len(data))
    data = replace(data, metrics=("wave", "wind"), metric=wave, further=(data.metric,))
    alone = estimator.fit(data, config)
    assert alone.diagnostics.discrimination is not None
    with estimator.riders_on(Some(client, 2)):
        assert bits(estimator.fit(data, config)) == bits(alone)


def test_killed_workers_change_nothing(client: Any) -> None:
    engine = Some(client, 3, {2: 0.0, 9: 0.02, 14: 0.2})
    with estimator.riders_on(engine):
        found = estimator.fit(cohort(0))
    assert engine.lost == 3
    assert bits(found) == bits(estimator.fit(cohort(0)))


def test_nobody_is_named_in_keys_logs_or_workers(client: Any) -> None:
    engine = DaskEngine(client)
    with estimator.riders_on(engine):
        estimator.fit(cohort(12))
    scheduler = client.cluster.scheduler
    told = repr([client.get_scheduler_logs(), client.get_worker_logs(), list(scheduler.transition_log)])
    told += repr(client.run(_kept, engine.session))
    assert "isuit-pass" in told
    assert "somebody" not in told
    assert "place-" not in told
    engine.close()
    assert set(client.run(_kept, engine.session).values()) == {"None"}


def _kept(session: str) -> str:
    return repr(errands._SESSIONS.get(session))


_kept.__module__ = "__main__"  # so that it travels whole: workers have no tests


def test_workers_of_other_versions_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = engines.versions()
    monkeypatch.setattr(engines, "versions", lambda: ours | {"numpy": "1.0"})
    with estimator.riders_on(DaskEngine(client)), pytest.raises(InputError, match=r"numpy [0-9.]+ \(here 1\.0\)"):
        estimator.fit(cohort(0))


def cohort_table(sites: int) -> pa.Table:
    data = cohort(sites)
    places = {"site": [data.sites[code] for code in np.asarray(data.site)]} if sites else {}
    riders = [data.riders[code] for code in data.rider]
    return pa.table({"rider": riders, "metric": data.metric, "outcome": data.outcome, **places})


def test_a_store_records_the_same_and_nobody_who_opted_out(client: Any, tmp_path: Path) -> None:
    table = cohort_table(3)
    found = []
    for name, there in (("one", None), ("many", client)):
        store = tmp_path / name
        fit(store, table.slice(0, 3_000), FitConfig())
        delete_riders(store, ["somebody-0003"])
        found.append(fit(store, table, FitConfig(), client=there))
    one, many = found
    assert many.suppressed_rows == one.suppressed_rows > 0
    assert (many.cohort_hash, many.fit_id) == (one.cohort_hash, one.fit_id)
    assert many.stored.result_digest == one.stored.result_digest
    assert many.stored.parameters == one.stored.parameters


def test_bad_addresses_and_numbers_are_refused_and_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "CONNECTING", 1.0)
    table = pa.table({"rider": ["a"], "metric": [1.0], "outcome": [1]})
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        fit(tmp_path / "store", table, FitConfig(), scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="a number of processes"):
        fit(tmp_path / "store", table, FitConfig(), workers=0)
    with pytest.raises(InputError, match="not both"):
        fit(tmp_path / "store", table, FitConfig(), workers=2, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match=r"distributed\.Client"):
        isuit.open(tmp_path / "store").fit(table, client="tcp://127.0.0.1:9")
    assert not (tmp_path / "store").exists()


def test_all_workers_lost_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PATIENCE", 1.0)
    with engine_of(workers=1) as engine:
        ask = engine.ask

        def last(requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
            if errands.pickle.loads(next(iter(requests.values()))).errands[0].share is None:
                engine._client.cluster.scale(0)
            return ask(requests)

        monkeypatch.setattr(engine, "ask", last)
        with estimator.riders_on(engine), pytest.raises(InputError, match="no worker of the cluster is left"):
            estimator.fit(cohort(0))


def test_files_may_divide_riders_and_may_be_empty(client: Any, tmp_path: Path) -> None:
    table = cohort_table(3)
    order = np.random.default_rng(3).permutation(table.num_rows)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, rows in enumerate([order[:2_000], order[2_000:2_000], order[2_000:]]):
        pq.write_table(table.take(rows), parts / f"{number}.parquet")
    whole = fit(tmp_path / "one", table, FitConfig())
    found = fit(tmp_path / "many", str(parts / "*.parquet"), FitConfig(), client=client)
    assert (found.cohort_hash, found.fit_id) == (whole.cohort_hash, whole.fit_id)
    assert found.stored.result_digest == whole.stored.result_digest
    damaged = parts / "1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"1\.parquet"):
        fit(tmp_path / "none", str(parts / "*.parquet"), FitConfig(), client=client)
    assert not (tmp_path / "none").exists()


class Lost:
    """A client whose scheduler goes while an answer is waited for."""

    status = "running"

    def nthreads(self) -> dict[str, int]:
        return {"tcp://127.0.0.1:1": 1}

    def submit(self, *_: Any, **__: Any) -> object:
        return object()


def test_a_scheduler_that_goes_while_answers_are_waited_for_is_the_same_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Lost()
    engine = DaskEngine(client)

    def gone(*_: Any, **__: Any) -> None:
        client.status = "connecting"
        raise FuturesCancelledError([])

    monkeypatch.setattr(distributed, "wait", gone)
    with pytest.raises(InputError, match="the Dask scheduler is gone and nothing was recorded"):
        engine.ask({"tcp://127.0.0.1:1": b""})


def test_a_scheduler_that_is_killed_in_a_fit_is_one_sentence_and_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, quiet = f"tcp://127.0.0.1:{port}", {"cwd": tmp_path, "stderr": subprocess.DEVNULL}
    program = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*program, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        **quiet,  # type: ignore[call-overload]
    )
    worker = subprocess.Popen(
        [*program, "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard", "--death-timeout", "60"],
        **quiet,  # type: ignore[call-overload]
    )
    try:
        with distributed.Client(address, timeout="60s") as there:
            there.wait_for_workers(1, timeout=60)
        calls = iter(range(99))
        ask = DaskEngine.ask

        def last(engine: DaskEngine, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
            if next(calls) == 3:
                scheduler.kill()
                scheduler.wait()
            return ask(engine, requests)

        monkeypatch.setattr(DaskEngine, "ask", last)
        began = time.monotonic()
        with pytest.raises(InputError, match="the Dask scheduler is gone and nothing was recorded"):
            fit(tmp_path / "store", cohort_table(0), FitConfig(), scheduler=address)
        assert next(calls) == 4, "it was killed in the middle of a fit"
        assert time.monotonic() - began < 60
        assert not (tmp_path / "store").exists()
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
