"""Which tables hold persons, and how a person is found in each.

The list comes from the catalogue, not from a constant: a table that a later version adds to `personal` with a `rider`
column is covered without a change here, and one that cannot be searched for a rider makes erasure refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from isuit.errors import NotFound, StoreError
from isuit.store.parts import VIEWS
from isuit.store.query import rows

# Tables of `personal` whose riders stand elsewhere than in a column `rider`, or not only there.
RIDER_COLUMNS = {"personal.pseudonyms": ("rider", "token")}
# Holds keyed digests of those who are gone: searched by digest, never deleted from by an erasure.
DIGESTS = "personal.suppressed"


@dataclass(frozen=True)
class PersonalTable:
    """A table of `personal` and the columns that name a rider."""

    name: str
    rider_columns: tuple[str, ...]

    @property
    def source(self) -> str:
        """Where to read all its rows: the table, or table and parts together."""
        return VIEWS.get(self.name, self.name)

    @property
    def about(self) -> str:
        """The condition for a row about one of the persons in `persons` (see `searching`)."""
        return " OR ".join(f"{column} IN (SELECT name FROM persons)" for column in self.rider_columns)


def personal_tables(connection: duckdb.DuckDBPyConnection) -> list[PersonalTable]:
    """Every table with rows about riders; refuses when the catalogue has one that cannot be searched."""
    columns: dict[str, list[str]] = {}
    for table, column in rows(
        connection,
        "SELECT table_schema || '.' || table_name, column_name FROM information_schema.columns JOIN "
        "information_schema.tables USING (table_catalog, table_schema, table_name) "
        "WHERE table_catalog = current_database() AND table_type = 'BASE TABLE' ORDER BY 1, ordinal_position",
    ):
        columns.setdefault(table, []).append(column)
    found = []
    for table, names in sorted(columns.items()):
        personal = table.startswith("personal.")
        if table == DIGESTS:
            continue
        if personal != ("rider" in names):
            raise StoreError(
                f"the table {table} {'has no column rider' if personal else 'names riders outside personal'}: this "
                "version cannot tell whose its rows are, and erases nothing; install the version that wrote it."
            )
        if personal:
            found.append(PersonalTable(table, RIDER_COLUMNS.get(table, ("rider",))))
    return found


FEW_NAMES = 1_000  # that a variable holds; more are registered as a table


@contextmanager
def searching(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> Iterator[None]:
    """Makes the names visible to SQL as `persons`, from memory: no table of the store ever holds them."""
    listed = sorted(names)
    if len(listed) > FEW_NAMES:
        connection.register("persons", pa.table({"name": pa.array(listed, pa.string())}))
        try:
            yield
        finally:
            connection.unregister("persons")
        return
    # An Arrow table of texts would import pandas where there is one: 0.3 s of an erasure that takes one.
    connection.execute("SET VARIABLE persons = ?", [listed])
    connection.execute(
        "CREATE OR REPLACE TEMP VIEW persons AS SELECT unnest(getvariable('persons')::VARCHAR[]) AS name"
    )
    try:
        yield
    finally:
        with suppress(duckdb.Error):  # in a transaction that failed nothing runs; the connection is closed then
            connection.execute("DROP VIEW IF EXISTS temp.persons")
            connection.execute("RESET VARIABLE persons")


def resolve(
    connection: duckdb.DuckDBPyConnection, riders: Iterable[str], tables: Iterable[PersonalTable]
) -> list[frozenset[str]]:
    """For each rider, every name the store has for them: the ID and its token, whichever of the two was given.

    Runs inside `searching` for the riders. Raises `NotFound`, by position and not by name, when the store holds nothing
    about one of them.
    """
    given = list(dict.fromkeys(riders))
    paired: dict[str, set[str]] = {}
    for rider, token in rows(
        connection,
        "SELECT rider, token FROM personal.pseudonyms WHERE rider IN (SELECT name FROM persons) "
        "OR token IN (SELECT name FROM persons)",
    ):
        paired.setdefault(rider, set()).add(token)
        paired.setdefault(token, set()).add(rider)
    known: set[str] = set()
    for table in tables:
        for column in table.rider_columns:
            query = f"SELECT name FROM persons SEMI JOIN {table.source} found ON persons.name = found.{column}"
            known.update(name for (name,) in rows(connection, query))
    unknown = [position for position, rider in enumerate(given, start=1) if rider not in known]
    if unknown:
        which = "" if len(given) == 1 else f" (number {', '.join(map(str, unknown[:10]))} of those given)"
        raise NotFound(
            f"the store holds nothing about {'this rider' if len(given) == 1 else f'{len(unknown)} of these riders'}"
            f"{which}, and nothing was changed; an ID must be given exactly as the cohort spells it."
        )
    return [frozenset({rider} | paired.get(rider, set())) for rider in given]


def is_text(rider: str) -> bool:
    """Whether the argument is Unicode at all; bytes of a terminal that are not are no rider of any cohort."""
    try:
        rider.encode()
    except UnicodeEncodeError:
        return False
    return True
