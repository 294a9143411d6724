"""Curves from noised sums, held against the truth that persons were drawn from, and against their own errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isuit.release.eligibility import Outcomes
from isuit.release.policy import Policy
from isuit.release.private import releasing, solving
from isuit.release.private.accounting import variance
from isuit.release.private.contributions import GRID, Entries, Parameters, across, score_scales, score_sum, survey_sum
from isuit.release.private.declaration import Private, PrivateTopic
from isuit.release.private.releasing import Costs, curves, entries_of
from isuit.release.private.solving import Posterior, Round, Survey, read_round, solve, start

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


SURVEY = Survey(np.full(BINS, 2.0), np.linspace(0.8, 0.3, BINS), 400.0, 0.7, 30.0 + 20.0 * np.arange(CELLS), 4.0)


def test_a_sum_that_is_one_sd_larger_is_larger_by_the_root_of_its_variance() -> None:
    """The noise is in the units of what it is the noise of."""
    number = score_scales(BINS, CELLS).size
    sd = 0.01 * GRID
    none, more = (read_round(np.full(number, value), sd, start(SURVEY), SURVEY, 0.1) for value in (0.0, sd))
    assert (more.shared - none.shared) ** 2 == pytest.approx(none.noise[: BINS + 1])
    assert (more.cells - none.cells) ** 2 == pytest.approx(np.tile(none.noise[BINS + 1 :], (CELLS, 1)))
    assert (more.riders - none.riders) ** 2 == pytest.approx(np.full(CELLS, none.riders_variance))


def test_what_all_cells_say_is_the_sum_over_their_riders() -> None:
    """Each cell with itself and with every other, one at a time."""
    random = np.random.default_rng(1)
    bins, riders = 4, np.array([3.0, 5.0, 8.0])
    border = bins + 1
    part = random.normal(size=(border + 4, border + 4))
    here, away = [border, border + 1], [border + 2, border + 3]
    whole = solving._whole(part, 16.0, riders, bins)
    assert whole[:border, :border] == pytest.approx(16.0 * part[:border, :border])
    for c, number in enumerate(riders):
        one = [border + 2 * c, border + 2 * c + 1]
        for two in (here, away):
            whole[np.ix_(one, range(border))] -= number * part[np.ix_(two, range(border))]
            whole[np.ix_(range(border), one)] -= number * part[np.ix_(range(border), two)]
            whole[np.ix_(one, one)] -= number * part[np.ix_(two, two)]
        for d, others in enumerate(riders):
            other = [border + 2 * d, border + 2 * d + 1]
            apart = part[np.ix_(here, away)] + part[np.ix_(away, here)]
            whole[np.ix_(one, other)] -= number * others / riders.sum() * apart
    whole[:border, :border] = 0.0
    assert whole == pytest.approx(np.zeros_like(whole), abs=1e-12)


def test_what_a_rider_adds_is_what_a_count_multiplies() -> None:
    random = np.random.default_rng(2)
    at = Parameters(*(random.normal(0, 0.3, size) for size in (BINS, (), CELLS, CELLS)))  # type: ignore[arg-type]
    scores = random.normal(0, 0.01 * GRID, score_scales(BINS, CELLS).size)
    one = read_round(scores, 0.01 * GRID, at, SURVEY, 0.4)
    of_all = solving._pseudo(one, SURVEY.persons, SURVEY.riders)[BINS + 1 :].reshape(CELLS, 2)
    of_a_rider = solving._linear(one, SURVEY.riders)
    assert of_all == pytest.approx(one.cells + SURVEY.riders[:, None] * of_a_rider)


def test_long_strides_arrive_where_plain_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sds of levels and tilts are where they settle, and not where the first step leads."""
    asked: list[tuple[list[Round], Survey]] = []
    sds: list[np.ndarray] = []
    read = solving.read_cells
    monkeypatch.setattr(releasing, "solve", lambda *given: asked.append(given) or solve(*given))
    monkeypatch.setattr(solving, "read_cells", lambda *given: sds.append(given[3]) or read(*given))
    random = np.random.default_rng(5)
    solved(drawn(random, 1_000), 8.0, random)
    monkeypatch.setattr(solving, "PRIOR_CELLS", 0.5)  # so that they settle far from where they start
    sds.clear()
    for stride in (solving.STRIDE, 1.0):
        monkeypatch.setattr(solving, "STRIDE", stride)
        solve(*asked[-1])
    assert sds[0] == pytest.approx(sds[1], abs=0.01)
