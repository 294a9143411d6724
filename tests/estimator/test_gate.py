"""The identification gate against a brute-force graph search."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from isuit.domain import FitConfig
from isuit.estimator.gate import CORE_SHARE, Gate, Incidence, check, check_each, incidence, only_between
from isuit.estimator.model.components import components

Edges = set[tuple[int, int]]


def graph_of(table: list[list[int]]) -> Incidence:
    outcomes = np.array(table, dtype=np.int64)
    bins = outcomes.shape[1]
    return Incidence(outcomes, np.arange(bins, dtype=np.float64), np.arange(bins) + 0.5)


def search_components(riders: set[int], bins: set[int], edges: Edges) -> int:
    """Walk from vertex to vertex until none is left."""
    left = {("rider", r) for r in riders} | {("bin", b) for b in bins}
    parts = 0
    while left:
        parts += 1
        frontier = [left.pop()]
        while frontier:
            kind, number = frontier.pop()
            near = {("bin", b) for r, b in edges if kind == "rider" and r == number} | {
                ("rider", r) for r, b in edges if kind == "bin" and b == number
            }
            frontier += near & left
            left -= near
    return parts


def prune(table: list[list[int]], least_bins: int, least_riders: int, seed: int) -> tuple[set[int], set[int]]:
    """Take away one rider or bin that falls short at a time, in any order."""
    chooser = random.Random(seed)
    riders, bins = set(range(len(table))), set(range(len(table[0])))
    while True:
        short = [("rider", r) for r in riders if sum(table[r][b] > 0 for b in bins) < least_bins]
        short += [("bin", b) for b in bins if sum(table[r][b] > 0 for r in riders) < least_riders]
        if not short:
            return riders, bins
        kind, number = chooser.choice(short)
        (riders if kind == "rider" else bins).remove(number)


tables = st.integers(1, 6).flatmap(
    lambda bins: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 1, 4]), min_size=bins, max_size=bins).filter(any), min_size=1, max_size=9
    )
)


@settings(max_examples=300, deadline=None)
@given(tables, st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))
def test_gate_agrees_with_a_brute_force_search(
    table: list[list[int]], least_bins: int, least_riders: int, seed: int
) -> None:
    # Bins are made of outcomes, so each has at least one.
    table = [[row[b] for b in range(len(row)) if any(other[b] for other in table)] for row in table]
    graph = graph_of(table)
    edges = {(r, b) for r, row in enumerate(table) for b, n in enumerate(row) if n}
    everyone, everywhere = set(range(len(table))), set(range(len(table[0])))
    total = sum(map(sum, table))

    strict = check(graph, FitConfig(gate="strict", min_bins_per_rider=least_bins, min_riders_per_bin=least_riders))
    thin_riders = sum(sum(n > 0 for n in row) < least_bins for row in table)
    thin_bins = sum(sum(row[b] > 0 for row in table) < least_riders for b in everywhere)
    parts = search_components(everyone, everywhere, edges)
    assert strict.report.ok is (thin_riders == 0 and thin_bins == 0 and parts == 1)
    assert len(strict.report.shortfalls) == (thin_riders > 0) + thin_bins + (parts > 1)
    assert strict.core.all()

    core = check(graph, FitConfig(gate="core", min_bins_per_rider=least_bins, min_riders_per_bin=least_riders))
    riders, bins = prune(table, least_bins, least_riders, seed)
    # Pruning one side can empty the other only together: what is left is the same whatever the order.
    kept = sum(table[r][b] for r in riders for b in bins)
    connected = bool(riders) and bool(bins) and search_components(riders, bins, edges) == 1
    assert core.report.ok is (connected and kept / total >= CORE_SHARE)
    assert set(np.flatnonzero(core.core)) == riders
    assert core.report.core_share == pytest.approx(kept / total)
    assert core.report.core_riders == len(riders)
    assert bool(core.report.shortfalls) is not core.report.ok
    assert components(csr_matrix(graph.seen))[0] == parts


def test_every_shortfall_is_listed_and_names_no_rider() -> None:
    # Two islands of three riders and two bins each.
    table = [[1, 1, 0, 0]] * 3 + [[0, 0, 1, 1]] * 3
    strict = check(graph_of(table), FitConfig(gate="strict"))
    assert strict.report.shortfalls == (
        "6 of 6 riders were observed in fewer than 3 of the 4 metric bins",
        "the graph of riders and metric bins falls into 2 unconnected parts",
    )
    assert not strict.report


def test_riders_are_told_before_bins() -> None:
    strict = check(graph_of([[1, 1, 1, 0]] * 5 + [[0, 0, 0, 1]]), FitConfig(gate="strict"))
    riders, thin, parts = strict.report.shortfalls
    assert riders.startswith("1 of 6 riders")
    assert "bin" in thin
    assert parts.endswith("2 unconnected parts")


def test_a_connected_core_with_too_few_outcomes_fails() -> None:
    table = [[1, 1, 1, 0]] * 3 + [[0, 0, 0, 30]]
    core = check(graph_of(table), FitConfig())
    assert core.report.core_riders == 3
    assert "the core holds 23% of the outcomes, less than 50%" in core.report.shortfalls


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=80),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_bins_are_of_equal_count_with_ties_together(
    rows: list[tuple[int, int]], bins: int, shuffler: random.Random
) -> None:
    rider, metric = (np.array(column) for column in zip(*rows, strict=True))
    graph = incidence(rider, metric.astype(np.float64), 6, bins)
    assert graph.outcomes.sum() == len(rows)
    assert graph.outcomes.shape[1] <= bins
    assert np.all(graph.outcomes.sum(axis=0) > 0)
    assert np.all(graph.upper[:-1] < graph.lower[1:])  # no metric is in two bins
    if np.unique(metric).size == metric.size and metric.size >= bins:
        sizes = graph.outcomes.sum(axis=0)
        assert sizes.size == bins
        assert sizes.max() - sizes.min() <= 1
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    rider, metric = (np.array(column) for column in zip(*shuffled, strict=True))
    assert np.array_equal(graph.outcomes, incidence(rider, metric.astype(np.float64), 6, bins).outcomes)


WIND = [[1, 1, 1, 1]] * 6  # everybody moves along it
WEIGHT = [[2, 0]] * 3 + [[0, 2]] * 3  # nobody does: two groups that share no bin


def each(*tables: list[list[int]], names: tuple[str, ...] = ("wind", "weight"), **config: Any) -> Gate:
    return check_each([graph_of(table) for table in tables], names, FitConfig(**config))


def test_of_several_metrics_one_may_be_told_by_comparing_riders() -> None:
    assert only_between([graph_of(WIND), graph_of(WEIGHT)], FitConfig()) == (False, True)
    found = each(WIND, WEIGHT)
    assert (found.between, found.core.all(), found.report.shortfalls) == ((False, True), True, ())
    assert found.report.ok is True
    assert (found.report.core_share, found.report.core_riders, found.report.riders, found.report.bins) == (1, 6, 6, 4)
    assert each(WIND, WIND).between == (False, False)


def test_the_strict_reading_asks_all_of_every_metric() -> None:
    found = each(WIND, WEIGHT, gate="strict")
    assert not found.report
    assert found.report.shortfalls == ("weight: the graph of riders and metric bins falls into 2 unconnected parts",)
    assert found.between == (False, True)  # what a metric can tell does not depend on what is asked
    assert each(WIND, WIND, gate="strict").report.ok is True


def test_where_riders_move_along_no_metric_nothing_is_let_off() -> None:
    found = each(WEIGHT, WEIGHT, names=("weight", "age"))
    assert found.between == (True, True)
    assert not found.report
    part = "the core of riders and metric bins falls into 2 unconnected parts"
    assert {f"weight: {part}", f"age: {part}"} <= set(found.report.shortfalls)


def test_bins_that_too_few_riders_met_leave_the_core() -> None:
    """Of a metric that riders are compared along: those in its thin bins leave, and half of the outcomes must stay."""
    found = each([[1, 1, 1, 1]] * 7, [[2, 0, 0]] * 3 + [[0, 2, 0]] * 3 + [[0, 0, 2]])
    assert found.report.ok is True
    assert (found.report.core_share, found.report.core_riders) == (pytest.approx(6 / 7), 6)
    assert not found.core[6]
    thin = each([[1, 1, 1, 1]] * 7, [[1, 0, 0]] * 3 + [[0, 2, 0]] * 2 + [[0, 0, 2]] * 2)
    assert thin.report.core_share == pytest.approx(3 / 11)
    assert thin.report.shortfalls == (
        "weight: the metric bin from 1 to 1.5 has 2 riders, fewer than 3",
        "weight: the metric bin from 2 to 2.5 has 2 riders, fewer than 3",
    )
    assert thin.report.ok is False
    half = each([[1, 1, 1, 1]] * 5, [[2, 0, 0]] * 3 + [[0, 3, 0]] * 2)
    assert (half.report.core_share, half.report.ok) == (0.5, True)


def test_of_few_levels_a_rider_needs_all_but_one() -> None:
    two = [[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]]
    assert only_between([graph_of(two)], FitConfig()) == (False,)  # the last rider connects, and one bin is enough
    three = [[1, 1, 0], [0, 1, 1], [1, 0, 1]] * 2
    assert only_between([graph_of(three)], FitConfig()) == (False,)
    assert only_between([graph_of([[1, 0, 0]] * 3 + three)], FitConfig()) == (False,)
    assert (
        check_each([graph_of([[1, 0, 0]] * 3 + three)], ("level",), FitConfig()).core.tolist()
        == [False] * 3 + [True] * 6
    )
    four = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]] * 2
    assert only_between([graph_of(four)], FitConfig()) == (True,)  # three of four bins are asked for
