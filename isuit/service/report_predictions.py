"""Sections of a report: what a fit predicts against what happened, kept back, by forecast and by condition."""

from __future__ import annotations

import math
from collections.abc import Sequence

from isuit.domain import Z95
from isuit.look import WORDS, axis, number, share, signed
from isuit.published import FitDetail
from isuit.record.predictions import Intervals, Scores
from isuit.service.report_section import Section, section


def scores(shown: FitDetail) -> Section | None:
    found = shown.diagnostics.scores
    if found is None:
        held = shown.fit.held_out
        if held is None:
            return None
        return section(
            "scores", "Does it predict what it has not seen?", _better(held.brier_skill, held.brier_skill_se * Z95),
            held.brier_skill > 0,
            facts=[("Held-out Brier skill", f"{signed(held.brier_skill, 3)} on {held.outcomes:,} outcomes")],
        )  # fmt: skip
    named = {"known riders": found.held_out, "new riders": found.new_riders, "new sites": found.new_sites}
    rows = [_score_row(name, scores) for name, scores in named.items() if scores is not None]
    first = next((scores for scores in named.values() if scores is not None), None)
    if first is None:
        return None
    interval = _interval_of(first)
    half = (interval[1] - interval[0]) / 2 if interval else 0.0
    columns = ["kept back", "outcomes", "Brier", "single curve", "Brier skill", "95 % interval", "log score gain"]
    return section(
        "scores",
        "Does it predict what it has not seen?",
        _better(first.brier_skill, half),
        first.brier_skill > 0,
        note="Brier skill is the share of the single curve's squared error that knowing skill removes; the intervals "
        "are by a bootstrap over whole riders. Smaller Brier and log scores are better.",
        table={"caption": "Outcomes kept back", "columns": columns, "rows": rows},
        facts=[(f"No score for {name.replace('_', ' ')}", why) for name, why in found.left_out.items()],
    )


def _better(skill: float, half: float) -> str:
    if skill - half > 0:
        return (
            f"On outcomes kept back, knowing who goes out removes {share(skill, 1)} of the error of one curve for all."
        )
    if skill + half < 0:
        return "On outcomes kept back it predicts worse than one curve for all."
    return "On outcomes kept back it predicts about as well as one curve for all."


def _interval_of(scores: Scores) -> tuple[float, float] | None:
    found: Intervals | None = scores.intervals.rider
    return None if found is None else found.brier_skill


def _score_row(name: str, scores: Scores) -> list[str]:
    interval = _interval_of(scores)
    between = "" if interval is None else f"{signed(interval[0], 3)} to {signed(interval[1], 3)}"
    return [
        name, f"{scores.outcomes:,}", f"{scores.brier:.4f}", f"{scores.brier_single_curve:.4f}",
        signed(scores.brier_skill, 3), between, signed(scores.log_score_gain, 4),
    ]  # fmt: skip


def wilson(successes: float, outcomes: float) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which stays between 0 and 1 and needs no large counts."""
    observed, z2 = successes / outcomes, Z95 * Z95
    middle = (observed + z2 / (2 * outcomes)) / (1 + z2 / outcomes)
    half = Z95 * math.sqrt(observed * (1 - observed) / outcomes + z2 / (4 * outcomes**2)) / (1 + z2 / outcomes)
    return max(0.0, middle - half), min(1.0, middle + half)


def calibration(shown: FitDetail) -> Section | None:
    groups = shown.diagnostics.calibration
    if not groups:
        return None
    intervals = [wilson(group.observed * group.outcomes, group.outcomes) for group in groups]
    inside = sum(low <= group.predicted <= high for group, (low, high) in zip(groups, intervals, strict=True))
    rows = [
        [share(group.predicted, 1), share(group.observed, 1), f"{share(low, 1)} to {share(high, 1)}",
         f"{group.outcomes:,}"]
        for group, (low, high) in zip(groups, intervals, strict=True)
    ]  # fmt: skip
    points = {
        "name": "observed", "x": [group.predicted for group in groups], "y": [group.observed for group in groups],
        "lower": [low for low, _ in intervals], "upper": [high for _, high in intervals],
        "marks": True, "errors": True, "points": True,
    }  # fmt: skip
    even = {"name": "", "x": [0, 1], "y": [0, 1], "dash": "2 4", "thin": True, "colour": "soft"}
    return section(
        "calibration",
        "When it says 70 %, does it happen seven times in ten?",
        f"In {inside} of {len(groups)} groups of outcomes kept back, the forecast lies within what chance allows.",
        inside >= len(groups) - max(1, len(groups) // 5),
        chart={"x": "predicted", "y": "observed", "domain": [0, 1], "range": [0, 1], "percent": True, "percent_x": True,
               "square": True, "series": [points, even], "hint": "On the dotted line: predicted as it came."},
        note="Held-out outcomes in groups of similar forecasts. The intervals take outcomes as independent (Wilson); "
        "those of one rider are not quite, so a group may lie a little outside by chance.",
        table={"caption": "Calibration", "columns": ["predicted", "observed", "95 % interval", "outcomes"],
               "rows": rows},
    )  # fmt: skip


def items(shown: FitDetail) -> Section | None:
    bands = shown.diagnostics.item_fit
    if not bands:
        return None
    intervals = [wilson(band.observed, band.outcomes) for band in bands]
    shares = [(band.observed / band.outcomes, band.expected / band.outcomes) for band in bands]
    worst = max(abs(observed - expected) for observed, expected in shares)
    middle = [(band.lower + band.upper) / 2 for band in bands]
    wide = [band for band in bands if band.upper > band.lower]
    most = max((band.outcomes / (band.upper - band.lower) for band in wide), default=1.0)
    observed = {
        "name": "observed", "x": middle, "y": [observed for observed, _ in shares], "marks": True, "errors": True,
        "points": True, "lower": [low for low, _ in intervals], "upper": [high for _, high in intervals],
    }  # fmt: skip
    expected = {"name": "expected", "x": middle, "y": [expected for _, expected in shares], "colour": "soft"}
    density = [{"from": b.lower, "to": b.upper, "height": b.outcomes / (b.upper - b.lower) / most} for b in wide]
    rows = [
        [f"{number(b.lower)} to {number(b.upper)}", f"{b.outcomes:,.0f}", share(o, 1), share(e, 1)]
        for b, (o, e) in zip(bands, shares, strict=True)
    ]
    ends = [bands[0].lower, bands[-1].upper]
    several = bool(shown.diagnostics.terms)  # then bands are of the difficulty that the fit gives a condition
    what, where = ("difficulty", WORDS["difficulty"]) if several else ("metric", axis(shown.fit.dimension))
    return section(
        "items",
        "Does the curve follow the data, and where are they?",
        f"Along the {what}, observed and expected success differ by at most {100 * worst:.1f} percentage points.",
        worst < 0.05,
        chart={"x": where, "y": "success", "percent": True, "domain": _ends(ends), "range": [0, 1],
               "series": [observed, expected], "density": density,
               "hint": "Grey columns: how many outcomes there are."} if len(bands) > 1 else None,
        note=f"Successes in bands of the {what} beside what the fit expects of the riders who were out.",
        table={"caption": f"By band of the {what}", "columns": [what, "outcomes", "observed", "expected"],
               "rows": rows},
    )  # fmt: skip


def _ends(ends: Sequence[float]) -> list[float]:
    low, high = ends
    return [low, high] if high > low else [low - 0.5, high + 0.5]
