"""What attackers learn from a release, beside what its readers get: by noise, size of the cell and attacker.

    python benchmarks/disclosure.py [--private] [--quick]

Attackers (AUC 0.5 is a coin; each uses the likelihood ratio of what was published, with the noise's covariance known):

    others known      has every other row, computes the fit with a person and without, and says which was published.
                      `ordinary` are riders drawn at random, `expert` the one rider who succeeds nearly everywhere
    one outcome       the same, for one outcome of a person whose other outcomes are known too: accuracy with even odds
                      and, in private mode, both from the sums with noise before any row is made of them
    departure         has two releases, ten others having joined between them and one person perhaps having left
                      (the row computed again, which a release does only after more than that)

Readers: RMSE of published difficulties against the truth, coverage of published errors (1.96 of them either side) and
share of points with ten riders that are released. `platform` is a cohort whose cells' popularity falls like
one over the rank.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from datetime import date

import h3
import numpy as np
from numpy.typing import NDArray

from isuit.domain import FitConfig
from isuit.published import ReleaseRow
from isuit.release import noise, screening
from isuit.release.bins import Bins
from isuit.release.cell_curves import CellCurves, comparable, fit_cells
from isuit.release.eligibility import Outcomes, Topic
from isuit.release.influence import refused_bins
from isuit.release.making import screen
from isuit.release.policy import Policy, policy_of
from isuit.release.private.accounting import variance
from isuit.release.private.contributions import GRID, score_sum, survey_sum
from isuit.release.private.declaration import PrivateTopic
from isuit.release.private.releasing import ROUNDS, Costs, curves, draft, drawn, entries_of
from isuit.release.rounding import RowMaker, is_saturated
from isuit.release.screening import Placed, Reasons

FloatArray = NDArray[np.float64]
BINS, TOPIC = Bins(0, 9, 4.0), Topic("kitesurfing", "wind_kn")
SECRETS = 60  # releases of each pair of fits: in so many stores the same outcomes would have other noise


@dataclass(frozen=True)
class Cohort:
    placed: Placed
    level: FloatArray

    def truth(self, metric: FloatArray, cell: int) -> FloatArray:
        return np.asarray(((metric - 18) / 8) ** 2 - 1 + self.level[cell])

    def of(self, chosen: NDArray[np.bool_]) -> Placed:
        return self.placed.of_rows(chosen)


def draw(cells: NDArray[np.int64], riders: int, each: int, seed: int, expert: bool = False) -> Cohort:
    """`cells` are each rider's home and second cell; the first rider may be an expert."""
    random = np.random.default_rng(seed)
    number = int(cells.max()) + 1
    level = random.normal(0, 0.4, number) if number > 1 else np.zeros(1)
    skill = random.standard_normal(riders)
    if expert:
        skill[0] = 2.5
    rider = np.repeat(np.arange(riders), each)
    cell = cells[rider, (random.random(rider.size) < 1 / 4).astype(np.int64)]
    metric = random.uniform(0.5, 35.5, rider.size)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + level[cell]
    outcome = (random.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))).astype(np.int64)
    names = tuple(f"{code:05d}" for code in range(riders))
    places = tuple(sorted(h3.latlng_to_cell(code / 3 - 50, 20.0, 7) for code in range(number)))
    ones = np.ones(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, cell, places, metric, outcome, ones)
    return Cohort(Placed(outcomes, places, cell, BINS.of(metric), BINS), level)


def released(curves: CellCurves, policy: Policy, cell: int = 0) -> tuple[FloatArray, FloatArray, float, float]:
    """Difficulties of a cell as they are before noise and rounding, which have a value, the noise's sd and the step."""
    riders = int(screening.distinct_riders(curves.placed.cell, curves.placed.outcomes, len(curves.placed.cells))[cell])
    shown = np.array([not is_saturated(chance) for chance in curves.suitability(cell)])
    return curves.difficulty(cell).value, shown, noise.scale(riders, policy), policy.step(riders)


