"""Which outcomes are kept back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isuit.domain import NO_TIME, Observations, Split
from isuit.estimator.diagnostics import heldout
from isuit.estimator.diagnostics.heldout import TEST_SHARE

from ..cohorts import observations, of_rows

DAY = 86_400_000_000
SPLITS: list[Split] = ["rider", "time", "occasion"]

rows_of = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)),
    min_size=1,
    max_size=70,
)


def cohort(rows: list[tuple[int, int, int, int, int]], distinct: bool) -> Observations:
    rider, day, hour, site, outcome = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    metric = 3.0 + hour + 10 * site
    if distinct:
        metric = metric + np.arange(len(rows)) / 100
    return observations(rider, metric, outcome, site, day * DAY + hour * 3_600_000_000)


def unit_of(data: Observations, split: Split) -> list[tuple[int, ...]]:
    """The unit of each row, told independently of the code: a row, a day of a rider, or a day at a site."""
    assert data.observed_at is not None
    assert data.site is not None
    day = (data.observed_at // DAY).tolist()
    if split == "rider":
        return [(k,) for k in range(len(data))]
    if split == "time":
        return list(zip(data.rider.tolist(), day, strict=True))
    return list(zip(data.rider.tolist(), day, data.site.tolist(), strict=True))


@pytest.mark.parametrize("split", SPLITS)
@settings(max_examples=60, deadline=None)
@given(rows=rows_of)
def test_units_are_whole_and_each_rider_gives_a_fifth(split: Split, rows: list[tuple[int, int, int, int, int]]) -> None:
    data = cohort(rows, distinct=True)
    kept_back = heldout.kept_back_rows(data, split)
    units = unit_of(data, split)
    side = dict(zip(units, kept_back.tolist(), strict=True))
    assert [side[unit] for unit in units] == kept_back.tolist(), "a unit is on both sides"
    for rider in np.unique(data.rider):
        own = {unit for unit, r in zip(units, data.rider, strict=True) if r == rider}
        assert sum(side[unit] for unit in own) == round(TEST_SHARE * len(own))


@pytest.mark.parametrize("split", SPLITS)
@settings(max_examples=60, deadline=None)
@given(rows=rows_of, seed=st.integers(0, 9))
def test_order_labels_and_outcomes_do_not_matter(
    split: Split, rows: list[tuple[int, int, int, int, int]], seed: int
) -> None:
    data = cohort(rows, distinct=True)
    kept_back = heldout.kept_back_rows(data, split)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(data))
    assert np.array_equal(heldout.kept_back_rows(of_rows(data, order), split), kept_back[order])
    assert data.site is not None
    relabelled = observations(
        generator.permutation(len(data.riders))[data.rider],
        data.metric,
        data.outcome,
        generator.permutation(len(data.sites))[data.site],
        data.observed_at,
    )
    assert np.array_equal(heldout.kept_back_rows(relabelled, split), kept_back)
    flipped = observations(data.rider, data.metric, 1 - data.outcome, data.site, data.observed_at)
    assert np.array_equal(heldout.kept_back_rows(flipped, split), kept_back)


@pytest.mark.parametrize("split", SPLITS)
@settings(max_examples=40, deadline=None)
@given(rows=rows_of, seed=st.integers(0, 9))
def test_equal_rows_do_not_bring_the_order_of_rows_in(
    split: Split, rows: list[tuple[int, int, int, int, int]], seed: int
) -> None:
    """Rows that agree in everything but their place: as many of them are kept back, whatever the order."""
    data = cohort(rows, distinct=False)

    def kept(of: Observations) -> list[tuple[float, ...]]:
        assert of.site is not None
        assert of.observed_at is not None
        columns = np.stack([of.rider, of.metric, of.outcome, of.site, of.observed_at], axis=1)
        return sorted(map(tuple, columns[heldout.kept_back_rows(of, split)].tolist()))

    assert kept(data) == kept(of_rows(data, np.random.default_rng(seed).permutation(len(data))))


@settings(max_examples=60, deadline=None)
@given(rows=rows_of, seed=st.integers(0, 9))
def test_names_of_sites_do_not_matter_where_a_rider_met_the_same_metric_at_several(
    rows: list[tuple[int, int, int, int, int]], seed: int
) -> None:
    """Sites that others visited at other metrics can be told apart without their names."""
    data = cohort(rows, distinct=False)
    assert data.site is not None
    metric = np.append(np.full(len(data), 5.0), np.arange(len(data.sites)))
    rider = np.append(data.rider, np.full(len(data.sites), 5))
    site = np.append(data.site, np.arange(len(data.sites)))
    outcome = np.zeros(rider.size)
    names = np.random.default_rng(seed).permutation(len(data.sites))
    here, there = (
        heldout.kept_back_rows(observations(rider, metric, outcome, of), "rider") for of in (site, names[site])
    )

    def kept(side: NDArray[np.bool_]) -> list[tuple[int, int]]:
        return sorted(zip(rider[side].tolist(), site[side].tolist(), strict=True))

    assert kept(here) == kept(there)


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(2, 12), min_size=1, max_size=8), seed=st.integers(0, 9))
def test_outcomes_with_the_same_metric_are_never_all_kept_back(sizes: list[int], seed: int) -> None:
    metric = np.repeat(np.arange(len(sizes)) + 0.5 * seed, sizes)
    data = observations(np.zeros(metric.size), metric, np.zeros(metric.size))
    kept_back = heldout.kept_back_rows(data, "rider")
    assert kept_back.sum() == round(TEST_SHARE * metric.size)
    for value, size in zip(np.unique(metric), sizes, strict=True):
        share = kept_back[metric == value].sum()
        assert share < size
        assert abs(share - TEST_SHARE * size) <= 2, "spread over the metrics in proportion"


def test_time_keeps_back_the_last_days() -> None:
    data = observations(np.zeros(10), np.arange(10.0), np.zeros(10), observed_at=np.arange(10)[::-1] * DAY)
    assert np.flatnonzero(heldout.kept_back_rows(data, "time")).tolist() == [0, 1]


def test_riders_with_the_same_metrics_are_not_split_alike() -> None:
    """Otherwise the same conditions would be kept back for everybody, and their difficulty would be a guess."""
    generator = np.random.default_rng(0)
    metric = np.tile(np.arange(10.0), 40) + np.repeat(generator.integers(0, 2, 40), 10) * 0.0
    metric[::10] += np.arange(40) / 1000  # riders differ in one row, as real ones do
    data = observations(np.repeat(np.arange(40), 10), metric, np.zeros(400))
    kept_back = heldout.kept_back_rows(data, "rider").reshape(40, 10)
    assert kept_back.sum() == 80
    assert kept_back[:, 1:].any(axis=0).all()


@pytest.mark.parametrize("kept", [heldout.of_new_riders, heldout.of_new_sites])
@settings(max_examples=40, deadline=None)
@given(rows=rows_of, seed=st.integers(0, 9))
def test_new_riders_and_sites_are_whole_and_chosen_by_their_conditions(
    kept: Callable[[Observations], NDArray[np.bool_]], rows: list[tuple[int, int, int, int, int]], seed: int
) -> None:
    data = cohort(rows, distinct=True)
    assert data.site is not None
    kept_back = kept(data)
    code = data.rider if kept is heldout.of_new_riders else data.site
    present = np.unique(code)
    chosen = np.unique(code[kept_back])
    assert chosen.size == round(TEST_SHARE * present.size)
    assert np.array_equal(kept_back, np.isin(code, chosen))
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(data))
    assert np.array_equal(kept(of_rows(data, order)), kept_back[order])
    relabelled = observations(
        generator.permutation(len(data.riders))[data.rider],
        data.metric,
        1 - data.outcome,
        generator.permutation(len(data.sites))[data.site],
        data.observed_at,
    )
    assert np.array_equal(kept(relabelled), kept_back)


def test_rows_without_a_site_are_at_no_new_site() -> None:
    site = np.arange(60) % 6 - 1
    for first in range(20):  # one set of metrics may spare them by chance
        data = observations(np.arange(60) % 6, first + np.arange(60.0), np.zeros(60), site)
        kept_back = heldout.of_new_sites(data)
        assert kept_back.sum() == 10
        assert not kept_back[site == -1].any()


@given(rows=rows_of)
def test_days_and_sites_have_a_code_each(rows: list[tuple[int, int, int, int, int]]) -> None:
    data = cohort(rows, distinct=True)
    assert data.observed_at is not None
    assert data.site is not None
    nowhere = np.where(data.metric < 4.0, -1, data.site)  # rows without a site are at a place of their own
    data = observations(data.rider, data.metric, data.outcome, nowhere, data.observed_at)
    found = heldout.days_and_sites(data)
    assert found is not None
    expected = list(zip((data.observed_at // DAY).tolist(), nowhere.tolist(), strict=True))
    assert len(set(zip(found.tolist(), expected, strict=True))) == len(set(found.tolist())) == len(set(expected))


def test_without_all_times_there_are_no_days() -> None:
    untimed = observations(np.zeros(3), np.arange(3.0), np.zeros(3))
    assert heldout.days_and_sites(untimed) is None
    times = np.array([DAY, NO_TIME, DAY])
    assert heldout.days_and_sites(observations(np.zeros(3), np.arange(3.0), np.zeros(3), observed_at=times)) is None


def test_the_sign_of_zero_is_no_mark() -> None:
    plus, minus, one = heldout.marks(np.array([0.0, -0.0, 1.0]), None).tolist()
    assert plus == minus != one
