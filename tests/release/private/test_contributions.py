"""A person's vector: bounded whatever they did, their own whoever else is there, and the derivative it claims to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isuit.release.private import contributions
from isuit.release.private.contributions import (
    GRID,
    Entries,
    Parameters,
    between_bins,
    score_scales,
    score_sum,
    scores_of_each,
    survey_sum,
)

BINS, CELLS = 9, 5


def persons(number: int, seed: int, each: int = 18) -> Entries:
    random = np.random.default_rng(seed)
    cell = np.sort(random.integers(0, CELLS, (number, each)), axis=1).ravel()
    position = random.uniform(-0.5, BINS - 0.5, number * each)
    knot, weights = between_bins(position, BINS)
    trials = random.choice([0.25, 1.0], number * each)
    successes = trials * random.integers(0, 2, number * each)
    bin_ = np.rint(position).astype(np.int64)
    return Entries(np.arange(number + 1) * each, cell, bin_, knot, weights, trials, successes)


def only(entries: Entries, person: int) -> Entries:
    chosen = slice(entries.start[person], entries.start[person + 1])
    columns = (entries.cell, entries.bin, entries.knot, entries.weights, entries.trials, entries.successes)
    return Entries(np.array([0, columns[0][chosen].size]), *(column[chosen] for column in columns))


def somewhere(seed: int, size: float = 1.0) -> Parameters:
    random = np.random.default_rng(seed)
    normal = random.standard_normal
    return Parameters(size * normal(BINS), normal() / 2, size * normal(CELLS) / 2, size * normal(CELLS) / 4)


def length(total: np.ndarray) -> int:
    return sum(int(value) ** 2 for value in total)  # exact


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e6])
def test_no_person_is_longer_than_the_grid(size: float) -> None:
    entries = persons(40, 1, each=60)
    for person in range(entries.persons):
        one = only(entries, person)
        assert 0 < length(survey_sum(one, CELLS, BINS)) <= GRID**2
        assert length(score_sum(one, somewhere(person, size))) <= GRID**2


def test_scores_reach_the_bound_so_that_it_is_the_clipping_that_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = only(persons(1, 1, each=200), 0)
    assert length(score_sum(one, somewhere(1))) > 0.99 * GRID**2
    monkeypatch.setattr(contributions, "LONGEST", GRID << 10)
    assert length(score_sum(one, somewhere(1))) > 4 * GRID**2


@pytest.mark.parametrize("person", [0, 7, 19])
def test_a_sum_changes_by_the_persons_own_vector_to_the_last_digit(person: int) -> None:
    entries, at = persons(20, 2), somewhere(3)
    rest = np.delete(np.arange(20), person)
    others_survey = sum(survey_sum(only(entries, other), CELLS, BINS) for other in rest)
    others_scores = sum(score_sum(only(entries, other), at) for other in rest)
    assert (survey_sum(entries, CELLS, BINS) - others_survey == survey_sum(only(entries, person), CELLS, BINS)).all()
    assert (score_sum(entries, at) - others_scores == score_sum(only(entries, person), at)).all()


def test_someone_without_outcomes_adds_nothing() -> None:
    nothing = only(persons(1, 1, each=0), 0)
    assert not survey_sum(nothing, CELLS, BINS).any()
    assert not score_sum(nothing, somewhere(1)).any()


def test_a_survey_by_hand() -> None:
    """Three outings in two bins and two cells, one of them a failure; few enough that nothing is clipped."""
    cell, bin_, trials, successes = np.array([1, 1, 4]), np.array([2, 2, 7]), np.ones(3), np.array([1.0, 0.0, 1.0])
    knot, weights = between_bins(bin_.astype(float), BINS)
    found = survey_sum(Entries(np.array([0, 3]), cell, bin_, knot, weights, trials, successes), CELLS, BINS)
    shrink = 1 / max(contributions.OUTINGS, math.sqrt(2**2 + 1**2))
    expected = np.zeros(2 * BINS + 2 + CELLS)
    expected[[2, 7]] = 0.0, 0.6 * shrink  # successes less failures
    expected[[BINS + 2, BINS + 7]] = 0.45 * 2 * shrink, 0.45 * shrink
    expected[2 * BINS : 2 * BINS + 2] = 0.2, 0.2 * ((2 / 3) ** 2 + (1 / 3) ** 2)
    expected[[2 * BINS + 2 + 1, 2 * BINS + 2 + 4]] = 0.6 * 2 / 3, 0.6 / 3
    assert np.linalg.norm(expected) < 1
    assert np.abs(found - GRID * expected).max() <= 1


def test_scores_are_derivatives_of_the_marginal_likelihood() -> None:
    entries, at = persons(3, 4), somewhere(5)
    fine = np.linspace(-8, 8, 4001)

    def likelihood(values: np.ndarray, person: int) -> float:
        one = only(entries, person)
        cells = values[BINS + 1 :].reshape(CELLS, 2)
        where = Parameters(values[:BINS], values[BINS], cells[:, 0], cells[:, 1]).difficulty()
        d = sum(one.weights[:, j] * where[one.cell, one.knot + j] for j in range(4))
        eta = math.exp(values[BINS]) * (fine[:, None] - d)
        inside = (one.successes * eta - one.trials * np.logaddexp(0, eta)).sum(axis=1) - fine**2 / 2
        return float(np.log(np.exp(inside - inside.max()).sum()) + inside.max())

    values = np.concatenate([at.curve, [at.log_discrimination], np.column_stack([at.level, at.tilt]).ravel()])
    scores = np.delete(scores_of_each(entries, at), [BINS + 3 + 3 * cell for cell in range(CELLS)], axis=1)
    for person in range(3):
        for place in range(values.size):
            step = np.eye(values.size)[place] * 1e-4
            slope = (likelihood(values + step, person) - likelihood(values - step, person)) / 2e-4
            assert scores[person, place] == pytest.approx(slope, abs=2e-3)


def test_clipping_of_invented_persons_is_that_of_real_ones() -> None:
    """`clipped` and the compiled loop agree to the grid."""
    entries, at = persons(12, 6), somewhere(7)
    scaled = scores_of_each(entries, at) * score_scales(BINS, CELLS)
    expected = contributions.clipped(scaled).sum(axis=0) * GRID / contributions.CLIP
    assert np.abs(score_sum(entries, at) - expected).max() <= 12
