"""What attackers learn from a release, beside what its readers get: by noise, size of the cell and attacker.

    python benchmarks/disclosure.py [--private] [--quick]

Attackers (AUC 0.5 is a coin; each uses the likelihood ratio of what was published, with the noise's covariance known):

    others known      has every other row, computes the release with a person and without, and says which was published:
                      from values, errors, bands of riders, and which points are there at all.
                      `ordinary` are riders drawn at random, `expert` the one rider who succeeds nearly everywhere
    one outcome       the same, for one outcome of a person whose other outcomes are known too: accuracy with even odds,
                      and what the release adds to guesses of somebody who knows the chance of success beforehand.
                      An `accomplice` gives those of some other outcomes that move the release most
    departure         has two releases, every other rider having added five outcomes between them and one person having
                      left, and says whether that one was good (the row computed again at once, which rules forbid)

In private mode the attackers have the sums with noise, before any row is made of them. Readers: RMSE of published
difficulties against the truth, coverage of published errors (1.96 of them either side) by published band, and share of
points with ten riders that are released. `platform` is a cohort whose cells' popularity falls like one over the rank.
Fits are made once, and each noise is tried on them.
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
from isuit.release.influence import largest_influence, refused_bins
from isuit.release.making import screen
from isuit.release.policy import Policy, policy_of
from isuit.release.private.accounting import variance
from isuit.release.private.contributions import GRID, score_sum, survey_sum
from isuit.release.private.declaration import PrivateTopic
from isuit.release.private.releasing import ROUNDS, Costs, curves, draft, drawn, entries_of
from isuit.release.rounding import RowMaker, is_saturated, to_one_digit
from isuit.release.screening import Placed, Reasons

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BINS, TOPIC = Bins(0, 9, 4.0), Topic("kitesurfing", "wind_kn")
SECRETS = 60  # releases of each pair of fits: in so many stores the same outcomes would have other noise


@dataclass(frozen=True)
class Cohort:
    placed: Placed
    level: FloatArray
    chance: FloatArray  # of success, by outcome

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
    chance = 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    outcome = (random.random(rider.size) < chance).astype(np.int64)
    names = tuple(f"{code:05d}" for code in range(riders))
    places = tuple(sorted(h3.latlng_to_cell(code / 3 - 50, 20.0, 7) for code in range(number)))
    ones = np.ones(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, cell, places, metric, outcome, ones)
    return Cohort(Placed(outcomes, places, cell, BINS.of(metric), BINS), level, chance)


@dataclass(frozen=True)
class Exact:
    """What a release of one cell follows from, before noise."""

    value: FloatArray
    se: FloatArray
    shown: NDArray[np.bool_]  # has a value
    there: NDArray[np.bool_]  # is not refused for one rider's influence
    riders: FloatArray  # by bin
    in_cell: int

    @classmethod
    def of(cls, placed: Placed, influence: bool = True) -> Exact:
        policy = Policy()
        found = fit_cells(placed, policy, FitConfig())
        curve = found.difficulty(0)
        shown = np.array([not is_saturated(chance) for chance in found.suitability(0)])
        there = np.ones(BINS.number, bool)
        if influence:
            there = largest_influence(found, there[None], policy)[0] <= policy.influence
        pairs = np.unique(np.column_stack([placed.bin, placed.outcomes.rider]), axis=0)
        riders = np.bincount(pairs[:, 0], minlength=BINS.number).astype(float)
        return cls(curve.value, curve.se, shown, there, riders, np.unique(placed.outcomes.rider).size)


@dataclass(frozen=True)
class Told:
    """What releases in `SECRETS` stores tell, a row each."""

    value: FloatArray
    error: FloatArray  # its logarithm
    band: IntArray  # how many bins are told to have twenty riders or more

    @classmethod
    def of(cls, exact: Exact, policy: Policy, random: np.random.Generator) -> Told:
        drawn = [
            noise.of_cell(random.bytes(16), ["benchmark"], [], BINS.number, exact.in_cell, policy)
            for _ in range(SECRETS)
        ]
        step = policy.rounding
        value = np.round((exact.value + np.array([one.difficulty for one in drawn])) / step) * step
        error = np.array([one.error for one in drawn]) * _error(exact, policy)
        one_digit = np.array([[to_one_digit(each) for each in row] for row in error.tolist()])
        riders = np.round(exact.riders + np.array([one.riders for one in drawn]))
        return cls(value, np.log(one_digit), (riders >= 20).sum(axis=1))


def _error(exact: Exact, policy: Policy) -> FloatArray:
    noisy = noise.scale(exact.in_cell, policy) * noise.spread(BINS.number)
    return np.asarray(np.sqrt(exact.se**2 + noisy**2 + policy.rounding**2 / 12))


def evidence(told: Told, one: Exact, other: Exact, policy: Policy, bands: tuple[Told, Told]) -> FloatArray:
    """Log likelihood ratio of `one` against `other`, where the same points are there."""
    use = one.shown & other.shown & one.there & other.there
    shapes = noise._shapes(use.size)[:, use]
    sd, few = noise.scale(one.in_cell, policy), noise.ERRORS if policy.noise else 0.0
    few *= min(1.0, policy.noise_riders / one.in_cell)
    ends = [np.log(_error(each, policy))[use] for each in (one, other)]
    parts = [
        (told.value[:, use], one.value[use], other.value[use], sd, policy.rounding**2 / 12),
        (told.error[:, use], *ends, few, 0.1**2),  # one digit is about a tenth
    ]
    found = np.zeros(SECRETS)
    for seen, mine, its, size, rest in parts:
        direction = np.linalg.solve(size**2 * shapes.T @ shapes + rest * np.eye(int(use.sum())), mine - its)
        found += (seen - (mine + its) / 2) @ direction
    often = [np.bincount(each.band, minlength=BINS.number + 1) + 1.0 for each in bands]
    return np.asarray(found + np.log(often[0] / often[1])[told.band])


def pair_evidence(
    one: Exact, other: Exact, policy: Policy, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Of releases of either; certain where another set of points is there."""
    if (one.there != other.there).any():
        return np.full(SECRETS, np.inf), np.full(SECRETS, -np.inf)
    bands = Told.of(one, policy, random), Told.of(other, policy, random)  # others than those that are judged
    told = Told.of(one, policy, random), Told.of(other, policy, random)
    return evidence(told[0], one, other, policy, bands), evidence(told[1], one, other, policy, bands)


