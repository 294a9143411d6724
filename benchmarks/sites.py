"""Thousands of places in one fit: CPU time, memory, and whether the bands of sites hold.

    python benchmarks/sites.py                      the whole table, each row in a process of its own
    python benchmarks/sites.py table 150 coverage   some of its rows, by name
    python benchmarks/sites.py 1e6 2e4 2000 roaming    one cohort: outcomes, riders, sites, how riders move
    python benchmarks/sites.py peers 2e4 4e2 40     isuit and other programs with rider and site, where installed
    python benchmarks/sites.py peers 2e6 4e4 4e3 isuit gpboost    some of them

Riders are `roaming` (one to five sites, drawn by popularity, which falls like one over the rank) or `settled` (seven in
ten outcomes at a home site, the rest anywhere: about fifteen sites each). Sites differ in level, tilt and bend, their
clienteles in mean skill. The row `tiny` has two outcomes at each of 50,000 sites, and 20 of each rider. Times are CPU
seconds on one thread, without compiling; coverage is of the 95 % bands of difficulty over the metric's central range,
by how many outcomes the site has.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers import of_sites

from isuit.domain import Z95, FitConfig, Observations
from isuit.estimator import fit
from isuit.estimator.likelihood import grids
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace

FloatArray, IntArray = NDArray[np.float64], NDArray[np.int64]
SIZES = ((5, 200), (20, 200), (100, 100), (1_000, 40))  # outcomes at a site, and sites, of the row `coverage`
BANDS = ((0, 10), (10, 50), (50, 300), (300, 10**9))  # outcomes at a site
PEER_LIMIT = 600  # CPU seconds
DISCRIMINATION = 2.0


@dataclass(frozen=True)
class Truth:
    """Level, tilt and bend of each site, and the skills of all riders."""

    shape: FloatArray
    skill: FloatArray

    def difficulty(self, metric: FloatArray, site: NDArray[np.int64]) -> FloatArray:
        x = (metric - 18) / 8
        level, tilt, bend = self.shape[site].T
        return np.asarray(0.6 * x**2 - 0.8 + level + tilt * x + bend * (x**2 - 1))


def draw(outcomes: int, riders: int, sites: int, moving: str, seed: int = 1) -> tuple[Observations, Truth]:
    generator = np.random.default_rng(seed)
    popularity = generator.permutation(1 / np.arange(1, sites + 1) ** 0.9)
    popularity /= popularity.sum()
    if moving == "settled":
        home = generator.integers(0, sites, riders)
        rider = np.sort(generator.integers(0, riders, outcomes))
        site = np.where(generator.random(outcomes) < 0.7, home[rider], generator.integers(0, sites, outcomes))
    else:
        activity = generator.lognormal(0, 0.8, riders)
        rider = np.repeat(np.arange(riders), generator.multinomial(outcomes, activity / activity.sum()))
        visited = generator.choice(sites, (riders, 5), p=popularity)
        home, many = visited[:, 0], generator.integers(1, 6, riders)
        # Most days are spent at the first of them.
        place = np.minimum((5 * generator.random(outcomes) ** 2).astype(np.int64), many[rider] - 1)
        site = visited[rider, place]
    shape = generator.normal(0, [0.5, 0.25, 0.15], (sites, 3))
    skill = generator.standard_normal(riders) + generator.normal(0, 0.5, sites)[home]
    truth = Truth(shape, skill)
    metric = np.clip(generator.gamma(6, 3, outcomes), 1, 45)
    chance = 1 / (1 + np.exp(-DISCRIMINATION * (skill[rider] - truth.difficulty(metric, site))))
    names = tuple(f"site-{s:05d}" for s in range(sites))
    people = tuple(f"rider-{r:07d}" for r in range(riders))
    outcome = (generator.random(outcomes) < chance).astype(np.int8)
    return Observations(people, rider, metric, outcome, names, site.astype(np.int64)), truth


def latent_of(data: Observations) -> LatentFit:
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders), data.site)
    space = CurveSpace.for_outcomes(len(data), spline, len(data.sites))
    return fit_latent(counts, space, Prepared(counts, space).single)


def _compared(data: Observations, truth: Truth) -> tuple[FloatArray, Callable[[int], FloatArray]]:
    """Metrics at which difficulty is compared, and what it is there at a site, in units of these riders' skill."""
    metric = np.quantile(data.metric, np.linspace(0.05, 0.95, 15))
    skill = truth.skill[np.unique(data.rider)]
    mean, sd = skill.mean(), skill.std()
    return metric, lambda site: (truth.difficulty(metric, np.full(metric.size, site)) - mean) / sd


