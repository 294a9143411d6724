"""Step 1: which outcomes may enter a release at all.

The union of all cohorts fitted for an activity and dimension, where an identical line counts as often as in the cohort
that has it most; observed before the cut-off; of riders who did not opt out and who are somebody. An outcome without a
time counts only where a fit of its cohort declared until when it was observed.

Riders are persons (`persons.py`): an ID, its tokens and their spellings are one. A union in which the same outings
recur under other IDs, which the store cannot know to be the same people, is refused as a whole: `refuse_doubles`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isuit.domain import NO_TIME, FloatArray, IntArray
from isuit.errors import PolicyRefusal
from isuit.release.identities import is_placeholder
from isuit.release.persons import Persons, doubled
from isuit.spelling import fold
from isuit.store.cohorts import cohort_metrics, metric_columns
from isuit.store.fits import StoredFit, fit_records
from isuit.store.query import arrow

GLOBAL = "global"  # the one cell of cohorts without sites
NOWHERE = -1  # an outcome without a place, in a cohort that has places
_NOBODY = -1  # the code of a placeholder or of someone who opted out; their rows are left out


@dataclass(frozen=True)
class Topic:
    """What a curve is about: one series of curves is released for each."""

    activity: str
    dimension: str
    metrics: tuple[str, ...] = ()  # of several, their names, which make up the dimension

    @classmethod
    def of_several(cls, activity: str, metrics: tuple[str, ...]) -> Topic:
        """Whatever a fit calls its dimension: the same metrics of one activity are one topic."""
        return cls(activity, " + ".join(metrics), metrics)

    def __str__(self) -> str:
        return f"{self.activity}, {self.dimension}"


@dataclass(frozen=True)
class Outcomes:
    """Distinct lines of eligible outcomes, as columns. Riders are persons, under whatever names."""

    riders: tuple[str, ...]  # one folded name for each person, sorted
    spellings: tuple[tuple[str, ...], ...]  # all names of each person, as stored
    rider: IntArray
    place: IntArray  # code into `places`, or NOWHERE
    places: tuple[str | None, ...]  # sites; None is the cohort without sites
    metric: FloatArray  # of several metrics, lines x metrics
    outcome: IntArray
    times: IntArray  # how often the line counts

    def of_rows(self, chosen: NDArray[np.bool_] | IntArray) -> Outcomes:
        """Some of the lines; riders without a line are no longer there."""
        rider = self.rider[chosen]
        present, code = np.unique(rider, return_inverse=True)
        return Outcomes(
            tuple(self.riders[r] for r in present.tolist()),
            tuple(self.spellings[r] for r in present.tolist()),
            code.astype(np.int64),
            self.place[chosen],
            self.places,
            self.metric[chosen],
            self.outcome[chosen],
            self.times[chosen],
        )


@dataclass(frozen=True)
class Eligible:
    """The eligible outcomes, and what an operator is told about those that are not."""

    outcomes: Outcomes
    fit: StoredFit  # the newest: its expert curve and exposure are the release's
    too_recent: int  # lines
    untimed: int  # lines of cohorts that never said until when they were observed
    placeholders: int
    opted_out: int


def topics(connection: duckdb.DuckDBPyConnection, as_of: datetime | None = None) -> dict[Topic, list[StoredFit]]:
    """The fits of every activity and dimension, oldest first; spellings that fold alike are one, named as at first."""
    found: dict[Topic, list[StoredFit]] = {}
    named: dict[Topic, Topic] = {}
    for fit in fit_records(connection):
        # A fit whose discrimination changes has no public form: a release tells one, and difficulties that go with it.
        if not fit.varies and (as_of is None or fit.recorded_at <= as_of):
            topic = Topic(fit.activity, fit.dimension)
            if fit.several_metrics:
                topic = Topic.of_several(fit.activity, cohort_metrics(connection, fit.cohort_hash))
            found.setdefault(named.setdefault(folded(topic), topic), []).append(fit)
    return dict(sorted(found.items(), key=lambda item: (item[0].activity, item[0].dimension)))


def folded(topic: Topic) -> Topic:
    return Topic(fold(topic.activity), fold(topic.dimension), topic.metrics)


def columns_of(connection: duckdb.DuckDBPyConnection, fits: list[StoredFit]) -> list[str]:
    """The columns of the store that hold the metrics of a topic's fits, which all have the same."""
    return metric_columns(len(cohort_metrics(connection, fits[0].cohort_hash)))


