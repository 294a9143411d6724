"""What attackers learn from a released surface, and what its readers get: by form of the cell and by riders.

    python benchmarks/surface_disclosure.py [--cohorts 30] [--metrics 2] [--riders 24 40 120]

The attackers of `disclosure.py` who have every other row: they compute the release with a person and without, and use
the likelihood ratio of values, errors and bands; where another set of points is refused for one rider's influence they
are certain. `values` leaves the refused points out. The same cells are released as products of bins and as main
effects.
Beside the noise of releases, which grows with the root of the places that a cell tells: the noise of a curve on each.
Readers: RMSE of published difficulties and coverage of 1.96 published errors, over the same cells.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from attackers import auc
from scipy.special import ndtr

from isuit.domain import FitConfig, FloatArray, IntArray
from isuit.release import noise
from isuit.release.bins import Bins
from isuit.release.cell_curves import CellCurves, fit_cells
from isuit.release.eligibility import Outcomes
from isuit.release.forms import Form, in_forms
from isuit.release.grid import Grid
from isuit.release.influence import largest_influence
from isuit.release.policy import BANDS, Policy
from isuit.release.rounding import is_saturated, published_error, suitability_at, to_step
from isuit.release.screening import Placed

POLICY, DRAWS = Policy(), 60
GRIDS = {
    2: Grid(("wave", "wind"), (Bins(0, 4, 0.8), Bins(0, 4, 9.0))),
    3: Grid(("water", "wave", "wind"), (Bins(0, 3, 8.0), Bins(0, 3, 1.0), Bins(0, 3, 12.0))),
}
FORMS: tuple[Form, ...] = ("products", "main effects")


def difficulty(metric: FloatArray) -> FloatArray:
    """By wave and wind, which are the last two, and a little by the water."""
    wave, wind = (metric[:, -2] - 1.6) / 0.8, (metric[:, -1] - 18) / 8
    water = (metric[:, 0] - 12) / 8 if metric.shape[1] == 3 else np.zeros(len(metric))
    return np.asarray(wind**2 - 1 + 0.48 * wave + 0.3 * wind * wave + 0.2 * water)


def draw(grid: Grid, riders: int, seed: int, expert: bool = False) -> Placed:
    """One cell, 18 outcomes a rider, discrimination 2; the first rider may be an expert."""
    random = np.random.default_rng(seed)
    skill = random.standard_normal(riders)
    if expert:
        skill[0] = 2.5
    rider = np.repeat(np.arange(riders), 18)
    metric = np.column_stack([random.uniform(0.02 * high, 0.98 * high, rider.size) for _, high in grid.ranges])
    chance = 1 / (1 + np.exp(-2 * (skill[rider] - difficulty(metric))))
    outcome = (random.random(rider.size) < chance).astype(np.int64)
    names, zeros = tuple(f"{code:05d}" for code in range(riders)), np.zeros(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, zeros, (None,), metric, outcome, zeros + 1)
    return Placed(outcomes, ("global",), zeros, grid.product_of(metric), grid)


@dataclass(frozen=True)
class Exact:
    """What a release of one cell follows from, before noise, at the places of its form."""

    value: FloatArray
    se: FloatArray
    there: np.ndarray  # is not refused for one rider's influence
    shown: np.ndarray  # has a value
    riders: IntArray  # by place
    in_cell: int
    discrimination: float

    @classmethod
    def of(cls, placed: Placed, form: Form) -> Exact:
        assert isinstance(placed.bins, Grid)
        grid = placed.bins
        formed = in_forms(placed, grid, {"global": form}, POLICY)
        places = slice(0, grid.products) if form == "products" else slice(grid.products, None)
        pairs = np.unique(np.column_stack([formed.bin, formed.outcomes.rider]), axis=0)
        riders = np.bincount(pairs[:, 0], minlength=grid.number)
        curves: CellCurves = fit_cells(formed, POLICY, FitConfig())
        released = riders > 0
        moved = largest_influence(curves, released[None], POLICY)[0]
        band = curves.difficulty(0)
        shown = np.array([not is_saturated(chance) for chance in curves.suitability(0)])
        there = released & (moved <= POLICY.influence)
        found = [np.asarray(each)[places] for each in (band.value, band.se, there, shown, riders)]
        return cls(*found, len(placed.outcomes.riders), curves.fit.discrimination)


def told(one: Exact, other: Exact, by_place: float, random: np.random.Generator, certain: bool) -> tuple[list, list]:
    """Log likelihood ratios of one against the other, of releases of either."""
    if certain and (one.there != other.there).any():
        return [np.inf] * DRAWS, [-np.inf] * DRAWS
    use = one.there & other.there & one.shown & other.shown
    few = min(1.0, POLICY.noise_riders / one.in_cell)
    size = by_place * noise.scale(one.in_cell, POLICY)
    step = np.array([POLICY.step(number) for number in one.riders[use].tolist()])
    rest = np.hypot(size, step / math.sqrt(12))
    errors = [np.log(np.hypot(each.se[use], rest)) for each in (one, other)]
    apart = np.sum(((one.value - other.value)[use] / rest) ** 2)
    apart += np.sum((errors[0] - errors[1]) ** 2) / ((noise.ERRORS * few) ** 2 + 0.1**2)
    for least, _ in BANDS[:-1]:
        chance = [ndtr((each.riders[use] - least + 0.5) / noise.RIDERS) for each in (one, other)]
        mean = np.clip((chance[0] + chance[1]) / 2, 1e-6, 1 - 1e-6)
        apart += np.sum((chance[0] - chance[1]) ** 2 / (mean * (1 - mean)))
    drawn = random.standard_normal((2, DRAWS)) * math.sqrt(apart)
    return (apart / 2 + drawn[0]).tolist(), (-apart / 2 + drawn[1]).tolist()


def attacked(pairs: list[tuple[Exact, Exact]], by_place: float, certain: bool) -> float:
    random, ins, outs = np.random.default_rng(8), [], []
    for one, other in pairs:
        found = told(one, other, by_place, random, certain)
        ins += found[0]
        outs += found[1]
    return auc(np.array(ins), np.array(outs))


def readers(pairs: list[tuple[Exact, Exact]], truth: FloatArray, by_place: float) -> tuple[float, float]:
    """RMSE and coverage of what is published with everybody."""
    random, errors, inside = np.random.default_rng(7), [], []
    for one, _ in pairs:
        size = by_place * noise.scale(one.in_cell, POLICY)
        few = min(1.0, POLICY.noise_riders / one.in_cell)
        for place in np.flatnonzero(one.there):
            step = POLICY.step(int(one.riders[place]))
            value = one.value[place] + size * random.standard_normal()
            factor = math.exp(noise.ERRORS * few * random.standard_normal())
            if is_saturated(suitability_at(value, one.discrimination)):
                continue
            off = to_step(float(value), step) - truth[place]
            errors.append(off)
            inside.append(abs(off) <= 1.96 * published_error(float(one.se[place]), step, size, factor))
    return float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(inside))


def main(metrics: int, cohorts: int, sizes: list[int]) -> None:
    grid = GRIDS[metrics]
    truth = difficulty(grid.centres)
    print("form          riders  noise    ordinary (values)  expert (values)  refused differ  RMSE  covered")
    for riders in sizes:
        for form in FORMS:
            places = slice(0, grid.products) if form == "products" else slice(grid.products, None)
            number = len(grid.centres[places])
            pairs: dict[bool, list[tuple[Exact, Exact]]] = {}
            for expert in (False, True):
                random = np.random.default_rng(9)
                for seed in range(cohorts):
                    placed = draw(grid, riders, seed, expert)
                    who = 0 if expert else int(random.integers(riders))
                    without = placed.of_rows(placed.outcomes.rider != who)
                    pairs.setdefault(expert, []).append((Exact.of(placed, form), Exact.of(without, form)))
            other = [np.mean([(one.there != two.there).any() for one, two in pairs[e]]) for e in (False, True)]
            for name, by_place in (("released", noise.PLACES * math.sqrt(number)), ("one number's", noise.PLACES)):
                said = [
                    f"{attacked(pairs[e], by_place, True):.2f} ({attacked(pairs[e], by_place, False):.2f})"
                    for e in (False, True)
                ]
                rmse, covered = readers(pairs[False], truth[places], by_place)
                print(
                    f"{form:13} {riders:5}  {name:9} {'     '.join(said)}     {other[0]:.0%}, {other[1]:.0%}"
                    f"     {rmse:.3f} {covered:.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=30)
    parser.add_argument("--metrics", type=int, default=2, choices=(2, 3))
    parser.add_argument("--riders", type=int, nargs="+", default=[24, 40, 120])
    asked = parser.parse_args()
    main(asked.metrics, asked.cohorts, asked.riders)
