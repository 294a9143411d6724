"""Fits: append-only records, their atlas rows, and the skills, which alone are personal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from isuit.canonical import FORMAT, SEVERAL
from isuit.documents import from_json
from isuit.domain import Estimate, FitKind, Path, Skills
from isuit.errors import InputError, NotFound
from isuit.store import parts
from isuit.store.aliases import aliases
from isuit.store.query import arrow, first, rows

FIT_FORMAT = "isuit-f1"
SHORTEST_PREFIX = 8  # digits


@dataclass(frozen=True)
class StoredFit:
    """A row of `ledger.fits`. The JSON columns are canonical text; the properties read them."""

    fit_id: str
    cohort_hash: str
    activity: str
    dimension: str
    configuration: str
    estimator_version: str
    tool_version: str
    kind: FitKind
    discrimination: float | None
    discrimination_se: float | None
    log_likelihood: float
    identification: str
    promotion: str | None
    held_out: str | None
    parameters: str
    diagnostics: str
    skills: int
    commitment: str | None  # root over the skills' leaves; None without skills
    result_digest: str
    recorded_at: datetime

    @property
    def several_metrics(self) -> bool:
        return self.cohort_hash.startswith(f"{SEVERAL}:")

    @property
    def varies(self) -> bool:
        """Whether a discrimination that changes with conditions was asked for."""
        found = self.json("configuration")
        return isinstance(found, dict) and found.get("discrimination") == "varying"

    def json(self, column: str) -> Any:
        """A JSON column's value; None where the column is null."""
        text = getattr(self, column)
        what = f"the column {column} of this fit's record"
        try:
            return None if text is None else from_json(text, what)
        except ValueError:
            raise InputError(f"{what} is no JSON, so it was changed; `isuit verify` lists what was") from None


def insert_fit(connection: duckdb.DuckDBPyConnection, record: StoredFit) -> None:
    values = astuple(record)
    connection.execute(f"INSERT INTO ledger.fits VALUES ({', '.join('?' * len(values))})", list(values))


def curve_rows(estimate: Estimate) -> pa.Table:
    """An estimate's curves as `atlas_rows` gives them back: the shared one first, then by site; each by metric."""
    tables = []
    # By UTF-8 bytes, which is by code point: the order of DuckDB.
    for curve in sorted(
        estimate.curves, key=lambda curve: (curve.site is not None, curve.site or "", curve.dimension or "")
    ):
        points = len(curve.metric)
        unknown = pa.nulls(points, pa.float64())
        columns = {
            "site": pa.array([curve.site] * points, pa.string()),
            "dimension": pa.array([curve.dimension] * points, pa.string()),
            "metric": pa.array(curve.metric, pa.float64()),
            "difficulty": unknown if curve.difficulty is None else pa.array(curve.difficulty, pa.float64()),
            "difficulty_se": unknown if curve.difficulty_se is None else pa.array(curve.difficulty_se, pa.float64()),
            "suitability": pa.array(curve.suitability, pa.float64()),
        }
        tables.append(pa.table(columns).sort_by("metric"))
    return pa.concat_tables(tables)


def insert_atlas(
    connection: duckdb.DuckDBPyConnection, fit_id: str, activity: str, dimension: str, curves: pa.Table
) -> None:
    """The fit's curves, point by point; only curves: nothing here speaks of a person."""
    connection.register("incoming", curves)
    try:
        connection.execute(
            "INSERT INTO atlas.difficulty BY NAME SELECT ? AS fit_id, ? AS activity, "
            "* REPLACE (coalesce(dimension, ?) AS dimension) FROM incoming",
            [fit_id, activity, dimension],
        )
    finally:
        connection.unregister("incoming")


def path_text(path: Path) -> str:
    """A rider's path as it is stored: JSON, a list of [day, mean, sd], with every digit of its numbers."""
    days = path.day.astype("datetime64[D]").astype(str).tolist()
    return json.dumps([list(row) for row in zip(days, path.mean.tolist(), path.sd.tolist(), strict=True)])


class PathDay(NamedTuple):
    """A rider's skill on one day, as it is stored."""

    day: date
    mean: float
    sd: float


def path_of(text: str) -> list[PathDay]:
    """The days of a path that `path_text` wrote."""
    try:
        days = from_json(text, "a rider's path")
        return [PathDay(date.fromisoformat(day), float(mean), float(sd)) for day, mean, sd in days]
    except (ValueError, TypeError):
        raise InputError("a rider's stored path is none, so it was changed; `isuit verify` says more") from None


def skill_table(skills: Skills) -> pa.Table:
    """Skills as `skill_rows` gives them back."""
    paths = [None] * len(skills.riders) if skills.paths is None else [path_text(path) for path in skills.paths]
    columns = {
        "rider": pa.array(skills.riders, pa.string()),
        "skill_mean": pa.array(skills.mean, pa.float64()),
        "skill_sd": pa.array(skills.sd, pa.float64()),
        "n_outcomes": pa.array(skills.outcomes, pa.int64()),
        "n_bins": pa.array(skills.bins, pa.int64()),
        "usable": pa.array(skills.usable, pa.bool_()),
        "path": pa.array(paths, pa.string()),
    }
    return pa.table(columns)


