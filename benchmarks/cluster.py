"""What it costs to share a fit out to workers, and that nothing changes: bits, processor time, bytes, kills.

    python benchmarks/cluster.py                                  # 10^6 outcomes, one process and two workers
    python benchmarks/cluster.py --outcomes 200000 --sites 40     # with sites
    python benchmarks/cluster.py --outcomes 40000 --kills 20      # kill -9 of a worker at 20 random moments

A fit here is all of `isuit.estimator.fit`: gate, fit, held-out refit, diagnostics. Reading, hashing and recording are
the same with and without workers, in the process that has the store, and are not in the figures. Nor is the start of
workers. Seconds are of processor time, user and system, of this process and of all workers, less what these take while
nothing is asked of them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from isuit import estimator
from isuit.cluster.engine import DaskEngine, engine_of
from isuit.domain import Observations
from isuit.estimator.likelihood import grids
from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw


def digest(value: Any) -> str:
    """Of every bit that an estimate holds."""
    found = sha256()

    def add(one: Any) -> None:
        if is_dataclass(one):
            for field in fields(one):
                add(getattr(one, field.name))
        elif isinstance(one, np.ndarray):
            found.update(one.tobytes())
        elif isinstance(one, (tuple, list)):
            for each in one:
                add(each)
        else:
            found.update(repr(one).encode())

    add(value)
    return found.hexdigest()


def cohort(outcomes: int, per_rider: int, sites: int) -> Observations:
    data, _ = draw(Truth(riders=outcomes // per_rider, outcomes=per_rider), REFERENCE_SEED)
    if not sites:
        return data
    site = np.random.default_rng(REFERENCE_SEED).integers(0, sites, len(data)).astype(np.int32)
    return replace(data, sites=tuple(f"site-{k:04d}" for k in range(sites)), site=site)


class Counting:
    """An engine that counts what goes out and comes back, and how long its caller waits."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine, self.session = engine, engine.session
        self.passes: list[dict[str, float]] = []

    def workers(self) -> Any:
        return self._engine.workers()

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        began = time.process_time()
        answers = self._engine.ask(requests)
        request = pickle.loads(next(iter(requests.values())))
        self.passes.append(
            {
                "calls": len(requests),
                "brings_riders": any(errand.share is not None for errand in request.errands.values()),
                "information": any(asked.information for asked in request.asked.values()),
                "out": sum(map(len, requests.values())),
                "back": sum(len(answer) for answer in answers.values() if answer is not None),
                "driver_cpu": time.process_time() - began,
            }
        )
        return answers


def shared_out(data: Observations, workers: int) -> dict[str, Any]:
    with engine_of(workers=workers) as dask:
        client, engine = dask._client, Counting(dask)
        with estimator.riders_on(engine):  # once before, so that compiled loops are loaded everywhere
            estimator.fit(data.rows(slice(0, min(len(data), 200_000))))
        engine.passes.clear()
        before, began, wall = client.run(time.process_time), time.process_time(), time.perf_counter()
        with estimator.riders_on(engine):
            found = estimator.fit(data)
        here = time.process_time() - began
        there = [after - before[worker] for worker, after in client.run(time.process_time).items()]
        length = time.perf_counter() - wall
        idle = idling(client)
    plain = [one for one in engine.passes if not one["brings_riders"] and not one["information"]]
    informed = [one for one in engine.passes if not one["brings_riders"] and one["information"]]
    return {
        "workers": workers,
        "digest": digest(found),
        "cpu_seconds": here + sum(there) - idle * length,
        "cpu_seconds_with_idling": here + sum(there),
        "idle_cpu_per_second": idle,
        "wall_seconds": length,
        "of_this_process": here,
        "of_workers": there,
        "passes": len(engine.passes),
        "riders_sent_bytes": sum(one["out"] for one in engine.passes if one["brings_riders"]),
        "bytes_out_per_pass": float(np.median([one["out"] for one in plain])) if plain else None,
        "bytes_back_per_pass": float(np.median([one["back"] for one in plain])) if plain else None,
        "bytes_back_with_information": float(np.median([one["back"] for one in informed])) if informed else None,
        "driver_cpu_per_pass": float(np.median([one["driver_cpu"] for one in plain])) if plain else None,
    }


def idling(client: Any, seconds: float = 10.0) -> float:
    """Processor time of this process and all workers in a second in which nothing is asked.

    Dask's loops run on while a fit waits for a processor: on a busy machine they cost more than on a quiet one.
    """
    before, began = client.run(time.process_time), time.process_time()
    time.sleep(seconds)
    there = sum(after - before[worker] for worker, after in client.run(time.process_time).items())
    return (time.process_time() - began + there) / seconds


def processes(client: Any) -> dict[str, int]:
    """The process of each worker that answers: one that was killed is listed for a while."""
    while True:
        try:
            found: dict[str, int] = client.run(os.getpid)
        except OSError:
            found = {}
        if len(found) > 1:
            return found
        time.sleep(1.0)


KILLS_OF_A_CLUSTER = 5  # Dask does not start every killed worker again: each cluster begins with one more than that


def kills(data: Observations, count: int) -> dict[str, Any]:
    """Fit after fit; in each, one worker is killed at a moment drawn from the length of a fit."""
    random = np.random.default_rng(REFERENCE_SEED)
    expected, same, hit = digest(estimator.fit(data)), 0, 0
    for first in range(0, count, KILLS_OF_A_CLUSTER):
        with engine_of(workers=KILLS_OF_A_CLUSTER + 1) as engine, estimator.riders_on(engine):
            estimator.fit(data)
            began = time.perf_counter()
            estimator.fit(data)
            length = time.perf_counter() - began
            for number in range(first + 1, min(first + KILLS_OF_A_CLUSTER, count) + 1):
                pids = processes(engine._client)
                victim = pids[sorted(pids)[int(random.integers(len(pids)))]]
                ended = threading.Event()

                def kill(victim: int = victim, ended: threading.Event = ended) -> None:
                    nonlocal hit
                    hit += not ended.is_set()
                    os.kill(victim, signal.SIGKILL)

                timer = threading.Timer(float(random.uniform(0, length)), kill)
                timer.start()
                same += digest(estimator.fit(data)) == expected
                ended.set()
                timer.join()
                print(f"{number} kills, {hit} during a fit, {same} with the same result", file=sys.stderr, flush=True)
    return {"kills": count, "during_a_fit": hit, "same": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--per-rider", type=int, default=100)
    parser.add_argument("--sites", type=int, default=0)
    parser.add_argument("--workers", type=int, nargs="*", default=[2])
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--lane-entries", type=int, default=grids.LANE_ENTRIES, help="smaller: lanes in small cohorts")
    asked = parser.parse_args()
    grids.LANE_ENTRIES = asked.lane_entries
    data = cohort(asked.outcomes, asked.per_rider, asked.sites)
    result: dict[str, Any] = {"outcomes": len(data), "riders": len(data.riders), "sites": asked.sites}
    if asked.kills:
        print(json.dumps(result | kills(data, asked.kills), indent=2))
        return
    estimator.fit(data.rows(slice(0, min(len(data), 200_000))))
    began = time.process_time()
    alone = estimator.fit(data)
    result["one_process"] = {"cpu_seconds": time.process_time() - began, "digest": digest(alone)}
    result["shared_out"] = []
    for workers in asked.workers:
        one = shared_out(data, workers)
        one["times_one_process"] = one["cpu_seconds"] / result["one_process"]["cpu_seconds"]
        one["same_bits"] = one["digest"] == result["one_process"]["digest"]
        result["shared_out"].append(one)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