def bands_hold(found: LatentFit, data: Observations, truth: Truth) -> dict[str, Any]:
    """Coverage by the number of outcomes at a site, and the RMSE of difficulty over all sites with any."""
    assert data.site is not None
    metric, true = _compared(data, truth)
    size = np.bincount(data.site, minlength=len(data.sites))
    held: dict[str, list[float]] = {}
    errors = []
    for site in np.flatnonzero(size):
        band = found.difficulty(metric, int(site))
        error = band.value - true(int(site))
        inside = np.abs(error) <= Z95 * band.se
        low, high = next((low, high) for low, high in BANDS if low <= size[site] < high)
        held.setdefault(f"{low} to {high}" if high < 10**9 else f"{low} and more", []).append(float(inside.mean()))
        errors.append(float(np.mean(error**2)))
    return {
        "rmse": float(np.sqrt(np.mean(errors))),
        "coverage": {name: (round(float(np.mean(values)), 4), len(values)) for name, values in sorted(held.items())},
    }


def compare(outcomes: int, riders: int, sites: int, programs: list[str]) -> None:
    """A line for each program: CPU seconds, RMSE of difficulty over sites and metrics, coverage of 95 % bands."""
    data, truth = draw(outcomes, riders, sites, "roaming")
    metric, true = _compared(data, truth)
    with tempfile.TemporaryDirectory() as temporary:
        cohort = Path(temporary) / "cohort"
        cohort.mkdir()
        of_sites.write(cohort, data, metric)
        for name in programs or of_sites.PROGRAMS:
            what = of_sites.PROGRAMS[name]
            if not of_sites.installed(name):
                print(f"| {name} | not installed |", flush=True)
                continue
            found = of_sites.answer_of(name, cohort, Path(temporary) / name, PEER_LIMIT)
            if isinstance(found, str):
                print(f"| {name} | {what} | {found} |", flush=True)
                continue
            error = found.difficulty - np.array([true(int(site)) for site in found.sites])
            inside = np.abs(error) <= Z95 * found.se
            rmse = float(np.sqrt(np.mean(error**2)))
            print(f"| {name} | {what} | {found.cpu_seconds:.1f} | {rmse:.3f} | {inside.mean():.1%} |", flush=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@one_thread()
def measure(outcomes: int, riders: int, sites: int, moving: str, whole: bool = True) -> dict[str, Any]:
    grids.CORES = 1
    small, _ = draw(3_000, 100, 6, "roaming")
    fit(small, FitConfig())  # compiles, or loads what is compiled
    data, truth = draw(outcomes, riders, sites, moving)
    result: dict[str, Any] = {"outcomes": outcomes, "riders": riders, "sites": sites, "riders_are": moving}
    start = time.process_time()
    found = latent_of(data)
    result["latent fit, CPU s"] = round(time.process_time() - start, 2)
    start = time.process_time()
    for site in range(sites):
        found.difficulty(np.linspace(1, 45, 101), site)
    found.skills()
    result["bands and skill errors, CPU s"] = round(time.process_time() - start, 2)
    result["peak of these, MB"] = round(peak())
    result |= bands_hold(found, data, truth)
    result["parameters"] = found.problem.shape.size
    result["steps"], result["gradient"] = found.solution.steps, found.solution.gradient_norm
    del found
    if not whole:
        return result
    start = time.process_time()
    estimate = fit(data, FitConfig())
    result["whole fit, CPU s"] = round(time.process_time() - start, 2)
    result["kind"], result["peak, MB"] = estimate.kind, round(peak())
    return result


def draw_even(each: IntArray, riders: int, seed: int) -> tuple[Observations, Truth]:
    """Sites with so many outcomes each, by riders who go anywhere."""
    generator = np.random.default_rng(seed)
    sites, outcomes = each.size, int(each.sum())
    site = generator.permutation(np.repeat(np.arange(sites), each))
    rider = np.sort(np.arange(outcomes) % riders)
    truth = Truth(generator.normal(0, [0.5, 0.25, 0.15], (sites, 3)), generator.standard_normal(riders))
    metric = np.clip(generator.gamma(6, 3, outcomes), 1, 45)
    chance = 1 / (1 + np.exp(-DISCRIMINATION * (truth.skill[rider] - truth.difficulty(metric, site))))
    outcome = (generator.random(outcomes) < chance).astype(np.int8)
    people, names = (tuple(f"{what}-{k:07d}" for k in range(n)) for what, n in (("rider", riders), ("site", sites)))
    return Observations(people, rider, metric, outcome, names, site), truth


@one_thread()
def coverage(seeds: int = 3) -> dict[str, Any]:
    """By how many outcomes a site has, in cohorts that have sites of every size."""
    grids.CORES = 1
    each = np.repeat([size for size, _ in SIZES], [sites for _, sites in SIZES])
    held: dict[int, list[float]] = {size: [] for size, _ in SIZES}
    for seed in range(1, seeds + 1):
        data, truth = draw_even(each, int(each.sum()) // 30, seed)
        found = latent_of(data)
        metric, true = _compared(data, truth)
        for site, size in enumerate(each.tolist()):
            band = found.difficulty(metric, site)
            held[size].append(float(np.mean(np.abs(band.value - true(site)) <= Z95 * band.se)))
    return {str(size): round(float(np.mean(values)), 4) for size, values in held.items()} | {"cohorts": seeds}


@one_thread()
def tiny(sites: int = 50_000, each: int = 2) -> dict[str, Any]:
    """Sites that have next to nothing: the whole fit, and whether its bands hold."""
    grids.CORES = 1
    data, truth = draw_even(np.full(sites, each), sites * each // 20, 1)
    start = time.process_time()
    estimate = fit(data, FitConfig())
    result = {"sites": sites, "whole fit, CPU s": round(time.process_time() - start, 1), "peak, MB": round(peak())}
    skill, inside = truth.skill, []
    low, high = np.quantile(data.metric, [0.05, 0.95])
    for curve in estimate.curves[1:]:
        if curve.difficulty is not None and curve.difficulty_se is not None:
            site = int(str(curve.site).split("-")[1])
            true = (truth.difficulty(curve.metric, np.full(curve.metric.size, site)) - skill.mean()) / skill.std()
            central = (curve.metric >= low) & (curve.metric <= high)
            inside.append(np.mean((np.abs(curve.difficulty - true) <= Z95 * curve.difficulty_se)[central]))
    return result | {
        "kind": estimate.kind,
        "discrimination": round(estimate.discrimination or 0.0, 3),
        "coverage": round(float(np.mean(inside)), 4),
        "sites without a difficulty": sites - len(inside),
    }


@one_thread()
def without_sites(outcomes: int = 10**7, riders: int = 100_000) -> dict[str, Any]:
    """From counting to skills, 100 outcomes of each rider as in `scale.py`."""
    grids.CORES = 1
    latent_of(replace(draw(3_000, 100, 6, "roaming")[0], site=None, sites=())).skills()
    data = replace(draw_even(np.array([outcomes]), riders, 1)[0], site=None, sites=())
    start = time.process_time()
    latent_of(data).skills()
    return {"outcomes": outcomes, "from counting to skills, CPU s": round(time.process_time() - start, 2)}


def growth() -> dict[str, Any]:
    """The exponent of the latent fit's time with sites."""
    times = [measure(10**6, 20_000, sites, "roaming", whole=False)["latent fit, CPU s"] for sites in (150, 5_000)]
    return {"latent fit, CPU s": times, "exponent": round(float(np.log(times[1] / times[0]) / np.log(5_000 / 150)), 3)}


ROWS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "150": ("whole fit 20 s, 600 MB", lambda: measure(10**6, 20_000, 150, "roaming")),
    "150, settled": ("whole fit 60 s", lambda: measure(10**6, 20_000, 150, "settled")),
    "2000": ("whole fit 60 s, 800 MB", lambda: measure(10**6, 20_000, 2_000, "roaming")),
    "growth": ("exponent 0.5", growth),
    "coverage": ("93 to 97 % at each size", coverage),
    "tiny": ("finishes, its bands hold", tiny),
    "without": ("4.4 to 5.9 s", without_sites),
    "10 million": (
        "latent fit with bands 170 s, 2,500 MB; whole fit 500 s",
        lambda: measure(10**7, 200_000, 5_000, "roaming"),
    ),
}


def table(names: list[str]) -> None:
    """A line for each row: its goal, and what was measured."""
    print("| row | goal | measured |\n|---|---|---|", flush=True)
    for name in names or ROWS:
        command = [sys.executable, __file__, "row", name]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        said = found.stdout.strip() if found.returncode == 0 else found.stderr.strip().splitlines()[-1]
        print(f"| {name} | {ROWS[name][0]} | {said} |", flush=True)


if __name__ == "__main__":
    first = sys.argv[1:2]
    if first == ["peers"]:
        n, r, s = (int(float(value)) for value in sys.argv[2:5] or ("2e4", "4e2", "40"))
        compare(n, r, s, sys.argv[5:])
    elif first == ["row"]:
        print(json.dumps(ROWS[sys.argv[2]][1]()))
    elif not first or first == ["table"]:
        table(sys.argv[2:])
        if not sys.argv[2:]:
            compare(20_000, 400, 40, [])
    else:
        n, r, s = (int(float(value)) for value in sys.argv[1:4])
        print(json.dumps(measure(n, r, s, sys.argv[4]), indent=2))
