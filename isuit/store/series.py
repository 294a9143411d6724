"""Series of cohorts that grow day by day. Like aliases they stand in the log: which cohort was added to which."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

import duckdb

from isuit.store.query import rows

EVENT = "series-extended"


@dataclass(frozen=True)
class Step:
    """One addition to a series."""

    cohort_hash: str  # of what was new
    read: str  # the hash of the file it came with, which may hold more
    added_at: datetime


def series(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Step]]:
    """The additions to every series, in their order."""
    found: dict[str, list[Step]] = {}
    query = f"SELECT payload, logged_at FROM ledger.log WHERE kind = '{EVENT}' ORDER BY sequence"
    for text, logged_at in rows(connection, query):
        try:
            content = json.loads(text)
            name, cohort_hash = content["series"], content["cohort_hash"]
            step = Step(cohort_hash, content.get("read", cohort_hash), logged_at)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # changed by hand: `isuit verify` says so
        found.setdefault(name, []).append(step)
    return found
