"""The experiment's table, in Markdown and LaTeX, and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from isuit import look
from isuit.domain import SKILL_LEVELS, Z95, Estimate
from isuit.files import whole

from .cohort import Truth
from .recovery import PAPER

_ROWS = [
    # name in stats.json, what it is, its symbol, format
    ("theta_recovery_corr", "Latent-skill recovery (Pearson)", r"$\mathrm{corr}(\theta,\hat\theta)$", ".4f"),
    ("difficulty_min_knots", "Difficulty-minimum location (kn)", r"$\hat{x}^\star$", ".1f"),
    ("discrimination_a", "Discrimination", r"$\hat{a}$", ".2f"),
    ("held_out_bss_70_30", "Held-out Brier skill, 70/30, against logistic(1, x, x²)", "BSS", "+.3f"),
    ("held_out_bss", "Held-out Brier skill, 80/20, against the single curve", "BSS", "+.3f"),
    ("difficulty_rmse", "RMSE of difficulty", r"$\mathrm{RMSE}(\hat\delta)$", ".3f"),
    ("difficulty_coverage_95", "Coverage of the 95 % band, difficulty", "--", ".2f"),
    ("skill_coverage_95", "Coverage of the 95 % interval, skill", "--", ".2f"),
    ("marginal_matches", "Marginal matches single curve", "--", ""),
    ("identification_ok", "Identification gate passed", "--", ""),
]
_SE = {"discrimination_a": "discrimination_a_se", "held_out_bss": "held_out_bss_se"}


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format(value, form)


def _recovered(stats: dict[str, Any], name: str, form: str) -> str:
    text = _cell(stats.get(name), form)
    if name == "difficulty_min_knots" and stats.get(name) is not None:
        low, high = stats["difficulty_min_interval"]
        return f"{text} ({low:.1f} to {high:.1f})"
    if name in _SE and stats.get(_SE[name]) is not None:
        return f"{text} ± {stats[_SE[name]]:.2f}"
    return text


def markdown(stats: dict[str, Any]) -> str:
    """The table with the paper's value beside each."""
    lines = [
        f"Recovery on {stats['n_riders']} riders, {stats['n_train']:,} outcomes (seed {stats['seed']})",
        "",
        "| quantity | recovered | the paper |",
        "|---|---:|---:|",
    ]
    for name, label, _, form in _ROWS:
        if name in stats:
            lines.append(f"| {label} | {_recovered(stats, name, form)} | {_paper(stats, name, form)} |")
    for shortfall in stats["shortfalls"]:
        lines += ["", f"No latent fit: {shortfall}."]
    summary = stats.get("replicates_summary")
    if summary:
        lines += ["", f"Over {summary['replicates']} fresh cohorts:", "", "| quantity | mean | Monte Carlo error |"]
        lines.append("|---|---:|---:|")
        for name, value in summary.items():
            if isinstance(value, dict):
                error = value["monte_carlo_error"]
                shown = "" if error is None else f"{error:.4f}"
                lines.append(f"| {name} | {value['mean']:.4f} | {shown} |")
    return "\n".join(lines) + "\n"


def _paper(stats: dict[str, Any], name: str, form: str) -> str:
    return _cell(stats["paper"][name], form) if name in stats["paper"] else "–"


def latex(stats: dict[str, Any]) -> str:
    """The paper's table and its inline macros, generated so that they cannot drift from the code."""
    macros = {
        "thetaRecoveryCorr": ("theta_recovery_corr", ".2f"),
        "thetaRecoveryCorrFull": ("theta_recovery_corr", ".4f"),
        "difficultyMinKnots": ("difficulty_min_knots", ".1f"),
        "discriminationA": ("discrimination_a", ".2f"),
        "heldOutBSS": ("held_out_bss_70_30", ".3f"),
        "heldOutBSSsigned": ("held_out_bss_70_30", "+.2f"),
        "nTrain": ("n_train", ",d"),
    }
    lines = [rf"\newcommand{{\{name}}}{{{_cell(stats.get(key), form)}}}" for name, (key, form) in macros.items()]
    lines += [
        r"\begin{tabular}{@{}llrr@{}}",
        r"  \toprule",
        r"  Quantity & Symbol & Recovered & Paper \\",
        r"  \midrule",
    ]
    for name, label, symbol, form in _ROWS:
        if name in stats:
            row = f"{label} & {symbol} & {_recovered(stats, name, form)} & {_paper(stats, name, form)}"
            lines.append(
                "  " + row.replace("%", r"\%").replace("±", r"$\pm$").replace("x²", "$x^2$").replace("–", "--") + r" \\"
            )
    return "\n".join([*lines, r"  \bottomrule", r"\end{tabular}"]) + "\n"


def figure(truth: Truth, estimate: Estimate, stem: Path) -> None:
    """Skill-conditioned suitability above, recovered difficulty with its band over the truth below; SVG and PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curve = estimate.curves[0]
    assert curve.difficulty is not None
    assert curve.difficulty_se is not None
    assert estimate.discrimination is not None
    # A fixed salt and no date: the same cohort gives the same bytes.
    with plt.rc_context(look.matplotlib_style()):
        picture, (above, below) = plt.subplots(2, 1, figsize=(7, 6.4), sharex=True, layout="constrained")
        for level, skill in SKILL_LEVELS.items():
            suitability = expit(estimate.discrimination * (skill - curve.difficulty))
            above.plot(curve.metric, suitability, color=look.LEVELS[level], label=f"{level} (skill {skill:+.0f})")
        above.plot(curve.metric, curve.suitability, color=look.LIGHT.soft, linestyle=":", label="population")
        above.set(ylabel=look.WORDS["suitability"], ylim=(0, 1), title="Suitability moves with skill")
        above.legend()
        half = Z95 * curve.difficulty_se
        below.fill_between(
            curve.metric, curve.difficulty - half, curve.difficulty + half, color=look.LIGHT.accent, alpha=0.2,
            linewidth=0, label="95 % band",
        )  # fmt: skip
        below.plot(curve.metric, curve.difficulty, color=look.LIGHT.accent, label="recovered difficulty")
        fine = np.linspace(truth.lower, truth.upper, 200)
        below.plot(fine, truth.difficulty(fine), color=look.LIGHT.ink, linestyle="--", linewidth=1, label="truth")
        difficulty = look.WORDS["difficulty"]
        below.set(xlabel="wind (kn)", ylabel=difficulty, title="The difficulty beneath does not")
        below.legend()
        with whole(stem.with_suffix(".svg")) as part:
            picture.savefig(part, metadata={"Date": None})
        with whole(stem.with_suffix(".png")) as part:
            picture.savefig(part, dpi=150, metadata={"Software": None})
        plt.close(picture)


def with_paper(stats: dict[str, Any], reference: bool) -> dict[str, Any]:
    """The stats with the paper's values beside them, where the cohort is the paper's."""
    return stats | {"paper": dict(PAPER) if reference else {}}
