"""What becomes of a released row: who counts as changed, and what then happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_screening import placed

from isuit.published import ReleaseRow
from isuit.release.carrying import Change, Fingerprints, Released, changes, decide, fingerprints
from isuit.release.policy import Policy
from isuit.spelling import fold
from isuit.store.releases import BinRecord

CELL, BIN = "global", 0
KEY = (CELL, BIN)
EARLIER = "2026-01-01"
RIDERS = [f"rider-{number:02d}" for number in range(12)]


def outcomes_of(riders: list[str], altered: int = 0) -> Fingerprints:
    """Every rider's outcomes as a number; the first ones have others than they had."""
    return {(CELL, BIN, rider): 7 + (number < altered) for number, rider in enumerate(riders)}


def released(members: list[str], riders: int = len(RIDERS)) -> Released:
    row = ReleaseRow.model_construct(release=EARLIER)
    return Released(row, BinRecord("curve", BIN, riders, EARLIER), frozenset(members), frozenset(map(fold, members)))


@pytest.mark.parametrize(
    ("members", "now", "altered", "left", "changed"),
    [
        (RIDERS, RIDERS, 0, 0, 0),
        (RIDERS, RIDERS, 3, 0, 3),  # other outcomes
        (RIDERS[2:], RIDERS[2:], 0, 2, 2),  # erased: no longer among the members either
        (RIDERS, RIDERS[2:], 0, 2, 2),  # left
        (RIDERS, [*RIDERS, "new"], 0, 0, 1),
        (RIDERS[1:], [*RIDERS[1:], "new"], 2, 1, 4),
        ([name.upper() for name in RIDERS], RIDERS, 0, 0, 0),  # another spelling is no other rider
    ],
)
def test_who_joined_left_or_has_other_outcomes_changed(
    members: list[str], now: list[str], altered: int, left: int, changed: int
) -> None:
    before, after = outcomes_of(RIDERS), outcomes_of(now, altered)
    # `altered` counts from the first of those who are there now.
    after |= {key: before[key] for key in list(after)[altered:] if key in before}
    assert changes(KEY, released(members), set(now), after, before) == Change(left, changed)


@pytest.mark.parametrize(("altered", "carried"), [(9, True), (10, False)])
def test_ten_riders_with_other_outcomes_are_enough_for_a_new_value(altered: int, carried: bool) -> None:
    then = {EARLIER: outcomes_of(RIDERS)}
    fate = decide({KEY: released(RIDERS)}, outcomes_of(RIDERS, altered), then, Policy())
    assert fate.carried == ({KEY: 0} if carried else {})
    assert fate.withdrawn == frozenset()


@pytest.mark.parametrize(("live", "withdrawn"), [(10, False), (9, True)])
def test_below_k_a_row_is_withdrawn(live: int, withdrawn: bool) -> None:
    now = outcomes_of(RIDERS[:live])
    fate = decide({KEY: released(RIDERS)}, now, {EARLIER: outcomes_of(RIDERS)}, Policy())
    assert fate.withdrawn == ({KEY} if withdrawn else frozenset())
    assert fate.carried == ({} if withdrawn else {KEY: 1})


@pytest.mark.parametrize(("joined", "afterwards"), [(0, "withdrawn"), (8, "withdrawn"), (9, "again"), (40, "again")])
def test_while_one_left_a_row_is_held_and_not_for_ever(joined: int, afterwards: str) -> None:
    """Whatever others add; after four releases it is computed again if ten changed in all, and else withdrawn."""
    stayed = RIDERS[1:]
    now = outcomes_of([*stayed, *(f"new-{number}" for number in range(joined))])
    then = {EARLIER: outcomes_of(RIDERS)}
    for held in range(4):
        fate = decide({KEY: replace(released(stayed), held=held)}, now, then, Policy())
        assert (fate.carried, fate.withdrawn) == ({KEY: held + 1}, frozenset())
    fate = decide({KEY: replace(released(stayed), held=4)}, now, then, Policy())
    assert fate.carried == {}
    assert fate.withdrawn == ({KEY} if afterwards == "withdrawn" else frozenset())


def test_once_ten_left_a_row_is_computed_again() -> None:
    before = [*RIDERS, *(f"more-{number}" for number in range(10))]
    now = outcomes_of(before[10:])
    fate = decide({KEY: released(before[10:], riders=22)}, now, {EARLIER: outcomes_of(before)}, Policy())
    assert (fate.carried, fate.withdrawn) == ({}, frozenset())


@pytest.mark.parametrize("column", ["metric", "outcome", "times"])
def test_another_weighted_outcome_is_another_number_for_its_rider_and_nobody_else(column: str) -> None:
    """A copy of one of several lines shifts their weights; the test below is of what shifts nothing."""
    whole, policy = placed(), Policy()
    values = getattr(whole.outcomes, column)
    values[5] = 1 if column != "metric" else 0.1
    before = fingerprints(whole, policy)
    values[5] = {"metric": np.nextafter(0.1, 1), "outcome": 0, "times": 2}[column]
    rider = whole.outcomes.riders[whole.outcomes.rider[5]]
    after = fingerprints(whole, policy)
    assert before.keys() == after.keys()
    assert {key[2] for key in before if before[key] != after[key]} == {rider}
    order = np.random.default_rng(1).permutation(values.size)
    mixed = type(whole)(
        type(whole.outcomes)(
            whole.outcomes.riders, whole.outcomes.spellings, whole.outcomes.rider[order], whole.outcomes.place[order],
            whole.outcomes.places, whole.outcomes.metric[order], whole.outcomes.outcome[order],
            whole.outcomes.times[order],
        ),
        whole.cells, whole.cell[order], whole.bin[order], whole.bins,
    )  # fmt: skip
    assert fingerprints(mixed, policy) == after


def test_copies_of_all_lines_change_no_number() -> None:
    whole = placed()
    before = fingerprints(whole, Policy())
    own = whole.outcomes.rider == 3
    copied = replace(whole, outcomes=replace(whole.outcomes, times=np.where(own, 7, whole.outcomes.times)))
    assert fingerprints(copied, Policy()) == before


def test_the_sign_of_a_zero_is_no_other_outcome() -> None:
    whole = placed()
    whole.outcomes.metric[5] = 0.0
    before = fingerprints(whole, Policy())
    whole.outcomes.metric[5] = -0.0
    assert fingerprints(whole, Policy()) == before
