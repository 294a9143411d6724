"""Whether an ID stands anywhere but in the rows that an erasure removes.

Every text, JSON and blob column of the store is searched for the ID as a whole value. Sites, activities and dimensions
are the operator's words, and kinds, versions and the like the program's: a rider may happen to be called `wind`, `10`
or `latent`, and that must not make them unerasable. Such a place is counted or passed over; any other one blocks, since
it means that a person was written down where no person belongs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from isuit.governance.personal import PersonalTable
from isuit.store.query import rows

LABELS = frozenset({"site", "sites", "activity", "dimension"})  # names of columns, and keys inside JSON
# Columns with words and digests that the program chooses.
PROGRAM_COLUMNS = frozenset(
    f"{table}.{column}"
    for table, columns in {
        "ledger.migrations": ["name"],
        "ledger.store": ["store_id", "tool_version", "key_digest"],
        "ledger.log": ["kind", "previous", "head"],
        "ledger.cohorts": ["cohort_hash", "commitment"],
        "ledger.fits": ["fit_id", "cohort_hash", "estimator_version", "kind", "commitment", "result_digest"],
        "ledger.leaves": ["subject", "leaf"],
        "ledger.receipts": ["receipt_id"],
        "ledger.pending": ["work", "subject"],
        "ledger.releases": ["release_id", "digest"],
        "ledger.release_rows": ["release_id"],
        "atlas.difficulty": ["fit_id"],
        "personal.outcomes": ["cohort_hash"],
        "personal.skills": ["fit_id"],
        "personal.commitments": ["subject", "leaf"],
        "personal.release_members": ["release_id", "cell"],
        "personal.suppressed": ["digest"],
    }.items()
    for column in columns
)
# JSON of public releases: what the disclosure policy lets out names nobody.
PUBLIC_DOCUMENTS = frozenset({"ledger.releases.policy", "ledger.releases.metadata", "ledger.release_rows.line"})
# Keys inside other JSON whose strings the program chooses. A digest needs no entry: no ID equals one by chance.
PROGRAM_KEYS = frozenset(
    {
        *("kind", "format", "tool_version", "duckdb_version", "estimator_version"),
        *("gate", "reading", "exposure", "split", "observed_until"),
    }
)


@dataclass(frozen=True)
class Elsewhere:
    """Where the names were found: `same_names` counts labels by place, `blocking` lists places that hold a person."""

    same_names: dict[str, int]
    blocking: list[str]


def search_elsewhere(
    connection: duckdb.DuckDBPyConnection, tables: list[PersonalTable], names: frozenset[str]
) -> Elsewhere:
    """Search every column that can hold text, except in the persons' own rows; runs inside `personal.searching`."""
    own = {table.name: f"WHERE NOT ({table.about})" for table in tables}
    labels: Counter[str] = Counter()
    blocking: set[str] = set()
    for table, column, kind in rows(
        connection,
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal ORDER BY ALL",
    ):
        place = f"{table}.{column}"
        if kind == "BLOB":
            value = f'encode(persons.name) = held."{column}"'
        elif kind in ("VARCHAR", "JSON"):
            value = f'persons.name = held."{column}"'
        elif any(text in kind for text in ("VARCHAR", "JSON", "BLOB", "ENUM")):  # lists, structs, maps
            value = f'contains(held."{column}"::VARCHAR, persons.name)'
        else:
            continue
        [(found,)] = rows(connection, f"SELECT count(*) FROM {table} held JOIN persons ON {value} {own.get(table, '')}")
        if found and column in LABELS:
            labels[place] += found
        elif found and place not in PROGRAM_COLUMNS:
            blocking.add(place)
        document = kind in ("VARCHAR", "JSON") and table not in own
        if document and place not in PUBLIC_DOCUMENTS and column not in LABELS:
            for key in _inside_json(connection, table, column, names):
                if key in LABELS:
                    labels[f"{place}:{key}"] += 1
                elif key not in PROGRAM_KEYS:
                    blocking.add(f"{place}:{key}")
    return Elsewhere(dict(labels), sorted(blocking))


def _inside_json(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, names: frozenset[str]
) -> Iterator[str]:
    """The keys under which JSON documents hold one of the names as a string."""
    # `to_json` would need an extension on some builds; the two ways of writing a string in JSON do not.
    quoted = sorted({json.dumps(name, ensure_ascii=ascii_only) for name in names for ascii_only in (True, False)})
    documents = rows(
        connection,
        f'SELECT DISTINCT "{column}" FROM {table} JOIN (SELECT unnest(?::VARCHAR[]) AS quoted) '
        f"ON contains(\"{column}\"::VARCHAR, quoted) WHERE left(\"{column}\"::VARCHAR, 1) IN ('{{', '[')",
        [quoted],
    )
    for (document,) in documents:
        try:
            value = json.loads(document)
        except ValueError:
            yield "text that is no JSON"
            continue
        for key, text in _strings(value, ""):
            if text in names:
                yield key


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value with the last key above it."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, name)
