"""What it costs to take skill as normal where it is not, and what an estimated density of skill gives back.

    python benchmarks/skill.py [--cohorts 200] [--riders 200] [--outcomes 30] [--json FILE]

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
from isuit.estimator.likelihood.latent import LatentFit, _problem, _solved, estimate_density, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.quadrature import Parameters
from isuit.estimator.likelihood.solver import Problem, State, solve
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.density import TAIL, Density, Tables
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


def cohort(population: Population, truth: Truth, seed: int) -> tuple[Observations, FloatArray]:
    generator = np.random.default_rng(seed)
    skill = population.draw(generator, truth.riders)
    rider = np.repeat(np.arange(truth.riders), truth.outcomes)
    metric = generator.uniform(truth.lower, truth.upper, rider.size)
    success = expit(truth.discrimination * (skill[rider] - truth.difficulty(metric)))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--riders", type=int, default=200)
    parser.add_argument("--outcomes", type=int, default=30)
    parser.add_argument("--only", choices=list(POPULATIONS), action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    truth = Truth(arguments.riders, arguments.outcomes, DISCRIMINATION, lower=5.0, upper=31.0)
    names = arguments.only or list(POPULATIONS)
    found: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in names}
    failed = dict.fromkeys(names, 0)
    for done, seed in enumerate(range(1000, 1000 + arguments.cohorts), start=1):
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
