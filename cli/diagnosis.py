"""What a fit says about itself, for a person to read; docs/explanation/diagnostics.md explains each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isuit.published import FitDetail
    from isuit.record.diagnostics import Diagnostics
    from isuit.record.predictions import Intervals, Scores, ScoresOfAll

_WIDTH = 100
_BARS = " ▁▂▃▄▅▆▇█"
_SKETCHED = 3.0  # sds to each side of the mean
_NAMED = 10  # of the sites that cannot be compared


def print_diagnostics(shown: FitDetail) -> None:
    """Print all there is, in the order in which one would ask."""
    found = shown.diagnostics
    if found.estimand:
        _say("estimand", found.estimand)
    _print_fit(found, shown.aic)
    if found.nearby is not None:
        _say("nearby", found.nearby.sentence)
    _print_terms(found)
    _print_exposure(found)
    if found.scores is not None:
        _print_scores(found.scores, "" if shown.fit.held_out is None else shown.fit.held_out.split)
    _print_assumptions(found)
    _print_discrimination(found)
    _print_distribution(found)
    _print_movement(found)
    _print_tables(found)


def _say(name: str, sentence: str) -> None:
    from textwrap import fill

    print(fill(sentence, _WIDTH, initial_indent=f"{name:<13}", subsequent_indent=" " * 13, break_long_words=False))


def _print_fit(found: Diagnostics, aic: float | None) -> None:
    if found.outside_core is not None:
        outside = found.outside_core
        _say("outside core", f"{outside.riders:.1%} of riders, {outside.outcomes:.1%} of outcomes")
    if found.convergence is not None:
        ended = found.convergence
        freedom = found.effective_degrees_of_freedom
        told = "" if freedom is None else f"; {freedom:.1f} effective degrees of freedom, AIC {aic:.1f}"
        _say("convergence", f"gradient {ended.gradient_norm:.1e} standard errors after {ended.steps} steps{told}")
    if found.minimum is not None:
        least = found.minimum
        told = "no certain location: the curve is monotone or flat as far as the data show"
        if least.location is not None and least.lower is not None and least.upper is not None:
            told = f"at {least.location:.4g} (95 %: {least.lower:.4g} to {least.upper:.4g})"
        _say("least", f"difficulty {told}")
    if found.marginal_reliability is not None:
        _say("reliability", f"{found.marginal_reliability:.2f} of the variance of skill is told by the outcomes")
    if found.incomparable_sites:
        names, more = found.incomparable_sites[:_NAMED], len(found.incomparable_sites) - _NAMED
        told = ", ".join(names) + (f" and {more} more, which --json lists" if more > 0 else "")
        _say("sites", f"{len(found.incomparable_sites)} cannot be compared: {told}")


def _print_terms(found: Diagnostics) -> None:
    """Of several metrics: what each main effect is, and what each interaction adds."""
    for term in found.terms or ():
        name = " x ".join(term.metrics)
        kind = "main effect" if len(term.metrics) == 1 else "interaction"
        told = "zero, as far as the data show" if term.is_zero else f"moves difficulty by {term.sd:.2f} sd"
        _say(
            kind,
            f"{name}: {told} (p = {term.p_value:.2g}, {term.degrees_of_freedom:.1f} degrees of freedom; the others "
            f"explain {term.explained_by_others:.0%} of it)",
        )
        if term.sentence:
            _say("", term.sentence)


def _print_exposure(found: Diagnostics) -> None:
    if found.exposure is not None:
        correlation = found.exposure.correlation_of_mean_metric_with_skill
        told = "not defined" if correlation is None else f"{correlation:+.2f}"
        _say("exposure", f"correlation of a rider's mean metric with their skill {told}")
    if found.marginal is not None:
        both = found.marginal
        verdict = "they agree" if both.matches else "they differ"
        where = "" if both.at_metric is None else f" at {both.at_metric:.4g}"
        mean = "" if both.mean_difference is None else f", on average {both.mean_difference:+.3f}"
        largest = both.largest_difference if both.signed_difference is None else both.signed_difference
        _say(
            "",
            f"those who go out (single curve, over outcomes) minus the population (skill integrated out, over riders): "
            f"at most {largest:+.3f}{where}{mean}; tolerance {both.tolerance:.3f}, {verdict}",
        )
    if found.exposure is None:
        return
    if found.exposure.sentence:
        _say("", found.exposure.sentence)
    past = found.exposure.past_outcomes
    if past is not None:
        if past.correlation is not None:
            told = f"{past.correlation:+.3f} over {past.pairs} pairs"
            _say("", f"correlation of the next metric with the surprise of the last outcome {told}")
        _say("", past.limit if past.sentence is None else f"{past.limit} {past.sentence}")


def _print_scores(scores: ScoresOfAll, split: str) -> None:
    kinds = (
        ("held out", f"known riders, split by {split}", scores.held_out),
        ("new riders", "the refit never saw them", scores.new_riders),
        ("new sites", "known riders where the refit never saw anybody", scores.new_sites),
    )
    for name, who, found in kinds:
        if found is not None:
            _print_score(name, who, found)
        elif reason := scores.left_out.get(name.replace(" ", "_")):
            _say(name, f"not scored: {reason}")


def _print_score(name: str, who: str, found: Scores) -> None:
    at = "" if found.sites is None else f" at {found.sites} {'site' if found.sites == 1 else 'sites'}"
    _say(name, f"{found.outcomes} outcomes of {found.riders} riders{at}; {who}")
    by = [("95 % by rider", found.intervals.rider), ("95 % by day and site", found.intervals.day_and_site)]
    shown = [(title, interval) for title, interval in by if interval is not None]
    titles = "".join(f"  {f'{title} ({interval.clusters})':<29}" for title, interval in shown)
    print(f"{'':<13}{'':<14}{'latent':>9}{'single':>9}{'':>16}{titles}".rstrip())
    rows = (
        ("Brier score", found.brier, found.brier_single_curve, f"skill {found.brier_skill:+.4f}", "brier_skill"),
        (
            *("log score", found.log_score, found.log_score_single_curve),
            *(f"gain {found.log_score_gain:+.4f}", "log_score_gain"),
        ),
    )
    for label, latent, single, difference, key in rows:
        ends = "".join(f"  {_ends(interval, key):<29}" for _, interval in shown)
        print(f"{'':<13}{label:<14}{latent:>9.4f}{single:>9.4f}{difference:>16}{ends}".rstrip())
    for part in ("reliability", "resolution", "uncertainty", "within_groups"):
        own, single = (getattr(side, part) for side in (found.parts.latent, found.parts.single_curve))
        sign = "-" if part == "resolution" else "+"
        print(f"{'':<13}{sign} {part.replace('_', ' '):<13}{own:>8.4f}{single:>9.4f}")


def _ends(interval: Intervals, key: str) -> str:
    lower, upper = getattr(interval, key)
    return f"{lower:+.4f} to {upper:+.4f}"


def _print_assumptions(found: Diagnostics) -> None:
    if found.assumptions is None:
        return
    tests = (
        ("the same discrimination at all metrics", found.assumptions.discrimination_by_metric),
        ("the same difficulty for all clienteles", found.assumptions.difficulty_by_clientele),
        ("skill is normal", found.assumptions.normality_of_skill),
        ("no success is a guess (lower asymptote 0)", found.assumptions.lower_asymptote),
        ("no failure is a lapse (upper asymptote 1)", found.assumptions.upper_asymptote),
    )
    for k, (what, result) in enumerate(tests):
        name = "" if k else "assumptions"
        told = "not tested" if result is None else f"p = {result.p_value:.2g}"
        _say(name, f"{what}: {told}" + ("" if result is None or not result.sentence else f". {result.sentence}"))


def _print_distribution(found: Diagnostics) -> None:
    """The density of skill as a sketch, where one was asked for."""
    skill = found.skill_distribution
    if skill is None:
        return
    levels = sorted(skill.percentiles.items(), key=lambda level: level[1])
    told = "percentiles: " + ", ".join(f"{name} {share:.0f}" for name, share in levels)
    how = f"estimated, {skill.degrees_of_freedom:.1f} degrees of freedom from normal" if skill.estimated else "normal"
    _say("skill", f"{how}; {told}" + (f". {skill.sentence}" if skill.sentence else ""))
    if skill.estimated:
        shown = [(x, p) for x, p in zip(skill.skill, skill.density, strict=True) if abs(x) <= _SKETCHED]
        top = max(p for _, p in shown)
        bars = "".join(_BARS[min(len(_BARS) - 1, int(len(_BARS) * p / top))] for _, p in shown)
        print(f"{'':<13}{-_SKETCHED:+.0f} {bars} {_SKETCHED:+.0f} standard deviations")


def _print_discrimination(found: Diagnostics) -> None:
    """The discrimination along each metric as a sketch, where it was let vary."""
    how = found.discrimination
    if how is None:
        return
    told = f"varying, {how.degrees_of_freedom:.1f} degrees of freedom from constant" if how.varies else "constant"
    _say("how much", f"skill matters: the discrimination is {told}" + (f". {how.sentence}" if how.sentence else ""))
    for curve in how.curves if how.varies else ():
        low, high = min(curve.discrimination), max(curve.discrimination)
        bars = "".join(
            _BARS[min(len(_BARS) - 1, int(len(_BARS) * (a - low) / max(high - low, 1e-9)))]
            for a in curve.discrimination
        )
        ends = ", ".join(
            f"{curve.discrimination[k]:.2f} ({curve.lower[k]:.2f} to {curve.upper[k]:.2f}) at {curve.at[k]:.3g}"
            for k in (0, -1)
        )
        print(f"{'':<13}{curve.metric}: {bars} {ends}")


def _print_movement(found: Diagnostics) -> None:
    """Whether skill stands still, where times tell."""
    from isuit.domain import Z95

    moves = found.movement
    if moves is None or not (moves.moves or moves.sentence):
        return
    if not moves.moves:
        tested = "" if moves.p_value is None else f"standing still: p = {moves.p_value:.2g}. "
        _say("movement", f"{tested}{moves.sentence or ''}".strip())
        return
    told = f"skill moves by {moves.walk_per_year:.2f} ± {Z95 * (moves.walk_per_year_se or 0.0):.2f} sd in a year"
    grown = "".join(f", {one.skill:+.2f} after {one.years:g} years" for one in moves.growth or ())
    lately = "" if moves.half_life_years is None else f"; past days count half after {moves.half_life_years:.2g} years"
    _say("movement", f"{told}; on average{grown.lstrip(',')}{lately}. Skills are those of each rider's last day.")


def _print_tables(found: Diagnostics) -> None:
    if found.calibration:
        print(f"{'calibration':<13}{'outcomes':>9}{'predicted':>11}{'observed':>10}   of held-out outcomes")
        for group in found.calibration:
            print(f"{'':<13}{group.outcomes:>9}{group.predicted:>11.3f}{group.observed:>10.3f}")
    if found.item_fit:
        print(f"{'item fit':<13}{'metric':>21}{'outcomes':>10}{'observed':>10}{'expected':>10}   successes")
        for band in found.item_fit:
            metric = f"{band.lower:.4g} to {band.upper:.4g}"
            print(f"{'':<13}{metric:>21}{band.outcomes:>10.0f}{band.observed:>10.0f}{band.expected:>10.1f}")