def evidence(
    value: FloatArray, one: FloatArray, other: FloatArray, shown: FloatArray, sd: float, step: float
) -> FloatArray:
    """Log likelihood ratio of `one` against `other` for published values, a row for each release."""
    use = shown.astype(bool)
    n = int(use.sum())
    shapes = noise._shapes(use.size)[:, use]
    covariance = sd**2 * shapes.T @ shapes + step**2 / 12 * np.eye(n)
    direction = np.linalg.solve(covariance, (one - other)[use])
    return np.asarray((value[:, use] - (one + other)[use] / 2) @ direction)


def publish(curve: FloatArray, sd: float, step: float, random: np.random.Generator) -> FloatArray:
    """In `SECRETS` stores."""
    drawn = np.array([noise.draw(random.bytes(16), ["benchmark"], [], curve.size) for _ in range(SECRETS)])
    return np.asarray(np.round((curve + sd * drawn) / step) * step)


def auc(positive: FloatArray, negative: FloatArray) -> float:
    ordered = np.sort(negative)
    below, up_to = (np.searchsorted(ordered, positive, side=side) for side in ("left", "right"))
    return float(np.mean(below + up_to) / (2 * negative.size))


def one_cell(riders: int, seed: int, expert: bool = False) -> Cohort:
    return draw(np.zeros((riders, 2), np.int64), riders, 18, seed, expert)


def others_known(riders: int, policy: Policy, cohorts: int, expert: bool) -> float:
    random, ins, outs = np.random.default_rng(9), [], []
    for seed in range(cohorts):
        cohort = one_cell(riders, seed, expert)
        who = 0 if expert else int(random.integers(riders))
        inside = fit_cells(cohort.placed, policy, FitConfig())
        outside = fit_cells(cohort.of(cohort.placed.outcomes.rider != who), policy, FitConfig())
        (f1, s1, sd, step), (f0, s0, *_) = released(inside, policy), released(outside, policy)
        for curve, into in ((f1, ins), (f0, outs)):
            into.append(evidence(publish(curve, sd, step, random), f1, f0, s1 * s0, sd, step))
    return auc(np.concatenate(ins), np.concatenate(outs))


def one_outcome(riders: int, policy: Policy, cohorts: int) -> float:
    random, right = np.random.default_rng(9), []
    for seed in range(cohorts):
        placed = one_cell(riders, seed).placed
        row = int(random.integers(placed.outcomes.rider.size))
        curves = []
        for value in (1, 0):
            outcome = placed.outcomes.outcome.copy()
            outcome[row] = value
            other = replace(placed, outcomes=replace(placed.outcomes, outcome=outcome))
            curves.append(fit_cells(other, policy, FitConfig()))
        (f1, s1, sd, step), (f0, s0, *_) = (released(one, policy) for one in curves)
        right += [evidence(publish(f1, sd, step, random), f1, f0, s1 * s0, sd, step) > 0]
        right += [evidence(publish(f0, sd, step, random), f1, f0, s1 * s0, sd, step) < 0]
    return float(np.mean(right))


def departure(riders: int, policy: Policy, cohorts: int) -> float:
    """Was the person who left good? Two releases, ten others having joined; only the releases are known."""
    random, good, poor = np.random.default_rng(9), [], []
    for seed in range(cohorts):
        whole = one_cell(riders + 10, seed)
        rider = whole.placed.outcomes.rider
        before = fit_cells(whole.of(rider < riders), policy, FitConfig())
        after = fit_cells(whole.of(rider > 0), policy, FitConfig())
        success = whole.placed.outcomes.outcome[rider == 0].mean()
        (f0, s0, sd0, step), (f1, s1, sd1, _) = released(before, policy), released(after, policy)
        use = (s0 * s1).astype(bool)
        moved = publish(f1, sd1, step, random) - publish(f0, sd0, step, random)
        (good if success > 0.5 else poor).append(moved[:, use].mean(axis=1))
    return auc(np.concatenate(good), np.concatenate(poor))


