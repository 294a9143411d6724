"""How well the estimator recovers known truth: every goal beside the measured figure, in one table.

    python benchmarks/recovery.py [--replicates 400] [--cohorts 100] [--workers 2] [--skill estimated] [--json FILE]

Cohorts are drawn as the paper draws its reference cohort (80 riders x 30 outcomes), with seeds 100, 101, ...
The exit code is 1 when a goal is missed. `--replicates` below 400 shortens the run; the rows for seeds 100-119 then use
what there is, and the table says how many.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from basis_study import fit_with

from isuit.domain import FitConfig, FloatArray, SkillPrior
from isuit.estimator import fit
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import INTERVALS, PENALTY_ORDER
from isuit.experiment.cohort import FIRST_REPLICATE_SEED, REFERENCE_SEED, Truth, draw
from isuit.experiment.recovery import recover

_Z95 = 1.959963984540054
HEAVY = Truth(riders=60, outcomes=2_000)
TIMED_FITS = 15


@dataclass(frozen=True)
class Row:
    """A figure, the goal it is held to (None: told for information), and whether it meets it."""

    figure: str
    goal: str
    measured: str
    ok: bool | None

    @property
    def verdict(self) -> str:
        return "–" if self.ok is None else "met" if self.ok else "MISSED"


@dataclass(frozen=True)
class Mean:
    """A mean over replicates and its Monte Carlo error."""

    value: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        array = np.array(list(values), dtype=np.float64)
        error = float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else float("nan")
        return cls(float(array.mean()), error, array.size)

    def text(self, digits: int = 3) -> str:
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f} (n = {self.count})"


def one_replicate(skill: SkillPrior, seed: int) -> dict[str, Any]:
    return recover(Truth(), seed, skill)[0]


def one_heavy(prior: SkillPrior, seed: int) -> dict[str, float]:
    """60 riders x 2,000 outcomes: the discrimination against the skills' real spread, and each rider's interval."""
    data, skill = draw(HEAVY, seed)
    estimate = fit(data, FitConfig(skill=prior))
    assert estimate.skills is not None, "the gate must pass for heavy riders"
    assert estimate.discrimination is not None
    error = estimate.skills.mean - skill
    return {
        "ratio": estimate.discrimination / (HEAVY.discrimination * float(skill.std())),
        "coverage": float(np.mean(np.abs(error) <= _Z95 * estimate.skills.sd)),
        "mean_square_sd": float(np.mean(estimate.skills.sd**2)),
        "sd": float(np.mean(estimate.skills.sd)),
        "mean_square_error": float(np.mean(error**2)),
    }


def cpu_times(task: Callable[[], object]) -> FloatArray:
    """CPU times (all threads) of a task, warm: the first runs pay for imports and caches."""
    times = []
    for _ in range(TIMED_FITS + 2):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return np.array(times[2:])


def time_rows(skill: SkillPrior) -> list[Row]:
    data, _ = draw(Truth(), REFERENCE_SEED)
    whole = cpu_times(lambda: fit(data, FitConfig(skill=skill)))
    with one_thread():  # as `fit` has it
        alone = cpu_times(lambda: fit_with(data, INTERVALS, PENALTY_ORDER).skills())

    def text(times: FloatArray) -> str:
        return f"{np.median(times):.3f} s ({times.min():.3f} to {times.max():.3f}, n = {times.size})"

    return [
        Row(
            "one fit of the reference cohort, CPU time, held-out refit and all",
            "<= 0.1 s",
            text(whole),
            bool(np.median(whole) <= 0.1),
        ),
        Row("the latent model and skills alone, which is what peers' times are", "–", text(alone), None),
    ]


def reference_rows(prior: SkillPrior) -> list[Row]:
    stats, _ = recover(Truth(), REFERENCE_SEED, prior)
    correlation, a, skill = stats["theta_recovery_corr"], stats["discrimination_a"], stats["held_out_bss_70_30"]
    return [
        Row("reference cohort: skill correlation", ">= 0.964", f"{correlation:.4f}", correlation >= 0.964),
        Row(
            "reference cohort: a, no anchor",
            "1.80 ± 0.03",
            f"{a:.4f} (se {stats['discrimination_a_se']:.3f})",
            abs(a - 1.80) <= 0.03,
        ),
        Row("reference cohort: held-out BSS, 70/30", ">= 0.329", f"{skill:.4f}", skill >= 0.329),
        Row(
            "reference cohort: held-out BSS, 80/20, over the single curve",
            "–",
            f"{stats['held_out_bss']:.4f} (se {stats['held_out_bss_se']:.3f})",
            None,
        ),
    ]


def twenty_rows(results: list[dict[str, Any]]) -> list[Row]:
    """Seeds 100-119."""
    twenty = [r for r in results[:20] if r["kind"] == "latent"]
    rmse = Mean.of(r["difficulty_rmse"] for r in twenty)
    a = Mean.of(r["discrimination_a"] for r in twenty)
    told = [r["difficulty_min_knots"] for r in twenty if r["difficulty_min_knots"] is not None]
    location = Mean.of(abs(value - Truth().optimum) for value in told)
    name = f"seeds 100-{FIRST_REPLICATE_SEED + len(results[:20]) - 1}"
    return [
        Row(f"{name}: mean RMSE of difficulty over [3, 35]", "<= 0.155", rmse.text(), rmse.value <= 0.155),
        Row(f"{name}: mean of a", "2.00 ± 0.06", a.text(), abs(a.value - 2.0) <= 0.06),
        Row(
            f"{name}: mean absolute error of the minimum's place, kn", "<= 0.3", location.text(), location.value <= 0.3
        ),
        Row(f"{name}: fits that are latent, with a minimum", "–", f"{len(twenty)}, {len(told)}", None),
    ]


def coverage_rows(results: list[dict[str, Any]]) -> list[Row]:
    latent = [r for r in results if r["kind"] == "latent"]
    name = f"{len(results)} replicates"
    rows = []
    for label, key in (("difficulty", "difficulty_coverage_95"), ("skill", "skill_coverage_95")):
        covered = Mean.of(100 * r[key] for r in latent)
        ok = 93.0 <= covered.value <= 97.0
        rows.append(Row(f"{name}: coverage of 95 % bands, {label}", "93 % to 97 %", f"{covered.text(2)} %", ok))
    intervals = [r["discrimination_a_interval"] for r in latent]
    inside = Mean.of(100 * float(low <= Truth().discrimination <= high) for low, high in intervals)
    places = [r["difficulty_min_interval"] for r in latent if r["difficulty_min_knots"] is not None]
    around = Mean.of(100 * float(low <= Truth().optimum <= high) for low, high in places)
    marginal = np.array([r["marginal_largest_difference"] for r in latent])
    rows += [
        Row(f"{name}: coverage of 95 % intervals, a", "–", f"{inside.text(2)} %", None),
        Row(f"{name}: coverage of 95 % intervals, place of the minimum", "–", f"{around.text(2)} %", None),
        Row(
            f"{name}: single curve against skill-integrated curve",
            "–",
            f"median {np.median(marginal):.3f}, 99 % {np.quantile(marginal, 0.99):.3f}, largest {marginal.max():.3f}; "
            f"matches in {sum(r['marginal_matches'] for r in latent)}",
            None,
        ),
    ]
    return rows


def heavy_rows(results: list[dict[str, float]]) -> list[Row]:
    ratio = Mean.of(r["ratio"] for r in results)
    every = [r["ratio"] for r in results]
    covered = Mean.of(100 * r["coverage"] for r in results)
    sd = float(np.mean([r["sd"] for r in results]))
    error = float(np.sqrt(np.mean([r["mean_square_error"] for r in results])))
    name = f"60 x 2,000, {len(results)} cohorts"
    return [
        Row(
            f"{name}: a / (2 sd(theta))",
            "0.95 to 1.05, mean",
            f"{ratio.text()}, {min(every):.3f} to {max(every):.3f}",
            0.95 <= ratio.value <= 1.05,
        ),
        Row(
            f"{name}: skill intervals cover",
            "90 % to 99 %",
            f"{covered.text(1)} %",
            90 <= covered.value <= 99,
        ),
        Row(
            f"{name}: mean sd over RMS error",
            "0.75 to 1.25",
            f"{sd / error:.3f} (sd {sd:.4f}, error {error:.4f})",
            0.75 <= sd / error <= 1.25,
        ),
    ]


def measure(replicates: int, cohorts: int, workers: int, skill: SkillPrior, tell: Callable[[str], None]) -> list[Row]:
    rows = reference_rows(skill)
    timed = time_rows(skill)
    # One process per core already uses the machine: threads inside each would only wait for one another.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    seeds = range(FIRST_REPLICATE_SEED, FIRST_REPLICATE_SEED + replicates)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        tell(f"{replicates} replicates of the reference cohort")
        results = list(pool.map(partial(one_replicate, skill), seeds, chunksize=4))
        tell(f"{cohorts} cohorts of 60 riders x 2,000 outcomes")
        heavy = list(pool.map(partial(one_heavy, skill), range(cohorts)))
    return rows + twenty_rows(results) + coverage_rows(results) + heavy_rows(heavy) + timed


def table(rows: list[Row]) -> str:
    lines = ["| figure | goal | measured | verdict |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {r.figure} | {r.goal} | {r.measured} | {r.verdict} |" for r in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=400, help="cohorts of 80 x 30 (at least 2)")
    parser.add_argument("--cohorts", type=int, default=100, help="cohorts of 60 x 2,000 (at least 2)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--skill", choices=["normal", "estimated"], default="normal", help="as in `isuit fit`")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    options = parser.parse_args()
    if min(options.replicates, options.cohorts) < 2 or options.workers < 1:
        parser.error("at least two replicates, two cohorts and one worker are needed")
    rows = measure(
        options.replicates,
        options.cohorts,
        options.workers,
        options.skill,
        lambda text: print(text, file=sys.stderr),
    )
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([vars(r) | {"verdict": r.verdict} for r in rows], indent=2) + "\n")
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
