"""Scores of predictions: known answers, intervals that cover, parts that add up, and what must not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isuit.domain import NO_TIME, FloatArray, IntArray
from isuit.estimator.diagnostics.forecasts import Forecasts, _tail, calibration, exact, held_out, of_forecasts, parts
from isuit.record import as_json

from ..cohorts import observations

DAY = 86_400_000_000


def forecasts(
    latent: Any, single: Any, outcome: Any, rider: Any, metric: Any = None, site: Any = None, time: Any = None
) -> Forecasts:
    metric = np.arange(len(outcome)) if metric is None else metric
    data = observations(rider, metric, outcome, site, time)
    return Forecasts.of(data, np.asarray(latent, dtype=np.float64), np.asarray(single, dtype=np.float64))


def clustered(generator: np.random.Generator, clusters: int, size: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Probabilities that differ between clusters, outcomes, and the clusters."""
    cluster = np.repeat(np.arange(clusters), size)
    p = np.clip(0.5 + generator.normal(0, 0.25, clusters)[cluster], 0.02, 0.98)
    return p, (generator.random(p.size) < p).astype(np.int64), cluster


# Known answers


def test_scores_of_three_outcomes() -> None:
    found = of_forecasts(forecasts([0.8, 0.4, 0.5], [0.5, 0.5, 0.5], [1, 0, 1], [0, 0, 1]))
    assert found.outcomes == 3
    assert found.riders == 2
    assert found.brier == pytest.approx((0.04 + 0.16 + 0.25) / 3, abs=1e-12)
    assert found.brier_single_curve == pytest.approx(0.25, abs=1e-12)
    assert found.brier_skill == pytest.approx(0.4, abs=1e-12)
    assert found.log_score == pytest.approx(-(np.log(0.8) + np.log(0.6) + np.log(0.5)) / 3, abs=1e-12)
    assert found.log_score_single_curve == pytest.approx(np.log(2), abs=1e-12)
    assert found.log_score_gain == pytest.approx(np.log(2) - found.log_score, abs=1e-12)


def test_a_certain_and_wrong_forecast_costs_a_bounded_log_score() -> None:
    found = of_forecasts(forecasts([1.0, 0.0], [0.5, 0.5], [0, 0], [0, 1]))
    assert found.log_score == pytest.approx(-np.log(1e-12) / 2, rel=1e-9)


def test_a_baseline_without_error_gives_no_skill_and_no_nan() -> None:
    found = of_forecasts(forecasts([0.5, 0.5], [1.0, 0.0], [1, 0], [0, 1]))
    assert found.brier_skill == 0.0
    json.dumps(as_json(found), allow_nan=False)


def test_parts_of_four_outcomes() -> None:
    """Four forecasts of two values, so two groups: no spread within."""
    found = parts(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0, 1, 1, 1]))
    assert found.reliability == pytest.approx(0.5 * 0.3**2 + 0.5 * 0.2**2)
    assert found.resolution == pytest.approx(0.5 * 0.25**2 + 0.5 * 0.25**2)
    assert found.uncertainty == pytest.approx(0.75 * 0.25)
    assert found.within_groups == pytest.approx(0.0, abs=1e-12)


def test_equal_forecasts_are_one_group_whatever_their_outcomes() -> None:
    """Sorted by outcome within ties, they would seem badly calibrated."""
    (group,) = calibration(np.full(100, 0.3), np.arange(100) % 2)
    assert (group.outcomes, group.predicted, group.observed) == (100, pytest.approx(0.3), 0.5)
    assert parts(np.full(100, 0.3), np.arange(100) % 2).resolution == 0.0


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_parts_add_up_to_the_brier_score(rows: list[tuple[float, int]]) -> None:
    predicted, outcome = np.array([p for p, _ in rows]), np.array([y for _, y in rows])
    found = parts(predicted, outcome)
    total = found.reliability - found.resolution + found.uncertainty + found.within_groups
    assert total == pytest.approx(np.mean((predicted - outcome) ** 2), abs=1e-10)


