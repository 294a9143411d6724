"""A fit on real Dask workers, processes of their own: the same bits, also after kill -9, and nobody's name in Dask."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

import distributed
import numpy as np
import pyarrow as pa
import pytest
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


def test_a_store_records_the_same_and_nobody_who_opted_out(client: Any, tmp_path: Path) -> None:
    data = cohort(3)
    table = pa.table(
        {
            "rider": [data.riders[code] for code in data.rider],
            "site": [data.sites[code] for code in np.asarray(data.site)],
            "metric": data.metric,
            "outcome": data.outcome,
        }
    )
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
