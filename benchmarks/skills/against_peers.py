"""isuit beside lme4, glmmTMB and gpboost, which take skill as normal, where it is not.

The peers are told the curve's true shape, a quadratic; isuit is not. Every answer is judged in two units: sds of the
population's skill, and the model's own (`model/density.py`), which a few riders far out do not decide.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers.exchange import FloatArray, read_answer, read_columns, write_columns
from peers.processes import run
from peers.programs import PROGRAMS, Program

from isuit.domain import Z95, Observations
from isuit.estimator.likelihood.latent import LatentFit, estimate_density, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.threads import one_thread
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.experiment.cohort import Truth

from .populations import POPULATIONS, cohort, units_of_population

PEERS = ("lme4-quadrature", "glmmTMB", "gpboost")
_LIMIT = 300  # CPU seconds


@dataclass(frozen=True)
class Found:
    """What a program says of a cohort: difficulty at metrics along it, its errors, the discrimination, skills."""

    difficulty: FloatArray
    se: FloatArray | None
    a: float
    skill: FloatArray


def against_peers(truth: Truth, first: int, cohorts: int, names: list[str]) -> None:
    programs = [program for program in PROGRAMS if program.name in PEERS and program.version is not None]
    print(", ".join(f"{program.package} {program.version}" for program in programs))
    print(f"{cohorts} cohorts each of {truth.riders} riders x {truth.outcomes} outcomes")
    print(
        "| true skill | program | a over the truth, sds | RMSE | band covers | a over the truth, own unit | RMSE "
        "| band covers | correlation of skill |\n|---|---|" + "--:|" * 7
    )
    for name in names:
        rows: dict[str, list[list[float]]] = {}
        for seed in range(first, first + cohorts):
            data, skill = cohort(POPULATIONS[name], truth, seed)
            for program, found in _answers(data, programs).items():
                rows.setdefault(program, []).append(_judged(found, data, truth, skill, name))
        for program, each in rows.items():
            print(_row(name, program, np.array(each), cohorts), flush=True)


def _row(name: str, program: str, values: FloatArray, cohorts: int) -> str:
    mean = values.mean(axis=0)
    cells = []
    for a, square, covers in (mean[:3], mean[3:6]):
        cells += [f"{a:.3f}", f"{np.sqrt(square):.3f}", "" if np.isnan(covers) else f"{covers:.1%}"]
    missing = "" if len(values) == cohorts else f" ({cohorts - len(values)} failed)"
    return f"| {name} | {program}{missing} | {' | '.join(cells)} | {mean[6]:.3f} |"


def _judged(found: Found, data: Observations, truth: Truth, skill: FloatArray, name: str) -> list[float]:
    grid = np.linspace(data.metric.min(), data.metric.max(), found.difficulty.size)
    judged: list[float] = []
    for location, scale in ((0.0, 1.0), units_of_population(name)):
        error = found.difficulty - (truth.difficulty(grid) - location) / scale
        covers = np.nan if found.se is None else float(np.mean(np.abs(error) <= Z95 * found.se))
        judged += [found.a / (truth.discrimination * scale), float(np.mean(error**2)), covers]
    return [*judged, float(np.corrcoef(found.skill, skill)[0, 1])]


def _answers(data: Observations, programs: list[Program]) -> dict[str, Found]:
    answers = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_columns(folder, data.rider, data.metric, data.outcome)
        grid = read_columns(folder).grid
        with one_thread():
            spline = spline_for(data.metric)
            counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders))
            space = CurveSpace(spline, 0)
            normal = fit_latent(counts, space, Prepared(counts, space).single)
            answers["isuit, normal"] = _found(normal, grid)
            answers["isuit, estimated"] = _found(estimate_density(normal), grid)
        for program in programs:
            out = folder / program.name
            out.mkdir()
            failure = run(program.command(folder, out), _LIMIT, out, program.directory, program.one_thread)
            if failure is not None:
                print(f"{program.name}: {failure}", file=sys.stderr)
                continue
            answer, _ = read_answer(out)
            answers[program.name] = Found(answer.difficulty, answer.difficulty_se, answer.discrimination, answer.skill)
    return answers


def _found(fit: LatentFit, grid: FloatArray) -> Found:
    band = fit.difficulty(grid)
    return Found(band.value, band.se, fit.discrimination, fit.skills()[0])