@dataclass
class Utility:
    """What readers get, over any number of cohorts."""

    squares: list[float] = field(default_factory=list)
    inside: dict[str, list[bool]] = field(default_factory=dict)  # by band of contributors, as published
    released: int = 0
    points: int = 0

    def add(self, row: ReleaseRow, truth: float, counts: bool = True) -> None:
        if row.difficulty is None or row.difficulty_se is None:
            return
        error = row.difficulty - truth
        if counts:
            self.squares.append(error**2)
        self.inside.setdefault(row.contributors, []).append(abs(error) <= 1.96 * row.difficulty_se)

    def join(self, other: Utility) -> None:
        self.squares += other.squares
        for name, found in other.inside.items():
            self.inside.setdefault(name, []).extend(found)
        self.released, self.points = self.released + other.released, self.points + other.points

    def __str__(self) -> str:
        coverage = ", ".join(f"{name} {np.mean(found):.1%}" for name, found in sorted(self.inside.items()))
        rmse = np.sqrt(np.mean(self.squares))
        return f"RMSE {rmse:.3f}, released {self.released / self.points:.1%}, coverage {coverage}"


def utility(cohort: Cohort, policy: Policy, secret: bytes = b"benchmark") -> Utility:
    """Of the rows that a first release would have; the share is that of points with k riders."""
    reasons = Reasons()
    held = np.bincount(np.unique(cohort.placed.pair * 10**6 + cohort.placed.outcomes.rider) // 10**6)
    left = screen(cohort.placed, policy, reasons)
    assert left is not None
    left = left.of_rows(comparable(left)[left.cell])
    refused = np.ones(1, bool)
    while refused.any():
        curves = fit_cells(left, policy, FitConfig())
        points = np.zeros((len(left.cells), BINS.number), bool)
        points[left.cell, left.bin] = True
        refused = refused_bins(curves, points, policy)
        if refused.any():
            thinner = screening.without(left, refused)
            assert thinner is not None
            left = screen(thinner, policy, reasons)
            assert left is not None
    riders = {key: len(members) for key, members in screening.members(curves.placed).items()}
    found = Utility(points=int(np.sum(held >= policy.k)))
    for (cell, bin_), row in RowMaker("2026-01-01", TOPIC, BINS, policy, secret).rows(curves, riders).items():
        truth = cohort.truth(np.array([BINS.centre(bin_)]), cohort.placed.cells.index(cell))
        found.add(row, float(truth[0]))
        found.released += 1
    return found


def private_policy(epsilon: float, cells: tuple[str, ...]) -> Policy:
    """Everything for one release."""
    topic = {
        "activity": TOPIC.activity,
        "dimension": TOPIC.dimension,
        "lower": 0,
        "width": 4,
        "bins": 9,
        "cells": cells,
    }
    return policy_of({"private": {"epsilon": epsilon, "delta": 1e-6, "releases": 1, "topics": [topic]}})


def private_others_known(riders: int, epsilon: float, cohorts: int, expert: bool) -> float:
    """AUC of the likelihood ratio of survey and scores with noise, at parameters from a release."""
    random, ins, outs = np.random.default_rng(9), [], []
    for seed in range(cohorts):
        placed = one_cell(riders, seed, expert).placed
        topic, costs, policy = _declared(epsilon, placed.cells)
        who = 0 if expert else int(random.integers(riders))
        everyone = entries_of(placed.outcomes, placed.cell, topic, policy)
        without = placed.of_rows(placed.outcomes.rider != who)
        others = entries_of(without.outcomes, without.cell, topic, policy)
        sums = iter(drawn(everyone, topic, costs))
        at = curves(topic, costs, lambda _, sums=sums: next(sums)).parameters
        survey = survey_sum(everyone, 1, 9) - survey_sum(others, 1, 9)
        scores = score_sum(everyone, at) - score_sum(others, at)
        apart = float(survey @ survey) / variance(GRID, costs.survey)
        apart += ROUNDS * float(scores @ scores) / variance(GRID, costs.scores)
        drawn_now = np.sqrt(apart) * random.standard_normal((2, SECRETS))
        ins.append(apart / 2 + drawn_now[0])
        outs.append(-apart / 2 + drawn_now[1])
    return auc(np.concatenate(ins), np.concatenate(outs))


def _declared(epsilon: float, cells: tuple[str, ...]) -> tuple[PrivateTopic, Costs, Policy]:
    policy = private_policy(epsilon, cells)
    assert policy.private is not None
    return policy.private.topics[0], Costs.of(policy.private), policy


def private_utility(cohort: Cohort, epsilon: float) -> Utility:
    """Of the rows of a release; RMSE of cells with 20 riders or more, the share that of cells with k."""
    placed = cohort.placed
    topic, costs, policy = _declared(epsilon, placed.cells)
    sums = drawn(entries_of(placed.outcomes, placed.cell, topic, policy), topic, costs)
    rows = draft([sums], date(2026, 1, 1), policy, {}).rows
    riders = screening.distinct_riders(placed.cell, placed.outcomes, len(placed.cells))
    found = Utility()
    for row in rows:
        cell = placed.cells.index(row.h3)
        found.add(row, float(cohort.truth(np.array([row.metric]), cell)[0]), bool(riders[cell] >= 20))
    shown = {placed.cells.index(row.h3) for row in rows}
    found.points, found.released = int(np.sum(riders >= policy.k)), sum(riders[cell] >= policy.k for cell in shown)
    return found


def healthy(seed: int) -> Cohort:
    home = np.arange(720) // 60
    second = (home + np.random.default_rng(seed).integers(1, 12, 720)) % 12
    return draw(np.column_stack([home, second]), 720, 20, seed)


def platform(seed: int, riders: int = 5_000, cells: int = 153) -> Cohort:
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, cells + 1)
    return draw(random.choice(cells, (riders, 2), p=popularity / popularity.sum()), riders, 20, seed)


