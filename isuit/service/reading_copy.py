"""`isuit atlas --out atlas.duckdb`: a copy for other people's tools, without anybody in it.

A BI tool that opens `store.duckdb` itself would hold the lock that an erasure needs, and would see the persons. This
file has the curves, the fits, the sites and the aliases as tables of its own. It is written whole beside the old one
and takes its name last, so that a tool which has the old one open goes on reading that.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from isuit.files import PRIVATE, whole
from isuit.service.intervals import atlas_with_intervals
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.aliases import aliases
from isuit.store.connection import STORAGE_VERSION
from isuit.store.query import arrow

ENDING = ".duckdb"
# What each table is made of. Nothing of `personal`, and of a fit neither its commitment nor its parameters.
TABLES = {
    "curves": "SELECT * FROM atlas.difficulty",
    "sites": "SELECT * FROM atlas.sites",
    "fits": (
        "SELECT fit_id, f.cohort_hash, activity, dimension, kind, discrimination, discrimination_se, log_likelihood, "
        "configuration, held_out, diagnostics, estimator_version, tool_version, recorded_at, c.outcomes, c.riders, "
        "c.sites, c.observed_from, c.observed_until FROM ledger.fits f JOIN ledger.cohorts c USING (cohort_hash)"
    ),
}


def write_copy(store_path: Path, out: Path, wait: float = DEFAULT_WAIT) -> pa.Table:
    """Write the file, and give the current atlas, which is its first table."""
    with open_store(store_path, wait=wait) as store:
        current = atlas_with_intervals(store.connection)
        tables = {"atlas": current} | {name: arrow(store.connection, query) for name, query in TABLES.items()}
        named = aliases(store.connection)
    tables["aliases"] = pa.table(
        {
            "alias": pa.array(list(named), pa.string()),
            "fit_id": pa.array([meant.fit_id for meant in named.values()], pa.string()),
        }
    )
    with whole(out, PRIVATE) as part:
        part.unlink(missing_ok=True)  # DuckDB makes the file itself
        connection = duckdb.connect(str(part), config={"storage_compatibility_version": STORAGE_VERSION})
        try:
            for name, table in tables.items():
                connection.register("incoming", table)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
                connection.unregister("incoming")
            connection.execute("CHECKPOINT")
        finally:
            connection.close()
        part.chmod(PRIVATE)
    return current