def insert_skills(connection: duckdb.DuckDBPyConnection, fit_id: str, table: pa.Table) -> None:
    """The rows of `skill_table`."""
    with parts.writing(connection, "personal.skills", fit_id, table.num_rows) as write:
        write(table.add_column(0, "fit_id", pa.repeat(fit_id, table.num_rows)))


def fit_records(connection: duckdb.DuckDBPyConnection) -> list[StoredFit]:
    """Every fit, oldest first."""
    return [StoredFit(*row) for row in rows(connection, "SELECT * FROM ledger.fits ORDER BY recorded_at, fit_id")]


def get_fit(connection: duckdb.DuckDBPyConnection, fit_id: str) -> StoredFit | None:
    row = first(connection, "SELECT * FROM ledger.fits WHERE fit_id = ?", [fit_id])
    return StoredFit(*row) if row else None


def find_fit(connection: duckdb.DuckDBPyConnection, reference: str) -> StoredFit:
    """The fit that a fit id, a cohort hash, a prefix of at least 8 digits of either, or an alias names."""
    prefix = re.fullmatch(r"(?:(isuit-(?:c1|c2|f1)):)?([0-9a-fA-F]*)", reference.strip())
    if prefix is None:
        meant = aliases(connection).get(reference.strip())
        record = None if meant is None else get_fit(connection, meant.fit_id)
        if record is None:
            raise NotFound(
                "no such fit: a fit is named by its id, its cohort's hash or an alias; `isuit fits` lists them."
            )
        return record
    tag, digits = prefix.group(1), prefix.group(2).lower()
    if len(digits) < SHORTEST_PREFIX:
        raise InputError(
            f"give at least {SHORTEST_PREFIX} digits of a fit id or a cohort hash; `isuit fits` lists them."
        )
    found = rows(
        connection,
        "SELECT fit_id FROM ledger.fits WHERE starts_with(fit_id, ?) OR starts_with(cohort_hash, ?) "
        "OR starts_with(cohort_hash, ?) ORDER BY recorded_at, fit_id",
        [f"{tag or form}:{digits}" for form in (FIT_FORMAT, FORMAT, SEVERAL)],
    )
    if not found:
        raise NotFound("no fit of this store has that id or cohort hash; `isuit fits` lists them.")
    if len(found) > 1:
        listed = ", ".join(fit_id for (fit_id,) in found)
        raise InputError(f"that names {len(found)} fits, give more digits or one of their ids: {listed}.")
    record = get_fit(connection, found[0][0])
    assert record is not None
    return record


ATLAS_ORDER = "site NULLS FIRST, dimension, metric"


def atlas_rows(connection: duckdb.DuckDBPyConnection, fit_id: str) -> pa.Table:
    """A fit's curves, the shared one first; of several metrics `dimension` names the one that a curve runs along."""
    query = (
        "SELECT site, dimension, metric, difficulty, difficulty_se, suitability FROM atlas.difficulty "
        f"WHERE fit_id = ? ORDER BY {ATLAS_ORDER}"
    )
    return arrow(connection, query, [fit_id])


def skill_rows(connection: duckdb.DuckDBPyConnection, fit_id: str, paths: bool = False) -> pa.Table:
    """A fit's skills by rider; with `paths`, also each rider's skill day by day, null where it stands still."""
    query = (
        f"SELECT rider, skill_mean, skill_sd, n_outcomes, n_bins, usable{', path' if paths else ''} "
        "FROM all_skills WHERE fit_id = ? ORDER BY rider"
    )
    return arrow(connection, query, [fit_id])


SKILL_COLUMNS = ["rider", "skill_mean", "skill_sd", "n_outcomes", "n_bins", "usable", "path"]


def stored_skills(connection: duckdb.DuckDBPyConnection, fit_id: str) -> Iterator[pa.RecordBatch]:
    """A fit's skills by rider, some at a time; parts from before skill could move have no column `path`."""
    return parts.in_order(connection, "personal.skills", [fit_id], SKILL_COLUMNS, "rider")


def current_atlas(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The newest fit of every activity, dimension and site."""
    query = """
        WITH newest AS (
            SELECT activity, dimension, site, arg_max(fit_id, recorded_at) AS fit_id
            FROM (SELECT DISTINCT fit_id, site FROM atlas.difficulty) JOIN ledger.fits USING (fit_id)
            GROUP BY activity, dimension, site
        )
        SELECT d.activity, d.dimension, d.site, s.latitude, s.longitude, d.metric, d.difficulty, d.difficulty_se,
            d.suitability, f.discrimination, f.kind, d.fit_id, f.cohort_hash, f.recorded_at
        FROM atlas.difficulty d
        JOIN newest n ON d.fit_id = n.fit_id AND d.site IS NOT DISTINCT FROM n.site
        JOIN ledger.fits f ON f.fit_id = d.fit_id
        LEFT JOIN atlas.sites s ON s.site = d.site
        ORDER BY d.activity, d.dimension, d.site NULLS FIRST, d.metric
    """
    return arrow(connection, query)
