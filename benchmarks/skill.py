"""What it costs to take skill as normal where it is not, and what an estimated density of skill gives back.

    python benchmarks/skill.py [--cohorts 200] [--first SEED] [--riders 200] [--outcomes 30] [--json FILE]
    python benchmarks/skill.py --asymptotes [--cohorts 200] ...    how often asymptotes are told that are there, or not
    python benchmarks/skill.py --known [--cohorts 200] [--riders 200]  what can be told where skills are known
    python benchmarks/skill.py --peers --cohorts 10 [--only POPULATION]  isuit beside lme4, glmmTMB and gpboost
    python benchmarks/skill.py --cost --riders 10000 --outcomes 50 --cohorts 1  CPU time of whole fits
    python benchmarks/skill.py --weak --riders 400 --outcomes 50 --cohorts 20  power where skill is weak

Riders' skills are drawn from five densities, each of mean 0 and variance 1 over the population; difficulty is the
paper's between metrics of 5 and 31, the discrimination 1.5. Every cohort is fitted three times: with normal skill, with
an estimated density, and told the true density, which is as good as any fit can be. The truth that intervals are judged
against is the population's, in the units of the model: mean and sd with the riders beyond the 5th and 95th percentile
counted as if they stood there (`model/density.py`). Beside that: against the population's plain mean and sd ("of the
sd"), which no cohort tells under heavy tails; and the error in the units of the riders who were drawn ("among riders"),
which leaves out the chance of who they were.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from skills.against_peers import against_peers
from skills.asymptotes import asymptotes
from skills.cost import cost
from skills.populations import POPULATIONS, Population, cohort, units, units_of_population
from skills.told import told
from skills.weak import power

from isuit.domain import Z95, FloatArray, Observations, discrimination_interval
from isuit.estimator.likelihood.latent import LatentFit, estimate_density, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.experiment.cohort import Truth

DISCRIMINATION = 1.5
KINDS = ("normal", "estimated", "told")
_METRICS = 161


def fits(data: Observations, population: Population) -> dict[str, LatentFit]:
    """The three fits of a cohort, none of them gated."""
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    space = CurveSpace(spline, 0)
    normal = fit_latent(counts, space, Prepared(counts, space).single)
    return {"normal": normal, "estimated": estimate_density(normal), "told": told(normal, population)}


def units_of_riders(fit: LatentFit) -> tuple[float, float]:
    """The same of the riders who were drawn, as a fit sees them: all their posteriors together, each as a normal."""
    posterior = fit.solution.at.posterior
    skill = np.linspace(
        float(np.min(posterior.mean - 6 * posterior.sd)), float(np.max(posterior.mean + 6 * posterior.sd)), 3000
    )
    weight = np.zeros_like(skill)
    for mean, sd in zip(posterior.mean, posterior.sd, strict=True):
        weight += np.exp(-0.5 * ((skill - mean) / sd) ** 2) / sd
    return units(skill, weight)


def measure(fit: LatentFit, truth: Truth, skill: FloatArray, name: str, knows: bool) -> dict[str, float]:
    location, scale = units_of_population(name)
    m, s = (location, scale) if knows else (0.0, 1.0)  # a fit that is told the density is in units of its mean and sd
    metric = np.linspace(fit.space.spline.lower, fit.space.spline.upper, _METRICS)
    band, true = fit.difficulty(metric), truth.difficulty(metric)
    error = (band.value - m) / s - (true - location) / scale
    lower, upper = discrimination_interval(fit.discrimination * s, fit.discrimination_se * s)
    mean, sd = fit.skills()
    order = np.argsort(skill)
    ends = np.concatenate([order[: skill.size // 20], order[-(skill.size // 20) :]])
    covered = np.abs((mean - m) / s - (skill - location) / scale) <= Z95 * sd / s
    (c, d), (seen, spread) = units(np.sort(skill)), units_of_riders(fit)
    among = (band.value - seen) / spread - (true - c) / d
    return {
        "a": fit.discrimination * s,
        "true_a": truth.discrimination * scale,
        "se": fit.discrimination_se * s,
        "covers_a": float(lower <= truth.discrimination * scale <= upper),
        "squared_error": float(np.mean(error**2)),
        "squared_error_among": float(np.mean(among**2)),
        "covers": float(np.mean(np.abs(error) <= Z95 * band.se / s)),
        "covers_sd": float(np.mean(np.abs(band.value - true) <= Z95 * band.se)),
        "covers_sd_a": float(
            np.abs(np.log(fit.discrimination / truth.discrimination))
            <= Z95 * fit.discrimination_se / fit.discrimination
        ),
        "band": float(np.mean(band.se / s)),
        "covers_skill": float(np.mean(covered)),
        "covers_ends": float(np.mean(covered[ends])),
        "density_df": fit.density_degrees_of_freedom,
        "steps": fit.solution.steps,
    }


@one_thread()
def one(name: str, truth: Truth, seed: int) -> dict[str, dict[str, float]]:
    data, skill = cohort(POPULATIONS[name], truth, seed)
    result = {}
    for kind, fit in fits(data, POPULATIONS[name]).items():
        result[kind] = measure(fit, truth, skill, name, kind == "told")
    return result


def summary(found: list[dict[str, dict[str, float]]], kind: str) -> dict[str, float]:
    values = {key: np.array([each[kind][key] for each in found]) for key in found[0][kind]}
    table = {key: float(value.mean()) for key, value in values.items()}
    table["rmse"] = float(np.sqrt(table.pop("squared_error")))
    table["rmse_among"] = float(np.sqrt(table.pop("squared_error_among")))
    table["median_a"] = float(np.median(values["a"]))
    return table


def summaries(found: dict[str, list[dict[str, dict[str, float]]]], failed: dict[str, int]) -> dict[str, Any]:
    return {
        name: {kind: summary(each, kind) for kind in KINDS} | {"cohorts": len(each), "failed": failed[name]}
        for name, each in found.items()
        if each
    }


def table(tables: dict[str, Any]) -> str:
    """Coverage and error in the units of the model, then among the riders drawn, and against the population's sd."""
    lines = [
        "| true skill | fit | n | a | true a | covers a | band covers | RMSE | to told | among riders | to told "
        "| skill | at ends | df | of the sd: covers a | band |",
        "|---|---|" + "--:|" * 14,
    ]
    for name, kinds in tables.items():
        for kind in KINDS:
            s, told = kinds[kind], kinds["told"]
            lines.append(
                f"| {name} | {kind} | {kinds['cohorts']} | {s['a']:.3f} | {s['true_a']:.3f} | {s['covers_a']:.1%} "
                f"| {s['covers']:.1%} | {s['rmse']:.3f} | {s['rmse'] / told['rmse']:.2f} "
                f"| {s['rmse_among']:.3f} | {s['rmse_among'] / told['rmse_among']:.2f} "
                f"| {s['covers_skill']:.1%} | {s['covers_ends']:.1%} | {s['density_df']:.1f} "
                f"| {s['covers_sd_a']:.1%} | {s['covers_sd']:.1%} |"
            )
    return "\n".join(lines)


