"""How many riders a cell has is uncertain, and the errors of its level hold that."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.release.private.counted import OfARider, read_cells, read_counts

SD = 6.0
ONE = OfARider(np.diag([1.7, 1.2]), np.zeros((2, 10)), np.diag([1.1, 0.9]), np.array([16.0, 100.0]))
PRIOR = np.array([0.4, 0.15])


def simulated(cells: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Riders, level and tilt by cell, and what is seen of them: scores and counts with noise."""
    random = np.random.default_rng(seed)
    riders = 6 / random.uniform(0.02, 1.0, cells)
    true = random.standard_normal((cells, 2)) * PRIOR
    spread = riders[:, None] * np.diag(ONE.variation) + ONE.noise
    scores = riders[:, None] * (true @ ONE.response.T) + np.sqrt(spread) * random.standard_normal((cells, 2))
    return riders, true, scores, riders + SD * random.standard_normal(cells)


def test_errors_cover_the_level_at_every_size_that_is_told() -> None:
    _, true, scores, counted = simulated(6_000)
    found = read_cells(scores, np.zeros((6_000, 2)), ONE, PRIOR, read_counts(counted, SD**2))
    off = np.abs(found.mean - true)[:, 0] / np.sqrt(found.covariance[:, 0, 0])
    for least, most in ((10, 20), (20, 50), (50, 400)):
        told = (found.riders >= least) & (found.riders < most)
        assert told.sum() > 200
        assert np.mean(off[told] <= 1.96) == pytest.approx(0.95, abs=0.02)


def test_a_count_that_is_taken_as_certain_does_not_cover_small_cells() -> None:
    """What the mixture is for."""
    _, true, scores, counted = simulated(6_000)
    certain = read_counts(np.maximum(counted, 2.0), 1e-4)
    found = read_cells(scores, np.zeros((6_000, 2)), ONE, PRIOR, certain)
    off = np.abs(found.mean - true)[:, 0] / np.sqrt(found.covariance[:, 0, 0])
    assert np.mean(off[(counted >= 10) & (counted < 20)] <= 1.96) < 0.93


def test_numbers_of_riders_are_right_on_average() -> None:
    riders, _, _, counted = simulated(3_000)
    found = read_counts(counted, SD**2).mean
    assert found.sum() == pytest.approx(riders.sum(), rel=0.02)
    assert np.mean((found - riders) ** 2) < 0.8 * np.mean((counted - riders) ** 2)


def test_one_cell_and_a_count_below_zero_have_a_number() -> None:
    for counted in (-30.0, 0.0, 900.0):
        found = read_counts(np.array([counted]), SD**2).mean
        assert found[0] >= 0.5
        assert found[0] == pytest.approx(max(counted, 3.0), abs=4.0)


def test_what_cells_share_moves_level_by_what_scores_say() -> None:
    """A shared curve that is higher by one makes levels lower, by the share of a level that is not shrunk."""
    shared = np.zeros((2, 1))
    shared[0, 0] = ONE.response[0, 0]
    one = OfARider(ONE.response, shared, ONE.variation, ONE.noise)
    counts, scores = read_counts(np.array([200.0]), 1e-6), np.array([[30.0, 0.0]])
    at, beside = (read_cells(scores, offset * shared.T, one, PRIOR, counts) for offset in (0.0, 0.1))
    assert (beside.mean - at.mean)[0, 0] / 0.1 == pytest.approx(at.by_shared[0, 0, 0], rel=1e-3)
