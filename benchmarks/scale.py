"""How isuit's cost grows with the cohort, stage by stage, beside the least that any program must do.

    python benchmarks/scale.py                              # 10^4 to 10^7 outcomes, 100 of each rider
    python benchmarks/scale.py --outcomes 100000 --whole    # one size, with the whole fit

The yardstick is DuckDB reading the same Parquet file and grouping it by rider and metric cell, on one thread. Every
size and program has a process of its own. Figures are CPU seconds (user and system, all threads) and the peak of
resident memory. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from peers.exchange import peak_megabytes
from peers.processes import ONE_THREAD

from isuit.domain import Observations
from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
GROWTH_FROM = 100_000  # below, fixed costs hide how the rest grows
CELLS = 480  # as many as isuit cuts the metric into
WHOLE = "whole fit"  # with the gate, the held-out refit and all diagnostics
FITTING = ("counting", "single curve", "latent fit", "standard errors", "skills")

_T = TypeVar("_T")


class Stages:
    """CPU seconds and peak memory of named stages."""

    def __init__(self) -> None:
        self.figures: dict[str, dict[str, float]] = {}

    def run(self, name: str, task: Callable[[], _T]) -> _T:
        began = time.process_time()
        result = task()
        self.figures[name] = {"cpu_seconds": time.process_time() - began, "peak_megabytes": peak_megabytes()}
        return result


def duckdb_groups(path: Path, stages: Stages) -> None:
    """Read the file and count by rider and cell, with the result kept: nothing that fits the model can do less."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    low, high = connection.execute(f"SELECT min(metric), max(metric) FROM '{path}'").fetchone() or (0.0, 1.0)
    query = f"""
        CREATE TABLE counts AS
        SELECT rider, least(floor((metric - {low}) / {high - low} * {CELLS}), {CELLS - 1})::SMALLINT AS cell,
               count(*) AS trials, sum(outcome) AS successes
        FROM '{path}' GROUP BY ALL
    """
    stages.run("DuckDB", lambda: connection.execute(query))


def isuit_stages(path: Path, stages: Stages) -> None:
    from isuit.estimator.likelihood.latent import fit_latent
    from isuit.estimator.likelihood.prepared import Prepared
    from isuit.estimator.model.basis import spline_for
    from isuit.estimator.model.counts import count
    from isuit.estimator.model.curves import CurveSpace
    from isuit.ingest import read_cohort

    def read() -> Observations:
        """Validated, sorted and hashed, as `isuit fit` reads."""
        with read_cohort(path) as cohort:
            return cohort.observations()

    data = stages.run("reading", read)
    spline, counts = stages.run(
        "counting",
        lambda: (
            made := spline_for(data.metric),
            count(data.rider, data.metric, data.outcome, made, len(data.riders)),
        ),
    )
    space = CurveSpace(spline, 0)
    single = stages.run("single curve", lambda: Prepared(counts, space).single)
    latent = stages.run("latent fit", lambda: fit_latent(counts, space, single))
    stages.run("standard errors", lambda: latent.difficulty(np.linspace(spline.lower, spline.upper, 101)))
    stages.run("skills", latent.skills)


def isuit_whole(path: Path, stages: Stages) -> None:
    from isuit.estimator import fit
    from isuit.ingest import read_cohort

    with read_cohort(path) as cohort:
        data = cohort.observations()
    stages.run(WHOLE, lambda: fit(data))


PROGRAMS: dict[str, Callable[[Path, Stages], None]] = {
    "duckdb": duckdb_groups,
    "isuit": isuit_stages,
    "whole": isuit_whole,
}


def measure(outcomes: int, per_rider: int, programs: list[str]) -> dict[str, Any]:
    """All stages at one size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data, _ = draw(Truth(riders=outcomes // per_rider, outcomes=per_rider), REFERENCE_SEED)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "cohort.parquet"
        riders = pa.DictionaryArray.from_arrays(pa.array(data.rider.astype(np.int32)), pa.array(data.riders))
        columns = {"rider": riders.cast(pa.string()), "metric": data.metric, "outcome": data.outcome.astype(np.int8)}
        pq.write_table(pa.table(columns), path)
        megabytes = path.stat().st_size / 2**20
        del data, riders, columns
        stages: dict[str, dict[str, float]] = {}
        for program in programs:
            command = [sys.executable, __file__, "--child", program, "--file", str(path)]
            done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
            stages |= json.loads(done.stdout)
    return {"outcomes": outcomes, "riders": outcomes // per_rider, "file_megabytes": megabytes, "stages": stages}


def growth(results: list[dict[str, Any]], figure: Callable[[dict[str, Any]], float]) -> float | None:
    """The exponent of growth: the slope of the figure's log over log outcomes."""
    points = [(result["outcomes"], figure(result)) for result in results if result["outcomes"] >= GROWTH_FROM]
    if len(points) < 2:
        return None
    size, spent = np.log(np.array(points)).T
    return float(np.polyfit(size, spent, 1)[0])


def of_stage(name: str, figure: str, result: dict[str, Any]) -> float:
    return float(result["stages"][name][figure])


def fitting(result: dict[str, Any]) -> float:
    return sum(result["stages"][name]["cpu_seconds"] for name in FITTING)


def total(result: dict[str, Any]) -> float:
    return float(result["stages"]["reading"]["cpu_seconds"]) + fitting(result)


def table(results: list[dict[str, Any]]) -> str:
    """CPU seconds by stage and size, and the exponent of each."""
    rows: list[tuple[str, Callable[[dict[str, Any]], float]]] = [
        (name, partial(of_stage, name, "cpu_seconds")) for name in results[0]["stages"]
    ]
    rows += [("counting to skills", fitting), ("reading to skills", total)]
    sizes = " | ".join(f"{result['outcomes']:,}" for result in results)
    lines = [f"| CPU s | {sizes} | exponent |", "|---" * (len(results) + 2) + "|"]
    for name, seconds in rows:
        exponent = growth(results, seconds)
        cells = " | ".join(f"{seconds(result):.3g}" for result in results)
        lines.append(f"| {name} | {cells} | {'' if exponent is None else f'{exponent:.2f}'} |")
    yardstick = [result["stages"]["DuckDB"]["cpu_seconds"] for result in results]
    ratios = [f"{fitting(result) / base:.1f}" for result, base in zip(results, yardstick, strict=True)]
    lines.append(f"| counting to skills / DuckDB | {' | '.join(ratios)} | |")
    for name, last in (("DuckDB", "DuckDB"), ("reading", "reading"), ("reading to skills", "skills"), (WHOLE, WHOLE)):
        if last in results[0]["stages"]:
            peaks = [result["stages"][last]["peak_megabytes"] for result in results]
            exponent = growth(results, partial(of_stage, last, "peak_megabytes"))
            cells = " | ".join(f"{peak:.0f}" for peak in peaks)
            lines.append(f"| peak MB, {name} | {cells} | {'' if exponent is None else f'{exponent:.2f}'} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, nargs="+", default=SIZES, help="sizes (default 10^4 to 10^7)")
    parser.add_argument("--per-rider", type=int, default=100, help="outcomes of each rider (default 100)")
    parser.add_argument("--whole", action="store_true", help="also the whole fit, with its held-out refit")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        stages = Stages()
        PROGRAMS[asked.child](asked.file, stages)
        print(json.dumps(stages.figures))
        return
    programs = ["duckdb", "isuit", *(["whole"] if asked.whole else [])]
    results = []
    for outcomes in asked.outcomes:
        results.append(measure(outcomes, asked.per_rider, programs))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(results, indent=2) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
