"""Surfaces of several metrics: recovery beside mgcv, needless terms, the test of discrimination, cost, real attempts.

    python benchmarks/surface.py recovery [--cohorts 200]        # beside mgcv's te() with a random rider (Rscript)
    python benchmarks/surface.py needless [--cohorts 100]        # an interaction, and a metric, that do nothing
    python benchmarks/surface.py cost [--riders 20000]           # three metrics at 150 sites beside one metric
    python benchmarks/surface.py discrimination [--cohorts 200]  # the level and power of the test that it is constant
    python benchmarks/surface.py varying [--cohorts 200]         # a discrimination that varies, and one that does not
    python benchmarks/surface.py attempts weightlifting_uk.parquet
    python benchmarks/surface.py ridge weightlifting_uk.parquet  # splines and a coefficient for each lifter, same rows

Recovery: 200 riders x 30 outcomes, skill N(0, 1), discrimination 1.5, wind from 3 to 35 and wave from 0 to 3 with a
Gaussian copula of correlation 0 and 0.7, and a difficulty with an interaction. Both programs are judged at the points
of a grid of 21 x 21 that the fit tells as supported. The file of attempts is given by its path and is no part of this
repository.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from peers.processes import run
from scipy.interpolate import BSpline
from scipy.sparse import csr_matrix, diags, hstack
from scipy.sparse.linalg import cg
from scipy.special import expit, ndtr

from isuit.domain import Z95, Exposure, FitConfig, FloatArray, HeldOut, Observations
from isuit.estimator import fit, is_supported
from isuit.estimator.diagnostics import assumptions, forecasts, heldout
from isuit.estimator.diagnostics.record import terms_of
from isuit.estimator.fit import predict_held_out
from isuit.estimator.likelihood.latent import LatentFit, fit_latent, let_discrimination_vary
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count, count_conditions
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.slopes import Slopes
from isuit.estimator.model.surface import surface_for
from isuit.estimator.support import support_of
from isuit.ingest import read_cohort

DISCRIMINATION, RIDERS, OUTCOMES = 1.5, 200, 30
EXPOSURES: tuple[Exposure, ...] = ("independent", "correlated")


def difficulty(wind: FloatArray, wave: FloatArray, together: float, of_wave: float) -> FloatArray:
    """Hard at both ends of the wind, harder with waves, and most of all with both."""
    one, two = (wind - 18) / 8, (wave - 1.5) / 0.8
    return np.asarray(one**2 - 1 + of_wave * 0.48 * two + together * one * two)


def cohort(
    seed: int, correlation: float, together: float = 0.5, of_wave: float = 1.0, steeper: float = 0.0
) -> Observations:
    """Wind and wave; the log discrimination rises by `steeper` over one sd of the difficulty."""
    rng = np.random.default_rng(seed)
    skill = rng.standard_normal(RIDERS)
    z = rng.standard_normal((RIDERS * OUTCOMES, 2))
    z[:, 1] = correlation * z[:, 0] + np.sqrt(1 - correlation**2) * z[:, 1]
    wave, wind = 3 * ndtr(z[:, 1]), 3 + 32 * ndtr(z[:, 0])
    rider = np.repeat(np.arange(RIDERS), OUTCOMES)
    hard = difficulty(wind, wave, together, of_wave)
    discrimination = DISCRIMINATION * np.exp(steeper * (hard - hard.mean()) / hard.std())
    outcome = (rng.random(rider.size) < expit(discrimination * (skill[rider] - hard))).astype(np.int8)
    names = tuple(f"r{number:04d}" for number in range(RIDERS))
    return Observations(names, rider.astype(np.int32), wave, outcome, metrics=("wave", "wind"), further=(wind,))


def latent(data: Observations) -> LatentFit:
    """The fit alone, without gates and held-out scores: of a surface, or of the one metric there is."""
    if data.further:
        surface = surface_for(data.metrics, data.conditions)
        counts = count_conditions(data.rider, data.conditions, data.outcome, surface.splines, len(data.riders))
        space = CurveSpace.for_outcomes(len(data), surface, 0)
    else:
        spline = spline_for(data.metric)
        counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
        space = CurveSpace.for_outcomes(len(data), spline, 0)
    return fit_latent(counts, space, Prepared(counts, space).single)


def points(data: Observations) -> FloatArray:
    """The points of the grid that are supported, a row each of wave and wind."""
    wave, wind = np.meshgrid(np.linspace(0, 3, 21), np.linspace(3, 35, 21), indexing="ij")
    both = np.column_stack([wave.ravel(), wind.ravel()])
    return both[is_supported(support_of(data, FitConfig()), both)]


def _rmse(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.4f} (se {np.std(values) / np.sqrt(len(values)):.4f})"


@one_thread()
def recovery(cohorts: int, first: int) -> None:
    for correlation in (0.0, 0.7):
        with tempfile.TemporaryDirectory() as name:
            _recovery(cohorts, first, correlation, Path(name))


def _recovery(cohorts: int, first: int, correlation: float, folder: Path) -> None:
    ours, covered, needed, cpu = [], [], 0, 0.0
    truths: list[FloatArray] = []
    for number in range(cohorts):
        data = cohort(first + number, correlation)
        at = points(data)
        truths.append(difficulty(at[:, 1], at[:, 0], 0.5, 1.0))
        began = time.process_time()
        found = latent(data)
        band = found.difficulty(at)
        cpu += time.process_time() - began
        error = band.value - truths[-1]
        ours.append(_rmse(error))
        covered.append(float(np.mean(np.abs(error) <= Z95 * band.se)))
        needed += not terms_of(found)[-1].is_zero
        _written(folder / f"cohort-{number}.csv", data.rider, data.metric, data.further[0], data.outcome)
        _written(folder / f"points-{number}.csv", at[:, 0], at[:, 1])
    print(f"correlation {correlation}: isuit, {cohorts} cohorts: RMSE {_mean(ours)}, bands cover {_mean(covered)}")
    print(f"  the interaction is told in {needed} of {cohorts}; CPU s per fit {cpu / cohorts:.2f}", flush=True)
    if shutil.which("Rscript") is None:
        print("  mgcv: no Rscript here")
        return
    command = ["Rscript", str(Path(__file__).parent / "peers/surface.R"), str(folder)]
    failure = run(command, 7200, folder, Path(__file__).parent)
    if failure is not None:
        print(f"  mgcv {failure}")
        return
    theirs, their_cover, their_cpu = [], [], []
    for number, truth in enumerate(truths):
        answer = np.genfromtxt(folder / f"answer-{number}.csv", delimiter=",", names=True)
        error = answer["difficulty"] - truth
        theirs.append(_rmse(error))
        their_cover.append(float(np.mean(np.abs(error) <= Z95 * answer["se"])))
        their_cpu.append(float(answer["cpu"][0]))
    print(f"  mgcv: RMSE {_mean(theirs)}, bands cover {_mean(their_cover)}, CPU s {np.mean(their_cpu):.2f}")
    ratio = [one / other for one, other in zip(ours, theirs, strict=True)]
    print(f"  RMSE of isuit over mgcv's, cohort by cohort: {_mean(ratio)}", flush=True)


def _written(path: Path, *columns: FloatArray) -> None:
    names = ("rider", "x", "y", "outcome") if len(columns) == 4 else ("x", "y")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


@one_thread()
def needless(cohorts: int, first: int) -> None:
    """A truth without interaction, and one without the wave: what is told, and what the smaller model would gain."""
    told = {"interaction, wave acts": 0, "interaction, wave does nothing": 0, "wave": 0}
    both: list[tuple[float, float]] = []
    for number in range(cohorts):
        told["interaction, wave acts"] += terms_of(latent(cohort(first + number, 0.0, 0.0, 1.0)))[-1].is_zero
        data = cohort(first + number, 0.0, 0.0, 0.0)
        found = latent(data)
        by_wave, _, together = terms_of(found)
        told["wave"] += by_wave.is_zero
        told["interaction, wave does nothing"] += together.is_zero
        smaller = latent(replace(data, metric=data.further[0], further=(), metrics=()))
        at = points(data)
        truth = difficulty(at[:, 1], at[:, 0], 0.0, 0.0)
        both.append((_rmse(found.difficulty(at).value - truth), _rmse(smaller.difficulty(at[:, 1]).value - truth)))
    for name, count_ in told.items():
        print(f"{name}: told zero in {count_} of {cohorts}")
    ours, smaller_ = np.array(both).T
    print(f"RMSE {_mean(ours.tolist())}; of the model without the wave {_mean(smaller_.tolist())}")
    pooled = np.sqrt(np.mean(ours**2) / np.mean(smaller_**2))
    print(f"ratio over all cohorts {pooled:.4f}, median of the cohorts' ratios {np.median(ours / smaller_):.4f}")


@one_thread()
def discrimination(cohorts: int, first: int) -> None:
    """How often the test of a constant discrimination rejects at 5 %: where it is constant, and where it is not."""
    for told, steeper in {"constant": 0.0, "a fifth steeper over one sd of the difficulty": 0.2}.items():
        for metrics in (1, 2):
            rejected, tested = 0, 0
            for number in range(cohorts):
                data = cohort(first + number, 0.0, 0.5 if metrics == 2 else 0.0, 1.0 if metrics == 2 else 0.0, steeper)
                if metrics == 1:
                    data = replace(data, metric=data.further[0], further=(), metrics=())
                test = assumptions.tests(latent(data), None, None).discrimination_by_metric
                tested += test is not None
                rejected += test is not None and test.p_value < 0.05
            print(f"{told}, {metrics} metrics: rejected in {rejected} of {tested}", flush=True)


def _steepness(shape: str, wind: FloatArray) -> FloatArray:
    """From 0.8 to 2.2 over the wind, evenly on the logarithmic scale or in a step; or 1.5 everywhere."""
    if shape == "a line":
        return np.asarray(0.8 * (2.2 / 0.8) ** ((wind - 3) / 32))
    return np.asarray(0.8 + 1.4 * expit((wind - 19) / 3)) if shape == "a step" else np.full(wind.size, 1.5)


@one_thread()
def varying(cohorts: int, first: int) -> None:
    """Bands of difficulty and of the discrimination along the wind, let vary or not."""
    at = np.linspace(3, 35, 41)
    truth = difficulty(at, at, 0.0, 0.0)
    for shape in ("a line", "a step", "constant"):
        found: dict[str, list[float]] = {name: [] for name in ("difficulty", "constant", "a(x)", "rmse", "one", "cpu")}
        for number in range(first, first + cohorts):
            rng = np.random.default_rng(number)
            skill, rider = rng.standard_normal(RIDERS), np.repeat(np.arange(RIDERS, dtype=np.int32), OUTCOMES)
            wind = rng.uniform(3, 35, rider.size)
            chance = expit(_steepness(shape, wind) * (skill[rider] - difficulty(wind, wind, 0.0, 0.0)))
            outcome = (rng.random(rider.size) < chance).astype(np.int8)
            constant = latent(Observations(tuple(f"r{r:04d}" for r in range(RIDERS)), rider, wind, outcome))
            began = time.process_time()
            varied = let_discrimination_vary(constant, Slopes.for_conditions((wind,)))
            found["cpu"].append(time.process_time() - began)
            band, one, steep = varied.difficulty(at), constant.difficulty(at), varied.discrimination_at(at)
            found["difficulty"].append(float(np.mean(np.abs(band.value - truth) <= Z95 * band.se)))
            found["constant"].append(float(np.mean(np.abs(one.value - truth) <= Z95 * one.se)))
            off = np.abs(np.log(steep.value / _steepness(shape, at)))
            found["a(x)"].append(float(np.mean(off <= Z95 * steep.se / steep.value)))
            found["rmse"].append(_rmse(band.value - truth))
            found["one"].append(_rmse(one.value - truth))
        print(f"{shape}, {cohorts} cohorts: bands of difficulty cover {_mean(found['difficulty'])}, with one a")
        print(
            f"  {_mean(found['constant'])}; of a(x) {_mean(found['a(x)'])}; RMSE of difficulty {_mean(found['rmse'])},"
        )
        print(f"  with one a {_mean(found['one'])}; CPU s {np.mean(found['cpu']):.2f}", flush=True)


def cost(riders: int) -> None:
    """The whole fit of three metrics at 150 sites against that of the first alone, 50 outcomes a rider."""
    rng = np.random.default_rng(1)
    skill, each = rng.standard_normal(riders), 50
    rider = np.repeat(np.arange(riders, dtype=np.int32), each)
    z = rng.standard_normal((rider.size, 3))
    z[:, 1] = 0.5 * z[:, 0] + np.sqrt(0.75) * z[:, 1]
    wind, wave, water = 3 + 32 * ndtr(z[:, 0]), 3 * ndtr(z[:, 1]), 5 + 20 * ndtr(z[:, 2])
    site = rng.integers(0, 150, rider.size).astype(np.int32)
    hard = difficulty(wind, wave, 0.3, 1.0) + 0.02 * (water - 15) + 0.3 * rng.standard_normal(150)[site]
    outcome = (rng.random(rider.size) < expit(DISCRIMINATION * (skill[rider] - hard))).astype(np.int8)
    sites = tuple(f"s{number:03d}" for number in range(150))
    names = tuple(f"r{number:07d}" for number in range(riders))
    one = Observations(names, rider, wind, outcome, sites, site)
    three = replace(one, metric=water, metrics=("water", "wave", "wind"), further=(wave, wind))
    spent = {}
    for told, data in {"one": one, "three": three}.items():
        began = time.process_time()
        estimate = fit(data, FitConfig())
        spent[told] = time.process_time() - began
        print(f"{told}: {len(data):,} outcomes, {estimate.kind}, {spent[told]:.1f} CPU s", flush=True)
    print(f"ratio {spent['three'] / spent['one']:.2f}")


def attempts(path: str) -> None:
    """Load, body weight and attempt; scores against the single surface of all three and the single curve of load."""
    for metrics in (("load_ratio",), ("load_ratio", "body_weight_kg", "attempt")):
        with read_cohort(path, metrics=metrics) as read:
            data = read.observations()
        names = data.metrics or metrics
        load = replace(data, metric=data.conditions[names.index("load_ratio")], further=(), metrics=())
        kept_back = heldout.kept_back_rows(data, "occasion")
        test = data.rows(kept_back)
        _, of_load = predict_held_out(load, FitConfig(split="occasion"), kept_back)
        print(f"\n{', '.join(metrics)}: {len(data):,} attempts of {len(data.riders):,}, {len(test):,} kept back")
        for exposure in EXPOSURES:
            config, began = FitConfig(exposure=exposure, split="occasion"), time.process_time()
            estimate = fit(data, config)
            spent = time.process_time() - began
            predicted, single = predict_held_out(data, config, kept_back)
            print(f"- {exposure}: {estimate.kind}, whole fit {spent:.1f} CPU s")
            for told, baseline in {
                "the single model of the same metrics": single,
                "load's single curve": of_load,
            }.items():
                _tell(told, forecasts.Forecasts.of(test, predicted, baseline), estimate.held_out)
            for term in estimate.diagnostics.terms or ():
                zero = ", told zero" if term.is_zero else ""
                name, sentence = " x ".join(term.metrics), term.sentence or ""
                print(f"  {name}: sd {term.sd:.2f}, p = {term.p_value:.2g}{zero}; {sentence}")


def ridge(path: str) -> None:
    """Logistic regression on splines, with a shrunk coefficient for each lifter, on the rows of `attempts`."""
    names = ("load_ratio", "body_weight_kg", "attempt")
    with read_cohort(path, metrics=names) as read:
        data = read.observations()
    kept_back = heldout.kept_back_rows(data, "occasion")
    attempt, weight, load = data.conditions
    by_load, by_weight = _splines(load, 10), _splines(weight, 5)
    by_attempt = csr_matrix(np.equal.outer(attempt, np.unique(attempt)).astype(float))
    lifter = csr_matrix((np.ones(len(data)), (np.arange(len(data)), data.rider)))
    test = data.outcome[kept_back]

    def scores(columns: csr_matrix, penalty: FloatArray) -> tuple[float, float]:
        chance = np.clip(_logistic(columns[~kept_back], data.outcome[~kept_back], penalty, columns[kept_back]), 1e-9, 1)
        told = np.where(test == 1, chance, 1 - chance)
        return float(np.mean((1 - told) ** 2)), float(-np.mean(np.log(told)))

    baseline, log_score = scores(by_load, np.full(by_load.shape[1], 1e-2))
    print(f"{len(test):,} kept back; load alone: Brier score {baseline:.5f}, log score {log_score:.4f}")
    conditions = hstack([by_load, by_weight, by_attempt])
    for shrunk in (1.0, 2.0, 4.0, 8.0, 16.0):
        penalty = np.concatenate([np.full(conditions.shape[1], 1e-2), np.full(lifter.shape[1], shrunk)])
        brier, log_score = scores(hstack([conditions, lifter]).tocsr(), penalty)
        print(f"penalty {shrunk:4}: Brier skill {1 - brier / baseline:+.4f}, log score {log_score:.4f}", flush=True)


def _splines(metric: FloatArray, intervals: int) -> csr_matrix:
    inner = np.unique(np.quantile(metric, np.linspace(0, 1, intervals + 1)))
    knots = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
    return BSpline.design_matrix(metric, knots, 3).tocsr()


def _logistic(columns: csr_matrix, outcome: FloatArray, penalty: FloatArray, at: csr_matrix) -> FloatArray:
    """The chance at other rows, by Newton's steps."""
    beta = np.zeros(columns.shape[1])
    for _ in range(15):
        chance = expit(columns @ beta)
        information = (columns.T @ diags(chance * (1 - chance)) @ columns + diags(penalty)).tocsc()
        gradient = columns.T @ (outcome - chance) - penalty * beta
        beta += cg(information, gradient, rtol=1e-5, maxiter=500, M=diags(1 / information.diagonal()))[0]
    return np.asarray(expit(at @ beta))


