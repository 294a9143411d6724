"""Public releases as they are kept: immutable rows, and who stood behind each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import date, datetime

import duckdb
import pyarrow as pa

from isuit.store.query import first, insert, rows

# What an event of a new release covers.
RELEASE_TABLES = ("ledger.releases", "ledger.release_rows", "ledger.release_bins")


@dataclass(frozen=True)
class ReleaseRecord:
    """A row of `ledger.releases`; `policy` and `metadata` are JSON text, the latter as published."""

    release_id: str
    release_date: date
    policy: str
    metadata: str
    row_count: int
    cell_count: int
    digest: str
    made_at: datetime


@dataclass(frozen=True)
class BinRecord:
    """What stays in-house about a released row: its riders when it was computed, and in which release that was.

    `curve` names activity, dimension and cell. The number stays when riders are erased, so that departures can be
    counted without keeping those who departed.
    """

    curve: str
    bin: int
    riders: int
    computed_in: str


def release_records(connection: duckdb.DuckDBPyConnection) -> list[ReleaseRecord]:
    """Every release, oldest first."""
    return [ReleaseRecord(*row) for row in rows(connection, "SELECT * FROM ledger.releases ORDER BY release_date")]


def find_release(connection: duckdb.DuckDBPyConnection, release_id: str) -> ReleaseRecord | None:
    row = first(connection, "SELECT * FROM ledger.releases WHERE release_id = ?", [release_id])
    return ReleaseRecord(*row) if row else None


def release_lines(connection: duckdb.DuckDBPyConnection, release_id: str) -> list[str]:
    """The published rows in order, each a line of JSON."""
    query = "SELECT line FROM ledger.release_rows WHERE release_id = ? ORDER BY position"
    return [line for (line,) in rows(connection, query, [release_id])]


def release_bins(connection: duckdb.DuckDBPyConnection, release_id: str) -> list[BinRecord]:
    query = "SELECT curve, bin, riders, computed_in FROM ledger.release_bins WHERE release_id = ? ORDER BY ALL"
    return [BinRecord(*row) for row in rows(connection, query, [release_id])]


def release_members(connection: duckdb.DuckDBPyConnection, release_id: str) -> dict[tuple[str, int], set[str]]:
    """The riders who stood behind each row and are still in the store, by curve and bin."""
    found: dict[tuple[str, int], set[str]] = {}
    query = "SELECT cell, bin, rider FROM personal.release_members WHERE release_id = ?"
    for curve, bin_, rider in rows(connection, query, [release_id]):
        found.setdefault((curve, bin_), set()).add(rider)
    return found


def riders_by_curve(connection: duckdb.DuckDBPyConnection, release_id: str) -> list[int]:
    """How many IDs stood behind each curve of a release and are still in the store."""
    query = "SELECT count(DISTINCT rider) FROM personal.release_members WHERE release_id = ? GROUP BY cell ORDER BY ALL"
    return [number for (number,) in rows(connection, query, [release_id])]


def insert_release(
    connection: duckdb.DuckDBPyConnection,
    record: ReleaseRecord,
    lines: list[str],
    bins: Iterable[BinRecord],
    members: Mapping[tuple[str, int], Iterable[str]],
) -> None:
    values = list(astuple(record))
    connection.execute(f"INSERT INTO ledger.releases VALUES ({', '.join('?' * len(values))})", values)
    name = record.release_id
    table = {"release_id": [name] * len(lines), "position": range(len(lines)), "line": lines}
    insert(connection, "ledger.release_rows", pa.table({key: list(column) for key, column in table.items()}))
    kept = [(name, entry.curve, entry.bin, entry.riders, entry.computed_in) for entry in bins]
    _insert(connection, "ledger.release_bins", ("release_id", "curve", "bin", "riders", "computed_in"), kept)
    # Sorted, so that the order of rows tells nothing.
    persons = sorted((name, curve, bin_, rider) for (curve, bin_), riders in members.items() for rider in riders)
    _insert(connection, "personal.release_members", ("release_id", "cell", "bin", "rider"), persons)


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, columns: tuple[str, ...], found: Sequence[tuple[object, ...]]
) -> None:
    if found:
        insert(connection, table, pa.table(dict(zip(columns, map(list, zip(*found, strict=True)), strict=True))))
