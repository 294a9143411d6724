"""Whether an ID stands anywhere but in the rows that an erasure removes.

Every text, JSON and blob column of the store is searched for the ID as a whole value. Sites, activities and dimensions
are the operator's words, and kinds, versions, sentences and digests the program's: a rider may be called `wind`, `10`
or `0001-tables`, and that must not make them unerasable. Such places are counted, for the receipt; any other one
blocks, since it means that a person was written down where no person belongs.

The columns that name riders are not searched: whoever else stands there is somebody else, and their ID is a name also
where it reads as JSON. A rider called `["rider-004"]` cannot keep rider-004 in the store.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from isuit.erasure.personal import PersonalTable
from isuit.store.parts import folder_of, listed
from isuit.store.query import quoted, rows

# Names of columns, and keys inside JSON, under which the operator's own words stand.
LABELS = frozenset(
    {
        "site",
        "sites",
        "incomparable_sites",
        "incomparable",
        "activity",
        "dimension",
        "metric",
        "metrics",
        "alias",
        "series",
    }
)
# Columns with words and digests that the program chooses.
PROGRAM_COLUMNS = frozenset(
    f"{table}.{column}"
    for table, columns in {
        "ledger.migrations": ["name"],
        "ledger.store": ["store_id", "tool_version", "key_digest"],
        "ledger.log": ["kind", "previous", "head"],
        "ledger.cohorts": ["cohort_hash", "commitment"],
        "ledger.metrics": ["cohort_hash"],
        "ledger.holders": ["cohort_hash", "holder"],
        "ledger.fits": [
            *("fit_id", "cohort_hash", "estimator_version", "tool_version", "kind", "commitment", "result_digest"),
        ],
        "ledger.leaves": ["subject", "leaf"],
        "ledger.parts": ["part", "holds", "subject", "digest"],
        "ledger.receipts": ["receipt_id"],
        "ledger.pending": ["work", "subject"],
        "ledger.releases": ["release_id", "digest"],
        "ledger.release_rows": ["release_id"],
        "ledger.release_bins": ["release_id", "computed_in"],
        "atlas.difficulty": ["fit_id"],
        "personal.outcomes": ["cohort_hash"],
        "personal.skills": ["fit_id", "path"],  # a path is days and numbers
        "personal.commitments": ["subject", "leaf"],
        "personal.release_members": ["release_id", "cell"],
        "personal.suppressed": ["digest"],
    }.items()
    for column in columns
)
# JSON of public releases: what the disclosure policy lets out names nobody.
PUBLIC_DOCUMENTS = frozenset(
    {
        *("ledger.releases.policy", "ledger.releases.metadata"),
        *("ledger.release_rows.line", "ledger.release_bins.curve"),
    }
)
# Keys inside other JSON under which digests stand by the names of rows or tables.
DIGEST_MAPS = frozenset({"rows_digest", "table_digest"})
# Keys inside other JSON whose strings the program chooses: words, digests, times, sentences.
PROGRAM_KEYS = DIGEST_MAPS | frozenset(
    {
        *("kind", "format", "tool_version", "duckdb_version", "estimator_version", "name", "place"),
        *("gate", "reading", "exposure", "split", "average", "observed_until", "skill", "test"),
        *("cohort_hash", "fit_id", "receipt_id", "store_id", "release_id", "release"),
        *("commitment", "digest", "result_digest", "root", "leaves", "bindings", "log_head_before", "erased_at"),
        *("shortfalls", "sentence", "rule", "limit", "estimand", "compares", "new_riders", "new_sites"),
        *("what", "why", "method", "met"),
        *("key", "rotation", "metadata_digest"),
    }
)


@dataclass(frozen=True)
class Elsewhere:
    """Where the names were found: `same_names` counts words by place, `blocking` lists places that hold a person."""

    same_names: dict[str, int]
    blocking: list[str]


def search_elsewhere(
    connection: duckdb.DuckDBPyConnection, tables: list[PersonalTable], names: frozenset[str]
) -> Elsewhere:
    """Search every column that can hold text, except in the persons' own rows; runs inside `personal.searching`."""
    persons = {table.name: table for table in tables}
    words: Counter[str] = Counter()
    blocking: set[str] = set()
    text_columns = _text_columns(connection)
    filled = with_rows(connection, text_columns)
    for table, columns in text_columns.items():
        if table not in filled:
            continue
        own = persons.get(table)
        searched = {column: kind for column, kind in columns.items() if not own or column not in own.rider_columns}
        for column, found, documents in _count(connection, table, searched, f"NOT ({own.about})" if own else "true"):
            place = f"{table}.{column}"
            if found and (column in LABELS or place in PROGRAM_COLUMNS):
                words[place] += found
            elif found:
                blocking.add(place)
            if documents and place not in PUBLIC_DOCUMENTS and column not in LABELS:
                for key in _inside_json(connection, table, column, names):
                    if key in LABELS | PROGRAM_KEYS or place in PROGRAM_COLUMNS:
                        words[f"{place}:{key}" if key else place] += 1
                    else:
                        blocking.add(f"{place}:{key}")
    if in_parts := _sites_in_parts(connection, names):
        words["personal.outcomes.site"] += in_parts
    return Elsewhere(dict(words), sorted(blocking))


