"""A fit in a few lines of text, for a terminal and for a notebook."""

from __future__ import annotations

from isuit.published import FitRecord, FitSummary


def summary_lines(found: FitRecord | FitSummary, outcomes: int, riders: int, sites: int, how: str = "") -> list[str]:
    """Which cohort, which fit, what the gates said, and what came out."""
    gate = found.identification
    lines = [
        f"cohort    {found.cohort_hash}",
        f"fit       {found.fit_id}{how}",
        f"read      {outcomes} outcomes, {riders} riders, {sites} sites",
        f"gate      {'passed' if gate.ok else 'failed'} ({gate.reading}, core holds {gate.core_share:.0%} of outcomes)",
    ]
    promotion = () if found.promotion is None else found.promotion.shortfalls
    lines += [f"          {shortfall}" for shortfall in (*gate.shortfalls, *promotion)]
    lines.append(f"kind      {found.kind}" + ("" if found.kind == "latent" else ": one curve for all, no skills"))
    if found.discrimination is not None:
        lines.append(f"discrimination {found.discrimination:.3f}{interval(found.discrimination_interval)}")
    if found.held_out:
        held = found.held_out
        lines.append(
            f"held out  Brier skill {held.brier_skill:+.3f} (standard error {held.brier_skill_se:.3f}) by {held.split}"
        )
    return lines


def interval(ends: tuple[float, float] | None) -> str:
    """A 95 % interval in brackets; nothing where there is none."""
    return "" if ends is None else f" (95 %: {ends[0]:.3f} to {ends[1]:.3f})"
