"""The log: a hash chain of events, each saying what it wrote by digest.

An event is the JSON object {at, kind, payload, previous, sequence}; its head is the tagged SHA-256 of the object's
canonical form (RFC 8785), and `previous` is the head before it. `payload` may hold

    rows_digest    {table: {key: digest}}   the rows written under a key; the latest event that speaks of a key counts
    table_digest   {table: digest}          a changeable table as it is after the event

beside hashes, counts and names that the program itself chose. It never holds a rider's ID, a path, a host or free text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import rfc8785

from isuit.audit import merkle
from isuit.audit.digests import rows_digest, table_digest, tagged
from isuit.documents import from_json
from isuit.errors import StoreError
from isuit.store.query import first
from isuit.store.query import rows as all_rows

EVENT_TAG = "isuit/log-event/1"
EVENT = "an event of the log"  # how a refusal calls it
GENESIS = "0" * 64  # the head of an empty log


@dataclass(frozen=True)
class Event:
    """One line of the log, as stored."""

    sequence: int
    at: datetime
    kind: str
    payload: str  # canonical JSON
    previous: str
    head: str

    @property
    def content(self) -> dict[str, Any]:
        return dict(from_json(self.payload, EVENT))

    def entry(self) -> bytes:
        """What the event says, in canonical form: the bytes that its head and its leaf in the tree are digests of."""
        return event_entry(self.sequence, self.at, self.kind, from_json(self.payload, EVENT), self.previous)

    def computed_head(self) -> str:
        """The head that follows from what the event says."""
        return tagged(EVENT_TAG, self.entry())

    def as_json(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "at": instant(self.at),
            "kind": self.kind,
            "payload": from_json(self.payload, EVENT),
            "previous": self.previous,
            "head": self.head,
        }


def instant(at: datetime) -> str:
    """A UTC instant as the log writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_entry(sequence: int, at: datetime, kind: str, payload: Mapping[str, Any], previous: str) -> bytes:
    event: dict[str, Any] = {
        "at": instant(at),
        "kind": kind,
        "payload": payload,
        "previous": previous,
        "sequence": sequence,
    }
    return rfc8785.dumps(event)


def append_event(
    connection: duckdb.DuckDBPyConnection,
    kind: str,
    payload: Mapping[str, Any],
    *,
    rows: Mapping[str, Sequence[str]] | None = None,
    tables: Iterable[str] = (),
    key: bytes = b"",
) -> str:
    """Append an event inside the caller's transaction and return the new head.

    `rows` names the rows the event wrote, {table: [keys]}, and `tables` the changeable tables it changed (the store's
    `key` is then needed for the personal ones); their digests are taken here, so write the rows first.
    """
    content = dict(payload)
    if rows:
        content["rows_digest"] = {table: rows_digest(connection, table, keys) for table, keys in sorted(rows.items())}
    if tables := sorted(tables):
        content["table_digest"] = {table: table_digest(connection, table, key) for table in tables}
    last = first(connection, "SELECT sequence, head FROM ledger.log ORDER BY sequence DESC LIMIT 1")
    sequence, previous = (last[0] + 1, last[1]) if last else (1, GENESIS)
    at = datetime.now(UTC).replace(tzinfo=None)
    head = tagged(EVENT_TAG, event_entry(sequence, at, kind, content, previous))
    text = rfc8785.dumps(content).decode()
    connection.execute("INSERT INTO ledger.log VALUES (?, ?, ?, ?, ?, ?)", [sequence, at, kind, text, previous, head])
    return head


def read_log(connection: duckdb.DuckDBPyConnection) -> list[Event]:
    """Every event in order."""
    query = "SELECT sequence, logged_at, kind, payload, previous, head FROM ledger.log ORDER BY sequence"
    return [Event(*row) for row in all_rows(connection, query)]


def log_head(connection: duckdb.DuckDBPyConnection) -> str:
    """The head of the log: what an auditor writes down."""
    row = first(connection, "SELECT head FROM ledger.log ORDER BY sequence DESC LIMIT 1")
    if row is None:
        return GENESIS
    if not is_head(row[0]):
        raise StoreError("the last event of the store's log has no head, so it was changed; run `isuit verify`")
    return str(row[0])


def is_head(value: object) -> bool:
    """Whether a value has the form of a head."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def leaves_of(events: Sequence[Event]) -> list[bytes]:
    """The leaves of the log's tree."""
    return [merkle.leaf_hash(event.entry()) for event in events]