def auc(positive: FloatArray, negative: FloatArray) -> float:
    ordered = np.sort(negative)
    below, up_to = (np.searchsorted(ordered, positive, side=side) for side in ("left", "right"))
    return float(np.mean(below + up_to) / (2 * negative.size))


def one_cell(riders: int, seed: int, expert: bool = False) -> Cohort:
    return draw(np.zeros((riders, 2), np.int64), riders, 18, seed, expert)


Pair = tuple[Exact, Exact]


def with_and_without(riders: int, cohorts: int, expert: bool) -> list[Pair]:
    random, found = np.random.default_rng(9), []
    for seed in range(cohorts):
        cohort = one_cell(riders, seed, expert)
        who = 0 if expert else int(random.integers(riders))
        found.append((Exact.of(cohort.placed), Exact.of(cohort.of(cohort.placed.outcomes.rider != who))))
    return found


def known(pairs: list[Pair], policy: Policy) -> float:
    random = np.random.default_rng(8)
    found = [pair_evidence(*pair, policy, random) for pair in pairs]
    return auc(np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found]))


def one_outcome_pairs(riders: int, cohorts: int, accomplice: bool) -> list[tuple[Exact, Exact, float]]:
    """Releases with one outcome a success and a failure, and the chance of success; rider 0 may be an accomplice."""
    random, found = np.random.default_rng(9), []
    for seed in range(500, 500 + cohorts):
        cohort = one_cell(riders, seed)
        placed = cohort.placed
        rider, metric = placed.outcomes.rider, placed.outcomes.metric
        row = int(random.choice(np.flatnonzero(rider > 0)))
        best: tuple[float, Pair] = (-1.0, ())  # type: ignore[assignment]
        likes = [lambda x: x >= 0] if accomplice else []
        likes += [lambda x: x < 0, lambda x: np.abs(x - 18) < 9, lambda x: np.abs(x - 18) >= 9] if accomplice else []
        for like in [None, *likes]:
            pair = []
            for value in (1, 0):
                outcome = placed.outcomes.outcome.copy()
                if like is not None:
                    outcome[rider == 0] = like(metric[rider == 0])
                outcome[row] = value
                pair.append(Exact.of(replace(placed, outcomes=replace(placed.outcomes, outcome=outcome)), False))
            moved = float(np.abs(pair[0].value - pair[1].value)[pair[0].shown & pair[1].shown].max(initial=0.0))
            best = max(best, (moved, (pair[0], pair[1])), key=lambda each: each[0])
        found.append((*best[1], float(cohort.chance[row])))
    return found


def guessed(pairs: list[tuple[Exact, Exact, float]], policy: Policy) -> tuple[float, float]:
    """Share of right guesses with even odds, and how many more are right than of somebody who knows the chance."""
    random, even, gain = np.random.default_rng(8), [], []
    for one, other, chance in pairs:
        up, down = pair_evidence(one, other, policy, random)
        even.append((np.mean(up > 0) + np.mean(down < 0)) / 2)
        odds = np.log(chance / (1 - chance))
        right = chance * np.mean(up + odds > 0) + (1 - chance) * np.mean(down + odds < 0)
        gain.append(right - max(chance, 1 - chance))
    return float(np.mean(even)), float(np.mean(gain))


