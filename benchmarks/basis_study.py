"""Which basis and which penalty: basis size and penalty order 2 against 3 over true shapes, side by side.

    python benchmarks/basis_study.py [--replicates 100] [--workers 2] [--picture docs/pictures/basis-study.svg]

Cohorts of 80 riders x 30 outcomes with seeds 100, 101, ...; every choice sees the same cohorts, so that differences
between choices are far more certain than the figures themselves.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from isuit.domain import FloatArray, Observations
from isuit.errors import EstimationError
from isuit.estimator.diagnostics.minimum import least_difficulty
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.experiment.cohort import FIRST_REPLICATE_SEED, Truth, draw

_Z95 = 1.959963984540054
METRIC = np.linspace(3.0, 35.0, 161)
INTERVALS = (10, 20, 40)
ORDERS = (2, 3)
CHOSEN = (20, 3)


def parabola(x: FloatArray) -> FloatArray:
    return ((x - 18) / 8) ** 2 - 1


def valley(x: FloatArray) -> FloatArray:
    """Steep below its minimum at 13 knots, gentle above."""
    return np.where(x < 13, ((x - 13) / 6) ** 2, ((x - 13) / 13) ** 2) - 1


def one_sided(x: FloatArray) -> FloatArray:
    """Equally easy up to 15 knots, then harder and harder."""
    return (np.maximum(x - 15, 0) / 10) ** 2 - 1


def monotone(x: FloatArray) -> FloatArray:
    """Harder with every knot, most quickly about 20, levelling off at both ends."""
    return 3 / (1 + np.exp(-(x - 20) / 3)) - 1.5


def plateau(x: FloatArray) -> FloatArray:
    """Equally easy from 11 to 25 knots, with steep sides."""
    return (np.maximum(np.abs(x - 18) - 7, 0) / 5) ** 2 - 1


@dataclass(frozen=True)
class Shape:
    name: str
    difficulty: Callable[[FloatArray], FloatArray]
    easiest: tuple[float, float] | None  # where difficulty is least; None: at an end, so no minimum is to be found


SHAPES = (
    Shape("parabola", parabola, (18, 18)),
    Shape("valley", valley, (13, 13)),
    Shape("one-sided", one_sided, None),
    Shape("monotone", monotone, None),
    Shape("plateau", plateau, (11, 25)),
)


@dataclass(frozen=True)
class ShapedTruth(Truth):
    """The reference cohort's truth with another difficulty."""

    shape: Callable[[FloatArray], FloatArray] = parabola

    def difficulty(self, metric: FloatArray) -> FloatArray:
        return self.shape(metric)


@dataclass(frozen=True)
class Result:
    """One cohort under one choice; `error` is None where the fit found no skill or did not converge."""

    error: FloatArray | None
    covered: float
    location: float | None


def fit_with(data: Observations, intervals: int, order: int) -> LatentFit:
    spline = spline_for(data.metric, intervals, order)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    space = CurveSpace(spline, 0)
    return fit_latent(counts, space, Prepared(counts, space).single)


def one_cohort(task: tuple[int, int]) -> list[Result]:
    """All choices on one cohort of one shape."""
    number, seed = task
    shape = SHAPES[number]
    data, _ = draw(ShapedTruth(shape=shape.difficulty), seed)
    results = []
    for intervals in INTERVALS:
        for order in ORDERS:
            try:
                fit = fit_with(data, intervals, order)
            except EstimationError:
                results.append(Result(None, float("nan"), None))
                continue
            band = fit.difficulty(METRIC)
            error = band.value - shape.difficulty(METRIC)
            covered = float(np.mean(np.abs(error) <= _Z95 * band.se))
            results.append(Result(error, covered, least_difficulty(fit).location))
    return results


def run(replicates: int, workers: int) -> dict[tuple[str, int, int], list[Result]]:
    # One process per core already uses the machine: threads inside each would only wait for one another.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    tasks = [(number, FIRST_REPLICATE_SEED + k) for number in range(len(SHAPES)) for k in range(replicates)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(one_cohort, tasks, chunksize=5))
    choices = [(intervals, order) for intervals in INTERVALS for order in ORDERS]
    return {
        (shape.name, *choice): [found[s * replicates + k][c] for k in range(replicates)]
        for s, shape in enumerate(SHAPES)
        for c, choice in enumerate(choices)
    }


