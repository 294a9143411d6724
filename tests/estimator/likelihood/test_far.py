"""Riders who are elsewhere: the same bits as in one process, whoever has them and whoever is lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from far_cohorts import bits, cohort

from isuit import estimator
from isuit.domain import Estimate, FitConfig
from isuit.errors import InputError
from isuit.estimator.likelihood import errands, far, grids
from isuit.estimator.likelihood.shares import Share

Losing = Callable[[int], bool]  # whether the call with this number is lost


class Here:
    """An engine whose workers are this process: each has a session of its own, and forgets it when it is lost."""

    def __init__(self, workers: int, losing: Losing = lambda call: False) -> None:
        self.session, self._workers, self._losing = "here", workers, losing
        self.requests: list[bytes] = []

    def workers(self) -> Sequence[str]:
        return [f"w{k}" for k in range(self._workers)]

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        return {worker: self._answered(worker, request) for worker, request in requests.items()}

    def _answered(self, worker: str, request: bytes) -> bytes | None:
        self.requests.append(request)
        if self._losing(len(self.requests)):
            errands.end(worker)
            return None
        return errands.answer(errands.packed(pickle.loads(request)._replace(session=worker)))


@pytest.fixture(autouse=True)
def _small_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "LANE_ENTRIES", 300)


@pytest.fixture(scope="module")
def local() -> dict[int, Estimate]:
    before, grids.LANE_ENTRIES = grids.LANE_ENTRIES, 300
    try:
        return {sites: estimator.fit(cohort(sites)) for sites in (0, 12)}
    finally:
        grids.LANE_ENTRIES = before


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("sites", [0, 12])
def test_workers_find_what_one_process_finds(workers: int, sites: int, local: dict[int, Estimate]) -> None:
    engine = Here(workers)
    with far.riders_on(engine):
        found = estimator.fit(cohort(sites))
    assert engine.requests
    assert bits(found) == bits(local[sites])


@pytest.mark.parametrize("losing", [lambda call: call % 9 == 4, lambda call: 20 < call < 26], ids=["often", "in a row"])
@pytest.mark.parametrize("sites", [0, 12])
def test_a_lost_worker_changes_nothing(losing: Losing, sites: int, local: dict[int, Estimate]) -> None:
    with far.riders_on(Here(3, losing)):
        assert bits(estimator.fit(cohort(sites))) == bits(local[sites])


def test_a_worker_that_forgot_a_pass_is_told_again(local: dict[int, Estimate], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "KEPT", 1)
    with far.riders_on(Here(2)):
        assert bits(estimator.fit(cohort(0))) == bits(local[0])


@pytest.mark.long
def test_a_density_and_correlated_exposure_are_fitted_there_too() -> None:
    config = FitConfig(skill="estimated", exposure="correlated")
    data = cohort(7, 4_000, 120)
    engine = Here(3, lambda call: call == 30)
    with far.riders_on(engine):
        found = estimator.fit(data, config)
    assert len(engine.requests) > 30
    assert bits(found) == bits(estimator.fit(data, config))


def test_large_cohorts_have_lanes_for_more_workers() -> None:
    few, many = (np.arange(0, size + 1, 1 << 16, dtype=np.int64) for size in (1 << 24, 1 << 28))
    assert len(grids.lanes(few)) == grids.LANES
    assert len(grids.lanes(many)) == (1 << 28) // grids.LARGE_LANE


@pytest.mark.parametrize("threads", [2, 8])
def test_no_number_depends_on_threads(
    threads: int, local: dict[int, Estimate], monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in (grids.over, grids.one_by_one, Share.look):
        monkeypatch.setattr(run, "__defaults__", (threads,))
    assert bits(estimator.fit(cohort(0))) == bits(local[0])


def test_one_call_per_worker_and_pass_and_no_riders_in_later_ones(local: dict[int, Estimate]) -> None:
    engine = Here(2)
    with far.riders_on(engine):
        estimator.fit(cohort(0))
    first: dict[int, int] = {}
    for request in map(pickle.loads, engine.requests):
        bring = [errand.share is not None for errand in request.errands.values()]
        assert all(bring) == any(bring) == (first.setdefault(request.likelihood, 0) < 2)
        first[request.likelihood] += 1
        assert len(request.errands) > 1  # all units of the worker together


def test_a_worker_makes_the_table_of_a_pass_once_for_all_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    make, answer = grids.Table.of, errands.answer
    made = 0
    tables_and_passes: list[tuple[int, int]] = []

    def making(*arguments: Any) -> grids.Table:
        nonlocal made
        made += 1
        return make(*arguments)

    def counting(request: bytes) -> bytes | None:
        before, answered = made, answer(request)
        tables_and_passes.append((made - before, len(pickle.loads(request).asked)))
        return answered

    monkeypatch.setattr(grids.Table, "of", making)
    monkeypatch.setattr(errands, "answer", counting)
    with far.riders_on(Here(2)):
        estimator.fit(cohort(12))
    assert any(passes for _, passes in tables_and_passes)
    assert all(tables <= passes for tables, passes in tables_and_passes)


def test_nobodys_name_leaves_the_process() -> None:
    engine, data = Here(2), cohort(12)
    with far.riders_on(engine):
        estimator.fit(data)
    sent = b"".join(engine.requests)
    assert b"somebody-" not in sent
    assert b"place-" not in sent


def test_without_workers_the_fit_ends_with_a_sentence() -> None:
    with far.riders_on(Here(0)), pytest.raises(InputError, match="no worker of the cluster is left"):
        estimator.fit(cohort(0))


def test_workers_that_are_always_lost_are_given_up() -> None:
    with far.riders_on(Here(2, lambda call: call > 10)), pytest.raises(InputError, match="lost one after the other"):
        estimator.fit(cohort(0))


def test_a_worker_keeps_riders_of_few_fits_only() -> None:
    request = errands.Request("", 0, {}, {})
    for k in range(3 * errands.MOST_SESSIONS):
        errands.answer(errands.packed(request._replace(session=f"fit {k}")))
    kept = [session for session in errands._SESSIONS if session.startswith("fit")]
    assert len(kept) == errands.MOST_SESSIONS
    for session in kept:
        errands.end(session)
    assert not any(session.startswith("fit") for session in errands._SESSIONS)
