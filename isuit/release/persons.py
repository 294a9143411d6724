"""Who is one person, and whether a union of cohorts holds the same people twice.

A person is everything that the store knows to be one: the spellings of an ID that fold alike, the tokens that
`isuit pseudonymise` gave for it, and the spellings of those. Wherever a release counts, caps, leaves out or compares
riders, it does so by person; erasure and storage go by the exact ID, so nothing here is stored.

What the store cannot know is a copy under IDs that were made elsewhere. It shows in the outings: `doubled`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.columns import mixed
from isuit.domain import FloatArray, IntArray
from isuit.release.identities import is_placeholder
from isuit.spelling import fold

# Evidence of one person under two IDs: this many outings with equal time, metric and outcome, which are this share of
# those of one of the two. An outing that more persons share is one of a group, at the hourly metric of a weather model.
SAME_OUTINGS, SAME_SHARE, GROUP = 5, 0.8, 4
# Two friends may do everything together. Beyond so many persons, and so large a share of all, it is a copy.
FRIENDS, FRIENDS_SHARE = 3, 0.01


class Persons:
    """Names to persons, from the store's pairs of ID and token."""

    def __init__(self, pseudonyms: Iterable[tuple[str, str]] = ()) -> None:
        groups: dict[str, set[str]] = {}
        for rider, token in pseudonyms:
            one, other = ({name} | groups.get(name, set()) for name in (fold(rider), fold(token)))
            together = one | other
            for name in together:
                groups[name] = together
        # A placeholder first: the token of `unknown` is nobody either.
        self._label = {
            name: min(group, key=lambda one: (not is_placeholder(one), one)) for name, group in groups.items()
        }

    def of(self, name: str) -> str:
        """The person behind a name: one of their folded names, the same for all of them."""
        folded = fold(name)
        return self._label.get(folded, folded)


@dataclass(frozen=True)
class Doubled:
    """Persons whose outings recur under another's name, and how many outings recur."""

    persons: int
    outings: int
    among: int

    @property
    def is_a_copy(self) -> bool:
        return self.persons > max(FRIENDS, FRIENDS_SHARE * self.among)


def mixed_metric(metric: FloatArray) -> NDArray[np.uint64]:
    """A number for the metric of each line, or for its row of several."""
    first, *further = (metric if metric.ndim == 2 else metric[:, None]).T
    found = mixed((first + 0.0).view(np.uint64))
    for column in further:
        found = mixed(found + mixed((column + 0.0).view(np.uint64)))
    return found


def doubled(person: IntArray, observed_at: IntArray, metric: FloatArray, outcome: IntArray) -> Doubled:
    """Who stands among these lines twice. Times are numbers, one of them for all lines without a time."""
    bits = mixed_metric(metric) + np.uint64(3) * mixed(observed_at.astype(np.uint64))
    line = mixed(bits + mixed(outcome.astype(np.uint64)))
    order = np.lexsort((person, line))
    person, line = person[order], line[order]
    fresh = np.append(True, (person[1:] != person[:-1]) | (line[1:] != line[:-1]))[: person.size]
    person, line = person[fresh], line[fresh]
    persons = int(person.max(initial=-1)) + 1
    outings = np.bincount(person, minlength=persons)
    _, group, size = np.unique(line, return_inverse=True, return_counts=True)
    few = size[group] <= GROUP
    pairs = [np.zeros(0, np.int64)]
    for apart in range(1, GROUP):
        both = (line[apart:] == line[:-apart]) & few[apart:]
        pairs.append(person[:-apart][both] * persons + person[apart:][both])
    pair, shared = np.unique(np.concatenate(pairs), return_counts=True)
    first, second = pair // max(persons, 1), pair % max(persons, 1)
    same = (shared >= SAME_OUTINGS) & (shared >= SAME_SHARE * np.minimum(outings[first], outings[second]))
    found = np.union1d(first[same], second[same])
    return Doubled(found.size, int(shared[same].sum()), int(np.count_nonzero(outings)))
