"""`isuit trajectory`: one rider's skill over successive cohorts, on one scale.

Each cohort has its own population as origin and unit. If the difficulty of a condition stays what it is, two fits A and
B of the same activity and dimension describe one curve in two units:

    a_A (theta_A - delta_A(x)) = a_B (theta_B - delta_B(x))   so   theta_A = scale * theta_B + offset,
    scale = a_B / a_A,   offset = delta_A(x) - scale * delta_B(x)  for every x

The curve gives the offset, and so do the riders whom both cohorts have (other than the one asked about): on average
their skill should be the same on both scales. Two fits are compared only when both links exist and agree; their
weighted mean is the offset. A change is drift when it is beyond what the two posteriors and the link allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np

from isuit.domain import FloatArray
from isuit.errors import NotFound
from isuit.published import Trajectory, TrajectoryPoint
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.query import arrow, rows

FEWEST_COMMON = 5  # riders; fewer say little about a population
FEWEST_POINTS = 3  # of the curve, in the metric range that both observed
AGREEMENT = 3.0  # standard errors between the two links
DRIFT = 1.96  # standard errors between two skills


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


@dataclass(frozen=True)
class Link:
    """From one fit's scale to another's: theta -> scale * theta + offset, with the offset's standard error."""

    scale: float
    offset: float
    se: float

    def after(self, other: Link) -> Link:
        """This link applied to what `other` gives."""
        return Link(
            self.scale * other.scale,
            self.scale * other.offset + self.offset,
            float(np.hypot(self.scale * other.se, self.se)),
        )


def trajectory(store_path: Path, rider: str, wait: float = DEFAULT_WAIT) -> Trajectory:
    """A rider's skills in the order of their cohorts, linked where they can be, drift flagged."""
    with open_store(store_path, wait=wait) as store:
        stages = _stages(store.connection, rider)
        if not stages:
            raise NotFound("no fit of this store has a skill for that rider")
        series: dict[tuple[str, str], list[Stage]] = {}
        for stage in stages:
            series.setdefault((stage.activity, stage.dimension), []).append(stage)
        points = [point for found in series.values() for point in _linked(store.connection, rider, found)]
    return Trajectory(points=points)


def _stages(connection: duckdb.DuckDBPyConnection, rider: str) -> list[Stage]:
    """In the order of time: by the middle of each cohort's span, or by when it was registered."""
    found = rows(
        connection,
        """
        SELECT f.fit_id, f.cohort_hash, f.activity, f.dimension, f.discrimination, c.observed_from, c.observed_until,
            s.skill_mean, s.skill_sd, s.usable
        FROM personal.skills s JOIN ledger.fits f USING (fit_id) JOIN ledger.cohorts c USING (cohort_hash)
        WHERE s.rider = ?
        ORDER BY coalesce(c.observed_from + (c.observed_until - c.observed_from) / 2, c.registered_at), f.recorded_at
        """,
        [rider],
    )
    return [Stage(*row) for row in found]


def _linked(connection: duckdb.DuckDBPyConnection, rider: str, stages: list[Stage]) -> list[TrajectoryPoint]:
    points: list[TrajectoryPoint] = []
    to_first: Link | None = Link(1.0, 0.0, 0.0)
    before: Stage | None = None
    for stage in stages:
        note, drift = None, False
        if before is not None:
            step = link(connection, before.fit_id, stage.fit_id, rider)
            if isinstance(step, str):
                note, to_first = step, None
            else:
                change = step.scale * stage.mean + step.offset - before.mean
                allowed = DRIFT * float(np.sqrt(before.sd**2 + (step.scale * stage.sd) ** 2 + step.se**2))
                drift = abs(change) > allowed and before.cohort_hash != stage.cohort_hash
                to_first = to_first.after(step) if to_first else None
                if drift:
                    note = f"skill changed by {change:+.2f}, more than the {allowed:.2f} that chance allows"
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
                linked_mean=to_first.scale * stage.mean + to_first.offset if to_first else None,
                linked_sd=float(np.hypot(to_first.scale * stage.sd, to_first.se)) if to_first else None,
                drift=drift,
                note=note,
            )
        )
        before = stage
    return points


def link(connection: duckdb.DuckDBPyConnection, first: str, second: str, without: str) -> Link | str:
    """The link from the second fit's scale to the first's, or why the two cannot be compared."""
    a = dict(rows(connection, "SELECT fit_id, discrimination FROM ledger.fits WHERE fit_id IN (?, ?)", [first, second]))
    scale = a[second] / a[first]
    by_curve = _curve_offset(_curve(connection, first), _curve(connection, second), scale)
    if by_curve is None:
        return "cannot be compared with the fit before: they share too little of the metric's range"
    common = rows(
        connection,
        """
        SELECT one.skill_mean - ? * two.skill_mean FROM personal.skills one JOIN personal.skills two USING (rider)
        WHERE one.fit_id = ? AND two.fit_id = ? AND one.usable AND two.usable AND rider <> ?
        """,
        [scale, first, second, without],
    )
    if len(common) < FEWEST_COMMON:
        return f"cannot be compared with the fit before: they share {len(common)} other riders, too few to link them"
    gaps = np.array([gap for (gap,) in common])
    by_riders = (float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(gaps.size)))
    apart = abs(by_curve[0] - by_riders[0])
    if apart > AGREEMENT * float(np.hypot(by_curve[1], by_riders[1])):
        return "cannot be compared with the fit before: the riders they share and the difficulty curve disagree"
    weights = np.array([1 / by_curve[1] ** 2, 1 / max(by_riders[1], 1e-9) ** 2])
    offset = float(weights @ np.array([by_curve[0], by_riders[0]]) / weights.sum())
    return Link(scale, offset, float(weights.sum() ** -0.5))


def _curve(connection: duckdb.DuckDBPyConnection, fit_id: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    table = arrow(
        connection,
        "SELECT metric, difficulty, difficulty_se FROM atlas.difficulty "
        "WHERE fit_id = ? AND site IS NULL AND difficulty IS NOT NULL ORDER BY metric",
        [fit_id],
    )
    metric, difficulty, se = (table.column(index).to_numpy() for index in range(3))
    return metric, difficulty, se


def _curve_offset(
    first: tuple[FloatArray, FloatArray, FloatArray], second: tuple[FloatArray, FloatArray, FloatArray], scale: float
) -> tuple[float, float] | None:
    """The offset that lays one curve on the other, and its standard error.

    Neighbouring points of a smooth curve err together, so a mean over points is no more certain than one of them.
    """
    metric, difficulty, se = first
    if not metric.size or not second[0].size:
        return None
    shared = (metric >= second[0].min()) & (metric <= second[0].max())
    if np.count_nonzero(shared) < FEWEST_POINTS:
        return None
    gap = difficulty[shared] - scale * np.interp(metric[shared], second[0], second[1])
    variance = se[shared] ** 2 + (scale * np.interp(metric[shared], second[0], second[2])) ** 2
    weight = 1 / np.maximum(variance, 1e-12)
    return float(weight @ gap / weight.sum()), float(np.sqrt(weight @ variance / weight.sum()))
