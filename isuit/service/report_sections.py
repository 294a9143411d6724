"""Everything that a fit's record knows: a sentence that a manager understands, and a fold-out for the statistician.

A section is what `pages/fit.js` draws: id, title, verdict (good, bad, or None where there is nothing to judge),
sentence, and then a chart, a note, facts, a table, as far as there are any. What a record does not have makes no
section; a new field of the record gets a function of its own in `_SECTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from isuit.look import number, p_value, quantity, share, signed
from isuit.published import FitDetail
from isuit.record.diagnostics import ScoreTest
from isuit.service.report_predictions import calibration, items, scores
from isuit.service.report_section import Section, section

HOW = (
    "The fit follows from the cohort and the configuration that its id names. With the store, the first command refits "
    "it; with a copy of the cohort, the others do so without trusting the store."
)


def sections(shown: FitDetail) -> list[Section]:
    """The sections in the order in which one would ask."""
    return [found for make in _SECTIONS if (found := make(shown)) is not None]


def _gate(shown: FitDetail) -> Section:
    gate, promotion = shown.fit.identification, shown.fit.promotion
    ok = gate.ok and promotion is not None and promotion.ok
    if ok:
        sentence = (
            "Riders met enough different conditions, and conditions enough riders, to tell skill from difficulty."
        )
    elif not gate.ok:
        sentence = (
            "Too few riders met too few conditions to tell skill from difficulty; the curve is of everyone together."
        )
    else:
        sentence = "Skill does not predict better than one curve for everyone; the curve is of everyone together."
    p = None if promotion is None else promotion.p_value
    tested = None if p is None else p_value(p)
    return section(
        "gates",
        "Can skill and difficulty be told apart?",
        sentence,
        ok,
        facts=[
            ("Identification", [f"{_passed(gate.ok)} ({gate.reading})", *gate.shortfalls]),
            (
                "Core",
                f"{share(gate.core_share, 1)} of outcomes, {gate.core_riders:,} of {gate.riders:,} riders, "
                f"{gate.bins} bins",
            ),
            ("Promotion", None if promotion is None else [_passed(promotion.ok), *promotion.shortfalls]),
            ("Test of no skill", tested),
        ],
    )  # fmt: skip


def _passed(ok: bool) -> str:
    return "passed" if ok else "failed"


def _terms(shown: FitDetail) -> Section | None:
    """What each metric and each pair of metrics adds, in a fit of several."""
    terms = shown.diagnostics.terms
    if not terms:
        return None
    needed = [" x ".join(term.metrics) for term in terms if not term.is_zero]
    rows = [
        [" x ".join(term.metrics), "zero" if term.is_zero else f"{term.sd:.2f}", p_value(term.p_value),
         f"{term.degrees_of_freedom:.1f}", share(term.explained_by_others)]
        for term in terms
    ]  # fmt: skip
    return section(
        "terms",
        "Which metrics matter, and do they act together?",
        f"As far as the data show, difficulty moves with {', '.join(needed) or 'none of them'}.",
        note="A term is told zero where its test does not reject at 5 %; it stays in the surface and its bands.",
        facts=[("", [term.sentence for term in terms if term.sentence])],
        table={"caption": "Terms of the surface", "rows": rows,
               "columns": ["term", "sd of difficulty", "test of zero", "degrees of freedom", "others explain"]},
    )  # fmt: skip


def _minimum(shown: FitDetail) -> Section | None:
    least = shown.diagnostics.minimum
    if least is None:
        return None
    name, unit = quantity(shown.fit.dimension)
    title = "Where is it easiest?"
    if least.location is None or least.lower is None or least.upper is None:
        return section(
            "minimum",
            title,
            "No condition is certainly the easiest: the curve is monotone or flat as far as the data show.",
        )
    return section(
        "minimum",
        title,
        f"At {name} {number(least.location, 3)}{unit and ' ' + unit}; with 95 % certainty between "
        f"{number(least.lower, 3)} and {number(least.upper, 3)}.",
        facts=[("Which curve", "the one that all sites share" if shown.cohort.sites > 1 else "the fit's")],
    )


def _skill(shown: FitDetail) -> Section | None:
    """How well skills are known. The distribution of skill, where a record has one, is drawn here too."""
    reliability, fit = shown.diagnostics.marginal_reliability, shown.fit
    if reliability is None or fit.discrimination is None:
        return None
    a = number(fit.discrimination, 3)
    if fit.discrimination_interval is not None:
        low, high = fit.discrimination_interval
        a += f" (95 %: {number(low, 3)} to {number(high, 3)})"
    grid = [-3 + 0.1 * i for i in range(61)]
    curve = [math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) for x in grid]
    lower, upper, told = [0.0] * len(grid), curve, None
    found = shown.diagnostics.skill_distribution
    if found is not None:
        inside = [i for i, x in enumerate(found.skill) if abs(x) <= grid[-1]]
        grid, curve, lower, upper = (
            [values[i] for i in inside] for values in (found.skill, found.density, found.lower, found.upper)
        )
        levels = ", ".join(f"{name} {share(percent / 100)}" for name, percent in found.percentiles.items())
        told = [*([found.sentence] if found.sentence else []), f"riders below each declared level: {levels}"]
    return section(
        "riders",
        "How much does skill matter, and how well is it known?",
        f"One sd of skill multiplies the odds of success by {number(math.exp(fit.discrimination), 2)}; outcomes tell "
        f"{share(reliability)} of how riders differ.",
        chart={"x": "skill (sd)", "y": "share of riders", "domain": [-3, 3],
               "range": [0, max(0.42, 1.2 * max(curve))],
               "series": [{"name": "riders", "x": grid, "y": curve, "lower": lower, "upper": upper}],
               "hint": "Skill over the riders: mean 0 and variance 1 by definition."},
        facts=[("Discrimination", a), ("Marginal reliability", f"{reliability:.3f}"),
               ("Riders with a skill", f"{fit.skills:,}"), ("Distribution of skill", told)],
    )  # fmt: skip


def _discrimination(shown: FitDetail) -> Section | None:
    """Where skill matters more, of a fit that lets it."""
    found = shown.diagnostics.discrimination
    if found is None:
        return None
    title = "Does skill matter as much in every condition?"
    if not found.varies:
        return section("discrimination", title, found.sentence or "One discrimination for all conditions.")
    widest = max(found.curves, key=lambda curve: max(curve.discrimination) / min(curve.discrimination))
    least, most = min(widest.discrimination), max(widest.discrimination)
    where = "" if len(found.curves) == 1 else f" along {widest.metric}, the other metrics at their medians"
    return section(
        "discrimination",
        title,
        found.sentence or f"The discrimination runs from {number(least, 2)} to {number(most, 2)}{where}.",
        chart={"x": widest.metric, "y": "discrimination", "domain": [widest.at[0], widest.at[-1]],
               "range": [0, 1.05 * max(widest.upper)],
               "series": [{"name": "discrimination", "x": list(widest.at), "y": list(widest.discrimination),
                           "lower": list(widest.lower), "upper": list(widest.upper)}],
               "hint": "How much one sd of skill moves the log odds of success, with its 95 % band."},
        facts=[("Degrees of freedom from constant", number(found.degrees_of_freedom, 1))],
    )  # fmt: skip


def _exposure(shown: FitDetail) -> Section | None:
    exposure, marginal = shown.diagnostics.exposure, shown.diagnostics.marginal
    if exposure is None and marginal is None:
        return None
    facts: list[tuple[str, str | list[str] | None]] = []
    sentence = "Riders of all skills meet about the same conditions."
    ok = True
    if exposure is not None:
        r = exposure.correlation_of_mean_metric_with_skill
        facts.append(("Mean metric and skill", "not defined" if r is None else f"correlation {signed(r)}"))
        if exposure.sentence:
            sentence, ok = exposure.sentence, False
        past = exposure.past_outcomes
        if past is not None:
            told = (
                "no times" if past.correlation is None else f"{signed(past.correlation, 3)} over {past.pairs:,} pairs"
            )
            facts += [("After a surprise", told), ("What that can tell", past.limit), ("", past.sentence)]
    if marginal is not None:
        where = "" if marginal.at_metric is None else f" at {number(marginal.at_metric)}"
        facts.append(
            (
                "Those who go out, beside the population",
                f"at most {share(marginal.largest_difference, 1)} apart{where}; "
                + ("they agree" if marginal.matches else "they differ"),
            )
        )
    return section("exposure", "Who goes out when?", sentence, ok, facts=facts)


_FAILING = {
    "discrimination_by_metric": (
        "Skill matters as much in every condition",
        "the chance for beginners and experts would be off at the ends of the metric, in opposite directions",
    ),
    "difficulty_by_clientele": (
        "A condition is as hard for every clientele",
        "sites with different clienteles could not be compared to the last digit",
    ),
    "normality_of_skill": (
        "Skill is normal among riders",
        "the chance for very low and very high skills would be off, and difficulty a little",
    ),
    "lower_asymptote": (
        "No success is a guess",
        "the hardest conditions would be told too easy, and skill would seem to matter less",
    ),
    "upper_asymptote": (
        "No failure is a lapse",
        "the easiest conditions would be told too hard, and skill would seem to matter less",
    ),
}


def _assumptions(shown: FitDetail) -> Section | None:
    found = shown.diagnostics.assumptions
    if found is None:
        return None
    tests: dict[str, ScoreTest] = {
        name: test for name in _FAILING if isinstance(test := getattr(found, name, None), ScoreTest)
    }
    if not tests:
        return None
    failing = [name for name, test in tests.items() if test.sentence]
    rows = [
        [_FAILING[name][0], f"{number(test.statistic, 3)} on {test.degrees_of_freedom} df", p_value(test.p_value)]
        for name, test in tests.items()
    ]
    sentence = (
        "Nothing that the model takes for granted is certainly and largely wrong."
        if not failing
        else " ".join(test.sentence for test in tests.values() if test.sentence)
    )
    return section(
        "assumptions",
        "What is taken for granted",
        sentence,
        not failing,
        facts=[(f"If not: {title.lower()}", meaning) for title, meaning in (_FAILING[name] for name in tests)],
        table={"caption": "Score tests", "columns": ["taken for granted", "statistic", "p"], "rows": rows},
    )


def _incomparable(shown: FitDetail) -> Section | None:
    names = shown.diagnostics.incomparable_sites
    if not names:
        return None
    number_of = f"{len(names):,} site" + ("" if len(names) == 1 else "s")
    return section(
        "incomparable",
        "Sites apart",
        f"No rider links {number_of} to the others, so that there is no common scale and no difficulty.",
        False,
        fold="Which",
        facts=[("Sites", ", ".join(names[:200]) + ("" if len(names) <= 200 else f" and {len(names) - 200:,} more"))],
    )


def _fit(shown: FitDetail) -> Section:
    fit, cohort, found = shown.fit, shown.cohort, shown.diagnostics
    span = None
    if cohort.observed_from is not None and cohort.observed_until is not None:
        span = f"{cohort.observed_from:%Y-%m-%d} to {cohort.observed_until:%Y-%m-%d}"
    ended, outside, freedom = found.convergence, found.outside_core, found.effective_degrees_of_freedom
    left_out, converged = None, None
    if outside is not None:
        left_out = f"{share(outside.riders, 1)} of riders, {share(outside.outcomes, 1)} of outcomes"
    if ended is not None:
        converged = f"gradient {ended.gradient_norm:.1e} standard errors after {ended.steps} steps"
    return section(
        "fit",
        "The fit",
        "It can enter a public release."
        if shown.releasable.ok
        else f"It cannot enter a public release yet; it lacks {'; '.join(shown.releasable.missing)}.",
        fold="Record",
        facts=[
            ("Fit", fit.fit_id),
            ("Cohort", fit.cohort_hash),
            ("Outcomes", f"{cohort.outcomes:,} of {cohort.riders:,} riders, {cohort.sites:,} sites"),
            ("Observed", span),
            ("Estimand", found.estimand),
            ("Outside the core", left_out),
            ("Log-likelihood", f"{fit.log_likelihood:,.2f}"),
            ("Effective degrees of freedom", None if freedom is None else number(freedom, 3)),
            ("Convergence", converged),
            ("Result digest", fit.result_digest),
            ("Recorded", f"{fit.recorded_at:%Y-%m-%d %H:%M} UTC"),
            ("Made with", f"isuit {fit.tool_version}, estimator {fit.estimator_version}"),
        ],
    )  # fmt: skip


def _again(shown: FitDetail) -> Section:
    fit = shown.fit
    return section(
        "rederive",
        "Derive it again",
        "Every number here follows from the cohort; nobody has to be believed.",
        fold="How",
        note=HOW,
        commands=[
            f"isuit rederive {fit.fit_id}",
            f"isuit rederive {fit.fit_id} --cohort FILE",
            f"isuit hash FILE    # must print {fit.cohort_hash}",
        ],
    )


_SECTIONS: tuple[Callable[[FitDetail], Section | None], ...] = (
    _gate, _terms, scores, calibration, items, _minimum, _skill, _discrimination, _exposure, _assumptions,
    _incomparable, _fit, _again,
)  # fmt: skip