def metrics_in(table: pa.Table, columns: list[str]) -> FloatArray:
    """The metric of each line, or a row of several."""
    found = [np.asarray(table.column(name).to_numpy(), np.float64) + 0.0 for name in columns]
    return found[0] if len(found) == 1 else np.column_stack(found)


def refuse_doubles(connection: duckdb.DuckDBPyConnection, fits: list[StoredFit], persons: Persons) -> None:
    """Refuse cohorts that hold the same people under several IDs: they would be two of the k that a cell needs.

    Whatever the age of the outcomes: a cohort that is too young today is not in half a year.
    """
    cohorts = list(dict.fromkeys(fit.cohort_hash for fit in fits))
    metrics = columns_of(connection, fits)
    query = f"""
        SELECT DISTINCT rider, epoch_us(observed_at) AS at, {", ".join(metrics)},
            outcome::BIGINT AS outcome
        FROM all_outcomes WHERE list_contains(?, cohort_hash)
    """
    table = arrow(connection, query, [cohorts])
    encoded = table.column("rider").combine_chunks().dictionary_encode()
    labels = [persons.of(name) for name in encoded.dictionary.to_pylist()]
    code_of = {label: code for code, label in enumerate(sorted(set(labels)))}
    code = np.array([code_of[label] for label in labels], dtype=np.int64)
    somebody = np.array([counts_as_rider(label) for label in labels], dtype=bool)
    row_name = encoded.indices.to_numpy().astype(np.int64)
    chosen = somebody[row_name] if labels else np.zeros(0, dtype=bool)
    at, outcome = (table.column(name).fill_null(NO_TIME).to_numpy()[chosen] for name in ("at", "outcome"))
    metric = metrics_in(table, metrics)[chosen]
    twice = doubled(code[row_name][chosen] if labels else row_name, at, metric, outcome)
    if twice.is_a_copy:
        raise PolicyRefusal(
            f"{twice.persons} of {twice.among} riders of {fits[-1].activity}, {fits[-1].dimension} have the same "
            f"outings as others ({twice.outings} with equal time, metric and outcome): its cohorts hold people under "
            "several IDs, who would count twice; release from a new store in which everybody has one ID in all cohorts."
        )


def eligible(
    connection: duckdb.DuckDBPyConnection,
    fits: list[StoredFit],
    before: datetime,
    opted_out: Callable[[str], bool],
    persons: Persons,
) -> Eligible:
    """The outcomes of these fits' cohorts that may enter a release with this cut-off."""
    table = _union(connection, fits, before)
    old = table.filter(table.column("old"))
    recent = table.num_rows - old.num_rows
    untimed = int(np.count_nonzero(table.column("undeclared").to_numpy()))
    encoded = old.column("rider").combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    labels = [persons.of(name) for name in names]
    kept = np.array([counts_as_rider(label) for label in labels], dtype=bool)
    # Whoever opted out under one name is left out under all.
    left = {label for name, label in zip(names, labels, strict=True) if opted_out(name)}
    gone = np.array([label in left for label in labels], dtype=bool)
    riders = sorted({label for label, good in zip(labels, kept & ~gone, strict=True) if good})
    code_of = {rider: code for code, rider in enumerate(riders)}
    spellings: list[list[str]] = [[] for _ in riders]
    for name, label, good in zip(names, labels, kept & ~gone, strict=True):
        if good:
            spellings[code_of[label]].append(name)
    code = np.array([code_of.get(label, _NOBODY) for label in labels], dtype=np.int64)
    row_name = encoded.indices.to_numpy().astype(np.int64)
    rows = (kept & ~gone)[row_name] if names else np.zeros(0, dtype=bool)
    place, places = _places(old)
    metrics = columns_of(connection, fits)
    lines = _merged(old, code[row_name], place, rows, metrics)
    outcomes = Outcomes(
        tuple(riders),
        tuple(tuple(sorted(found)) for found in spellings),
        lines["rider"].to_numpy(),
        lines["place"].to_numpy(),
        places,
        metrics_in(lines, metrics),
        lines["outcome"].to_numpy().astype(np.int64),
        lines["times_max"].to_numpy().astype(np.int64),
    )
    return Eligible(
        outcomes,
        fits[-1],
        too_recent=recent - untimed,
        untimed=untimed,
        placeholders=int(np.count_nonzero(~kept[row_name])),
        opted_out=int(np.count_nonzero(gone[row_name])),
    )


