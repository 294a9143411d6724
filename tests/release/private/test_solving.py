"""Curves from noised sums, held against the truth that persons were drawn from, and against their own errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isuit.release.eligibility import Outcomes
from isuit.release.policy import Policy
from isuit.release.private.accounting import variance
from isuit.release.private.contributions import GRID, Entries, Parameters, across, score_sum, survey_sum
from isuit.release.private.declaration import Private, PrivateTopic
from isuit.release.private.releasing import Costs, curves, entries_of
from isuit.release.private.solving import Posterior

BINS, CELLS, PERSONS = 9, 6, 4_000
SPOTS = tuple(f"87{number:02x}{'0' * 3}{'f' * 8}"[:15] for number in range(CELLS))
TOPIC = PrivateTopic.model_construct(
    activity="kitesurfing", dimension="wind_kn", lower=0.0, width=4.0, bins=BINS, cells=SPOTS
)
CENTRES = 2.0 + 4.0 * np.arange(BINS)
LEVEL = np.array([-0.5, -0.2, 0.0, 0.1, 0.25, 0.4])
TILT = np.array([0.2, -0.2, 0.1, 0.0, -0.1, 0.1])
A = 2.0


def difficulty(metric: np.ndarray, cell: np.ndarray) -> np.ndarray:
    tilted = TILT[cell] * (metric - 18.0) / 16.0  # -1 at the centre of the lowest bin, 1 at that of the highest
    return np.asarray(((metric - 18.0) / 8.0) ** 2 - 1.0 + LEVEL[cell] + tilted)


def drawn(random: np.random.Generator, persons: int = PERSONS) -> Entries:
    """Persons with 20 outings on average, three in four of them in one cell and the others in another."""
    number = random.poisson(20, persons)
    person = np.repeat(np.arange(persons), number)
    home = random.choice(CELLS, persons, p=np.array([6, 5, 4, 3, 2, 2]) / 22)
    away = (home + random.integers(1, CELLS, persons)) % CELLS
    cell = np.where(random.random(person.size) < 0.75, home[person], away[person])
    metric = random.uniform(0.0, 36.0, person.size)
    chance = 1 / (1 + np.exp(-A * (random.standard_normal(persons)[person] - difficulty(metric, cell))))
    outcome = (random.random(person.size) < chance).astype(np.int64)
    names = tuple(f"{number:05d}" for number in range(persons))
    spellings = tuple((name,) for name in names)
    ones = np.ones(person.size, np.int64)
    return entries_of(Outcomes(names, spellings, person, cell, SPOTS, metric, outcome, ones), cell, TOPIC, Policy())


def solved(entries: Entries, epsilon: float, random: np.random.Generator) -> Posterior:
    costs = Costs.of(Private.model_construct(epsilon=epsilon, delta=1e-6, releases=1, topics=(TOPIC,)))

    def ask(at: Parameters | None) -> list[int]:
        total = survey_sum(entries, CELLS, BINS) if at is None else score_sum(entries, at)
        spread = math.sqrt(variance(GRID, costs.survey if at is None else costs.scores))
        return [value + round(random.normal(0.0, spread)) for value in total.tolist()]

    return curves(TOPIC, costs, ask)


@pytest.fixture(scope="module")
def found() -> Posterior:
    """With so little noise that what is left is chance in who was drawn."""
    random = np.random.default_rng(3)
    return solved(drawn(random), 50.0, random)


def test_the_curve_and_the_discrimination_are_those_that_persons_were_drawn_from(found: Posterior) -> None:
    truth = difficulty(CENTRES[None, :].repeat(CELLS, 0), np.arange(CELLS)[:, None].repeat(BINS, 1))
    wrong = found.parameters.difficulty() - truth
    assert np.sqrt(np.mean(wrong[:, 1:8] ** 2)) < 0.08
    assert abs(np.mean(wrong[:, 1:8])) < 0.05
    assert math.exp(found.parameters.log_discrimination) == pytest.approx(A, abs=0.15)
    assert found.parameters.level - np.mean(found.parameters.level) == pytest.approx(LEVEL - np.mean(LEVEL), abs=0.1)
    assert found.parameters.tilt - np.mean(found.parameters.tilt) == pytest.approx(TILT - np.mean(TILT), abs=0.15)


def test_riders_are_counted_by_their_share_of_outings(found: Posterior) -> None:
    assert found.riders.sum() == pytest.approx(PERSONS, rel=0.03)
    homes = np.array([6, 5, 4, 3, 2, 2]) / 22
    shares = 0.75 * homes + 0.25 * (1 - homes) / (CELLS - 1)
    assert found.riders / found.riders.sum() == pytest.approx(shares, abs=0.02)


@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_errors_are_as_large_as_what_is_wrong(epsilon: float) -> None:
    """Whether noise is most of it or persons drawn by chance are: over a few draws, squares agree with the errors'."""
    truth = difficulty(CENTRES[None, :].repeat(CELLS, 0), np.arange(CELLS)[:, None].repeat(BINS, 1))
    squares = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        posterior = solved(drawn(random, 1_000), epsilon, random)
        squares.append(((posterior.parameters.difficulty() - truth) / posterior.errors()) ** 2)
    assert 0.5 < np.mean(squares) < 1.6


def test_a_tilt_is_across_the_bins() -> None:
    assert across(BINS) == pytest.approx((CENTRES - 18.0) / 16.0)


def test_lines_beyond_the_cap_share_its_weight() -> None:
    """Of one person: seven lines in a bin of a cell, one in the next bin, one elsewhere, one in no declared bin."""
    policy = Policy()
    metric = np.array([*np.linspace(8.5, 11.5, 7), 12.5, 10.0, 99.0])
    cell = np.array([0] * 8 + [1, 0])
    ones = np.ones(10, np.int64)
    outcomes = Outcomes(("a",), (("a",),), np.zeros(10, np.int64), cell, SPOTS, metric, ones, ones)
    entries = entries_of(outcomes, cell, TOPIC, policy)
    assert entries.start.tolist() == [0, 9]
    assert policy.weight_cap < 7
    assert entries.trials == pytest.approx([policy.weight_cap / 7] * 7 + [1.0, 1.0])
    assert entries.successes == pytest.approx(entries.trials)
    # A metric at a bin's centre has all of its weight in that bin.
    at_centre = entries.knot[8] + np.argmax(entries.weights[8])
    assert (at_centre, entries.weights[8].max()) == (2, pytest.approx(1.0))
