"""`isuit score`: suitability for a declared skill. The skill is an input; no rider can be named here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from isuit.domain import SKILL_LEVELS
from isuit.errors import InputError
from isuit.published import ScoredConditions, ScoreReport, reading
from isuit.record import Parameters
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import StoredFit, atlas_rows, find_fit
from isuit.tables import read_table, require_format, write_table


def skill_value(level: str | float) -> float:
    """A declared skill: beginner, intermediate, expert, or a number in units of the population's sd."""
    if isinstance(level, str) and level.strip().lower() in SKILL_LEVELS:
        return SKILL_LEVELS[level.strip().lower()]
    try:
        value = float(level)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"--skill takes {', '.join(SKILL_LEVELS)} or a number; a rider cannot be named here")
    return value


@dataclass(frozen=True)
class Scorer:
    """One fit, ready to score: its record, its sites and the metric's observed range."""

    record: StoredFit
    parameters: Parameters
    sites: frozenset[str]
    observed: tuple[float, float]
    anchored: bool

    @classmethod
    def of(cls, store_path: Path, reference: str, wait: float) -> Scorer:
        with open_store(store_path, wait=wait) as store:
            record = find_fit(store.connection, reference)
            atlas = atlas_rows(store.connection, record.fit_id)
        parameters = reading.parameters(record.parameters)
        return cls(
            record,
            parameters,
            frozenset(site for site in atlas.column("site").to_pylist() if site is not None),
            parameters.metric_range,
            record.json("configuration")["anchor"] is not None,
        )

    def score(self, metric: float, site: str | None, skill: float | None) -> ScoreReport:
        from isuit import estimator

        record, notes = self.record, []
        if not math.isfinite(metric):
            raise InputError("--metric takes a finite number")
        if site is not None and site not in self.sites:
            raise InputError(
                f"this fit has no site {site!r}; it has {len(self.sites)}: `isuit show` lists their curves"
            )
        single = record.kind == "single-curve"
        if single:
            notes.append("this fit is a single curve: it answers for the population, whatever the skill")
            skill = None
        elif skill is None:
            raise InputError("give a skill: beginner, intermediate, expert or a number")
        low, high = self.observed
        outside = not low <= metric <= high
        if outside and not self.anchored:
            raise InputError(
                f"{metric:g} is outside the observed range {low:g} to {high:g}, and this fit has no expert curve to "
                "answer from; fit with --anchor to score there"
            )
        if outside:
            notes.append(f"outside the observed range {low:g} to {high:g}: the expert curve answers")
        suitability, lower, upper = estimator.score(self.parameters, metric, site, 0.0 if skill is None else skill)
        return ScoreReport(
            fit_id=record.fit_id,
            kind=record.kind,
            metric=metric,
            site=site,
            skill=skill,
            suitability=suitability,
            lower=lower,
            upper=upper,
            from_anchor=outside,
            notes=notes,
        )


def score(
    store_path: Path,
    reference: str,
    metric: float,
    skill: str | float | None,
    site: str | None = None,
    wait: float = DEFAULT_WAIT,
) -> ScoreReport:
    """Suitability at one condition, with its 95 % band."""
    level = None if skill is None else skill_value(skill)
    return Scorer.of(store_path, reference, wait).score(metric, site, level)


def score_table(
    store_path: Path, reference: str, conditions: pa.Table, skill: str | float | None = None, wait: float = DEFAULT_WAIT
) -> pa.Table:
    """Conditions (columns metric and, if there are, site and skill) with suitability, lower, upper and from_anchor."""
    if "metric" not in conditions.column_names:
        raise InputError("the conditions need a column metric; site and skill are optional")
    scorer = Scorer.of(store_path, reference, wait)
    try:
        metrics = conditions.column("metric").cast(pa.float64()).to_pylist()
    except pa.ArrowException:
        raise InputError("the conditions' column metric holds something that is no number") from None
    nothing = [None] * len(metrics)
    sites = conditions.column("site").cast(pa.string()).to_pylist() if "site" in conditions.column_names else nothing
    skills = conditions.column("skill").to_pylist() if "skill" in conditions.column_names else nothing
    reports = []
    for row, (metric, site, level) in enumerate(zip(metrics, sites, skills, strict=True), start=1):
        declared = skill if level is None else level
        try:
            value = None if declared is None else skill_value(declared)
            reports.append(scorer.score(math.nan if metric is None else metric, site or None, value))
        except InputError as error:
            raise InputError(f"row {row} of the conditions: {error}") from None
    for name in ("suitability", "lower", "upper", "from_anchor"):
        column = pa.array([getattr(report, name) for report in reports])
        if name in conditions.column_names:
            conditions = conditions.drop_columns([name])
        conditions = conditions.append_column(name, column)
    return conditions


def score_file(
    store_path: Path,
    reference: str,
    conditions: Path,
    out: Path,
    skill: str | None = None,
    wait: float = DEFAULT_WAIT,
) -> ScoredConditions:
    """A file of conditions in, the same with scores out."""
    require_format(out)
    scored = score_table(store_path, reference, read_table(conditions), skill, wait)
    write_table(scored, out)
    return ScoredConditions(rows=scored.num_rows, out=str(out))
