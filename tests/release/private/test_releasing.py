"""Somebody who knows everybody else's rows tries to tell from the noised sums whether a person is there.

The attacker computes both sums, takes the likelihood ratio, and is asked again and again. What they achieve gives a
lower bound of epsilon (Clopper and Pearson, 95 %), which must stay below the claimed one; and each rule is removed
once, to see that the bound then breaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from isuit.release.eligibility import Outcomes
from isuit.release.policy import Policy, policy_of
from isuit.release.private import contributions, discrete_gaussian, releasing
from isuit.release.private.contributions import GRID, Entries, Parameters
from isuit.release.private.declaration import Private, PrivateTopic
from isuit.release.private.releasing import Costs, entries_of, noised

EPSILON, DELTA, RUNS = 1.0, 1e-6, 200
SPOTS = tuple(f"87{number:02x}{'0' * 3}{'f' * 8}"[:15] for number in range(12))
TOPIC = PrivateTopic.model_construct(
    activity="kitesurfing", dimension="wind_kn", lower=0.0, width=4.0, bins=9, cells=SPOTS
)
COSTS = Costs.of(Private.model_construct(epsilon=EPSILON, delta=DELTA, releases=1, topics=(TOPIC,)))
AT = Parameters(np.linspace(-4, 4, 9) ** 2 / 4 - 1, math.log(1.7), np.zeros(12), np.zeros(12))


def entries(with_them: bool) -> Entries:
    """23 ordinary people, and one who rides everywhere, always well at every other spot and never at the others."""
    random = np.random.default_rng(4)
    people = []
    for rider in range(23):
        metric = random.uniform(0, 36, 18)
        skill = random.standard_normal()
        chance = 1 / (1 + np.exp(-2 * (skill - ((metric - 18) / 8) ** 2 + 1)))
        people.append((rider, np.full(18, rider % 12), metric, random.random(18) < chance))
    if with_them:
        spot = np.repeat(np.arange(12), 36)
        people.append((23, spot, np.tile(np.arange(36) + 0.5, 12), spot % 2 == 0))
    rider = np.concatenate([np.full(spot.size, rider) for rider, spot, *_ in people])
    cell, metric, outcome = (np.concatenate([each[place] for each in people]) for place in (1, 2, 3))
    names = tuple(f"{number:02d}" for number in range(len(people)))
    places = tuple(SPOTS)
    ones = np.ones(rider.size, np.int64)
    outcomes = Outcomes(names, tuple((name,) for name in names), rider, cell, places, metric, outcome * 1, ones)
    return entries_of(outcomes, cell, TOPIC, Policy())


def asked(found: Entries) -> np.ndarray:
    """A survey and three rounds, as in a release; the parameters are public and the attacker knows them."""
    return np.concatenate([np.array(noised(found, at, TOPIC, COSTS), float) for at in (None, AT, AT, AT)])


def exact(found: Entries) -> np.ndarray:
    scores = contributions.score_sum(found, AT)
    return np.concatenate([contributions.survey_sum(found, 12, 9), scores, scores, scores]).astype(float)


def lower_bound(direction: Callable[[np.ndarray], float] | None = None) -> float:
    """Of epsilon, from what the attacker achieves; the cut is chosen on one half of the runs and tried on the other."""
    inside, outside = entries(True), entries(False)
    moved = exact(inside) - exact(outside)
    variance = np.repeat([1 / COSTS.survey, *3 * [1 / COSTS.scores]], [32, *3 * [46]])
    read = direction or (lambda answer: float(answer @ (moved / variance)))
    there = np.array([read(asked(inside)) for _ in range(RUNS)])
    gone = np.array([read(asked(outside)) for _ in range(RUNS)])
    half = RUNS // 2
    best = 0.0
    cut = max(
        np.concatenate([there[:half], gone[:half]]),
        key=lambda cut: (np.mean(there[:half] > cut) + 0.02) / (np.mean(gone[:half] > cut) + 0.02),
    )
    hits, false = int(np.sum(there[half:] > cut)), int(np.sum(gone[half:] > cut))
    low = stats.beta.ppf(0.025, hits, half - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, false + 1, half - false) if false < half else 1.0
    if low > DELTA:
        best = max(best, math.log((low - DELTA) / high))
    return best


@pytest.fixture(autouse=True)
def quick_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many draws, by a quicker sampler: the exact one has tests of its own."""
    random = np.random.default_rng(11)
    monkeypatch.setattr(discrete_gaussian, "draw", lambda variance: round(random.normal(0.0, math.sqrt(variance))))


class TestSomeoneWhoKnowsAllOtherRows:
    def test_the_bound_from_the_attack_is_below_the_claimed_epsilon(self) -> None:
        assert lower_bound() < EPSILON

    def test_it_is_far_above_without_clipping(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(contributions, "LONGEST", GRID << 10)
        assert lower_bound() > 2 * EPSILON

    def test_it_is_far_above_where_noise_is_for_one_outcome_and_not_for_a_person(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def each_outcome_for_itself(person: np.ndarray, persons: int) -> np.ndarray:
            return np.arange(person.size + 1)

        monkeypatch.setattr(releasing, "starts", each_outcome_for_itself)
        assert lower_bound() > 2 * EPSILON

    def test_it_is_far_above_where_counts_have_no_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = releasing.with_noise

        def but_not_of_riders(total: np.ndarray, units: int) -> list[int]:
            found = real(total, units)
            if len(found) == 32:
                found[20:] = total[20:].tolist()
            return found

        def of_a_cell(answer: np.ndarray) -> float:
            return float(answer[20:32].sum())

        assert lower_bound(of_a_cell) < EPSILON
        monkeypatch.setattr(releasing, "with_noise", but_not_of_riders)
        assert lower_bound(of_a_cell) > 2 * EPSILON


class TestCosts:
    def private(self, **values: Any) -> Private:
        topic = {"activity": "kite", "dimension": "wind", "lower": 0, "width": 4, "bins": 9}
        policy = policy_of({"private": {"epsilon": 2, "delta": 1e-6, "releases": 4, "topics": [topic], **values}})
        assert policy.private is not None
        return policy.private

    def test_all_releases_topics_and_rounds_cost_no_more_than_the_budget(self) -> None:
        for releases in (1, 3, 7):
            private = self.private(releases=releases)
            costs = Costs.of(private)
            one = len(private.topics) * (costs.survey + releasing.ROUNDS * costs.scores)
            assert 0.99 * costs.release < one <= costs.release
            assert releases * costs.release <= costs.budget < (releases + 1) * costs.release + releases

    def test_a_budget_too_small_to_divide_is_refused(self) -> None:
        with pytest.raises(Exception, match="too small for so many releases"):
            Costs.of(self.private(epsilon=1e-4, releases=1000))