def _merged(table: pa.Table, rider: IntArray, place: IntArray, rows: NDArray[np.bool_], metrics: list[str]) -> pa.Table:
    """The lines of persons: the same line under two names of one is one."""
    columns = {"rider": rider[rows], "place": place[rows]}
    chosen = table.filter(pa.array(rows)).select(["observed_at", *metrics, "outcome", "times"])
    keys = ["rider", "place", "observed_at", *metrics, "outcome"]
    lines = pa.table({**columns, **{name: chosen.column(name) for name in chosen.column_names}})
    return lines.group_by(keys).aggregate([("times", "max")]).sort_by([(key, "ascending") for key in keys])


def counts_as_rider(folded: str) -> bool:
    """Placeholders are nobody: their lines are left out, and they never count."""
    return not is_placeholder(folded)


def _union(connection: duckdb.DuckDBPyConnection, fits: list[StoredFit], before: datetime) -> pa.Table:
    """Distinct lines over the cohorts, in an order that follows from their values."""
    until: dict[str, date | None] = {}
    for fit in fits:
        declared = fit.json("configuration").get("observed_until")
        latest = until.setdefault(fit.cohort_hash, None)
        if declared is not None:
            day = date.fromisoformat(declared)
            until[fit.cohort_hash] = day if latest is None else max(latest, day)
    cohorts = {
        "cohort_hash": pa.array(list(until), pa.string()),
        "declared": pa.array(list(until.values()), pa.date32()),
    }
    metrics = ", ".join(columns_of(connection, fits))
    connection.register("chosen", pa.table(cohorts))
    try:
        # A line is old enough if it is in any cohort; an outcome without a time goes by its cohort's declaration.
        query = f"""
            WITH counted AS (
                SELECT o.cohort_hash, rider, site, sites > 0 AND site IS NULL AS nowhere, observed_at, {metrics},
                    outcome, declared, count(*) AS times
                FROM all_outcomes o JOIN chosen USING (cohort_hash) JOIN ledger.cohorts USING (cohort_hash)
                GROUP BY ALL
            )
            SELECT rider, site, nowhere, observed_at, {metrics}, outcome, max(times) AS times,
                coalesce(bool_or(CASE WHEN observed_at IS NULL THEN declared < ?::DATE ELSE observed_at < ? END), false)
                    AS old,
                observed_at IS NULL AND max(declared) IS NULL AS undeclared
            FROM counted GROUP BY rider, site, nowhere, observed_at, {metrics}, outcome
            ORDER BY rider, site NULLS FIRST, observed_at NULLS FIRST, {metrics}, outcome, nowhere
        """
        return arrow(connection, query, [before.date(), before])
    finally:
        connection.unregister("chosen")


def _places(table: pa.Table) -> tuple[IntArray, tuple[str | None, ...]]:
    encoded = table.column("site").combine_chunks().dictionary_encode(null_encoding="encode")
    found = encoded.dictionary.to_pylist()
    places = sorted(found, key=lambda site: (site is None, site or ""))
    order = np.array([places.index(site) for site in found], dtype=np.int64)
    code = order[encoded.indices.to_numpy()] if found else np.zeros(0, np.int64)
    return np.where(table.column("nowhere").to_numpy(), NOWHERE, code), tuple(places)
