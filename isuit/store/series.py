"""Series of cohorts that grow day by day. Like aliases they stand in the log: which cohort was added to which."""

from __future__ import annotations

import json

import duckdb

from isuit.store.query import rows

EVENT = "series-extended"


def series(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The cohorts of every series, in the order in which they were added."""
    found: dict[str, list[str]] = {}
    for (text,) in rows(connection, f"SELECT payload FROM ledger.log WHERE kind = '{EVENT}' ORDER BY sequence"):
        try:
            content = json.loads(text)
            name, cohort_hash = content["series"], content["cohort_hash"]
        except (ValueError, TypeError, KeyError):
            continue  # changed by hand: `isuit verify` says so
        found.setdefault(name, []).append(cohort_hash)
    return found
