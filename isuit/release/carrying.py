"""What becomes of a released row in the next release: carried forward, computed again, or withdrawn.

Two releases around one departure would tell whether the person who left was good. So a (cell, bin) is computed again
only when enough riders changed in it since it was last computed: joined, left, or have other outcomes. Until then its
row is carried forward as it is. Below k live riders it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isuit.columns import mixed
from isuit.published import ReleaseRow
from isuit.release.policy import Policy
from isuit.release.screening import Placed
from isuit.store.releases import BinRecord

Key = tuple[str, int]  # cell and bin
Fingerprints = dict[tuple[str, int, str], int]  # cell, bin, rider: what their outcomes there are


@dataclass(frozen=True)
class Released:
    """A row as it was last released, with what is kept in-house about it."""

    row: ReleaseRow
    record: BinRecord
    members: frozenset[str]  # as stored; those who were erased are no longer among them
    persons: frozenset[str]  # who they are


@dataclass(frozen=True)
class Fate:
    """Of the rows released before: `carried` stay as they are; what is in neither set is computed again."""

    carried: frozenset[Key]
    withdrawn: frozenset[Key]


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
    carried, withdrawn = set(), set()
    for key, released in before.items():
        here = live.get(key, set())
        if is_withdrawn(len(here), policy):
            withdrawn.add(key)
        elif not may_change(changed_riders(key, released, here, now, then[released.record.computed_in]), policy):
            carried.add(key)
    return Fate(frozenset(carried), frozenset(withdrawn))


def is_withdrawn(live_riders: int, policy: Policy) -> bool:
    return live_riders < policy.k


def may_change(changed: int, policy: Policy) -> bool:
    """Whether enough riders changed for the row to be computed again."""
    return changed >= policy.changed_riders


def changed_riders(key: Key, released: Released, live: set[str], now: Fingerprints, then: Fingerprints) -> int:
    """How many riders joined, left, or have other outcomes since the row was computed."""
    stayed = released.persons & live
    left = released.record.riders - len(stayed)
    altered = sum(now[*key, rider] != then.get((*key, rider)) for rider in stayed)
    return left + len(live - released.persons) + altered


def fingerprints(placed: Placed | None) -> Fingerprints:
    """A number for each rider's outcomes in each (cell, bin): another set of outcomes has another number."""
    if placed is None:
        return {}
    outcomes, riders = placed.outcomes, len(placed.outcomes.riders)
    number = mixed(mixed((outcomes.metric + 0.0).view(np.uint64)) + mixed(outcomes.outcome.astype(np.uint64)))
    number *= outcomes.times.astype(np.uint64)
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
