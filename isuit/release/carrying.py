"""What becomes of a released row in the next release: carried forward, computed again, or withdrawn.

Two releases around one departure would tell whether the person who left was good. So a (cell, bin) is computed again
only when enough riders changed in it since it was last computed: joined, left, or weigh other outcomes in the fit.
Text that changes nothing in the fit is no change. While a few have left, and not enough, the row is held as it is,
whatever others add, because those others could be in league; but no row repeats what an erased person gave for ever:
after so many releases it is computed again if enough changed in all, and otherwise withdrawn until they did. Below k
live riders it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isuit.columns import mixed
from isuit.published import ReleaseRow
from isuit.release.persons import mixed_metric
from isuit.release.policy import Policy
from isuit.release.screening import WEIGHT_STEPS, Placed, weights
from isuit.store.releases import BinRecord

Key = tuple[str, int]  # cell and bin
Fingerprints = dict[tuple[str, int, str], int]  # cell, bin, rider: what they weigh there


@dataclass(frozen=True)
class Released:
    """A row as it was last released, with what is kept in-house about it."""

    row: ReleaseRow
    record: BinRecord
    members: frozenset[str]  # as stored; those who were erased are no longer among them
    persons: frozenset[str]  # who they are
    held: int = 0  # releases that repeated it after someone had left


@dataclass(frozen=True)
class Fate:
    """Of the rows released before: `carried` stay as they are; what is in neither is computed again.

    `carried` says how many releases repeat the row after someone had left, this one included.
    """

    carried: Mapping[Key, int]
    withdrawn: frozenset[Key]


@dataclass(frozen=True)
class Change:
    """How many persons left since a row was computed, and how many changed in all."""

    left: int
    in_all: int


def decide(
    before: Mapping[Key, Released],
    now: Fingerprints,
    then: Mapping[str, Fingerprints],
    policy: Policy,
) -> Fate:
    """`now` are the eligible outcomes of today, `then` those of each release in which a row was last computed."""
    live: dict[Key, set[str]] = {}
    for cell, bin_, rider in now:
        live.setdefault((cell, bin_), set()).add(rider)
    carried, withdrawn = {}, set()
    for key, released in before.items():
        here = live.get(key, set())
        change = changes(key, released, here, now, then[released.record.computed_in])
        enough = may_change(change.in_all, policy)
        if is_withdrawn(len(here), policy):
            withdrawn.add(key)
        elif is_held(change, policy):
            if may_repeat(released.held, policy):
                carried[key] = released.held + 1
            elif not enough:
                withdrawn.add(key)
        elif not enough:
            carried[key] = 0
    return Fate(carried, frozenset(withdrawn))


def is_held(change: Change, policy: Policy) -> bool:
    """Whether some left, and fewer than may show: what others did does not matter."""
    return 0 < change.left < policy.changed_riders


def may_repeat(held: int, policy: Policy) -> bool:
    """Whether a row that this many releases repeated after someone had left may be repeated once more."""
    return held < policy.held_releases


def is_withdrawn(live_riders: int, policy: Policy) -> bool:
    return live_riders < policy.k


def may_change(changed: int, policy: Policy) -> bool:
    """Whether enough riders changed for the row to be computed again."""
    return changed >= policy.changed_riders


def changes(key: Key, released: Released, live: set[str], now: Fingerprints, then: Fingerprints) -> Change:
    """Who joined, left, or weighs other outcomes since the row was computed."""
    stayed = released.persons & live
    left = released.record.riders - len(stayed)
    altered = sum(now[*key, rider] != then.get((*key, rider)) for rider in stayed)
    return Change(left, left + len(live - released.persons) + altered)


def fingerprints(placed: Placed | None, policy: Policy) -> Fingerprints:
    """A number for what each rider weighs in the fit in each (cell, bin): other weighted outcomes, another number."""
    if placed is None:
        return {}
    outcomes, riders = placed.outcomes, len(placed.outcomes.riders)
    number = mixed(mixed_metric(outcomes.metric) + mixed(outcomes.outcome.astype(np.uint64)))
    number *= (weights(placed, policy) * WEIGHT_STEPS).astype(np.uint64)
    keys = placed.pair * riders + outcomes.rider
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    sums = np.add.reduceat(number[order], starts) if keys.size else np.zeros(0, np.uint64)
    found: Fingerprints = {}
    for key, value in zip(distinct.tolist(), sums.tolist(), strict=True):
        pair, rider = divmod(key, riders)
        cell, bin_ = divmod(pair, placed.bins.number)
        found[placed.cells[cell], bin_, outcomes.riders[rider]] = value
    return found
