"""Counting outcomes: nothing is lost, and the order of rows does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import EXACT_ROWS, Counts, count


def cohort(rows: int, sites: int) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(rows)
    rider = generator.integers(0, 50, rows)
    metric = np.round(generator.gamma(3, 5, rows), 2)
    return rider, metric, generator.integers(0, 2, rows), generator.integers(-1, sites, rows)


def bits(counts: Counts) -> tuple[bytes, ...]:
    parts = [counts.item_metric, counts.item_site]
    for matrix in (counts.trials, counts.successes):
        dense = matrix.toarray()
        parts.append(dense)
    return tuple(part.tobytes() for part in parts)


@pytest.mark.parametrize("rows", [EXACT_ROWS, EXACT_ROWS + 1])
@pytest.mark.parametrize("sites", [0, 3])
def test_row_order_changes_no_bit(rows: int, sites: int) -> None:
    rider, metric, outcome, site = cohort(rows, max(sites, 1))
    spline = spline_for(metric)
    order = np.random.default_rng(9).permutation(rows)
    place = site if sites else None
    moved = None if place is None else place[order]
    first = count(rider, metric, outcome, spline, 50, place)
    second = count(rider[order], metric[order], outcome[order], spline, 50, moved)
    assert bits(first) == bits(second)


@pytest.mark.parametrize("rows", [1000, EXACT_ROWS + 1000])
def test_every_outcome_is_counted_once(rows: int) -> None:
    rider, metric, outcome, site = cohort(rows, 3)
    counts = count(rider, metric, outcome, spline_for(metric), 50, site)
    assert counts.item_trials.sum() == rows
    assert counts.item_successes.sum() == outcome.sum()
    assert np.array_equal(counts.rider_trials, np.bincount(rider, minlength=50))
    assert np.array_equal(counts.rider_successes, np.bincount(rider, weights=outcome, minlength=50))
    by_site = np.bincount(counts.item_site + 1, weights=counts.item_trials, minlength=4)
    assert np.array_equal(by_site, np.bincount(site + 1, minlength=4))


def test_a_cell_stands_at_the_mean_of_its_metrics() -> None:
    rider, metric, outcome, _ = cohort(EXACT_ROWS + 5000, 1)
    counts = count(rider, metric, outcome, spline_for(metric), 50)
    assert counts.items < 481
    # So the cohort's mean metric is kept, to the fineness of a step.
    assert counts.item_metric @ counts.item_trials / len(rider) == pytest.approx(metric.mean(), rel=1e-6)


def test_small_cohorts_keep_every_metric() -> None:
    rider, metric, outcome, _ = cohort(500, 1)
    counts = count(rider, metric, outcome, spline_for(metric), 50)
    assert np.array_equal(counts.item_metric, np.unique(metric))


def test_successes_are_as_narrow_as_they_can_be_and_no_sum_overflows() -> None:
    rider, metric = np.repeat([0, 1], [300, 70_000]), np.zeros(70_300)
    counts = count(rider, metric, np.ones(70_300, int), spline_for(np.array([0.0, 1.0])), 2)
    assert counts.successes.dtype == np.uint32
    assert count(rider[:300], metric[:300], np.ones(300, int), spline_for(metric), 2).successes.dtype == np.uint16
    assert counts.rider_successes.tolist() == [300.0, 70_000.0]
    many = count(np.arange(300), np.zeros(300), np.ones(300, int), spline_for(np.array([0.0, 1.0])), 300)
    assert many.successes.dtype == np.uint8
    assert many.item_successes.tolist() == [300.0]
    assert many.rider_successes.tolist() == [1.0] * 300


def test_those_who_are_present_have_their_entries_and_share_them() -> None:
    rider, metric, outcome, site = cohort(2_000, 3)
    counts = count(rider * 2, metric, outcome, spline_for(metric), 130, site)
    present = counts.of_present()
    chosen = np.flatnonzero(counts.rider_trials)
    assert present.riders == chosen.size < 130
    assert bits(present) == bits(counts.of_riders(chosen))
    assert np.shares_memory(present.trials.data, counts.trials.data)
    assert np.shares_memory(present.trials.indices, present.successes.indices)