def rmse(result: Result) -> float:
    return float("nan") if result.error is None else float(np.sqrt(np.mean(result.error**2)))


def shape_rmse(result: Result) -> float:
    """The error of the curve's shape alone: most of the RMSE is its level, which no basis can help with."""
    return float("nan") if result.error is None else float(np.std(result.error))


def location_text(shape: Shape, results: list[Result]) -> tuple[str, str]:
    """Mean distance from where difficulty is truly least, and how often the fit calls the minimum undefined."""
    told = [r.location for r in results if r.location is not None]
    undefined = f"{100 * (1 - len(told) / len(results)):.0f} %"
    if shape.easiest is None or not told:
        return "–", undefined
    low, high = shape.easiest
    return f"{np.mean([max(low - place, place - high, 0.0) for place in told]):.2f}", undefined


def table(found: dict[tuple[str, int, int], list[Result]]) -> str:
    lines = [
        "| shape | intervals | order | RMSE | against the choice, % | RMSE of the shape | location error, kn "
        "| called undefined | coverage |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for shape in SHAPES:
        base = np.array([rmse(r) for r in found[shape.name, *CHOSEN]])
        for intervals in INTERVALS:
            for order in ORDERS:
                results = found[shape.name, intervals, order]
                own = np.array([rmse(r) for r in results])
                both = ~np.isnan(own) & ~np.isnan(base)
                change = own[both] - base[both]
                scale = 100 / base[both].mean()
                error = change.std(ddof=1) / np.sqrt(both.sum()) * scale
                location, undefined = location_text(shape, results)
                mark = "**" if (intervals, order) == CHOSEN else ""
                relative = "" if mark else f"{change.mean() * scale:+.1f} ± {error:.1f}"
                covered = np.array([r.covered for r in results])
                shaped = np.array([shape_rmse(r) for r in results])
                lines.append(
                    f"| {shape.name} | {mark}{intervals}{mark} | {mark}{order}{mark} "
                    f"| {np.nanmean(own):.4f} | {relative} "
                    f"| {np.nanmean(shaped):.4f} | {location} | {undefined} | {100 * np.nanmean(covered):.1f} % |"
                )
    lost = {key: sum(r.error is None for r in results) for key, results in found.items()}
    failures = "; ".join(f"{key}: {number}" for key, number in lost.items() if number)
    return "\n".join(lines) + f"\n\nFits that did not converge: {failures or 'none'}.\n"


def picture(found: dict[tuple[str, int, int], list[Result]], path: Path) -> None:
    """Above, each truth with the mean estimate of both orders; below, the RMSE at each metric."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colours = {2: "#d1622b", 3: "#1b6ca8"}
    # A fixed salt and no date: the same figures give the same bytes.
    with plt.rc_context(
        {"svg.hashsalt": "isuit", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure, axes = plt.subplots(2, len(SHAPES), figsize=(13, 5), sharex=True, sharey="row", layout="constrained")
        for shape, above, below in zip(SHAPES, axes[0], axes[1], strict=True):
            truth = shape.difficulty(METRIC)
            above.plot(METRIC, truth, color="black", linestyle="--", linewidth=1, label="truth")
            for order, colour in colours.items():
                errors = np.array([r.error for r in found[shape.name, CHOSEN[0], order] if r.error is not None])
                above.plot(METRIC, truth + errors.mean(axis=0), color=colour, label=f"mean estimate, order {order}")
                below.plot(METRIC, np.sqrt(np.mean(errors**2, axis=0)), color=colour, label=f"order {order}")
            above.set_title(shape.name)
            below.set_xlabel("metric (kn)")
        axes[0, 0].set_ylabel("difficulty (skill sd)")
        axes[1, 0].set_ylabel("RMSE (skill sd)")
        axes[1, 0].set_ylim(0, None)
        axes[0, 0].legend(frameon=False, fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.replicates < 2 or options.workers < 1:
        parser.error("at least two replicates and one worker are needed")
    found = run(options.replicates, options.workers)
    print(table(found))
    if options.picture:
        picture(found, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
