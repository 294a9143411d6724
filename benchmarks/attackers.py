"""Attackers on a release, for `benchmarks/disclosure.py`: what each has, and what they make of it.

Fits are made once: an `Exact` is all that a release of one cell follows from before its noise, and any policy's
noise is tried on it. Every attacker's answer comes by cell, so that the table can say how far chance reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import h3
import numpy as np
from numpy.typing import NDArray

from isuit.domain import FitConfig
from isuit.release import noise
from isuit.release.bins import Bins
from isuit.release.cell_curves import fit_cells
from isuit.release.eligibility import Outcomes, Topic
from isuit.release.influence import largest_influence
from isuit.release.policy import Policy, policy_of
from isuit.release.private.accounting import variance
from isuit.release.private.contributions import GRID, score_sum, survey_sum
from isuit.release.private.declaration import PrivateTopic
from isuit.release.private.releasing import ROUNDS, Costs, curves, drawn, entries_of
from isuit.release.rounding import is_saturated, to_two_digits
from isuit.release.screening import Placed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BINS, TOPIC = Bins(0, 9, 4.0), Topic("kitesurfing", "wind_kn")
SECRETS = 20  # releases of each pair of fits: in so many stores the same outcomes would have other noise
DIGITS = 0.015  # sd that two digits leave in the logarithm of an error, about


@dataclass(frozen=True)
class Cohort:
    placed: Placed
    level: FloatArray
    chance: FloatArray  # of success, by outcome

    def truth(self, metric: FloatArray, cell: int) -> FloatArray:
        return np.asarray(((metric - 18) / 8) ** 2 - 1 + self.level[cell])

    def of(self, chosen: NDArray[np.bool_]) -> Placed:
        return self.placed.of_rows(chosen)


def draw(cells: IntArray, riders: int, each: int, seed: int, expert: bool = False) -> Cohort:
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


def one_cell(riders: int, seed: int, expert: bool = False, each: int = 18) -> Cohort:
    return draw(np.zeros((riders, 2), np.int64), riders, each, seed, expert)


@dataclass(frozen=True)
class Exact:
    """What a release of one cell follows from, before noise."""

    value: FloatArray
    se: FloatArray
    shown: NDArray[np.bool_]  # has a value
    there: NDArray[np.bool_]  # is not refused for one rider's influence
    riders: FloatArray  # by bin
    in_cell: int
    discrimination: float

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
        return cls(
            curve.value, curve.se, shown, there, riders, np.unique(placed.outcomes.rider).size, found.fit.discrimination
        )


Pair = tuple[Exact, Exact]
Evidence = tuple[FloatArray, FloatArray]  # of releases of the one, and of the other


@dataclass(frozen=True)
class Told:
    """What releases in `SECRETS` stores tell, a row each."""

    value: FloatArray
    error: FloatArray  # its logarithm
    band: IntArray  # how many bins are told to have twenty riders or more
    discrimination: FloatArray  # its logarithm

    @classmethod
    def of(cls, exact: Exact, policy: Policy, random: np.random.Generator) -> Told:
        drawn_now = [
            noise.of_cell(random.bytes(16), ["benchmark"], [], BINS.number, exact.in_cell, policy)
            for _ in range(SECRETS)
        ]
        step = policy.rounding
        value = np.round((exact.value + np.array([one.difficulty for one in drawn_now])) / step) * step
        wider = noise.widening(noise.error_scale(exact.in_cell, policy), BINS.number)
        error = np.array([one.error for one in drawn_now]) / wider * _error(exact, policy)
        digits = np.array([[to_two_digits(each) for each in row] for row in error.tolist()])
        riders = np.round(exact.riders + np.array([one.riders for one in drawn_now]))
        spread = noise.error_scale(exact.in_cell, policy) * random.standard_normal(SECRETS)
        discrimination = np.round(exact.discrimination * np.exp(spread) / step) * step
        return cls(value, np.log(digits), (riders >= 20).sum(axis=1), np.log(np.maximum(discrimination, step)))


def _error(exact: Exact, policy: Policy) -> FloatArray:
    """The published error but for its noise."""
    noisy = noise.scale(exact.in_cell, policy) * noise.spread(BINS.number)
    wider = noise.widening(noise.error_scale(exact.in_cell, policy), BINS.number)
    return np.asarray(wider * np.sqrt(noise.smoothed(exact.se[None])[0] ** 2 + noisy**2 + policy.rounding**2 / 12))


def evidence(told: Told, one: Exact, other: Exact, policy: Policy, bands: tuple[Told, Told]) -> FloatArray:
    """Log likelihood ratio of `one` against `other`, where the same points are there."""
    use = one.shown & other.shown & one.there & other.there
    shapes = noise.shapes(use.size)[:, use]
    sd, of_errors = noise.scale(one.in_cell, policy), noise.error_scale(one.in_cell, policy)
    ends = [np.log(_error(each, policy))[use] for each in (one, other)]
    parts = [
        (told.value[:, use], one.value[use], other.value[use], sd, policy.rounding**2 / 12),
        (told.error[:, use], *ends, of_errors, DIGITS**2),
    ]
    found = np.zeros(SECRETS)
    for seen, mine, its, size, rest in parts:
        direction = np.linalg.solve(size**2 * shapes.T @ shapes + rest * np.eye(int(use.sum())), mine - its)
        found += (seen - (mine + its) / 2) @ direction
    slopes = [np.log(each.discrimination) for each in (one, other)]
    size = of_errors**2 + (policy.rounding / one.discrimination) ** 2 / 12
    found += (told.discrimination - (slopes[0] + slopes[1]) / 2) * (slopes[0] - slopes[1]) / size
    often = [np.bincount(each.band, minlength=BINS.number + 1) + 1.0 for each in bands]
    return np.asarray(found + np.log(often[0] / often[1])[told.band])


def pair_evidence(pair: Pair, policy: Policy, random: np.random.Generator, points: bool = True) -> Evidence:
    """Of releases of either; certain where another set of points is there, unless these are not looked at."""
    one, other = pair
    if points and differ_in_points(pair):
        return np.full(SECRETS, np.inf), np.full(SECRETS, -np.inf)
    bands = Told.of(one, policy, random), Told.of(other, policy, random)  # others than those that are judged
    told = Told.of(one, policy, random), Told.of(other, policy, random)
    return evidence(told[0], one, other, policy, bands), evidence(told[1], one, other, policy, bands)


def differ_in_points(pair: Pair) -> bool:
    return bool((pair[0].there != pair[1].there).any())


def auc(positive: FloatArray, negative: FloatArray) -> float:
    ordered = np.sort(negative)
    below, up_to = (np.searchsorted(ordered, positive, side=side) for side in ("left", "right"))
    return float(np.mean(below + up_to) / (2 * negative.size))


def area(found: Sequence[Evidence]) -> tuple[float, float]:
    """Under the curve of an attacker who has these answers, cell by cell, and its standard error by cells."""
    random = np.random.default_rng(7)

    def of(cells: Sequence[int]) -> float:
        ins, outs = ([found[cell][side] for cell in cells if found[cell][side].size] for side in (0, 1))
        return auc(np.concatenate(ins), np.concatenate(outs)) if ins and outs else 0.5

    drawn_again = [of(random.integers(0, len(found), len(found)).tolist()) for _ in range(100)]
    return of(range(len(found))), float(np.std(drawn_again))


def with_and_without(riders: int, seeds: Sequence[int], expert: bool) -> list[Pair]:
    found = []
    for seed in seeds:
        cohort = one_cell(riders, seed, expert)
        who = 0 if expert else int(np.random.default_rng(9 + seed).integers(riders))
        found.append((Exact.of(cohort.placed), Exact.of(cohort.of(cohort.placed.outcomes.rider != who))))
    return found


def known(pairs: list[Pair], policy: Policy, points: bool = True) -> tuple[float, float]:
    random = np.random.default_rng(8)
    return area([pair_evidence(pair, policy, random, points) for pair in pairs])


def one_outcome_pairs(riders: int, seeds: Sequence[int], accomplice: bool) -> list[tuple[Pair, float]]:
    """Releases with one outcome a success and a failure, and the chance of success; rider 0 may be an accomplice."""
    found = []
    for seed in seeds:
        cohort = one_cell(riders, 500 + seed)
        placed = cohort.placed
        rider, metric = placed.outcomes.rider, placed.outcomes.metric
        row = int(np.random.default_rng(9 + seed).choice(np.flatnonzero(rider > 0)))
        wide = np.abs(metric - 18) >= 9
        given = [placed.outcomes.outcome]
        for like in [metric >= 0, metric < 0, ~wide, wide] if accomplice else []:
            given.append(np.where(rider == 0, like, placed.outcomes.outcome).astype(np.int64))
        best: tuple[float, Pair | None] = (-1.0, None)
        for outcomes in given:
            pair = []
            for value in (1, 0):
                outcome = outcomes.copy()
                outcome[row] = value
                pair.append(Exact.of(replace(placed, outcomes=replace(placed.outcomes, outcome=outcome)), False))
            moved = float(np.abs(pair[0].value - pair[1].value)[pair[0].shown & pair[1].shown].max(initial=0.0))
            best = max(best, (moved, (pair[0], pair[1])), key=lambda each: each[0])
        assert best[1] is not None
        found.append((best[1], float(cohort.chance[row])))
    return found


def guessed(pairs: list[tuple[Pair, float]], policy: Policy) -> tuple[float, float, float]:
    """Share of right guesses with even odds; how many more are right than of somebody who knows the chance, with error.

    Both the guess and the release are as likely as the model says, so that no draw of the outcome adds to the error.
    """
    random, even, gain = np.random.default_rng(8), [], []
    for pair, chance in pairs:
        up, down = pair_evidence(pair, policy, random)
        even.append((np.mean(up > 0) + np.mean(down < 0)) / 2)
        odds = np.log(chance / (1 - chance))
        right = chance * np.mean(up + odds > 0) + (1 - chance) * np.mean(down + odds < 0)
        gain.append(right - max(chance, 1 - chance))
    return float(np.mean(even)), float(np.mean(gain)), float(np.std(gain, ddof=1) / np.sqrt(len(gain)))


def departures(riders: int, seeds: Sequence[int]) -> list[tuple[Exact, Exact, bool]]:
    """Before and after one left, all others having added five outcomes; whether that one was good."""
    found = []
    for seed in seeds:
        whole = one_cell(riders, seed, each=23)
        rider = whole.placed.outcomes.rider
        early = np.arange(rider.size) % 23 < 18
        good = whole.placed.outcomes.outcome[early & (rider == 0)].mean() > 0.5
        found.append((Exact.of(whole.of(early), False), Exact.of(whole.of(rider > 0), False), bool(good)))
    return found


def departed(found: list[tuple[Exact, Exact, bool]], policy: Policy) -> tuple[float, float]:
    random, nothing, moved = np.random.default_rng(8), np.zeros(0), []
    for before, after, good in found:
        use = before.shown & after.shown
        first, second = Told.of(before, policy, random).value, Told.of(after, policy, random).value
        change = (second - first)[:, use].mean(axis=1)
        moved.append((change, nothing) if good else (nothing, change))
    return area(moved)


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


def declared(epsilon: float, cells: tuple[str, ...]) -> tuple[PrivateTopic, Costs, Policy]:
    policy = private_policy(epsilon, cells)
    assert policy.private is not None
    return policy.private.topics[0], Costs.of(policy.private), policy


def private_evidence(riders: int, epsilon: float, seeds: Sequence[int], expert: bool) -> list[Evidence]:
    """The likelihood ratio of survey and scores with noise, at parameters from a release."""
    found = []
    for seed in seeds:
        placed = one_cell(riders, seed, expert).placed
        topic, costs, policy = declared(epsilon, placed.cells)
        random = np.random.default_rng(9 + seed)
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
        chance = np.sqrt(apart) * random.standard_normal((2, SECRETS))
        found.append((apart / 2 + chance[0], -apart / 2 + chance[1]))
    return found
