"""What the database's catalogue holds beside rows, against what the migrations make.

A column that somebody added keeps values that no digest covers, an index keeps a second copy of values, a macro can
take the place of a built-in function, a comment can name a person. So everything that a catalogue can hold is compared
with that of an empty database which took the same migrations.

Every query names `system.main`: a macro called like one of these functions must not be able to hide itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from isuit.store.migrations import MIGRATIONS, applied
from isuit.store.query import rows

# By kind: the function that lists it, the column with its name, and what else must be the same.
KINDS = {
    "schema": ("duckdb_schemas", None, "comment, tags"),
    "table": ("duckdb_tables", "table_name", "comment, tags, temporary, has_primary_key"),
    "view": ("duckdb_views", "view_name", "sql"),
    "macro": ("duckdb_functions", "function_name", "function_type"),
    "index": ("duckdb_indexes", "index_name", "table_name"),
    "sequence": ("duckdb_sequences", "sequence_name", "comment"),
    "type": ("duckdb_types", "type_name", "comment"),
    "trigger": ("duckdb_triggers", "trigger_name", "table_name"),  # from DuckDB 2.0 on
}
WITHOUT_INTERNAL = ("index", "sequence", "trigger")  # lists of what users made only
COLUMNS = (
    "SELECT schema_name, table_name, column_index, column_name, data_type, is_nullable, column_default, comment "
    "FROM system.main.duckdb_columns() WHERE database_name = $database AND NOT internal ORDER BY ALL"
)
CONSTRAINTS = (
    "SELECT schema_name, table_name, constraint_type, constraint_text, constraint_column_names "
    "FROM system.main.duckdb_constraints() WHERE database_name = $database ORDER BY ALL"
)


@dataclass(frozen=True)
class Entry:
    """Something that stands in a catalogue."""

    kind: str
    name: str  # with its schema


def strange_entries(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """What no migration that this database took has made: the name of the table or other entry, and a sentence."""
    present, expected = _catalogue(connection), _expected(frozenset(applied(connection)))
    for entry in sorted(present.keys() - expected.keys(), key=str):
        yield (
            entry.name,
            f"{entry.name} is a {entry.kind} that no version up to this one makes; nothing vouches for it",
        )
    for entry in sorted(expected.keys() - present.keys(), key=str):
        yield entry.name, f"{entry.name} is missing"
    for entry in sorted(present.keys() & expected.keys(), key=str):
        if present[entry] != expected[entry]:
            yield (
                entry.name,
                f"{entry.name} does not have the columns, constraints or comments that the migrations gave it",
            )


def tables_to_come(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Tables of migrations that this database has not taken yet: a store of an earlier version lacks them rightly."""
    here, complete = _expected(frozenset(applied(connection))), _expected(frozenset(MIGRATIONS))
    return {entry.name for entry in complete.keys() - here.keys() if entry.kind == "table"}


@cache
def _expected(taken: frozenset[str]) -> dict[Entry, Any]:
    """The catalogue of an empty database that took these migrations, in their order; unknown ones are left out."""
    empty = duckdb.connect()
    try:
        for name, step in MIGRATIONS.items():
            if name in taken:
                step(empty)
        return _catalogue(empty)
    finally:
        empty.close()


def _catalogue(connection: duckdb.DuckDBPyConnection) -> dict[Entry, Any]:
    [(database,)] = rows(connection, "SELECT system.main.current_database()")
    found: dict[Entry, Any] = {}
    for kind, (function, name, details) in KINDS.items():
        which = "" if kind in WITHOUT_INTERNAL else "AND NOT internal"
        query = (
            f"SELECT schema_name, {name or 'NULL'}, {details} FROM system.main.{function}() "
            f"WHERE database_name = $database {which}"
        )
        try:
            entries = connection.execute(query, {"database": database}).fetchall()
        except duckdb.CatalogException:  # this DuckDB knows no such thing
            continue
        for schema, inner, *more in entries:
            found[Entry(kind, schema if inner is None else f"{schema}.{inner}")] = more
    for query in (COLUMNS, CONSTRAINTS):
        for schema, table, *more in connection.execute(query, {"database": database}).fetchall():
            # A view has columns too, and is an entry that nobody expects.
            found.get(Entry("table", f"{schema}.{table}"), []).append(more)
    return found
