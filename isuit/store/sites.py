"""Where sites are: coordinates that never change once recorded, because released cells follow from them."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from isuit.errors import InputError
from isuit.store.query import insert, rows

Coordinates = tuple[float, float]  # latitude, longitude in degrees


def known_sites(connection: duckdb.DuckDBPyConnection) -> dict[str, Coordinates]:
    found = rows(connection, "SELECT site, latitude, longitude FROM atlas.sites")
    return {site: (latitude, longitude) for site, latitude, longitude in found}


def record_sites(connection: duckdb.DuckDBPyConnection, sites: Mapping[str, Coordinates]) -> bool:
    """Add the sites that are new; whether there were any. Other coordinates for a known site are refused."""
    known = known_sites(connection)
    moved = sorted(site for site in sites if site in known and known[site] != sites[site])
    if moved:
        raise InputError(
            f"--sites has other coordinates than the store for {len(moved)} sites, first {moved[0]!r}; a site cannot "
            "move: correct the file, or give the new place a new name."
        )
    new = sorted(sites.keys() - known.keys())
    if new:
        columns = {
            "site": pa.array(new, pa.string()),
            "latitude": pa.array([sites[site][0] for site in new], pa.float64()),
            "longitude": pa.array([sites[site][1] for site in new], pa.float64()),
        }
        insert(connection, "atlas.sites", pa.table(columns))
    return bool(new)
