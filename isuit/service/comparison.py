"""`isuit compare`: two fits of one activity and dimension beside each other.

Each fit has its own riders as origin and unit of difficulty. Curves are compared as they are, or, linked, on the scale
of the first: then the riders of both, whose skill should on average be the same, say how the second is carried there.

The band of a difference takes the two estimates as independent. Where fits share outcomes they are not, and the band is
too wide: a difference that it tells is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.domain import Z95, FloatArray
from isuit.errors import InputError
from isuit.published import Changed, ComparedFit, ComparedPoint, Comparison, reading
from isuit.record import SurfaceParameters
from isuit.record.parameters import LatentCurves
from isuit.service.details import aic
from isuit.service.scoring import Scorer
from isuit.service.scoring_conditions import Conditions
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import StoredFit, atlas_rows, find_fit, skill_rows

POINTS = 21  # of each curve that are compared


@dataclass(frozen=True)
class Side:
    """A fit as it is compared: its record, its curves and its skills."""

    record: StoredFit
    curves: pa.Table
    skills: pa.Table

    @property
    def scorer(self) -> Scorer:
        return Scorer.from_record(self.record, self.curves)


def compare(
    store_path: Path, first: str, second: str, *, linked: bool = False, wait: float = DEFAULT_WAIT
) -> Comparison:
    """Two fits of a store; the difference is always the second minus the first."""
    with open_store(store_path, wait=wait) as store:
        records = [find_fit(store.connection, reference) for reference in (first, second)]
        sides = [
            Side(record, atlas_rows(store.connection, record.fit_id), skill_rows(store.connection, record.fit_id))
            for record in records
        ]
    return compare_sides(*sides, linked=linked)


def compare_sides(first: Side, second: Side, *, linked: bool = False) -> Comparison:
    """The same of fits that are at hand."""
    _require_comparable(first, second)
    one, two = first.scorer, second.scorer
    latent = all(isinstance(scorer.parameters, LatentCurves) for scorer in (one, two))
    common, shared = _common_skills(first, second)
    notes: list[str] = []
    if linked and not latent:
        raise InputError("only two latent fits can be linked: a single curve has no scale of skill")
    scale, offset, link_se = _link(first, second, common, notes) if linked else (1.0, 0.0, 0.0)
    if not latent:
        notes.append("a single curve has no difficulty: the population's suitability is compared")
    if first.record.cohort_hash == second.record.cohort_hash or shared:
        notes.append("the two fits share outcomes or riders, so the band of their difference is wider than it need be")
    metric = _shared_metric(one, two)
    sites = [_sites(first.curves), _sites(second.curves)]
    points: list[ComparedPoint] = []
    for site in [None, *sorted(sites[0] & sites[1])]:
        before, after = (
            _difficulty(scorer, metric, site) if latent else _suitability(side, scorer, metric, site)
            for side, scorer in ((first, one), (second, two))
        )
        if before is not None and after is not None:  # else a site that no rider links to the others
            carried = scale * after[0] + offset, np.hypot(scale * after[1], link_se)
            points += _points(site, metric, before, carried)
    told = [point for point in points if point.lower is not None and not point.lower <= 0 <= (point.upper or 0.0)]
    return Comparison(
        first=_compared(first.record),
        second=_compared(second.record),
        compares="difficulty" if latent else "suitability",
        linked=linked,
        same_cohort=first.record.cohort_hash == second.record.cohort_hash,
        shared_riders=shared,
        configuration=_configuration(first.record, second.record),
        diagnostics=_diagnostics(first.record, second.record),
        differing=len(told),
        largest_difference=max((point.difference for point in points), key=abs, default=None),
        only_first=sorted(sites[0] - sites[1]),
        only_second=sorted(sites[1] - sites[0]),
        points=points,
        notes=notes,
    )


def _require_comparable(first: Side, second: Side) -> None:
    if first.record.fit_id == second.record.fit_id:
        raise InputError("these are one and the same fit; name two")
    topics = [(side.record.activity, side.record.dimension) for side in (first, second)]
    if topics[0] != topics[1]:
        raise InputError(
            "the two fits are of different activities or dimensions, so their difficulties mean different things; "
            "name two of the same"
        )
    if any(isinstance(side.scorer.parameters, SurfaceParameters) for side in (first, second)):
        raise InputError("fits of several metrics are not compared: their curves run along each metric by itself")


def _common_skills(first: Side, second: Side) -> tuple[tuple[FloatArray, FloatArray], int]:
    """The skills of the riders whom both fits have and can use, in each of the two; and how many both have."""
    tables = [side.skills.select(["rider", "skill_mean", "usable"]) for side in (first, second)]
    joined = tables[0].join(tables[1], "rider", join_type="inner", right_suffix="_second").sort_by("rider")
    usable = joined.filter(pc.field("usable") & pc.field("usable_second"))
    one, two = (usable.column(name).to_numpy() for name in ("skill_mean", "skill_mean_second"))
    return (one, two), joined.num_rows


def _link(
    first: Side, second: Side, common: tuple[FloatArray, FloatArray], notes: list[str]
) -> tuple[float, float, float]:
    """Scale, offset and its standard error, from the second fit's scale to the first's."""
    from isuit.estimator.linking import link_by_riders

    a, b = first.record.discrimination, second.record.discrimination
    assert a is not None
    assert b is not None
    found = link_by_riders(a, b, common)
    if found is None:
        raise InputError(
            f"the two fits share {common[0].size} riders with a usable skill, too few to link them; compare them "
            "without --linked"
        )
    notes.append(
        f"on the scale of the first by {common[0].size} riders of both: times {found.scale:.3f}, {found.offset:+.3f}"
    )
    return found.scale, found.offset, found.se


def _shared_metric(one: Scorer, two: Scorer) -> FloatArray:
    low, high = max(one.observed[0], two.observed[0]), min(one.observed[1], two.observed[1])
    if low > high:
        raise InputError("the two fits observed no condition in common, so there is nothing to compare")
    return np.linspace(low, high, POINTS) if low < high else np.array([low])


def _sites(curves: pa.Table) -> set[str]:
    return set(pc.unique(curves.column("site")).drop_null().to_pylist())


def _difficulty(scorer: Scorer, metric: FloatArray, site: str | None) -> tuple[FloatArray, FloatArray] | None:
    if site is not None and scorer.parameters.sites and site not in _banded(scorer):
        return None
    return scorer.difficulty(metric, site)


def _banded(scorer: Scorer) -> set[str]:
    assert not isinstance(scorer.parameters, SurfaceParameters)
    return set(scorer.parameters.bands)


def _suitability(
    side: Side, scorer: Scorer, metric: FloatArray, site: str | None
) -> tuple[FloatArray, FloatArray] | None:
    """The population's suitability; its standard error is told by a single curve alone, NaN otherwise."""
    if scorer.single:
        where = pa.array([site] * metric.size, pa.string())
        scored = scorer.score(Conditions(metric, where, np.zeros(metric.size)))
        return scored.suitability, (scored.upper - scored.lower) / (2 * Z95)
    column = side.curves.column("site")
    rows = side.curves.filter(pc.is_null(column) if site is None else pc.equal(column, site))
    if not rows.num_rows:
        return None
    along, value = rows.column("metric").to_numpy(), rows.column("suitability").to_numpy()
    return np.interp(metric, along, value), np.full(metric.size, np.nan)


