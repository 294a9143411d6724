"""What a fit of real attempts shows: scores with their intervals, exposure, assumptions, and a picture.

    python benchmarks/validation.py weightlifting.parquet --picture docs/pictures/validation.svg

Fits the cohort with independent and with correlated exposure, `--split occasion`, and prints the tables of
docs/validation.md. The cohort is given by its path and is no part of this repository.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from isuit.domain import Z95, Estimate, Exposure, FitConfig
from isuit.estimator import fit
from isuit.ingest import read_cohort

COLOURS: dict[Exposure, str] = {"independent": "tab:orange", "correlated": "tab:blue"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", help="the cohort's file")
    parser.add_argument("--split", choices=("rider", "time", "occasion"), default="occasion")
    parser.add_argument("--picture", type=Path, help="also write the picture to this SVG or PNG file")
    asked = parser.parse_args()
    with read_cohort(asked.cohort) as cohort:
        data = cohort.observations()
    found: dict[Exposure, Estimate] = {}
    seconds: dict[Exposure, float] = {}
    for exposure in COLOURS:
        began = time.process_time()
        found[exposure] = fit(data, FitConfig(exposure=exposure, split=asked.split))
        seconds[exposure] = time.process_time() - began
    print(f"{len(data):,} outcomes of {len(data.riders):,} riders at {len(data.sites)} sites\n")
    print(table(found, seconds))
    for exposure, estimate in found.items():
        for sentence in sentences(estimate.diagnostics):
            print(f"- {exposure}: {sentence}")
    if asked.picture:
        draw(found, asked.picture)


def table(found: dict[Exposure, Estimate], seconds: dict[Exposure, float]) -> str:
    """One row for each figure, one column for each exposure."""
    rows: list[tuple[str, list[str]]] = [("CPU s of the whole fit", [f"{spent:.1f}" for spent in seconds.values()])]
    for name, tell in FIGURES:
        rows.append((name, [tell(estimate) for estimate in found.values()]))
    lines = [f"| | {' | '.join(found)} |", "|---" * (1 + len(found)) + "|"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)]) + "\n"


def _score(estimate: Estimate, kind: str, figure: str) -> str:
    score = estimate.diagnostics["scores"][kind]
    if score is None:
        return "none"
    told = f"{score[figure]:+.4f}"
    for by, interval in score["intervals"].items():
        if interval is not None:
            told += f"; by {by.replace('_', ' ')} {interval[figure][0]:+.4f} to {interval[figure][1]:+.4f}"
    return told


def _test(estimate: Estimate, name: str) -> str:
    test = estimate.diagnostics["assumptions"][name]
    if test is None:
        return "not tested"
    sizes = [f"{key.replace('_', ' ')} {test[key]:+.2f}" for key in SIZES if key in test]
    return ", ".join([f"p = {test['p_value']:.1g}", *sizes])


SIZES = ("relative_change_per_sd", "asymmetry", "tails")
FIGURES: tuple[tuple[str, Any], ...] = (
    ("discrimination", lambda e: f"{e.discrimination:.3f} (standard error {e.discrimination_se:.3f})"),
    ("Brier skill, held out", lambda e: _score(e, "held_out", "brier_skill")),
    ("gain in log score, held out", lambda e: _score(e, "held_out", "log_score_gain")),
    ("Brier skill, new riders", lambda e: _score(e, "new_riders", "brier_skill")),
    ("reliability part of the Brier score", lambda e: _parts(e, "reliability")),
    ("resolution part", lambda e: _parts(e, "resolution")),
    (
        "correlation of a rider's mean metric with skill",
        lambda e: f"{e.diagnostics['exposure']['correlation_of_mean_metric_with_skill']:+.2f}",
    ),
    (
        "those who go out minus the population",
        lambda e: (
            f"{e.diagnostics['marginal']['signed_difference']:+.2f} at {e.diagnostics['marginal']['at_metric']:.2f}"
        ),
    ),
    (
        "next metric with the last surprise",
        lambda e: f"{e.diagnostics['exposure']['past_outcomes']['correlation']:+.3f}",
    ),
    (
        "riders, outcomes outside the core",
        lambda e: f"{e.diagnostics['outside_core']['riders']:.1%}, {e.diagnostics['outside_core']['outcomes']:.1%}",
    ),
    ("marginal reliability of skill", lambda e: f"{e.diagnostics['marginal_reliability']:.2f}"),
    ("the same discrimination at all metrics", lambda e: _test(e, "discrimination_by_metric")),
    ("the same difficulty for all clienteles", lambda e: _test(e, "difficulty_by_clientele")),
    ("normal skill", lambda e: _test(e, "normality_of_skill")),
    ("steps", lambda e: str(e.diagnostics["convergence"]["steps"])),
)


def _parts(estimate: Estimate, part: str) -> str:
    parts = estimate.diagnostics["scores"]["held_out"]["parts"]
    return f"{parts['latent'][part]:.4f} (single curve {parts['single_curve'][part]:.4f})"


def sentences(diagnostics: dict[str, Any]) -> list[str]:
    """What the fit itself says in words."""
    told = [diagnostics["exposure"]["sentence"], diagnostics["exposure"]["past_outcomes"]["sentence"]]
    told += [test["sentence"] for test in diagnostics["assumptions"].values() if test is not None]
    return [sentence for sentence in told if sentence]


def draw(found: dict[Exposure, Estimate], path: Path) -> None:
    """Difficulty, suitability, calibration and scores, both fits in each panel."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    FigureCanvasAgg(figure)
    (difficulty, suitability), (calibration, scores) = figure.subplots(2, 2)
    for exposure, estimate in found.items():
        colour = COLOURS[exposure]
        for curve, style in zip(estimate.curves[1:], ("-", "--"), strict=False):
            label = f"{curve.site}, {exposure}"
            if curve.difficulty is not None and curve.difficulty_se is not None:
                difficulty.plot(curve.metric, curve.difficulty, style, color=colour, label=label)
                low, high = (curve.difficulty + sign * Z95 * curve.difficulty_se for sign in (-1, 1))
                difficulty.fill_between(curve.metric, low, high, color=colour, alpha=0.15, linewidth=0)
            suitability.plot(curve.metric, curve.suitability, style, color=colour, label=label)
        groups = estimate.diagnostics["calibration"]
        calibration.plot(
            [group["predicted"] for group in groups],
            [group["observed"] for group in groups],
            "o-",
            color=colour,
            label=exposure,
        )
        _draw_scores(scores, estimate, exposure)
    difficulty.set(xlabel="load / body weight", ylabel="difficulty, skill sds", title="Difficulty with 95 % bands")
    difficulty.legend(fontsize="small")
    suitability.set(xlabel="load / body weight", ylabel="share of successes", title="The population's suitability")
    suitability.legend(fontsize="small")
    calibration.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    ends = [
        group[key]
        for e in found.values()
        for group in e.diagnostics["calibration"]
        for key in group
        if key != "outcomes"
    ]
    calibration.set(
        xlabel="predicted",
        ylabel="observed",
        title="Held-out outcomes in ten groups",
        xlim=(min(ends) - 0.02, max(ends) + 0.02),
        ylim=(min(ends) - 0.02, max(ends) + 0.02),
    )
    calibration.legend(fontsize="small")
    scores.axvline(0, color="grey", linewidth=0.8)
    scores.set(xlabel="Brier skill over the single curve", title="Scores with 95 % intervals")
    scores.invert_yaxis()
    with rc_context({"svg.hashsalt": "isuit"}):
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": "isuit"}
        figure.savefig(path, dpi=150, metadata=metadata)


def _draw_scores(axis: Any, estimate: Estimate, exposure: Exposure) -> None:
    shift = 0.15 if exposure == "correlated" else -0.15
    labels, places = [], []
    for k, kind in enumerate(("held_out", "new_riders")):
        score = estimate.diagnostics["scores"][kind]
        for j, by in enumerate(("rider", "day_and_site")):
            place = 2 * k + j
            labels.append(f"{kind.replace('_', ' ')},\nby {by.replace('_', ' ')}")
            places.append(place)
            interval = None if score is None else score["intervals"][by]
            if interval is None:
                continue
            axis.plot(interval["brier_skill"], [place + shift] * 2, color=COLOURS[exposure], linewidth=3)
            axis.plot(score["brier_skill"], place + shift, "o", color=COLOURS[exposure])
    axis.set_yticks(np.array(places), labels, fontsize="small")


if __name__ == "__main__":
    main()