def departures(riders: int, cohorts: int) -> list[tuple[Exact, Exact, bool]]:
    """Before and after one left, all others having added five outcomes; whether that one was good."""
    found = []
    for seed in range(cohorts):
        whole = draw(np.zeros((riders, 2), np.int64), riders, 23, seed)
        rider = whole.placed.outcomes.rider
        early = np.arange(rider.size) % 23 < 18
        good = whole.placed.outcomes.outcome[early & (rider == 0)].mean() > 0.5
        found.append((Exact.of(whole.of(early), False), Exact.of(whole.of(rider > 0), False), bool(good)))
    return found


def departed(found: list[tuple[Exact, Exact, bool]], policy: Policy) -> float:
    random, moved = np.random.default_rng(8), {True: [], False: []}
    for before, after, good in found:
        use = before.shown & after.shown
        first, second = Told.of(before, policy, random).value, Told.of(after, policy, random).value
        moved[good].append((second - first)[:, use].mean(axis=1))
    return auc(np.concatenate(moved[True]), np.concatenate(moved[False]))


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


def screened(cohort: Cohort) -> tuple[CellCurves, int]:
    """The fit of a first release after all refusals, and how many points have k riders."""
    policy, reasons = Policy(), Reasons()
    held = np.bincount(np.unique(cohort.placed.pair * 10**6 + cohort.placed.outcomes.rider) // 10**6)
    left = screen(cohort.placed, policy, reasons)
    assert left is not None
    left = left.of_rows(comparable(left)[left.cell])
    refused = np.ones(1, bool)
    while refused.any():
        found = fit_cells(left, policy, FitConfig())
        points = np.zeros((len(left.cells), BINS.number), bool)
        points[left.cell, left.bin] = True
        refused = refused_bins(found, points, policy)
        if refused.any():
            thinner = screening.without(left, refused)
            assert thinner is not None
            left = screen(thinner, policy, reasons)
            assert left is not None
    return found, int(np.sum(held >= policy.k))


def utility(cohort: Cohort, found: CellCurves, points: int, policy: Policy, secrets: int = 5) -> Utility:
    """Of the rows that a first release would have, in some stores; the share is that of points with k riders."""
    riders = {key: len(members) for key, members in screening.members(found.placed).items()}
    made = Utility(points=points * secrets)
    for secret in range(secrets):
        rows = RowMaker("2026-01-01", TOPIC, BINS, policy, bytes([secret])).rows(found, riders)
        for (cell, bin_), row in rows.items():
            truth = cohort.truth(np.array([BINS.centre(bin_)]), cohort.placed.cells.index(cell))
            made.add(row, float(truth[0]))
        made.released += len(rows)
    return made


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
    for epsilon in (2.0, 1.0):
        for riders in (16, 24, 40, 120):
            found = [private_others_known(riders, epsilon, 6 if quick else 12, expert) for expert in (False, True)]
            print(f"private, epsilon {epsilon:g}   {riders:6} {found[0]:16.2f} {found[1]:14.2f}", flush=True)
        for kind, cohort in (("healthy", healthy), ("platform", platform)):
            together = Utility()
            for seed in range(1, 4 if quick else 31):
                together.join(private_utility(cohort(seed), epsilon))
            print(f"private, epsilon {epsilon:g}  {kind:9} {together}", flush=True)


def main(quick: bool) -> None:
    few = 10 if quick else 40
    modes = [Policy(noise=size) for size in (0.0, 0.12, Policy().noise, 0.25, 0.35)]
    print("noise riders  known: ordinary, expert   one outcome: even odds, added   accomplice: the same   departure")
    for riders in (16, 24, 40):
        pairs = [with_and_without(riders, few, expert) for expert in (False, True)]
        single = [one_outcome_pairs(riders, few // divisor, helped) for helped, divisor in ((False, 1), (True, 2))]
        left = departures(riders, 5 * few)
        for policy in modes:
            said = [f"{known(each, policy):.2f}" for each in pairs]
            said += [f"{even:.3f} {gain:+.3f}" for even, gain in (guessed(each, policy) for each in single)]
            print(f"{policy.noise:4.2f} {riders:4}  {'   '.join(said)}   {departed(left, policy):.2f}", flush=True)
    for kind, cohort in (("healthy", healthy), ("platform", platform)):
        together = [Utility() for _ in modes]
        for seed in range(1, 2 if quick else 4):
            drawn_now = cohort(seed)
            found, points = screened(drawn_now)
            for policy, sums in zip(modes, together, strict=True):
                sums.join(utility(drawn_now, found, points, policy))
        for policy, sums in zip(modes, together, strict=True):
            print(f"{policy.noise:4.2f} {kind:9} {sums}", flush=True)


if __name__ == "__main__":
    if "--private" in sys.argv[1:]:
        private("--quick" in sys.argv[1:])
    else:
        main("--quick" in sys.argv[1:])
