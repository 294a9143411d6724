"""`isuit rederive`: fit again from the same outcomes and compare with what was recorded.

identical    the same result digest, and no skill differs by more than the digest's quantum
equivalent   not the same digest, but nothing differs by more than `TOLERANCE`
erased       rows are gone: the remainder is one that was committed to, and its refit shows how far the curve moves
diverged     anything else: the recorded numbers do not follow from these outcomes
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.audit.results import QUANTUM, TOLERANCE, largest_difference, result_digest
from isuit.domain import Estimate, FitConfig, FloatArray
from isuit.store.fits import StoredFit, curve_rows, skill_table

Verdict = Literal["identical", "equivalent", "erased", "diverged"]


@dataclass(frozen=True)
class Rederivation:
    """How a refit compares with the record; differences are absolute, None where nothing can be compared."""

    verdict: Verdict
    curve: float | None = None
    discrimination: float | None = None
    skill: float | None = None
    skills_compared: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def largest(self) -> float | None:
        known = [value for value in (self.curve, self.discrimination, self.skill) if value is not None]
        return max(known) if known and all(math.isfinite(value) for value in known) else None


def recorded_config(record: StoredFit) -> FitConfig:
    """The configuration a fit was made with."""
    values = record.json("configuration")
    if values["anchor"] is not None:
        values["anchor"] = tuple((x, suitability) for x, suitability in values["anchor"])
    if values["observed_until"] is not None:
        values["observed_until"] = date.fromisoformat(values["observed_until"])
    return FitConfig(**values)


def compare(
    record: StoredFit, atlas: pa.Table, skills: pa.Table | None, estimate: Estimate, *, erased: bool
) -> Rederivation:
    """The recorded result against a new estimate; `skills` are those still held, None where none are at hand."""
    again = curve_rows(estimate)
    curve = _moved(atlas, again) if erased else _curve_difference(atlas, again)
    discrimination = _difference(record.discrimination, estimate.discrimination)
    skill, compared = _skill_difference(skills, estimate)
    if erased:
        return Rederivation("erased", curve, discrimination, skill, compared)
    digest = result_digest(estimate.kind, estimate.discrimination, estimate.discrimination_se, again)
    known = [value for value in (curve, discrimination, skill) if value is not None]
    verdict: Verdict = "diverged"
    if digest == record.result_digest and (skill or 0.0) <= QUANTUM:
        verdict = "identical"
    elif estimate.kind == record.kind and known and max(known) <= TOLERANCE:
        verdict = "equivalent"
    return Rederivation(verdict, curve, discrimination, skill, compared)


def _curve_difference(before: pa.Table, after: pa.Table) -> float | None:
    """The largest difference of difficulty, its standard error or suitability, where both have the same points."""
    if before.num_rows != after.num_rows or before.column("site").to_pylist() != after.column("site").to_pylist():
        return None
    if largest_difference(before, after, ("metric",)) > 1e-6 * _scale(before):
        return None
    difference = largest_difference(before, after, ("difficulty", "difficulty_se", "suitability"))
    return difference if math.isfinite(difference) else None


def _moved(before: pa.Table, after: pa.Table) -> float | None:
    """How far a curve moved, where the riders who are left also rode: the grid may differ, so it is interpolated."""
    largest: list[float] = []
    for site in {*before.column("site").to_pylist()} & {*after.column("site").to_pylist()}:
        left, right = _at_site(before, site), _at_site(after, site)
        inside = (left["metric"] >= right["metric"].min()) & (left["metric"] <= right["metric"].max())
        for column in ("difficulty", "suitability"):
            change = np.abs(left[column] - np.interp(left["metric"], right["metric"], right[column]))[inside]
            if np.isfinite(change).any():
                largest.append(float(np.nanmax(change)))
    return max(largest, default=None)


def _at_site(atlas: pa.Table, site: str | None) -> dict[str, FloatArray]:
    chosen = pc.is_null(atlas.column("site")) if site is None else pc.equal(atlas.column("site"), site)
    table = atlas.filter(chosen)
    return {
        name: table.column(name).to_numpy(zero_copy_only=False).astype(float)
        for name in ("metric", "difficulty", "suitability")
    }


def _scale(atlas: pa.Table) -> float:
    metric = atlas.column("metric").to_numpy()
    return float(abs(metric).max(initial=1.0))


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else abs(before - after)


def _skill_difference(skills: pa.Table | None, estimate: Estimate) -> tuple[float | None, int]:
    """Riders whom both have; the recorded skill of an erased rider is gone, and that is no difference."""
    if skills is None or estimate.skills is None or not skills.num_rows:
        return None, 0
    columns = ["rider", "skill_mean", "skill_sd"]
    left = skills.select(columns).sort_by("rider")
    right = skill_table(estimate.skills).select(columns).sort_by("rider")
    common = set(left.column("rider").to_pylist()) & set(right.column("rider").to_pylist())
    if not common:
        return None, 0
    chosen = pa.array(sorted(common), pa.string())
    left, right = (table.filter(pc.is_in(table.column("rider"), chosen)) for table in (left, right))
    return largest_difference(left, right, ("skill_mean", "skill_sd")), len(common)
