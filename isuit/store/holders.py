"""Under which names the rows of a cohort are stored, so that rows which several cohorts share are stored once.

A cohort has its rows under its own hash, unless `ledger.holders` lists names for it: then its rows are those of all
these names together. The union of a series is listed under the hashes of its parts and has no rows itself. Rows that
come back after an erasure are stored under a name of their own, which only the cohort they came back to lists.

Rows under a name never become more: they are written in one transaction, and an erasure takes a person's away from
every name at once. So what a cohort lists stays what the cohort is, less whoever was erased, and nothing that happens
to another cohort of the same names can change it.

The view `held_outcomes` has every stored row once, with the name that holds it; `all_outcomes` has the rows of every
cohort (`isuit.store.parts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from isuit.store.migrations import SHARED_ROWS, applied
from isuit.store.query import first, rows

HELD = "held_outcomes"
TABLE = "ledger.holders"
RETURNED = "+"  # in the name of rows that came back; no hash has it
# What is listed for a cohort, and everything else under its own name.
OF_COHORTS = f"""
    SELECT * FROM {HELD}
    WHERE cohort_hash NOT IN (SELECT cohort_hash FROM {TABLE}) AND NOT contains(cohort_hash, '{RETURNED}')
    UNION ALL BY NAME SELECT listed.cohort_hash, held.* EXCLUDE (cohort_hash)
    FROM {TABLE} listed JOIN {HELD} held ON held.cohort_hash = listed.holder
"""


@dataclass(frozen=True)
class Shared:
    """Names whose rows may be those of a cohort that is about to be registered, and how many rows they had."""

    names: tuple[str, ...]
    outcomes: int


def holders(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The names that are listed, by cohort; none in a database from before rows were shared."""
    listed: dict[str, list[str]] = {}
    if not _sharing(connection):
        return listed
    query = f"SELECT cohort_hash, holder FROM {TABLE} ORDER BY cohort_hash, position"
    for cohort_hash, holder in rows(connection, query):
        listed.setdefault(cohort_hash, []).append(holder)
    return listed


def holders_of(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> list[str]:
    """The names that hold a cohort's rows."""
    if not _sharing(connection):
        return [cohort_hash]
    query = f"SELECT holder FROM {TABLE} WHERE cohort_hash = ? ORDER BY position"
    return [name for (name,) in rows(connection, query, [cohort_hash])] or [cohort_hash]


def _sharing(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there is a list of names at all. To ask for it and fail would abort the caller's transaction."""
    return SHARED_ROWS in applied(connection)


def of_cohorts(connection: duckdb.DuckDBPyConnection) -> str:
    """What `all_outcomes` is, as SQL: where nothing is listed, the rows as they are stored."""
    anything = _sharing(connection) and first(connection, f"SELECT 1 FROM {TABLE} LIMIT 1")
    return OF_COHORTS if anything else f"SELECT * FROM {HELD}"


def among(names: Sequence[str]) -> str:
    """The condition for a row of `held_outcomes` under one of the names, which are its arguments."""
    return f"cohort_hash IN ({', '.join('?' * len(names))})"


def shared_by(connection: duckdb.DuckDBPyConnection, cohorts: Sequence[str]) -> Shared | None:
    """The rows of some cohorts together, as they are now; None where two of them share rows: they would count twice."""
    names = [name for cohort_hash in cohorts for name in holders_of(connection, cohort_hash)]
    if len(set(names)) < len(names):
        return None
    return Shared(tuple(names), _count(connection, names))


def still_hold(connection: duckdb.DuckDBPyConnection, shared: Shared | None, outcomes: int) -> bool:
    """Whether the names hold exactly the rows of a cohort that was chosen from them and has so many outcomes.

    Chosen from so many and as many as those, it was all of them; and since rows under a name never become more, as many
    now as then are the same ones.
    """
    return shared is not None and shared.outcomes == outcomes == _count(connection, shared.names)


def _count(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> int:
    row = first(connection, f"SELECT count(*) FROM {HELD} WHERE {among(names)}", names)
    return int(row[0]) if row else 0


def list_holders(connection: duckdb.DuckDBPyConnection, cohort_hash: str, names: Sequence[str]) -> None:
    """A cohort that has no rows itself."""
    entries = [[cohort_hash, position, name] for position, name in enumerate(names)]
    connection.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", entries)


def further_holder(connection: duckdb.DuckDBPyConnection, cohort_hash: str) -> str:
    """List one more name for a cohort, for rows that come back to it; the name."""
    before = holders_of(connection, cohort_hash)
    if before == [cohort_hash]:
        list_holders(connection, cohort_hash, before)
    name = f"{cohort_hash}{RETURNED}{len(before)}"
    connection.execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", [cohort_hash, len(before), name])
    return name
