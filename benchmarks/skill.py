"""What it costs to take skill as normal where it is not, and what an estimated density of skill gives back.

    python benchmarks/skill.py [--cohorts 200] [--riders 200] [--outcomes 30] [--json FILE]

Riders' skills are drawn from five densities, each of mean 0 and variance 1 over the population; difficulty is the
paper's, the discrimination 1.5. Every cohort is fitted three times: with normal skill, with an estimated density, and
told the true density, which is as good as any fit can be. The truth that intervals are judged against is that of the
population, as it was drawn from: the cohort's own mean and sd are chance. `a` is judged beside that against 1.5 times
the sd of the riders who were drawn, since under heavy tails it is these that outcomes tell of.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
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
from isuit.estimator.model.density import Density, Tables
from isuit.experiment.cohort import Truth

DISCRIMINATION = 1.5
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


def measure(fit: LatentFit, truth: Truth, skill: FloatArray) -> dict[str, float]:
    metric = np.linspace(fit.space.spline.lower, fit.space.spline.upper, _METRICS)
    band, true = fit.difficulty(metric), truth.difficulty(metric)
    error = band.value - true
    lower, upper = discrimination_interval(fit.discrimination, fit.discrimination_se)
    mean, sd = fit.skills()
    in_cohort = truth.discrimination * float(np.sqrt(np.mean((skill - skill.mean()) ** 2)))
    order = np.argsort(skill)
    ends = np.concatenate([order[: skill.size // 20], order[-(skill.size // 20) :]])
    covered = np.abs(mean - skill) <= Z95 * sd
    return {
        "a": fit.discrimination,
        "se": fit.discrimination_se,
        "covers_a": float(lower <= truth.discrimination <= upper),
        "covers_cohort_a": float(lower <= in_cohort <= upper),
        "squared_error": float(np.mean(error**2)),
        "covers": float(np.mean(np.abs(error) <= Z95 * band.se)),
        "band": float(np.mean(band.se)),
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
        result[kind] = measure(fit, truth, skill)
    return result


def summary(found: list[dict[str, dict[str, float]]], kind: str) -> dict[str, float]:
    values = {key: np.array([each[kind][key] for each in found]) for key in found[0][kind]}
    table = {key: float(value.mean()) for key, value in values.items()}
    table["rmse"] = float(np.sqrt(table.pop("squared_error")))
    table["median_a"] = float(np.median(values["a"]))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--riders", type=int, default=200)
    parser.add_argument("--outcomes", type=int, default=30)
    parser.add_argument("--only", choices=list(POPULATIONS), action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    truth = Truth(arguments.riders, arguments.outcomes, DISCRIMINATION, lower=5.0, upper=31.0)
    tables: dict[str, Any] = {}
    print(f"{arguments.cohorts} cohorts of {truth.riders} riders x {truth.outcomes} outcomes, a = {DISCRIMINATION}")
    print("| true skill | fit | a | covers a | of cohort | RMSE | to told | band covers | skill | at ends | df |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in arguments.only or POPULATIONS:
        begin, found, failed = time.process_time(), [], 0
        for seed in range(1000, 1000 + arguments.cohorts):
            try:
                found.append(one(name, truth, seed))
            except Exception as error:
                failed += 1
                print(f"{name}, seed {seed}: {error!r}"[:200])
        if not found:
            continue
        tables[name] = {kind: summary(found, kind) for kind in ("normal", "estimated", "told")}
        for kind, s in tables[name].items():
            ratio = s["rmse"] / tables[name]["told"]["rmse"]
            print(
                f"| {name} | {kind} | {s['a']:.3f} | {s['covers_a']:.1%} | {s['covers_cohort_a']:.1%} "
                f"| {s['rmse']:.3f} | {ratio:.2f} | {s['covers']:.1%} | {s['covers_skill']:.1%} "
                f"| {s['covers_ends']:.1%} | {s['density_df']:.1f} |",
                flush=True,
            )
        tables[name]["failed"] = failed
        tables[name]["cpu_seconds"] = time.process_time() - begin
    if arguments.json:
        arguments.json.write_text(json.dumps(tables, indent=2) + "\n")


if __name__ == "__main__":
    main()