def test_parts_add_up_in_many_groups() -> None:
    generator = np.random.default_rng(2)
    predicted = generator.random(5000)
    outcome = (generator.random(5000) < predicted**2).astype(np.int64)
    found = parts(predicted, outcome)
    assert len(calibration(predicted, outcome)) == 10
    assert abs(found.within_groups) > 1e-4
    total = found.reliability - found.resolution + found.uncertainty + found.within_groups
    assert total == pytest.approx(np.mean((predicted - outcome) ** 2), abs=1e-11)


# The record's own score


def brute_skill(own: FloatArray, single: FloatArray, y: IntArray) -> float:
    return 1 - float(np.mean((own - y) ** 2) / np.mean((single - y) ** 2))


def test_the_standard_error_of_two_riders() -> None:
    """Of so few that n / (n - 1) doubles the variance: the sums by rider are 0.04, 0.25 against 0.25, 0.25."""
    found = held_out(forecasts([0.8, 0.5], [0.5, 0.5], [1, 1], [0, 1]), "rider")
    ratio = 0.29 / 0.5
    influence = np.array([0.04, 0.25]) - ratio * 0.25
    assert found.brier_skill == pytest.approx(1 - ratio, abs=1e-12)
    assert found.brier_skill_se == pytest.approx(np.sqrt(2 / 1 * np.sum(influence**2)) / 0.5, rel=1e-9)


def test_a_rider_who_was_predicted_without_error_counts() -> None:
    """Rider 0 has no loss at all, and is still one of the three whose losses vary."""
    found = held_out(forecasts([1.0, 0.5, 0.8], [0.5, 0.5, 0.5], [1, 1, 1], [0, 1, 2]), "rider")
    losses = np.array([0.0, 0.25, 0.04])
    influence = losses - losses.sum() / 0.75 * 0.25
    assert found.brier_skill_se == pytest.approx(np.sqrt(3 / 2 * np.sum(influence**2)) / 0.75, rel=1e-9)


@pytest.mark.parametrize(("clusters", "tail"), [(10, 0.00855), (20, 0.01588), (1_000_000, 0.025)])
def test_of_few_clusters_less_is_cut_off(clusters: int, tail: float) -> None:
    """By a table: 2.2622 x 1.0541 sds of ten, 2.0930 x 1.0260 of twenty (Student's, and root of n / (n - 1))."""
    assert _tail(clusters) == pytest.approx(tail, abs=5e-6)


def test_standard_error_and_interval_against_a_bootstrap_by_hand() -> None:
    generator = np.random.default_rng(4)
    p, y, rider = clustered(generator, 60, 6)
    single = np.full(360, 0.5)
    given_forecasts = forecasts(p, single, y, rider)
    found = held_out(given_forecasts, "rider")
    assert found.brier_skill == pytest.approx(brute_skill(p, single, y))
    assert found.brier == pytest.approx(np.mean((p - y) ** 2))
    assert found.brier_single_curve == pytest.approx(0.25)
    assert (found.outcomes, found.split) == (360, "rider")
    drawn = []
    for _ in range(2000):
        chosen = (generator.integers(0, 60, 60)[:, None] * 6 + np.arange(6)).ravel()
        drawn.append(brute_skill(p[chosen], single[chosen], y[chosen]))
    assert found.brier_skill_se == pytest.approx(np.std(drawn), rel=0.1)
    interval = of_forecasts(given_forecasts).intervals.rider
    assert interval.clusters == 60
    width = np.diff(np.quantile(drawn, [0.025, 0.975]))[0]
    assert interval.brier_skill == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.1 * width)


# Intervals


def truth() -> float:
    """The Brier skill of the clusters' own probabilities over 0.5, in the population of `clustered`."""
    p, _, _ = clustered(np.random.default_rng(99), 200_000, 1)
    return 1 - float(np.mean(p * (1 - p))) / 0.25


def test_intervals_cover_when_outcomes_are_clustered() -> None:
    """95 % of intervals by cluster cover the truth; intervals by row, as if outcomes were independent, do not."""
    expected = truth()

    def covered(seed: int, by_row: bool) -> bool:
        p, y, cluster = clustered(np.random.default_rng(seed), 50, 12)
        rider = np.arange(p.size) if by_row else cluster
        low, high = of_forecasts(forecasts(p, np.full(p.size, 0.5), y, rider)).intervals.rider.brier_skill
        return bool(low <= expected <= high)

    assert 0.92 <= np.mean([covered(seed, by_row=False) for seed in range(400)]) <= 0.97
    assert np.mean([covered(seed, by_row=True) for seed in range(60)]) < 0.85


