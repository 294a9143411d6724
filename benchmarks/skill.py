"""What it costs to take skill as normal where it is not, and what an estimated density of skill gives back.

    python benchmarks/skill.py [--cohorts 200] [--first SEED] [--riders 200] [--outcomes 30] [--json FILE]
    python benchmarks/skill.py --asymptotes [--cohorts 200] ...    how often asymptotes are told that are there, or not
    python benchmarks/skill.py --known [--cohorts 200] [--riders 200]  what can be told where skills are known

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import t as student

from isuit.domain import Z95, FloatArray, Observations, discrimination_interval
from isuit.estimator.diagnostics import assumptions
from isuit.estimator.likelihood.latent import LatentFit, _problem, _solved, estimate_density, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.quadrature import Parameters
from isuit.estimator.likelihood.solver import Problem, State, solve
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.bend import TAIL
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.density import Density, Tables
from isuit.experiment.cohort import Truth

DISCRIMINATION = 1.5
KINDS = ("normal", "estimated", "told")
_METRICS = 161
_E = np.e
_WALL = 0.1


@dataclass(frozen=True)
class Population:
    """A density of skill with mean 0 and variance 1."""

    draw: Callable[[np.random.Generator, int], FloatArray]
    log_density: Callable[[FloatArray], FloatArray]  # up to a constant


def _two(u: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(-0.5 * ((u - 0.9) ** 2) / 0.19, -0.5 * ((u + 0.9) ** 2) / 0.19))


def _lognormal(u: FloatArray) -> FloatArray:
    """Straight below a tenth, where one rider in a hundred is: no grid follows a wall."""
    x = u * np.sqrt(_E * (_E - 1)) + np.sqrt(_E)
    inside = np.log(np.maximum(x, _WALL))
    slope = -(1.0 + np.log(_WALL)) / _WALL
    return np.asarray(-inside - 0.5 * inside**2 + slope * np.minimum(x - _WALL, 0.0))


POPULATIONS = {
    "normal": Population(lambda g, n: g.standard_normal(n), lambda u: -0.5 * u**2),
    "two groups": Population(
        lambda g, n: np.where(g.random(n) < 0.5, -0.9, 0.9) + np.sqrt(0.19) * g.standard_normal(n), _two
    ),
    "exponential": Population(
        lambda g, n: g.exponential(size=n) - 1.0, lambda u: np.where(u >= -1.0, -u, -u - 100.0 * (-1.0 - u))
    ),
    "t, 3 degrees": Population(
        lambda g, n: g.standard_t(3, n) / np.sqrt(3.0), lambda u: np.asarray(student.logpdf(u * np.sqrt(3.0), 3))
    ),
    "lognormal": Population(lambda g, n: (g.lognormal(size=n) - np.sqrt(_E)) / np.sqrt(_E * (_E - 1)), _lognormal),
}


@dataclass(frozen=True)
class Known(Density):
    """A density that is given: no coefficients, and tables of what it is."""

    log_density: Callable[[FloatArray], FloatArray] = lambda u: -0.5 * u**2

    @cached_property
    def tables(self) -> Tables:
        step, points = 1 / 64, np.linspace(-30, 60, 90 * 64 + 1)
        log = self.log_density(points)
        log = log - log.max()
        log = log - np.log(np.exp(log).sum() * step)
        log = log + 0.5 * points**2 + 0.5 * np.log(2 * np.pi)
        table = np.stack([log, np.gradient(log)], axis=1)
        nothing = np.zeros((0, 2))
        return Tables(-30.0, step, table, nothing, nothing, np.zeros((0, 2, 0)), np.zeros((0, 2, 0)))


@dataclass(frozen=True)
class Told(Problem):
    """A problem that knows the density of skill."""

    known: Density

    def parameters(self, phi: FloatArray) -> Parameters:
        return replace(super().parameters(phi), density=self.known)


def cohort(
    population: Population, truth: Truth, seed: int, ends: Ends | None = None
) -> tuple[Observations, FloatArray]:
    generator = np.random.default_rng(seed)
    skill = population.draw(generator, truth.riders)
    rider = np.repeat(np.arange(truth.riders), truth.outcomes)
    metric = generator.uniform(truth.lower, truth.upper, rider.size)
    success = expit(truth.discrimination * (skill[rider] - truth.difficulty(metric)))
    if ends is not None:
        success = ends.floor + (1 - ends.floor - ends.lapse) * success
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    return Observations(tuple(f"rider-{r:05d}" for r in range(truth.riders)), rider, metric, outcome), skill


def fits(data: Observations, population: Population) -> dict[str, LatentFit]:
    """The three fits of a cohort, none of them gated."""
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    space = CurveSpace(spline, 0)
    normal = fit_latent(counts, space, Prepared(counts, space).single)
    plain = _problem(counts, space, False)
    told = Told(plain.likelihood, plain.curve, plain.groups, plain.shape, Known(np.zeros(0), population.log_density))
    known = _solved(space, told, solve(told, State(normal.solution.phi, normal.solution.rho, near=True)))
    return {"normal": normal, "estimated": estimate_density(normal), "told": known}


def units(skill: FloatArray, weight: FloatArray | None = None) -> tuple[float, float]:
    """Location and scale of skills as the model defines them, of values in rising order (`model/density.py`)."""
    weight = np.full(skill.size, 1.0 / skill.size) if weight is None else weight / weight.sum()
    lower, upper = np.interp([TAIL, 1 - TAIL], np.cumsum(weight) - weight / 2, skill)
    inside = np.clip(skill, lower, upper)
    location = float(weight @ inside)
    end = float(ndtri(1 - TAIL))
    of_normal = 1 - 2 * TAIL - 2 * end * np.exp(-0.5 * end**2) / np.sqrt(2 * np.pi) + 2 * TAIL * end**2
    return location, float(np.sqrt(weight @ (inside - location) ** 2 / of_normal))


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


@lru_cache
def units_of_population(name: str) -> tuple[float, float]:
    return units(np.sort(POPULATIONS[name].draw(np.random.default_rng(1), 4_000_000)))


def measure(fit: LatentFit, truth: Truth, skill: FloatArray, name: str, told: bool) -> dict[str, float]:
    location, scale = units_of_population(name)
    m, s = (location, scale) if told else (0.0, 1.0)  # a fit that is told the density is in units of its mean and sd
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


@dataclass(frozen=True)
class Ends:
    """A cohort whose curve may have other ends than the logistic's."""

    floor: float = 0.0
    lapse: float = 0.0
    population: str = "normal"


