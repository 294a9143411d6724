"""`isuit trajectory`: one rider's skill over successive cohorts, on one scale, and within those whose fit follows it.

The store gives the fits in which the rider has a skill, their curves and the riders they share; how two fits are linked
and what counts as drift is `isuit.estimator.linking`. A note says which of the two a change is: between cohorts, told
from two fits, or within one, told from the days of a fit in which skill moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from isuit.canonical import SEVERAL
from isuit.errors import NotFound
from isuit.estimator.linking import FittedCurve, Link, Skill, link
from isuit.published import Trajectory, TrajectoryDay, TrajectoryPoint
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import path_of
from isuit.store.query import arrow, rows


@dataclass(frozen=True)
class Stage:
    """One fit in which the rider has a skill."""

    fit_id: str
    cohort_hash: str
    activity: str
    dimension: str
    discrimination: float
    observed_from: datetime | None
    observed_until: datetime | None
    mean: float
    sd: float
    usable: bool
    path: str | None

    @property
    def days(self) -> list[TrajectoryDay] | None:
        """The rider's skill day by day, where the fit follows it."""
        if self.path is None:
            return None
        return [TrajectoryDay(day=one.day, skill_mean=one.mean, skill_sd=one.sd) for one in path_of(self.path)]

    @property
    def first_skill(self) -> Skill:
        """Of the first day, where the fit follows it; otherwise that of the cohort."""
        days = self.days
        return Skill(days[0].skill_mean, days[0].skill_sd) if days else self.skill

    @property
    def skill(self) -> Skill:
        return Skill(self.mean, self.sd)


def trajectory(store_path: Path, rider: str, wait: float = DEFAULT_WAIT) -> Trajectory:
    """A rider's skills in the order of their cohorts, linked where they can be, drift flagged."""
    with open_store(store_path, wait=wait) as store:
        names = _names(store.connection, rider)
        stages = _stages(store.connection, names)
        if not stages:
            raise NotFound("no fit of this store has a skill for that rider")
        series: dict[tuple[str, str], list[Stage]] = {}
        for stage in stages:
            series.setdefault((stage.activity, stage.dimension), []).append(stage)
        points = [point for found in series.values() for point in _linked(store.connection, names, found)]
    return Trajectory(points=points)


def _names(connection: duckdb.DuckDBPyConnection, rider: str) -> list[str]:
    """What the cohorts may call the rider: the ID itself, and the token that stands for it."""
    return [
        rider,
        *(token for (token,) in rows(connection, "SELECT token FROM personal.pseudonyms WHERE rider = ?", [rider])),
    ]


def _stages(connection: duckdb.DuckDBPyConnection, names: list[str]) -> list[Stage]:
    """In the order of time: by the middle of each cohort's span, or by when it was registered."""
    found = rows(
        connection,
        """
        SELECT f.fit_id, f.cohort_hash, f.activity, f.dimension, f.discrimination, c.observed_from, c.observed_until,
            s.skill_mean, s.skill_sd, s.usable, s.path
        FROM all_skills s JOIN ledger.fits f USING (fit_id) JOIN ledger.cohorts c USING (cohort_hash)
        WHERE list_contains(?, s.rider)
        ORDER BY coalesce(c.observed_from + (c.observed_until - c.observed_from) / 2, c.registered_at), f.recorded_at
        """,
        [names],
    )
    return [Stage(*row) for row in found]


def _linked(connection: duckdb.DuckDBPyConnection, names: list[str], stages: list[Stage]) -> list[TrajectoryPoint]:
    points: list[TrajectoryPoint] = []
    to_first: Link | None = Link.to_itself()
    before: Stage | None = None
    for stage in stages:
        notes: list[str] = []
        drift = False
        if before is not None:
            step = _link(connection, before, stage, names)
            if isinstance(step, str):
                to_first = None
                notes.append(step)
            else:
                change = step.change(before.skill, stage.first_skill)
                drift = change.is_drift and before.cohort_hash != stage.cohort_hash
                to_first = to_first.after(step) if to_first else None
                if drift:
                    notes.append(
                        f"between cohorts skill changed by {change.by:+.2f}, more than the {change.allowed:.2f} that "
                        "chance allows"
                    )
        within = Link.to_itself().change(stage.first_skill, stage.skill)
        if within.is_drift:
            notes.append(
                f"within this cohort skill moved by {within.by:+.2f}, more than the {within.allowed:.2f} that chance "
                "allows"
            )
        linked = to_first.carried(stage.skill) if to_first else None
        points.append(
            TrajectoryPoint(
                fit_id=stage.fit_id,
                cohort_hash=stage.cohort_hash,
                activity=stage.activity,
                dimension=stage.dimension,
                observed_from=stage.observed_from,
                observed_until=stage.observed_until,
                skill_mean=stage.mean,
                skill_sd=stage.sd,
                usable=stage.usable,
                linked_mean=linked.mean if linked else None,
                linked_sd=linked.sd if linked else None,
                drift=drift,
                moved=within.is_drift,
                note="; ".join(notes) or None,
                path=stage.days,
            )
        )
        before = stage
    return points


def _link(connection: duckdb.DuckDBPyConnection, first: Stage, second: Stage, without: list[str]) -> Link | str:
    """From the second fit's scale to the first's, by everyone but the rider who is asked about."""
    if any(stage.cohort_hash.startswith(SEVERAL) for stage in (first, second)):
        return "fits of several metrics are not linked: their curves run along each metric by itself"
    common = arrow(
        connection,
        """
        SELECT one.skill_mean, two.skill_mean FROM all_skills one JOIN all_skills two USING (rider)
        WHERE one.fit_id = ? AND two.fit_id = ? AND one.usable AND two.usable AND NOT list_contains(?, rider)
        """,
        [first.fit_id, second.fit_id, without],
    )
    skills = common.column(0).to_numpy(), common.column(1).to_numpy()
    return link(_curve(connection, first), _curve(connection, second), skills)


def _curve(connection: duckdb.DuckDBPyConnection, stage: Stage) -> FittedCurve:
    table = arrow(
        connection,
        "SELECT metric, difficulty, difficulty_se FROM atlas.difficulty "
        "WHERE fit_id = ? AND site IS NULL AND difficulty IS NOT NULL ORDER BY dimension, metric",
        [stage.fit_id],
    )
    metric, difficulty, se = (table.column(index).to_numpy() for index in range(3))
    return FittedCurve(stage.discrimination, metric, difficulty, se)