def private(quick: bool) -> None:
    for epsilon in (1.0, 2.0, 4.0):
        for riders in (16, 24, 40, 120):
            found = [private_others_known(riders, epsilon, 12 if quick else 60, expert) for expert in (False, True)]
            print(f"private, epsilon {epsilon:g}   {riders:6} {found[0]:16.2f} {found[1]:14.2f}", flush=True)
        for kind, cohort in (("healthy", healthy), ("platform", platform)):
            together = Utility()
            for seed in range(1, 4 if quick else 31):
                together.join(private_utility(cohort(seed), epsilon))
            print(f"private, epsilon {epsilon:g}  {kind:9} {together}", flush=True)


def main(quick: bool) -> None:
    cohorts = 12 if quick else 30
    modes = {"rules alone": Policy(noise=0.0), "threshold (default)": Policy()}
    print(f"{'':20} {'riders':>6} {'known, ordinary':>16} {'known, expert':>14} {'one outcome':>12} {'departure':>10}")
    for name, policy in modes.items():
        for riders in (16, 24, 40) if quick else (16, 24, 40, 120):
            found = [others_known(riders, policy, cohorts, expert) for expert in (False, True)]
            found += [one_outcome(riders, policy, cohorts), departure(riders, policy, 2 * cohorts)]
            print(
                f"{name:20} {riders:6} {found[0]:16.2f} {found[1]:14.2f} {found[2]:12.2f} {found[3]:10.2f}", flush=True
            )
    for name, policy in modes.items():
        for kind, cohort in (("healthy", healthy), ("platform", platform)):
            together = Utility()
            for seed in range(1, 2 if quick else 4):
                together.join(utility(cohort(seed), policy))
            print(f"{name:20} {kind:9} {together}", flush=True)


if __name__ == "__main__":
    if "--private" in sys.argv[1:]:
        private("--quick" in sys.argv[1:])
    else:
        main("--quick" in sys.argv[1:])
