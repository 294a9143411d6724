"""SHA-256 with a name for every use, and digests of table rows over their exact bits.

`tagged_all` is the only place that hashes: a digest made for one purpose can never be passed off as one for another.
Its input is the tag, a zero byte, and each part after its length as 8 bytes big-endian.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

import duckdb

ROWS_TAG = "isuit/rows/1"
KEYED_TAG = "isuit/keyed-rows/1"
RIDER_TAG = "isuit/rider/1"

# Tables whose rows are written once (or by one later event) under a key that names nobody: key column by table.
KEYED_ROWS = {
    "ledger.migrations": "name",
    "ledger.store": "store_id",
    "ledger.cohorts": "cohort_hash",
    "ledger.metrics": "cohort_hash",
    "ledger.holders": "cohort_hash",
    "ledger.fits": "fit_id",
    "ledger.receipts": "receipt_id",
    "ledger.releases": "release_id",
    "ledger.release_rows": "release_id",
    "ledger.release_bins": "release_id",
    "atlas.difficulty": "fit_id",
}
# Tables that change as a whole; the personal ones are digested with the store's key, so that the log confirms no guess.
CHANGEABLE = ("atlas.sites", "ledger.parts", "personal.pseudonyms", "personal.release_members", "personal.suppressed")


def tagged(tag: str, *parts: bytes) -> str:
    """SHA-256 over a tag and parts, each preceded by its length: no two inputs share an encoding."""
    return tagged_all(tag, parts)


def tagged_all(tag: str, parts: Iterable[bytes]) -> str:
    """The same over parts that need not be in memory all at once."""
    state = hashlib.sha256(tag.encode() + b"\x00")
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.hexdigest()


def rider_digest(key: bytes, rider: str) -> str:
    """The keyed digest under which an opted-out rider is remembered: useless to anyone without the store's key."""
    return hmac.digest(key, f"{RIDER_TAG}\x00{rider}".encode(), "sha256").hex()


def rows_digest(connection: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str]) -> dict[str, str]:
    """The digest of the rows under each key of a table of `KEYED_ROWS`."""
    found = all_rows_digests(connection, table, keys)
    return {key: found[key] for key in keys}


def all_rows_digests(
    connection: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str] | None = None
) -> dict[str, str]:
    """The digest of the rows under every key of the table (or those given), in one pass."""
    column = KEYED_ROWS[table]
    query, arguments = f"SELECT {column}, * FROM {table}", []
    if keys is not None:
        query, arguments = f"{query} WHERE list_contains(?, {column})", [list(keys)]
    header, rows = _fetch(connection, query, arguments)
    lines: dict[str, list[bytes]] = {key: [] for key in keys or ()}
    for row in rows:
        lines.setdefault(row[0], []).append(exact_line(row[1:]))
    return {key: tagged(ROWS_TAG, table.encode(), header, *sorted(found)) for key, found in lines.items()}


def table_digest(connection: duckdb.DuckDBPyConnection, table: str, key: bytes) -> str:
    """The digest of a whole table of `CHANGEABLE`; keyed where the table is personal."""
    header, rows = _fetch(connection, f"SELECT NULL, * FROM {table}", [])
    content = tagged(ROWS_TAG, table.encode(), header, *sorted(exact_line(row[1:]) for row in rows))
    if table.startswith("personal."):
        return hmac.new(key, f"{KEYED_TAG}\x00{content}".encode(), hashlib.sha256).hexdigest()
    return content


def _fetch(
    connection: duckdb.DuckDBPyConnection, query: str, arguments: list[Any]
) -> tuple[bytes, Iterable[tuple[Any, ...]]]:
    cursor = connection.execute(query, arguments)
    header = [[name, str(kind)] for name, kind, *_ in cursor.description[1:]]
    return json.dumps(header).encode(), cursor.fetchall()


def exact_line(row: Sequence[Any]) -> bytes:
    """A row's exact bits as one line: JSON, with floats as the 16 hex digits of their IEEE-754 bits."""
    return json.dumps([_exact(value) for value in row], ensure_ascii=False, separators=(",", ":")).encode()


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value
