"""`isuit score`: suitability for a declared skill. The skill is an input; no rider can be named here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit.domain import NO_SITE, FloatArray, IntArray
from isuit.errors import InputError
from isuit.published import ScoredConditions, ScoreReport, reading
from isuit.record import Parameters, SurfaceParameters
from isuit.record.parameters import LatentCurves
from isuit.service.scoring_conditions import (
    NO_SKILL,
    Conditions,
    conditions_of,
    mask,
    one_condition,
    skill_value,
)
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import StoredFit, atlas_rows, find_fit
from isuit.tables import read_table, require_format, write_table

if TYPE_CHECKING:
    from isuit.estimator.suitability import Scored


class Refusal(NamedTuple):
    """Something that keeps rows from being scored: at which rows, and why."""

    rows: NDArray[np.bool_]
    reason: str


@dataclass(frozen=True)
class Scorer:
    """One fit, ready to score: its record, its sites and the metric's observed range."""

    record: StoredFit
    parameters: Parameters
    sites: pa.Array
    observed: tuple[float, float]  # of one metric
    anchored: bool

    @classmethod
    def of(cls, store_path: Path, reference: str, wait: float) -> Scorer:
        with open_store(store_path, wait=wait) as store:
            record = find_fit(store.connection, reference)
            atlas = atlas_rows(store.connection, record.fit_id)
        return cls.from_record(record, atlas)

    @classmethod
    def from_record(cls, record: StoredFit, curves: pa.Table) -> Scorer:
        """From a fit's record and its curves, which need not be in a store."""
        parameters = reading.parameters(record.parameters)
        return cls(
            record,
            parameters,
            pc.unique(curves.column("site").cast(pa.string())).drop_null(),
            (np.nan, np.nan) if isinstance(parameters, SurfaceParameters) else parameters.metric_range,
            record.json("configuration")["anchor"] is not None,
        )

    @property
    def single(self) -> bool:
        return self.record.kind == "single-curve"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of several metrics; empty where there is one."""
        return self.parameters.metrics if isinstance(self.parameters, SurfaceParameters) else ()

    def outside(self, metric: FloatArray) -> NDArray[np.bool_]:
        """Which metrics nobody was observed at."""
        if isinstance(self.parameters, SurfaceParameters):
            from isuit import estimator

            return ~estimator.is_supported(self.parameters.support, metric)
        low, high = self.observed
        return ~((low <= metric) & (metric <= high))

    def refusals(self, conditions: Conditions) -> list[Refusal]:
        """All that can be wrong with a row, in the order in which it is told."""
        from isuit import estimator

        metric, site, skill = conditions
        low, high = self.observed
        if isinstance(self.parameters, SurfaceParameters):
            finite = np.asarray(np.isfinite(metric).all(axis=1))
            outside = "nobody, or too few riders, met these conditions together, so they have no suitability"
            has_band = np.array([name not in self.parameters.incomparable for name in (*self.parameters.sites, "")])
        else:
            finite = np.asarray(np.isfinite(metric))
            outside = (
                f"outside the observed range {low:g} to {high:g}, and this fit has no expert curve to answer from; "
                "fit with --anchor to score there"
            )
            has_band = np.array([name in self.parameters.bands for name in (*self.parameters.sites, "")])
        return [
            Refusal(~finite, "the metric must be a finite number"),
            Refusal(
                mask(pc.and_(pc.is_valid(site), pc.invert(pc.is_in(site, value_set=self.sites)))),
                f"this fit has no site of that name; `isuit show --all` lists the {len(self.sites)} it has",
            ),
            Refusal(np.isnan(skill) & (not self.single), "give a skill: beginner, intermediate, expert or a number"),
            Refusal(np.isinf(skill), NO_SKILL),
            Refusal(self.outside(metric) & (not self.anchored), outside),
            # The last of `has_band` is the shared curve's, which `NO_SITE` picks.
            Refusal(~has_band[self._codes(site)], estimator.NO_DIFFICULTY),
        ]

    def reasons(self, conditions: Conditions) -> pa.Array:
        """Why each row cannot be scored, the first reason of several; null where it can."""
        refusals = self.refusals(conditions)
        first = np.full(len(conditions.metric), len(refusals))
        for number, refusal in reversed(list(enumerate(refusals))):
            first[refusal.rows] = number
        told = pa.array([*(refusal.reason for refusal in refusals), None], pa.string())
        return told.take(pa.array(first))

    def score(self, conditions: Conditions) -> Scored:
        """Rows that can all be scored, at once."""
        from isuit import estimator

        where, skill = self._codes(conditions.site), np.nan_to_num(conditions.skill)
        if isinstance(self.parameters, SurfaceParameters):
            return estimator.score_surface(self.parameters, conditions.metric, where, skill)
        return estimator.score_rows(self.parameters, conditions.metric, where, skill)

    def difficulty(self, metric: FloatArray, site: str | None) -> tuple[FloatArray, FloatArray]:
        """Difficulty and its standard error at these metrics, NaN where nobody was observed."""
        from isuit import estimator

        if isinstance(self.parameters, SurfaceParameters):
            raise InputError("this fit has several metrics: its difficulty along each is in its curves")
        if not isinstance(self.parameters, LatentCurves):
            raise InputError("this fit is a single curve: it has a suitability and no difficulty; score it instead")
        where = Conditions(metric, pa.array([site] * metric.size, pa.string()), np.zeros(metric.size))
        for refusal in self.refusals(where):
            if refusal.rows.any() and not (refusal.rows <= self.outside(metric)).all():
                raise InputError(refusal.reason)
        found = estimator.difficulty_rows(self.parameters, metric, self._codes(where.site))
        unknown = self.outside(metric) & (not self.anchored)
        return np.where(unknown, np.nan, found.difficulty), np.where(unknown, np.nan, found.se)

    def _codes(self, site: pa.Array) -> IntArray:
        """The place of each site among the parameters' sites; NO_SITE without a site, or where sites have no curves."""
        found = pc.index_in(site, value_set=pa.array(self.parameters.sites, pa.string()))
        return np.asarray(pc.fill_null(found, NO_SITE), dtype=np.int64)