def _points(
    site: str | None,
    metric: FloatArray,
    first: tuple[FloatArray, FloatArray],
    second: tuple[FloatArray, FloatArray],
) -> list[ComparedPoint]:
    difference = second[0] - first[0]
    reach = Z95 * np.hypot(first[1], second[1])
    return [
        ComparedPoint(
            site=site,
            metric=float(metric[place]),
            first=float(first[0][place]),
            second=float(second[0][place]),
            difference=float(difference[place]),
            lower=None if np.isnan(reach[place]) else float(difference[place] - reach[place]),
            upper=None if np.isnan(reach[place]) else float(difference[place] + reach[place]),
        )
        for place in range(metric.size)
        if np.isfinite(difference[place])
    ]


def _compared(record: StoredFit) -> ComparedFit:
    return ComparedFit(
        fit_id=record.fit_id, cohort_hash=record.cohort_hash, recorded_at=record.recorded_at, kind=record.kind
    )


def _configuration(first: StoredFit, second: StoredFit) -> list[Changed]:
    """What is not the same: the settings by name, then cohort and versions."""
    one, two = first.json("configuration"), second.json("configuration")
    changed = [(name, one.get(name), two.get(name)) for name in sorted({*one, *two})]
    changed += [(name, getattr(first, name), getattr(second, name)) for name in ("estimator_version", "tool_version")]
    return [Changed(name=name, first=before, second=after) for name, before, after in changed if before != after]


def _diagnostics(first: StoredFit, second: StoredFit) -> list[Changed]:
    one, two = _numbers(first), _numbers(second)
    return [Changed(name=name, first=one[name], second=two[name]) for name in one]


def _numbers(record: StoredFit) -> dict[str, Any]:
    """What one looks at first, by name."""
    found, held_out = reading.diagnostics(record.diagnostics), reading.held_out(record.held_out)
    freedom = found.effective_degrees_of_freedom
    return {
        "riders with a skill": record.skills,
        "discrimination": record.discrimination,
        "log-likelihood": record.log_likelihood,
        "effective degrees of freedom": freedom,
        "AIC": aic(record.log_likelihood, freedom),
        "held-out Brier skill": None if held_out is None else held_out.brier_skill,
        "reliability of skill": found.marginal_reliability,
    }
