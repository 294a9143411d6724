"""`isuit report FIT`: one page to look at, with everything that is known about a fit and nothing about a person."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from isuit.pages import page, write_page
from isuit.published import FitDetail, PageWritten
from isuit.record import Diagnostics
from isuit.record.diagnostics import SkillDistribution
from isuit.service.history import show
from isuit.service.stores import DEFAULT_WAIT

HOW = (
    "The fit follows from the cohort and the configuration that its id names. With the store, the first command refits "
    "it; with a copy of the cohort, the others do so without trusting the store."
)


def report(store_path: Path, reference: str, out: Path, wait: float = DEFAULT_WAIT) -> PageWritten:
    """Write the page of a fit."""
    shown = show(store_path, reference, wait)
    title = f"{shown.fit.activity}: {shown.fit.dimension}, {shown.fit.fit_id[:17]}"
    write_page(out, page(title, "fit", page_data(shown)))
    return PageWritten(fit_id=shown.fit.fit_id, cohort_hash=shown.fit.cohort_hash, out=str(out))


def page_data(shown: FitDetail) -> dict[str, Any]:
    """What the page draws: aggregates of a fit's record, by name, so that nothing else can slip in."""
    fit, cohort = shown.fit, shown.cohort
    return {
        "activity": fit.activity,
        "dimension": fit.dimension,
        "discrimination": fit.discrimination,
        "summary": f"{cohort.outcomes:,} outcomes of {cohort.riders:,} riders; a {fit.kind} fit.",
        "curves": _curves(shown),
        "facts": _facts(shown),
        "gate": _gate(shown),
        "calibration": _calibration(shown.diagnostics),
        "how": HOW,
        "commands": [
            f"isuit rederive {fit.fit_id}",
            f"isuit rederive {fit.fit_id} --cohort FILE",
            f"isuit hash FILE    # must print {fit.cohort_hash}",
        ],
    }


def _curves(shown: FitDetail) -> list[dict[str, Any]]:
    curves = []
    for site, group in groupby(shown.curves, key=lambda point: point.site):
        points = list(group)
        known = all(point.difficulty is not None and point.difficulty_se is not None for point in points)
        curves.append(
            {
                "site": site,
                "metric": [point.metric for point in points],
                "difficulty": [point.difficulty for point in points] if known else None,
                "se": [point.difficulty_se for point in points] if known else None,
                "suitability": [point.suitability for point in points],
            }
        )
    # The shared curve first, then the sites by name.
    return sorted(curves, key=lambda curve: (curve["site"] is not None, curve["site"] or ""))


def _facts(shown: FitDetail) -> list[tuple[str, str | list[str] | None]]:
    fit, cohort = shown.fit, shown.cohort
    a = None if fit.discrimination is None else f"{fit.discrimination:.3f}"
    if a is not None and fit.discrimination_interval is not None:
        low, high = fit.discrimination_interval
        a += f" (95 %: {low:.3f} to {high:.3f})"
    span = None
    if cohort.observed_from is not None and cohort.observed_until is not None:
        span = f"{cohort.observed_from:%Y-%m-%d} to {cohort.observed_until:%Y-%m-%d}"
    return [
        ("Fit", fit.fit_id),
        ("Cohort", fit.cohort_hash),
        ("Outcomes", f"{cohort.outcomes:,} of {cohort.riders:,} riders, {cohort.sites:,} sites"),
        ("Observed", span),
        ("Kind", fit.kind),
        ("Discrimination", a),
        ("Log-likelihood", f"{fit.log_likelihood:.2f}"),
        ("Result digest", fit.result_digest),
        ("Recorded", f"{fit.recorded_at:%Y-%m-%d %H:%M} UTC"),
        ("Made with", f"isuit {fit.tool_version}, estimator {fit.estimator_version}"),
        ("Public release", "can enter one" if shown.releasable.ok else ["cannot enter one", *shown.releasable.missing]),
    ]


def _gate(shown: FitDetail) -> list[tuple[str, str | list[str] | None]]:
    gate, promotion, held = shown.fit.identification, shown.fit.promotion, shown.fit.held_out
    exposure = shown.diagnostics.exposure
    return [
        ("Identification", [f"{_passed(gate.ok)} ({gate.reading})", *gate.shortfalls]),
        (
            "Core",
            f"{gate.core_share:.1%} of outcomes, {gate.core_riders:,} of {gate.riders:,} riders, {gate.bins} bins",
        ),
        ("Promotion", None if promotion is None else [_passed(promotion.ok), *promotion.shortfalls]),
        (
            "Test of no skill",
            None if promotion is None or promotion.p_value is None else f"p = {promotion.p_value:.2g}",
        ),
        (
            "Held-out Brier skill",
            None if held is None else f"{held.brier_skill:+.3f} (standard error {held.brier_skill_se:.3f}) over the "
            f"single curve, on {held.outcomes:,} outcomes, split by {held.split}",
        ),
        ("Exposure", None if exposure is None else exposure.sentence),
        ("Skill", _skill(shown.diagnostics.skill_distribution)),
    ]  # fmt: skip


def _skill(found: SkillDistribution | None) -> list[str] | None:
    """How skill is distributed, where a density was asked for, and which percentiles the declared levels are."""
    if found is None:
        return None
    how = "its density is estimated" if found.estimated else "normal"
    levels = ", ".join(f"{name}: {share:.0f}th percentile" for name, share in found.percentiles.items())
    return [how, *([found.sentence] if found.sentence else []), levels]


def _passed(ok: bool) -> str:
    return "passed" if ok else "failed"


def _calibration(diagnostics: Diagnostics) -> dict[str, list[float]] | None:
    """Predicted against observed shares of held-out outcomes, where the fit's record has them."""
    groups = diagnostics.calibration
    if not groups:
        return None
    return {name: [getattr(group, name) for group in groups] for name in ("predicted", "observed", "outcomes")}
