"""`isuit rederive`: fit again from the same outcomes and compare with every number that was recorded.

identical    refit and record have the same result digest, no stored number differs by more than the digest's quantum,
             and record, curves and skills are the ones that the log speaks of
equivalent   the same, but for differences up to `TOLERANCE`: another processor's last bits
erased       rows are gone: the remainder is one that was committed to, and its refit shows how far the curve moves;
             record, curves and the skills still held are the ones that the log speaks of
diverged     anything else, and every part that disagrees is named
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from typing import Any, Literal, get_args

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.audit import subjects
from isuit.audit.digests import rows_digest
from isuit.audit.log import read_log
from isuit.audit.results import QUANTUM, TOLERANCE, largest_difference, number_difference, result_digest
from isuit.audit.verification import Expected, Verification
from isuit.domain import WORDS, Estimate, FitConfig, FloatArray
from isuit.errors import InputError
from isuit.record import as_json
from isuit.store.fits import StoredFit, curve_rows, path_of, skill_table

Verdict = Literal["identical", "equivalent", "erased", "diverged"]
# Where each part of a result is stored.
PLACES = {
    "curves": "atlas.difficulty",
    "discrimination": "ledger.fits",
    "log-likelihood": "ledger.fits",
    "gates": "ledger.fits",
    "held-out scores": "ledger.fits",
    "parameters": "ledger.fits",
    "diagnostics": "ledger.fits",
    "skills": "personal.skills",
}
# What estimators did with a word that they did not know.
TAKEN_FOR = {
    "gate": "core",
    "exposure": "independent",
    "split": "occasion",
    "skill": "normal",
    "discrimination": "constant",
}


@dataclass(frozen=True)
class Rederivation:
    """How a refit compares with the record: the largest difference of each part, infinite where one has more numbers.

    `disagreements` says in sentences what makes a verdict `diverged`.
    """

    verdict: Verdict
    differences: dict[str, float] = field(default_factory=dict)
    skills_compared: int = 0
    disagreements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def difference(self, part: str) -> float | None:
        """Of one part; None where nothing can be compared."""
        found = self.differences.get(part, math.inf)
        return found if math.isfinite(found) else None

    @property
    def largest(self) -> float | None:
        largest = max(self.differences.values(), default=math.inf)
        return largest if math.isfinite(largest) else None


def recorded_config(record: StoredFit) -> FitConfig:
    """The configuration a fit was made with.

    Earlier versions recorded any word for gate, exposure and split, and a time for a day; a word that they did not
    know is read here as they took it.
    """
    try:
        values = record.json("configuration")
        unknown = values.keys() - {option.name for option in fields(FitConfig)}
        values.setdefault("skill", "normal")
        values.setdefault("discrimination", "constant")
        for name, kinds in WORDS.items():
            if values[name] not in get_args(kinds):
                values[name] = TAKEN_FOR[name]
        if values["anchor"] is not None:
            values["anchor"] = tuple((x, suitability) for x, suitability in values["anchor"])
        values["anchors"] = tuple(
            (name, tuple((x, suitability) for x, suitability in points))
            for name, points in sorted(values.get("anchors", {}).items())
        )
        values["nearby"] = tuple((site, *place) for site, *place in values.get("nearby", []))
        if values["observed_until"] is not None:
            values["observed_until"] = date.fromisoformat(values["observed_until"][:10])
        if not unknown:
            return FitConfig(**values)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError("the configuration that is recorded with this fit is none; `isuit verify` says more") from None
    raise InputError(
        f"this fit was made by isuit {record.tool_version} with an option that this version does not have; "
        "rederive it with that version"
    )


def check_stored(connection: duckdb.DuckDBPyConnection, record: StoredFit) -> list[str]:
    """Whether record, curves and skills of a fit are, to the bit, the ones that the log speaks of; what disagrees."""
    found = Verification()
    with found.checking("ledger.log"):
        expected = Expected.from_events(read_log(connection), found)
        for table in ("ledger.fits", "atlas.difficulty"):
            digest = rows_digest(connection, table, [record.fit_id])[record.fit_id]
            if digest != expected.rows.get(table, {}).get(record.fit_id):
                found.disagree(table, f"what {table} holds of this fit is not what was logged")
    with found.checking("personal.skills"):
        erased = subjects.erased_leaves(connection).get(record.fit_id, [])
        subjects.check_fit(connection, record, erased, found)
    return [sentence for _, sentence in found.disagreements]


def compare(
    record: StoredFit,
    atlas: pa.Table,
    skills: pa.Table | None,
    estimate: Estimate,
    *,
    erased: bool,
    disagreements: list[str],
) -> Rederivation:
    """The recorded result against a new estimate.

    `skills` are those still held, None where none are at hand; `disagreements` what `check_stored` found before.
    """
    again = curve_rows(estimate)
    differences, compared = {}, 0
    if skills is not None and skills.num_rows:
        differences["skills"], compared = _skill_difference(skills, estimate, erased=erased)
    if erased:
        # Other rows give other numbers: how far they are apart is told, and is no disagreement.
        differences["curves"] = _moved(atlas, again)
        differences["discrimination"] = number_difference(record.discrimination, estimate.discrimination)
        return Rederivation("diverged" if disagreements else "erased", differences, compared, disagreements)
    differences["curves"] = _curve_difference(atlas, again)
    differences |= _record_differences(record, estimate)
    named = list(disagreements)
    if estimate.kind != record.kind:
        named.append("ledger.fits: the kind is not the one that was fitted again")
    for part, difference in differences.items():
        if difference > TOLERANCE:
            how = f"by {difference:.3g}" if math.isfinite(difference) else "in their number"
            named.append(f"{PLACES[part]}: the stored {part} differ from those fitted again {how}")
    digest = result_digest(estimate.kind, estimate.discrimination, estimate.discrimination_se, again)
    verdict: Verdict = "equivalent"
    if named:
        verdict = "diverged"
    elif digest == record.result_digest and max(differences.values()) <= QUANTUM:
        verdict = "identical"
    return Rederivation(verdict, differences, compared, named)


def _record_differences(record: StoredFit, estimate: Estimate) -> dict[str, float]:
    """What `ledger.fits` holds against the new estimate, by part."""
    gates = (asdict(estimate.identification), asdict(estimate.promotion) if estimate.promotion else None)
    pairs: dict[str, tuple[Any, Any]] = {
        "discrimination": (
            (record.discrimination, record.discrimination_se),
            (estimate.discrimination, estimate.discrimination_se),
        ),
        "log-likelihood": (record.log_likelihood, estimate.log_likelihood),
        "gates": ((record.json("identification"), record.json("promotion")), gates),
        "held-out scores": (record.json("held_out"), asdict(estimate.held_out) if estimate.held_out else None),
        "parameters": (record.json("parameters"), as_json(estimate.parameters)),
        "diagnostics": (_told(record.json("diagnostics")), _told(as_json(estimate.diagnostics))),
    }
    return {part: number_difference(before, after) for part, (before, after) in pairs.items()}


def _told(diagnostics: Any) -> Any:
    """Without the way to the maximum: on another processor it can take a step more to the same place."""
    if not isinstance(diagnostics, dict):
        return diagnostics
    return {name: value for name, value in diagnostics.items() if name != "convergence"}


def _curve_difference(before: pa.Table, after: pa.Table) -> float:
    """The largest difference of difficulty, its standard error or suitability, where both have the same points."""
    if before.num_rows != after.num_rows or _keys(before) != _keys(after):
        return math.inf
    if largest_difference(before, after, ("metric",)) > 1e-6 * _scale(before):
        return math.inf
    return largest_difference(before, after, ("difficulty", "difficulty_se", "suitability"))


def _moved(before: pa.Table, after: pa.Table) -> float:
    """How far a curve moved, where the riders who are left also rode: the grid may differ, so it is interpolated."""
    largest: list[float] = []
    for key in _curves(before) & _curves(after):
        left, right = _one_curve(before, key), _one_curve(after, key)
        inside = (left["metric"] >= right["metric"].min()) & (left["metric"] <= right["metric"].max())
        for column in ("difficulty", "suitability"):
            change = np.abs(left[column] - np.interp(left["metric"], right["metric"], right[column]))[inside]
            if np.isfinite(change).any():
                largest.append(float(np.nanmax(change)))
    return max(largest, default=math.inf)


def _keys(atlas: pa.Table) -> list[tuple[str | None, str | None]]:
    """The site of each point and, of several metrics, the one that its curve runs along."""
    along = atlas.column("dimension").to_pylist()
    return list(
        zip(atlas.column("site").to_pylist(), along if len(set(along)) > 1 else [None] * len(along), strict=True)
    )


def _curves(atlas: pa.Table) -> set[tuple[str | None, str | None]]:
    return set(_keys(atlas))


def _one_curve(atlas: pa.Table, key: tuple[str | None, str | None]) -> dict[str, FloatArray]:
    table = atlas.filter(pa.array([found == key for found in _keys(atlas)]))
    return {
        name: table.column(name).to_numpy(zero_copy_only=False).astype(float)
        for name in ("metric", "difficulty", "suitability")
    }


def _scale(atlas: pa.Table) -> float:
    metric = atlas.column("metric").to_numpy()
    return float(abs(metric).max(initial=1.0))


def _skill_difference(skills: pa.Table, estimate: Estimate, *, erased: bool) -> tuple[float, int]:
    """Every number of the skills still held, and of how many riders; an erased rider's skill is gone, no difference.

    From the whole cohort, every rider with a stored skill has one again; from a remainder, those whom the core keeps.
    """
    again = None if estimate.skills is None else skill_table(estimate.skills)
    if again is None:
        return math.inf, 0
    left = skills.filter(pc.is_in(skills.column("rider"), again.column("rider"))).sort_by("rider")
    right = again.filter(pc.is_in(again.column("rider"), left.column("rider"))).sort_by("rider")
    if left.num_rows != right.num_rows or (not erased and left.num_rows < skills.num_rows):
        return math.inf, right.num_rows
    # With rows gone the bins lie elsewhere: how many a rider was seen in says nothing about how far the skill moved.
    counted = () if erased else ("n_outcomes", "n_bins", "usable")
    largest = largest_difference(left, right, ("skill_mean", "skill_sd", *counted))
    return max(largest, _path_difference(left, right)), left.num_rows


def _path_difference(left: pa.Table, right: pa.Table) -> float:
    """Of riders' skill day by day, where it moves; infinite where days differ or only one of the two has any."""
    largest = 0.0
    for one, other in zip(left.column("path").to_pylist(), right.column("path").to_pylist(), strict=True):
        if (one is None) != (other is None):
            return math.inf
        if one is None:
            continue
        before, after = path_of(one), path_of(other)
        if [one.day for one in before] != [one.day for one in after]:
            return math.inf
        gaps = np.abs(np.array([one[1:] for one in before]) - np.array([one[1:] for one in after]))
        largest = max(largest, float(gaps.max(initial=0.0)))
    return largest