def _sites_in_parts(connection: duckdb.DuckDBPyConnection, names: frozenset[str]) -> int:
    """How many other riders' rows in parts have a site of that name.

    Nothing else in a part is a word: subjects are in `ledger.parts` too, and salts and leaves are drawn and computed by
    the program, which the file's digest vouches for. Names are given as values, so that footers rule out most files.
    """
    folder = folder_of(connection)
    files = [str(part.path(folder)) for part in listed(connection) if part.holds == "personal.outcomes"]
    if not files:
        return 0
    values = ", ".join(map(quoted, sorted(names)))
    query = f"SELECT count(*) FROM read_parquet(?) WHERE site IN ({values}) AND rider NOT IN ({values})"
    [(found,)] = rows(connection, query, [files])
    return int(found)


def _text_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """By table, the columns that can hold text, with their types."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows(
        connection,
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal ORDER BY ALL",
    ):
        if any(text in kind for text in ("VARCHAR", "JSON", "BLOB", "ENUM")):
            found.setdefault(table, {})[column] = kind
    return found


def with_rows(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> set[str]:
    """Which of the tables hold anything: most of a store with parts do not, and a question takes milliseconds."""
    asked = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables)
    return {table for (table,) in rows(connection, asked)} if asked else set()


def _count(
    connection: duckdb.DuckDBPyConnection, table: str, columns: dict[str, str], where: str
) -> list[tuple[str, int, int]]:
    """In one pass: by column, the values that are one of the names, and those that may be JSON documents."""
    if not columns:
        return []
    counts = []
    for column, kind in columns.items():
        if kind == "BLOB":
            named, document = f'"{column}" IN (SELECT encode(name) FROM persons)', "false"
        elif kind in ("VARCHAR", "JSON"):
            named, document = f'"{column}" IN (SELECT name FROM persons)', f"left(\"{column}\", 1) IN ('{{', '[')"
        else:  # a list, a struct, a map, an enumeration
            named = f'EXISTS (SELECT 1 FROM persons WHERE contains("{column}"::VARCHAR, persons.name))'
            document = "false"
        counts += [f"count(*) FILTER (WHERE {named})", f"count(*) FILTER (WHERE {document})"]
    [found] = rows(connection, f"SELECT {', '.join(counts)} FROM {table} WHERE {where}")
    return [(column, found[2 * i], found[2 * i + 1]) for i, column in enumerate(columns)]


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
    """Every string of a JSON value with the last key above it that the program chose."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _strings(item, key if key in DIGEST_MAPS else name)