def known_skills(riders: int, cohorts: int, resamples: int = 400) -> None:
    """Coverage of 95 % bootstrap intervals of the plain sd and of the model's scale, with all skills known exactly."""
    for name, population in POPULATIONS.items():
        draw = population.draw(np.random.default_rng(2), 4_000_000)
        true = np.array([draw.std(), units_of_population(name)[1]])
        covered = np.zeros(2)
        for seed in range(cohorts):
            generator = np.random.default_rng(seed)
            skill = population.draw(generator, riders)
            again = np.sort(skill[generator.integers(0, riders, (resamples, riders))], axis=1)
            found = np.array([again.std(axis=1), [units(row)[1] for row in again]])
            lower, upper = np.quantile(found, [0.025, 0.975], axis=1)
            covered += (lower <= true) & (true <= upper)
        print(f"{name}: of the sd {covered[0] / cohorts:.1%}, of the scale {covered[1] / cohorts:.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--riders", type=int, default=200)
    parser.add_argument("--outcomes", type=int, default=30)
    parser.add_argument("--only", choices=list(POPULATIONS), action="append")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--asymptotes", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    truth = Truth(arguments.riders, arguments.outcomes, DISCRIMINATION, lower=5.0, upper=31.0)
    names = arguments.only or list(POPULATIONS)
    if arguments.cost:
        cost(truth, arguments.first, arguments.cohorts, names)
        return
    if arguments.weak:
        power(arguments.first, arguments.cohorts, arguments.riders, arguments.outcomes)
        return
    if arguments.peers:
        against_peers(truth, arguments.first, arguments.cohorts, names)
        return
    if arguments.known:
        known_skills(arguments.riders, arguments.cohorts)
        return
    if arguments.asymptotes:
        asymptotes(truth, arguments.first, arguments.cohorts)
        return
    found: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in names}
    failed = dict.fromkeys(names, 0)
    for done, seed in enumerate(range(arguments.first, arguments.first + arguments.cohorts), start=1):
        for name in names:
            try:
                found[name].append(one(name, truth, seed))
            except Exception as error:
                failed[name] += 1
                print(f"{name}, seed {seed}: {error!r}"[:200], file=sys.stderr)
        if arguments.json and (done % 10 == 0 or done == arguments.cohorts):
            arguments.json.write_text(json.dumps(summaries(found, failed), indent=2) + "\n")
    print(f"{arguments.cohorts} cohorts of {truth.riders} riders x {truth.outcomes} outcomes, a = {DISCRIMINATION}")
    print(table(summaries(found, failed)))


if __name__ == "__main__":
    main()