ENDS = {
    "none": Ends(),
    "lapses of 5 %": Ends(lapse=0.05),
    "floor of a half": Ends(floor=0.5),
    "floor of a half, lapses of 5 %": Ends(floor=0.5, lapse=0.05),
    "none, exponential skill": Ends(population="exponential"),
    "none, two groups": Ends(population="two groups"),
}


@one_thread()
def with_ends(ends: Ends, truth: Truth, seed: int) -> list[float]:
    """Of a normal fit: p and size of both asymptotes, the discrimination, and what is wrong with difficulty."""
    data, _ = cohort(POPULATIONS[ends.population], truth, seed, ends)
    spline = spline_for(data.metric)
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
    space = CurveSpace(spline, 0)
    fit = fit_latent(counts, space, Prepared(counts, space).single)
    tests = assumptions.tests(fit, None, None)
    assert tests.lower_asymptote is not None
    assert tests.upper_asymptote is not None
    metric = np.linspace(spline.lower, spline.upper, _METRICS)
    band = fit.difficulty(metric)
    error = band.value - truth.difficulty(metric)
    lower, upper = tests.lower_asymptote, tests.upper_asymptote
    return [
        lower.p_value, upper.p_value, lower.size, upper.size, fit.discrimination, float(np.mean(error**2)),
        float(np.mean(np.abs(error) <= Z95 * band.se)), lower.sentence is not None, upper.sentence is not None,
    ]  # fmt: skip


def asymptotes(truth: Truth, first: int, cohorts: int) -> None:
    print("| curve | n | lower: p < 0.05 | told | size (sd) | upper: p < 0.05 | told | size (sd) | a | RMSE | covers |")
    print("|---|" + "--:|" * 10)
    for name, ends in ENDS.items():
        found = np.array([with_ends(ends, truth, seed) for seed in range(first, first + cohorts)])
        mean, sd = found.mean(axis=0), found.std(axis=0)
        print(
            f"| {name} | {len(found)} | {np.mean(found[:, 0] < 0.05):.1%} | {mean[7]:.1%} "
            f"| {mean[2]:+.3f} ({sd[2]:.3f}) | {np.mean(found[:, 1] < 0.05):.1%} | {mean[8]:.1%} "
            f"| {mean[3]:+.3f} ({sd[3]:.3f}) | {mean[4]:.2f} | {np.sqrt(mean[5]):.3f} | {mean[6]:.1%} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--riders", type=int, default=200)
    parser.add_argument("--outcomes", type=int, default=30)
    parser.add_argument("--only", choices=list(POPULATIONS), action="append")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--asymptotes", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    truth = Truth(arguments.riders, arguments.outcomes, DISCRIMINATION, lower=5.0, upper=31.0)
    if arguments.known:
        known_skills(arguments.riders, arguments.cohorts)
        return
    if arguments.asymptotes:
        asymptotes(truth, arguments.first, arguments.cohorts)
        return
    names = arguments.only or list(POPULATIONS)
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
