"""A release of a thousand cells: what it costs to know how far any one rider moves a point.

    python benchmarks/influence.py [cells [riders [outcomes per rider]]]      default 1000 20000 30

Riders visit one to five cells, drawn by popularity, which falls like one over the rank. The outcomes are screened as a
release's are, then fitted and searched for influence until nothing is refused. Printed: CPU seconds on one thread of
each fit and of each search, riders solved to the end, points refused, and the largest memory of the process.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from isuit.domain import FitConfig
from isuit.estimator.likelihood.leaving_out import OwnParameters
from isuit.release import screening
from isuit.release.bins import OUTSIDE, choose
from isuit.release.cell_curves import comparable, fit_cells
from isuit.release.eligibility import Outcomes
from isuit.release.influence import refused_bins
from isuit.release.making import screen
from isuit.release.policy import Policy
from isuit.release.screening import Placed, Reasons


def draw(cells: int, riders: int, each: int, seed: int = 1) -> Placed:
    """Outcomes from the model, discrimination 2; cells differ in level and tilt."""
    random = np.random.default_rng(seed)
    popularity = random.permutation(1 / np.arange(1, cells + 1) ** 0.9)
    activity = random.lognormal(0, 0.8, riders)
    rider = np.repeat(np.arange(riders), random.multinomial(riders * each, activity / activity.sum()))
    visited = random.choice(cells, (riders, 5), p=popularity / popularity.sum())
    many = random.integers(1, 6, riders)
    # Most days are spent at the first of them.
    cell = visited[rider, np.minimum((5 * random.random(rider.size) ** 2).astype(np.int64), many[rider] - 1)]
    level, tilt = random.normal(0, 0.5, cells), random.normal(0, 0.25, cells)
    metric = np.round(np.clip(random.gamma(6, 3, rider.size), 1, 45), 2)
    x = (metric - 18) / 8
    difficulty = 0.6 * x**2 - 0.8 + level[cell] + tilt[cell] * x
    chance = 1 / (1 + np.exp(-2 * (random.standard_normal(riders)[rider] - difficulty)))
    names = tuple(f"{number:06d}" for number in range(riders))
    places = tuple(f"{number:05d}" for number in range(cells))
    outcome, times = (random.random(rider.size) < chance).astype(np.int64), np.ones(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, cell, places, metric, outcome, times)
    bins = choose(rider, metric, Policy().k)
    assert bins is not None
    inside = bins.of(metric)
    return Placed(outcomes, places, cell, inside, bins).of_rows(inside != OUTSIDE)


def main(cells: int = 1_000, riders: int = 20_000, each: int = 30) -> None:
    policy, reasons = Policy(), Reasons()
    fit_cells(draw(6, 200, 20), policy, FitConfig()).fit.leaving_out().without(0)  # what is compiled is not counted
    solved = 0
    to_the_end = OwnParameters.without

    def counted(self: OwnParameters, rider: int, sites: np.ndarray | None = None) -> object:
        nonlocal solved
        solved += 1
        return to_the_end(self, rider, sites)

    OwnParameters.without = counted  # type: ignore[assignment, method-assign]
    left = screen(draw(cells, riders, each), policy, reasons)
    assert left is not None
    left = left.of_rows(comparable(left)[left.cell])
    refused = np.ones(1, dtype=bool)
    while left is not None and refused.any():
        released = np.zeros((len(left.cells), left.bins.number), dtype=bool)
        released[left.cell, left.bin] = True
        began, solved = time.process_time(), 0
        curves = fit_cells(left, policy, FitConfig())
        fitted = time.process_time()
        refused = refused_bins(curves, released, policy)
        searched = time.process_time()
        print(f"{len(left.cells)} cells, {len(left.outcomes.riders)} riders, {left.outcomes.rider.size} lines: fit "
              f"{fitted - began:.1f} s, influence {searched - fitted:.1f} s with {solved} riders solved to the end, "
              f"{refused.sum()} of {released.sum()} points refused", flush=True)  # fmt: skip
        thinner = screening.without(left, refused)
        left = None if thinner is None else screen(thinner, policy, reasons)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:4]))
