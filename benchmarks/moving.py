"""Skill that moves: what a fit of it recovers, predicts and costs.

    python benchmarks/moving.py simulated [COHORTS [SHARE]]   paths, walk, growth, difficulty, and whether skill is told
                                                        to move; SHARE of the riders makes it cheaper
    python benchmarks/moving.py level [COHORTS]         how often skill that stands still is told to move
    python benchmarks/moving.py lifting FILE [RIDERS]   later days of real riders, beside standing skill
    python benchmarks/moving.py cost [OUTCOMES]         CPU time beside a fit of standing skill, 50 days for each rider

Simulated riders have outcomes on single days spread over three years, at metrics from 3 to 35 and a = 1.5. Coverage is
that of 95 % bands, over all days of all riders: of the paths of moving skill, and of what is published, which is one
skill for ever where skill is told to stand still. Skill is told in units of the population that riders are drawn from:
a band holds that the mean of those drawn is not its mean. CPU times are of the fits alone. Growth is
judged beside that of the riders who were drawn: the mean of a hundred walks of 0.5 a year is itself off zero by 0.07
after two years, and the fit tells that mean.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from isuit.domain import Exposure, FitConfig, Observations
from isuit.estimator import movement
from isuit.estimator.diagnostics import forecasts, heldout, newcomers
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.moving_fit import LEVEL, MovingFit, fit_moving, movement_score, movement_test
from isuit.estimator.model.occasions import Occasions
from isuit.ingest import read_cohort

fitting: Any = import_module("isuit.estimator.fit")
YEAR, DAY = 365.25, 86_400_000_000
A = 1.5
MANY = 20_000  # riders, by whom a population is known


@dataclass(frozen=True)
class Kind:
    name: str
    riders: int
    days: int
    walk: float  # sd of skill's change in a year
    growth: float  # of the logarithm of 1 + years


KINDS = (
    Kind("walk, 10 days", 400, 10, 0.5, 0.0),
    Kind("walk, 50 days", 200, 50, 0.5, 0.0),
    Kind("walk, 200 days", 60, 200, 0.5, 0.0),
    Kind("walk and growth, 50 days", 200, 50, 0.5, 0.5),
    Kind("growth, 50 days", 200, 50, 0.0, 0.5),
    Kind("none, 50 days", 200, 50, 0.0, 0.0),
)


def simulate(kind: Kind, seed: int, years: float = 3.0) -> tuple[Observations, Any]:
    """A cohort, and the skill behind each of its rows, which are one to a day."""
    rng = np.random.default_rng(seed)
    span = round(YEAR * years)
    day = np.sort(rng.random((kind.riders, span)).argsort(axis=1)[:, : kind.days], axis=1)
    steps = kind.walk * np.sqrt(np.diff(day, axis=1) / YEAR) * rng.standard_normal((kind.riders, kind.days - 1))
    path = np.cumsum(np.column_stack([rng.standard_normal(kind.riders), steps]), axis=1)
    skill = (path + kind.growth * np.log1p((day - day[:, :1]) / YEAR)).ravel()
    metric = rng.uniform(3, 35, skill.size)
    outcome = (rng.random(skill.size) < 1 / (1 + np.exp(-A * (skill - difficulty(metric))))).astype(np.int64)
    riders = tuple(f"{r:06d}" for r in range(kind.riders))
    rider = np.repeat(np.arange(kind.riders), kind.days)
    return Observations(riders, rider, metric, outcome, observed_at=(day.ravel() + 15_000) * DAY), skill


def difficulty(metric: Any) -> Any:
    return ((metric - 18) / 8) ** 2 - 1


def fits(data: Observations, config: FitConfig) -> tuple[LatentFit, MovingFit, Occasions, Any, tuple[float, float]]:
    """The fit of standing skill, that of moving skill, and the CPU time of each."""
    prepared = fitting._prepare(data, config, fitting._functions(data, config))
    correlated = config.exposure == "correlated"
    begin = time.process_time()
    still = fit_latent(prepared.counts, prepared.space, prepared.single, correlated)
    between = time.process_time()
    occasions = Occasions.of(data)
    counts = movement.counted(data, occasions.of_row, occasions.size, prepared.space)
    moving = fit_moving(occasions, counts, still, correlated)
    return still, moving, occasions, counts, (between - begin, time.process_time() - between)


def growth_drawn(kind: Kind, data: Observations, skill: Any, after: float) -> float:
    """By how much the riders drawn got better after so many years, told from their true skills.

    Where skill walks: the multiple of the logarithm that fits the riders' steps best, weighted as a walk's steps are.
    """
    if kind.walk == 0.0:
        return float(kind.growth * np.log1p(after))
    assert data.observed_at is not None
    since = (np.asarray(data.observed_at) // DAY).reshape(kind.riders, kind.days) / YEAR
    gap, step = np.diff(since), np.diff(skill.reshape(kind.riders, kind.days))
    slope = np.diff(np.log1p(since - since[:, :1]))
    return float(np.sum(slope * step / gap) / np.sum(slope**2 / gap) * np.log1p(after))


def level(cohorts: int) -> None:
    """Small cohorts of standing skill, by both tests."""
    found = []
    for seed in range(cohorts):
        data, _ = simulate(Kind("none", 100, 20, 0.0, 0.0), 7000 + seed)
        still, moving, occasions, counts, _ = fits(data, FitConfig())
        score = movement_score(occasions, counts, still.problem.likelihood.counts, still)
        assert score is not None
        found.append((movement_test(moving)[1], score[1]))
        if (seed + 1) % 20 == 0 or seed + 1 == cohorts:
            p = np.array(found)
            print(
                f"{len(p)} cohorts of 100 riders x 20 days, standing skill: told static "
                f"{np.sum(p[:, 0] >= 0.01)} by the likelihood ratio, {np.sum(p[:, 1] >= 0.01)} by the score; "
                f"p below 0.05 in {np.sum(p[:, 0] < 0.05)} and {np.sum(p[:, 1] < 0.05)}",
                flush=True,
            )


def simulated(cohorts: int, share: float = 1.0) -> None:
    at = np.linspace(6, 32, 27)
    for kind in (replace(each, riders=round(share * each.riders)) for each in KINDS):
        rows: list[list[float]] = []
        # The mean and spread over riders' days that a cohort of this kind has on average.
        population = simulate(replace(kind, riders=MANY), -1 % 2**32)[1]
        large, wide = population.mean(), population.std()
        for seed in range(cohorts):
            data, skill = simulate(kind, seed)
            still, moving, occasions, counts, cpu = fits(data, FitConfig())
            true = np.empty(occasions.size)
            true[occasions.of_row] = (skill - large) / wide
            mean, sd = moving.paths
            inside = np.abs(mean - true) < 1.96 * sd
            moves = movement_test(moving)[1] < LEVEL
            if moves:
                published = inside
            else:
                own, error = (part[occasions.rider] for part in still.skills())
                published = np.abs(own - true) < 1.96 * error
            band = moving.difficulty(at)
            wanted = (difficulty(at) - large) / wide
            score = movement_score(occasions, counts, still.problem.likelihood.counts, still)  # of 50 riders or more
            rows.append(
                [
                    float(np.mean(inside)),
                    moving.walk * wide,
                    float(np.mean(band.value - wanted)),
                    float(np.mean(np.abs(band.value - wanted) < 1.96 * band.se)),
                    moves,
                    score is not None and score[1] < LEVEL,
                    float(moving.growth_after(np.array([2.0]))[0][0] * wide) - growth_drawn(kind, data, skill, 2.0),
                    cpu[0],
                    cpu[1],
                    float(np.mean(published)),
                ]
            )
        found = np.array(rows)
        mean_, error = found.mean(axis=0), found.std(axis=0, ddof=min(1, len(found) - 1)) / np.sqrt(len(found))
        print(
            f"{kind.name:<26} paths {mean_[0]:.3f} ({error[0]:.3f}), published {mean_[9]:.3f} ({error[9]:.3f})  "
            f"walk {mean_[1]:.3f} ({error[1]:.3f}, true {kind.walk})  "
            f"growth after 2 years off by {mean_[6]:+.3f} ({error[6]:.3f}; of {kind.growth * np.log(3):.3f})  "
            f"difficulty off by {mean_[2]:+.3f} ({error[2]:.3f}), covered {mean_[3]:.3f}  "
            f"told to move {mean_[4]:.2f}, by score {mean_[5]:.2f}  "
            f"CPU {mean_[7]:.2f} and {mean_[8]:.2f} s",
            flush=True,
        )


def lifting(path: str, riders: int | None) -> None:
    with read_cohort(path) as cohort:
        data = cohort.observations()
        if riders is not None:
            chosen = np.sort(heldout.riders_in_fixed_order(data)[:riders])
            data = data.rows(np.isin(data.rider, chosen))
            data = replace(
                data, riders=tuple(data.riders[r] for r in chosen.tolist()), rider=np.searchsorted(chosen, data.rider)
            )
        kept_back = heldout.kept_back_rows(data, "time")
        test = data.rows(kept_back)
        print(f"{len(data)} outcomes of {len(data.riders)} riders; {len(test)} kept back", flush=True)
        exposures: tuple[Exposure, ...] = ("independent", "correlated")
        for exposure in exposures:
            config = FitConfig(exposure=exposure, split="time")
            begin = time.process_time()
            still = fitting._refit(data, config, fitting._functions(data, config), None, None, ~kept_back, "")
            between = time.process_time()
            moving = movement.refit(data, config, ~kept_back, still.latent, None)
            cpu = between - begin, time.process_time() - between
            site = newcomers.places(test, still.space)
            single = still.of_single(test, site)
            standing = still.latent.predict(test.rider.astype(np.int64), test.condition, site)
            predicted = movement.predict(data, ~kept_back, moving, site)
            for name, forecast, against in (
                ("standing", standing, single),
                ("moving", predicted, single),
                ("moving over standing", predicted, standing),
            ):
                scored = forecasts.of_forecasts(forecasts.Forecasts.of(test, forecast, against))
                interval = scored.intervals.rider
                assert interval is not None
                print(
                    f"{exposure}, {name}: log score {scored.log_score:.4f}, gain {scored.log_score_gain:+.4f} "
                    f"({interval.log_score_gain[0]:+.4f} to {interval.log_score_gain[1]:+.4f}), Brier skill "
                    f"{scored.brier_skill:+.4f} ({interval.brier_skill[0]:+.4f} to {interval.brier_skill[1]:+.4f}), "
                    f"mean prediction off by {np.mean(forecast - test.outcome):+.4f}",
                    flush=True,
                )
            told_apart(data, kept_back, moving, still.space, predicted)
            years, grown = np.array([1.0, 3.0, 5.0]), moving.growth_after(np.array([1.0, 3.0, 5.0]))[0]
            print(
                f"  walk {moving.walk:.3f} a year, half-life {moving.half_life_years}, "
                f"growth after {years} years {grown}; "
                f"CPU {cpu[0]:.1f} and {cpu[1]:.1f} s",
                flush=True,
            )


def told_apart(data: Observations, kept_back: Any, moving: MovingFit, space: Any, predicted: Any) -> None:
    """The mean error of days kept back that were a lifter's last and of others, and of the last days before these,
    predicted in the same way from the days before them: a day is the last one for a reason."""
    assert data.observed_at is not None
    occasions = Occasions.of(data)
    left = occasions.riders[1:][data.rider] - 1 - occasions.of_row  # days that follow
    first_kept = np.full(len(data.riders), occasions.size)
    np.minimum.at(first_kept, data.rider[kept_back], occasions.of_row[kept_back])
    before = occasions.of_row == first_kept[data.rider] - 1
    earlier = ~kept_back & ~before
    before &= np.isin(data.rider, data.rider[earlier])
    again = np.full(len(data), np.nan)
    again[~earlier] = movement.predict(data, earlier, moving, newcomers.places(data.rows(~earlier), space))
    whole = again.copy()
    whole[kept_back] = predicted
    for name, rows, forecast in (
        ("a lifter's last day", kept_back & (left == 0), whole),
        ("other days kept back", kept_back & (left > 0), whole),
        ("the day before the first kept back, from those before it", before, again),
    ):
        off = forecast[rows] - data.outcome[rows]
        by_rider = np.bincount(data.rider[rows], off)
        error = np.sqrt(by_rider @ by_rider) / off.size
        print(f"  {name}: {off.size} outcomes, mean prediction off by {off.mean():+.4f} ({error:.4f})", flush=True)


def cost(outcomes: int) -> None:
    data, _ = simulate(Kind("cost", outcomes // 50, 50, 0.5, 0.0), 1)
    fits(data.rows(data.rider < 50), FitConfig())  # compiles
    still, moving, _, _, cpu = fits(data, FitConfig())
    print(
        f"{outcomes} outcomes: standing {cpu[0]:.2f} s, moving {cpu[1]:.2f} s, {cpu[1] / cpu[0]:.1f} times; "
        f"a {still.discrimination:.3f} and {moving.discrimination:.3f}, walk {moving.walk:.3f}"
    )


def main(arguments: list[str]) -> None:
    match arguments:
        case ["simulated", *rest]:
            simulated(int(rest[0]) if rest else 40, float(rest[1]) if len(rest) > 1 else 1.0)
        case ["level", *rest]:
            level(int(rest[0]) if rest else 100)
        case ["lifting", path, *rest]:
            lifting(path, int(rest[0]) if rest else None)
        case ["cost", *rest]:
            cost(int(rest[0]) if rest else 1_000_000)
        case _:
            print(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