def score(
    store_path: Path,
    reference: str,
    metric: float | Mapping[str, float],
    skill: str | float | None,
    site: str | None = None,
    wait: float = DEFAULT_WAIT,
) -> ScoreReport:
    """Suitability at one condition, with its 95 % band. Of several metrics it has a value of each, by name."""
    level = None if skill is None else skill_value(skill)
    return score_with(Scorer.of(store_path, reference, wait), metric, level, site)


def score_with(
    scorer: Scorer, metric: float | Mapping[str, float], skill: str | float | None, site: str | None = None
) -> ScoreReport:
    """The same of a fit that is at hand."""
    level = None if skill is None else skill_value(skill)
    one = Conditions(
        one_condition(metric, scorer.metrics),
        pa.array([site], pa.string()),
        np.array([np.nan if level is None else level]),
    )
    for reason in scorer.reasons(one).drop_null().to_pylist():
        raise InputError(reason)
    scored = scorer.score(one)
    notes, outside = [], bool(scorer.outside(one.metric)[0])
    if scorer.single:
        notes.append("this fit is a single curve: it answers for the population, whatever the skill")
    if outside:
        low, high = scorer.observed
        notes.append(f"outside the observed range {low:g} to {high:g}: the expert curve answers")
    return ScoreReport(
        fit_id=scorer.record.fit_id,
        kind=scorer.record.kind,
        metric=metric if isinstance(metric, (int, float)) else dict(metric),
        site=site,
        skill=None if scorer.single else level,
        suitability=float(scored.suitability[0]),
        lower=float(scored.lower[0]),
        upper=float(scored.upper[0]),
        from_anchor=outside,
        notes=notes,
    )


def score_table(
    store_path: Path,
    reference: str,
    conditions: pa.Table,
    skill: str | float | None = None,
    wait: float = DEFAULT_WAIT,
    strict: bool = False,
) -> pa.Table:
    """Conditions (metric and, if there are, site and skill) with suitability, lower, upper, from_anchor, reason.

    A row that cannot be scored has empty scores and a reason, the others an empty reason; `strict` refuses such a row.
    """
    return score_conditions(Scorer.of(store_path, reference, wait), conditions, skill, strict)


def score_conditions(
    scorer: Scorer, conditions: pa.Table, skill: str | float | None = None, strict: bool = False
) -> pa.Table:
    """The same by a fit that is at hand."""
    read = conditions_of(conditions, scorer.metrics, skill)
    if not scorer.single and skill is None and "skill" not in conditions.column_names:
        raise InputError("declare a skill with --skill, or one for each row in a column skill of the conditions")
    reasons = scorer.reasons(read)
    refused = mask(reasons.is_valid())
    if strict and refused.any():
        row = int(refused.argmax())
        raise InputError(f"row {row + 1} of the conditions: {reasons[row]}")
    kept = pa.array(~refused)
    scored = scorer.score(Conditions(read.metric[~refused], read.site.filter(kept), read.skill[~refused]))
    found = {**scored._asdict(), "from_anchor": scorer.outside(read.metric[~refused])}
    for name, values in (*((name, _spread(values, refused)) for name, values in found.items()), ("reason", reasons)):
        if name in conditions.column_names:
            conditions = conditions.drop_columns([name])
        conditions = conditions.append_column(name, values)
    return conditions


def _spread(values: NDArray[Any], refused: NDArray[np.bool_]) -> pa.Array:
    """The values of the rows that were scored at their places among all rows, null elsewhere."""
    everywhere = np.zeros(refused.size, values.dtype)
    everywhere[~refused] = values
    return pa.array(everywhere, mask=refused)


def score_file(
    store_path: Path,
    reference: str,
    conditions: Path,
    out: Path,
    skill: str | None = None,
    wait: float = DEFAULT_WAIT,
    strict: bool = False,
) -> ScoredConditions:
    """A file of conditions in, the same with scores out."""
    require_format(out)
    scored = score_table(store_path, reference, read_table(conditions), skill, wait, strict)
    write_table(scored, out)
    counted = scored.column("reason").drop_null().value_counts().to_pylist()
    return ScoredConditions(
        rows=scored.num_rows, not_scored={entry["values"]: entry["counts"] for entry in counted}, out=str(out)
    )
