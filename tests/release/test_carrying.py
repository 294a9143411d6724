"""What becomes of a released row: who counts as changed, and what then happens."""

from __future__ import annotations

import numpy as np
import pytest
from test_screening import placed

from isuit.published import ReleaseRow
from isuit.release.carrying import Fingerprints, Released, changed_riders, decide, fingerprints
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
    ("members", "now", "altered", "changed"),
    [
        (RIDERS, RIDERS, 0, 0),
        (RIDERS, RIDERS, 3, 3),  # other outcomes
        (RIDERS[2:], RIDERS[2:], 0, 2),  # erased: no longer among the members either
        (RIDERS, RIDERS[2:], 0, 2),  # left
        (RIDERS, [*RIDERS, "new"], 0, 1),
        (RIDERS[1:], [*RIDERS[1:], "new"], 2, 4),
        ([name.upper() for name in RIDERS], RIDERS, 0, 0),  # another spelling is no other rider
    ],
)
def test_who_joined_left_or_has_other_outcomes_changed(
    members: list[str], now: list[str], altered: int, changed: int
) -> None:
    before, after = outcomes_of(RIDERS), outcomes_of(now, altered)
    # `altered` counts from the first of those who are there now.
    after |= {key: before[key] for key in list(after)[altered:] if key in before}
    assert changed_riders(KEY, released(members), set(now), after, before) == changed


@pytest.mark.parametrize(("altered", "carried"), [(4, True), (5, False)])
def test_five_riders_with_other_outcomes_are_enough_for_a_new_value(altered: int, carried: bool) -> None:
    then = {EARLIER: outcomes_of(RIDERS)}
    fate = decide({KEY: released(RIDERS)}, outcomes_of(RIDERS, altered), then, Policy())
    assert fate.carried == ({KEY} if carried else frozenset())
    assert fate.withdrawn == frozenset()


@pytest.mark.parametrize(("live", "withdrawn"), [(10, False), (9, True)])
def test_below_k_a_row_is_withdrawn(live: int, withdrawn: bool) -> None:
    now = outcomes_of(RIDERS[:live])
    fate = decide({KEY: released(RIDERS)}, now, {EARLIER: outcomes_of(RIDERS)}, Policy())
    assert fate.withdrawn == ({KEY} if withdrawn else frozenset())
    assert fate.carried == (frozenset() if withdrawn else {KEY})


@pytest.mark.parametrize("column", ["metric", "outcome", "times"])
def test_another_value_is_another_number_for_its_rider_and_nobody_else(column: str) -> None:
    whole = placed()
    values = getattr(whole.outcomes, column)
    values[5] = 1 if column != "metric" else 0.1
    before = fingerprints(whole)
    values[5] = {"metric": np.nextafter(0.1, 1), "outcome": 0, "times": 2}[column]
    rider = whole.outcomes.riders[whole.outcomes.rider[5]]
    after = fingerprints(whole)
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
    assert fingerprints(mixed) == after