def _tell(told: str, scored: forecasts.Forecasts, recorded: HeldOut | None) -> None:
    scores = forecasts.of_forecasts(scored)
    low, high = scores.intervals.rider.brier_skill if scores.intervals.rider else (np.nan, np.nan)
    print(
        f"  against {told}: Brier skill {scores.brier_skill:+.4f} (by rider {low:+.4f} to {high:+.4f}), "
        f"log score {scores.log_score:.4f} against {scores.log_score_single_curve:.4f}",
        flush=True,
    )
    if recorded is not None and "same" in told and abs(recorded.brier_skill - scores.brier_skill) > 1e-3:
        print(f"  (the record tells {recorded.brier_skill:+.4f}, of a fit that began at the whole cohort's)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=("recovery", "needless", "discrimination", "varying", "cost", "attempts", "ridge")
    )
    parser.add_argument("cohort", nargs="?", help="the file of attempts")
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--riders", type=int, default=20_000)
    asked = parser.parse_args()
    if asked.what == "recovery":
        recovery(asked.cohorts, asked.first)
    elif asked.what == "needless":
        needless(asked.cohorts, asked.first)
    elif asked.what == "discrimination":
        discrimination(asked.cohorts, asked.first)
    elif asked.what == "varying":
        varying(asked.cohorts, asked.first)
    elif asked.what == "ridge":
        ridge(asked.cohort)
    elif asked.what == "cost":
        cost(asked.riders)
    else:
        attempts(asked.cohort)


if __name__ == "__main__":
    main()
