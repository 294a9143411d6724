"""What is one series: an outing is released once, under one name, in one form, from one store.

Two curves of the same people, held against each other, tell what neither tells alone. So

names      topics whose names differ in spelling alone are one topic (`eligibility.topics`)
outings    a topic that holds the outings of an earlier one is not released beside it: a renamed dimension, a subset
beginning  a topic that shares days with a released one (another metric of the same outings) does not begin while that
           one repeats rows of somebody who left: rows with a person beside rows without
form       a topic is released by cell or as one `global` curve, as its first release was: a total beside its parts
           gives the parts that are withheld
store      two stores that hold a cohort are two series of it (`shared_with`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from isuit.columns import mixed
from isuit.domain import NO_TIME, IntArray
from isuit.release.eligibility import (
    GLOBAL,
    NOWHERE,
    Outcomes,
    Topic,
    columns_of,
    counts_as_rider,
    metrics_in,
)
from isuit.release.persons import FRIENDS, FRIENDS_SHARE, SAME_OUTINGS, Persons, mixed_metric
from isuit.store.fits import StoredFit
from isuit.store.query import arrow, rows

# A person's outings in two topics are the same ones if this share of the fewer recur with equal time, metric and
# outcome. Someone who kites and windsurfs on one day in one wind shares some of them, hardly half.
SHARED_SHARE = 0.5


@dataclass(frozen=True)
class Lines:
    """The distinct outings of a topic: who, what happened when under which metric, and the moment alone."""

    person: IntArray
    outing: IntArray  # of time, metric and outcome
    moment: IntArray  # of time and outcome; only outings with a time

    @property
    def persons(self) -> int:
        return int(np.unique(self.person).size)


def lines_of(
    connection: duckdb.DuckDBPyConnection, topics: Mapping[Topic, list[StoredFit]], persons: Persons
) -> dict[Topic, Lines]:
    """What every topic holds, whatever its age, with one number for a person in all of them."""
    codes: dict[str, int] = {}
    found = {}
    for topic, fits in topics.items():
        metrics = columns_of(connection, fits)
        query = f"""
            SELECT DISTINCT rider, epoch_us(observed_at) AS at, {", ".join(metrics)}, outcome::BIGINT AS outcome
            FROM all_outcomes WHERE list_contains(?, cohort_hash)
        """
        table = arrow(connection, query, [list(dict.fromkeys(fit.cohort_hash for fit in fits))])
        encoded = table.column("rider").combine_chunks().dictionary_encode()
        labels = [persons.of(name) for name in encoded.dictionary.to_pylist()]
        code = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
        somebody = np.array([counts_as_rider(label) for label in labels], dtype=bool)
        name = encoded.indices.to_numpy().astype(np.int64)
        kept = somebody[name] if labels else np.zeros(0, dtype=bool)
        at = table.column("at").fill_null(NO_TIME).to_numpy()[kept]
        metric = metrics_in(table, metrics)[kept].reshape(at.size, -1)
        outcome = table.column("outcome").to_numpy()[kept]
        moment = mixed(mixed(at.astype(np.uint64)) + outcome.astype(np.uint64))
        # An outing with several metrics is one with each of them: beside a release of one of them it is the same one.
        found[topic] = Lines(
            np.tile(code[name][kept] if labels else name, len(metrics)),
            np.concatenate([mixed(moment + mixed_metric(column)).view(np.int64) for column in metric.T]),
            np.tile(np.where(at == NO_TIME, np.int64(0), moment.view(np.int64)), len(metrics)),
        )
    return found


def shared_persons(mine: Lines, theirs: Lines) -> int:
    """How many persons have the same outings in both."""
    return _shared(mine.person, mine.outing, theirs.person, theirs.outing)


def shared_days(mine: Lines, theirs: Lines) -> int:
    """How many persons were out at the same moments with the same outcome in both, whatever the metric."""
    timed, also = mine.moment != 0, theirs.moment != 0
    return _shared(mine.person[timed], mine.moment[timed], theirs.person[also], theirs.moment[also])


def _shared(person: IntArray, what: IntArray, other_person: IntArray, other_what: IntArray) -> int:
    mine = np.unique(np.stack([person, what], axis=1), axis=0)
    theirs = np.unique(np.stack([other_person, other_what], axis=1), axis=0)
    both = np.concatenate([mine, theirs])
    _, first, count = np.unique(both, axis=0, return_index=True, return_counts=True)
    together = both[first[count > 1], 0]
    size = int(max(person.max(initial=-1), other_person.max(initial=-1))) + 1
    number = np.bincount(together, minlength=size)
    fewer = np.minimum(np.bincount(mine[:, 0], minlength=size), np.bincount(theirs[:, 0], minlength=size))
    return int(np.count_nonzero((number >= SAME_OUTINGS) & (number >= SHARED_SHARE * fewer)))


def are_the_same(shared: int, mine: Lines, theirs: Lines) -> bool:
    """Whether so many persons with the same outings are more than chance and friends."""
    return shared > max(FRIENDS, FRIENDS_SHARE * min(mine.persons, theirs.persons))


def left_out(
    lines: Mapping[Topic, Lines], first_fit: Mapping[Topic, object], released: Iterable[Topic], departed: set[Topic]
) -> dict[Topic, str]:
    """The topics that this release leaves out, each with the reason.

    Of two topics with the same outings the one that was released first stays, then the one that was fitted first.
    `departed` are the topics some of whose released rows still hold somebody who was erased.
    """
    before = set(released)
    order = sorted(lines, key=lambda topic: (topic not in before, first_fit[topic]))
    found: dict[Topic, str] = {}
    for place, topic in enumerate(order):
        for earlier in order[:place]:
            if earlier in found:
                continue
            name = str(earlier)
            same = shared_persons(lines[topic], lines[earlier])
            if are_the_same(same, lines[topic], lines[earlier]):
                found[topic] = (
                    f"{same} riders have the same outings in {name}, which is released: two curves of the same outings "
                    "tell of the people in them; fit them under one activity and dimension"
                )
                break
            if topic in before or earlier not in departed:
                continue
            days = shared_days(lines[topic], lines[earlier])
            if are_the_same(days, lines[topic], lines[earlier]):
                found[topic] = (
                    f"{days} riders have the same days in {name}, some of whose rows still hold somebody who left: "
                    "curves without them beside curves with them would show who; it can begin once those rows changed"
                )
                break
    return found


def by_cell(outcomes: Outcomes, released_as: Iterable[str]) -> bool:
    """Whether a topic is released by cell: as it was released before, or by cell where any outcome has a site."""
    cells = set(released_as)
    if cells:
        return cells != {GLOBAL}
    return any(outcomes.places[place] is not None for place in np.unique(outcomes.place).tolist() if place != NOWHERE)


def in_one_form(outcomes: Outcomes, cells: bool) -> Outcomes:
    """Outcomes with sites alone; or, where the topic is one `global` curve, all of them without their sites."""
    if cells:
        sited = np.array([site is not None for site in outcomes.places] + [True])  # NOWHERE, which is -1, stays
        return outcomes if sited[outcomes.place].all() else outcomes.of_rows(sited[outcomes.place])
    if set(outcomes.places) <= {None}:
        return outcomes
    return replace(outcomes, place=np.where(outcomes.place == NOWHERE, NOWHERE, 0), places=(None,))


def shared_with(mine: duckdb.DuckDBPyConnection, theirs: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """How many cohorts two stores have in common, and how many releases the other one has made."""
    query = "SELECT DISTINCT cohort_hash FROM ledger.fits"
    here, there = ({value for (value,) in rows(connection, query)} for connection in (mine, theirs))
    (made,) = rows(theirs, "SELECT count(*) FROM ledger.releases")[0]
    return len(here & there), int(made)
