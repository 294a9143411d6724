"""Thousands of places in one fit: CPU time, memory, and whether the bands of sites hold.

    python benchmarks/sites.py                      every cohort of the table, each in a process of its own
    python benchmarks/sites.py 1e6 2e4 2000 roaming    one cohort: outcomes, riders, sites, how riders move
    python benchmarks/sites.py peers 2e4 4e2 40     isuit and other programs with rider and site, where installed

Riders are `roaming` (one to five sites, drawn by popularity, which falls like one over the rank) or `settled` (seven in
ten outcomes at a home site, the rest anywhere: about fifteen sites each). Sites differ in level, tilt and bend, their
clienteles in mean skill. Times are CPU seconds on one thread, without compiling; coverage is of the 95 % bands of
difficulty over the metric's central range, by how many outcomes the site has.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
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

FloatArray = NDArray[np.float64]
COHORTS = (
    ("1e5", "2e3", "500", "roaming"),
    ("1e6", "2e4", "150", "roaming"),
    ("1e6", "2e4", "150", "settled"),
    ("1e6", "2e4", "2000", "roaming"),
    ("1e6", "2e4", "5000", "roaming"),
    ("1e7", "2e5", "5000", "roaming"),
)
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


def bands_hold(found: LatentFit, data: Observations, truth: Truth) -> dict[str, Any]:
    """Coverage by the number of outcomes at a site, and the RMSE of difficulty over all sites with any."""
    assert data.site is not None
    metric = np.quantile(data.metric, np.linspace(0.05, 0.95, 15))
    present = np.unique(data.rider)
    mean, sd = truth.skill[present].mean(), truth.skill[present].std()
    size = np.bincount(data.site, minlength=len(data.sites))
    held: dict[str, list[float]] = {}
    errors = []
    for site in np.flatnonzero(size):
        band = found.difficulty(metric, int(site))
        true = (truth.difficulty(metric, np.full(metric.size, site)) - mean) / sd
        inside = np.abs(band.value - true) <= Z95 * band.se
        low, high = next((low, high) for low, high in BANDS if low <= size[site] < high)
        held.setdefault(f"{low} to {high}" if high < 10**9 else f"{low} and more", []).append(float(inside.mean()))
        errors.append(float(np.mean((band.value - true) ** 2)))
    return {
        "rmse": float(np.sqrt(np.mean(errors))),
        "coverage": {name: (round(float(np.mean(values)), 4), len(values)) for name, values in sorted(held.items())},
    }


def compare(outcomes: int, riders: int, sites: int) -> None:
    """A line for each program: CPU seconds, RMSE of difficulty over sites and metrics, coverage of 95 % bands."""
    data, truth = draw(outcomes, riders, sites, "roaming")
    metric = np.quantile(data.metric, np.linspace(0.05, 0.95, 15))
    skill = truth.skill[np.unique(data.rider)]
    with tempfile.TemporaryDirectory() as temporary:
        cohort = Path(temporary) / "cohort"
        cohort.mkdir()
        of_sites.write(cohort, data, metric)
        for name, what in of_sites.PROGRAMS.items():
            if not of_sites.installed(name):
                print(f"| {name} | not installed |", flush=True)
                continue
            found = of_sites.answer_of(name, cohort, Path(temporary) / name, PEER_LIMIT)
            if isinstance(found, str):
                print(f"| {name} | {what} | {found} |", flush=True)
                continue
            true = [
                (truth.difficulty(metric, np.full(metric.size, s)) - skill.mean()) / skill.std() for s in found.sites
            ]
            error = found.difficulty - np.array(true)
            inside = np.abs(error) <= Z95 * found.se
            rmse = float(np.sqrt(np.mean(error**2)))
            print(f"| {name} | {what} | {found.cpu_seconds:.1f} | {rmse:.3f} | {inside.mean():.1%} |", flush=True)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@one_thread()
def measure(outcomes: int, riders: int, sites: int, moving: str) -> dict[str, Any]:
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
    start = time.process_time()
    estimate = fit(data, FitConfig())
    result["whole fit, CPU s"] = round(time.process_time() - start, 2)
    result["kind"], result["peak, MB"] = estimate.kind, round(peak())
    return result


if __name__ == "__main__":
    if sys.argv[1:2] == ["peers"]:
        compare(*(int(float(value)) for value in sys.argv[2:5] or ("2e4", "4e2", "40")))
    elif len(sys.argv) > 1:
        n, r, s = (int(float(value)) for value in sys.argv[1:4])
        print(json.dumps(measure(n, r, s, sys.argv[4]), indent=2))
    else:
        for cohort in COHORTS:
            subprocess.run([sys.executable, __file__, *cohort], check=True)