def test_shared_weather_widens_the_interval_by_day_and_site() -> None:
    """Riders go out once on each day; what the day does to all of them is one surprise, not many."""
    generator = np.random.default_rng(1)
    day, rider = np.repeat(np.arange(40), 30), np.tile(np.arange(30), 40)
    p = np.full(day.size, 0.6)
    y = (generator.random(day.size) < np.where(generator.random(40) < 0.6, 0.95, 0.08)[day]).astype(np.int64)
    found = of_forecasts(forecasts(p, np.full(p.size, 0.5), y, rider, time=day * DAY + rider)).intervals
    assert found.day_and_site.clusters == 40
    widths = [float(np.diff(getattr(found, by).brier)[0]) for by in ("rider", "day_and_site")]
    assert widths[1] > 2 * widths[0]


def test_day_and_site_needs_a_time_for_every_outcome() -> None:
    p, y, rider = clustered(np.random.default_rng(0), 10, 5)
    time = np.arange(50) * DAY
    assert of_forecasts(forecasts(p, p, y, rider, time=time)).intervals.day_and_site.clusters == 50
    assert of_forecasts(forecasts(p, p, y, rider)).intervals.day_and_site is None
    time[3] = NO_TIME
    assert of_forecasts(forecasts(p, p, y, rider, time=time)).intervals.day_and_site is None
    # Two sites on a day are two clusters, an outcome without a site is at neither.
    sites = np.arange(50) % 3 - 1
    found = of_forecasts(forecasts(p, p, y, rider, site=sites, time=np.zeros(50)))
    assert found.intervals.day_and_site.clusters == 3


def test_one_cluster_has_no_interval() -> None:
    p, y, rider = clustered(np.random.default_rng(0), 1, 5)
    assert of_forecasts(forecasts(p, p, y, rider)).intervals.rider is None


def test_many_clusters_dealt_into_groups_give_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    p, y, rider = clustered(np.random.default_rng(3), 6000, 3)
    given_forecasts = forecasts(p, np.full(p.size, 0.5), y, rider)
    dealt = of_forecasts(given_forecasts).intervals.rider
    monkeypatch.setattr("isuit.estimator.diagnostics.forecasts.MOST_CLUSTERS", 10_000)
    whole = of_forecasts(given_forecasts).intervals.rider
    assert dealt.clusters == whole.clusters == 6000
    for name in ("brier", "brier_skill", "log_score_gain"):
        here, there = getattr(dealt, name), getattr(whole, name)
        assert np.diff(here)[0] == pytest.approx(np.diff(there)[0], rel=0.1)
        assert np.mean(here) == pytest.approx(np.mean(there), abs=0.1 * np.diff(there)[0])


# What must not matter


def test_order_of_rows_and_labels_change_no_bit() -> None:
    generator = np.random.default_rng(5)
    p, y, rider = clustered(generator, 40, 7)
    single, metric = generator.random(p.size), generator.uniform(3, 35, p.size)
    site, time = generator.integers(0, 3, p.size), generator.integers(0, 30, p.size) * DAY
    found = json.dumps(as_json(of_forecasts(forecasts(p, single, y, rider, metric, site, time))))
    order = generator.permutation(p.size)
    columns = (p, single, y, rider, metric, site, time)
    assert json.dumps(as_json(of_forecasts(forecasts(*(column[order] for column in columns))))) == found
    relabelled = (p, single, y, generator.permutation(40)[rider], metric, np.array([2, 0, 1])[site], time)
    assert json.dumps(as_json(of_forecasts(forecasts(*relabelled)))) == found
    one = forecasts(*columns)
    other = replace(one, latent=1 - one.latent)
    assert json.dumps(as_json(of_forecasts(other))) != found


def test_exact_sums_do_not_depend_on_their_order() -> None:
    generator = np.random.default_rng(0)
    values = generator.exponential(size=100_000)
    rounded = exact(values)
    assert np.max(np.abs(rounded - values)) < 1e-8
    total = rounded.sum()
    for _ in range(5):
        generator.shuffle(rounded)
        assert rounded.sum() == total
        assert np.cumsum(rounded)[-1] == total
