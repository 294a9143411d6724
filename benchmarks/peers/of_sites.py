"""Programs with rider and site on one cohort of many sites, each in a process of its own: what `sites.py` compares.

    python -m peers.of_sites NAME FOLDER OUT      one of the programs that Python runs

A program gets the cohort as binary columns, and gives difficulty and its standard error for each site at each metric.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isuit.domain import Observations

from .processes import run

FloatArray = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "isuit": "penalised spline, deviation of each site, clienteles",
    "mgcv": "bam, a smooth per site, a random rider",
    "lme4": "quadratic, level, tilt and bend of each site, Laplace",
    "glmmTMB": "the same",
    "gpboost": "the same",
    "gpboost-spline": "isuit's spline space, level, tilt and bend of each site, Laplace",
}
IN_PYTHON = ("isuit", "gpboost", "gpboost-spline")


@dataclass(frozen=True)
class Answer:
    """Difficulty of sites at the metrics that were asked for, in units of the skill sd."""

    cpu_seconds: float
    sites: NDArray[np.int64]
    difficulty: FloatArray  # sites x metrics
    se: FloatArray


def installed(name: str) -> bool:
    if name in IN_PYTHON:
        return find_spec(name.removesuffix("-spline")) is not None
    if shutil.which("Rscript") is None:
        return False
    code = f'quit(status = !requireNamespace("{name}", quietly = TRUE))'
    return subprocess.run(["Rscript", "--vanilla", "-e", code], capture_output=True, check=False).returncode == 0


def write(folder: Path, data: Observations, metric: FloatArray) -> None:
    assert data.site is not None
    data.rider.astype("<i4").tofile(folder / "rider.i32")
    data.site.astype("<i4").tofile(folder / "site.i32")
    data.outcome.astype("<i4").tofile(folder / "outcome.i32")
    data.metric.astype("<f8").tofile(folder / "metric.f64")
    metric.astype("<f8").tofile(folder / "grid.f64")


def answer_of(name: str, folder: Path, out: Path, limit: int) -> Answer | str:
    """What the program found, or why it did not."""
    out.mkdir()
    python = name in IN_PYTHON
    command = [sys.executable, "-m", "peers.of_sites"] if python else ["Rscript", "--vanilla", "sites.R"]
    failure = run([*command, name, str(folder), str(out)], limit, out, HERE.parent if python else HERE)
    if failure is not None:
        return failure
    scalars = dict(line.split() for line in (out / "scalars.txt").read_text().splitlines())
    sites = np.fromfile(out / "sites.i32", "<i4").astype(np.int64)
    difficulty, se = (np.fromfile(out / f"{part}.f64", "<f8") for part in ("difficulty", "difficulty_se"))
    return Answer(float(scalars["cpu_seconds"]), sites, difficulty.reshape(sites.size, -1), se.reshape(sites.size, -1))


def main(name: str, folder: Path, out: Path) -> None:
    rider, site, outcome = (np.fromfile(folder / f"{part}.i32", "<i4") for part in ("rider", "site", "outcome"))
    metric, grid = (np.fromfile(folder / f"{part}.f64", "<f8") for part in ("metric", "grid"))
    programs = {"isuit": _isuit, "gpboost": _gpboost, "gpboost-spline": _gpboost_spline}
    fitted = programs[name](rider, site, outcome, metric, grid)
    (out / "scalars.txt").write_text(f"cpu_seconds {fitted.cpu_seconds}\n")
    fitted.sites.astype("<i4").tofile(out / "sites.i32")
    fitted.difficulty.astype("<f8").tofile(out / "difficulty.f64")
    fitted.se.astype("<f8").tofile(out / "difficulty_se.f64")


Codes = NDArray[np.int32]


def _isuit(rider: Codes, site: Codes, outcome: Codes, metric: FloatArray, grid: FloatArray) -> Answer:
    from isuit.estimator.likelihood.latent import fit_latent
    from isuit.estimator.likelihood.prepared import Prepared
    from isuit.estimator.model.basis import spline_for
    from isuit.estimator.model.counts import count
    from isuit.estimator.model.curves import CurveSpace

    def found() -> Answer:
        began, spline = time.process_time(), spline_for(metric)
        counts = count(rider.astype(np.int64), metric, outcome.astype(np.int8), spline, int(rider.max()) + 1, places)
        space = CurveSpace.for_outcomes(metric.size, spline, int(site.max()) + 1)
        latent = fit_latent(counts, space, Prepared(counts, space).single)
        bands = [latent.difficulty(grid, place) for place in present.tolist()]
        latent.skills()
        values, errors = np.array([band.value for band in bands]), np.array([band.se for band in bands])
        return Answer(time.process_time() - began, present, values, errors)

    places = site.astype(np.int64)
    present = np.unique(places)
    found()  # loads what is compiled
    return found()


def _parabola(values: FloatArray) -> FloatArray:
    x = (values - 18) / 8
    return np.column_stack([np.ones_like(x), x, x**2])


def _gpboost(rider: Codes, site: Codes, outcome: Codes, metric: FloatArray, grid: FloatArray) -> Answer:
    """Told that the shared curve is a parabola, as it is, and that sites deviate by parabolas."""
    return _of_gpboost(rider, site, outcome, _parabola(metric), _parabola(grid), metric, grid)


def _gpboost_spline(rider: Codes, site: Codes, outcome: Codes, metric: FloatArray, grid: FloatArray) -> Answer:
    """The shared curve in isuit's spline space, unpenalised; sites deviate by parabolas."""
    from isuit.estimator.model.basis import spline_for

    spline = spline_for(metric)
    some, others = spline.design(metric), spline.design(grid)
    return _of_gpboost(rider, site, outcome, some, others, metric, grid)


def _of_gpboost(
    rider: Codes,
    site: Codes,
    outcome: Codes,
    curve: FloatArray,
    curve_there: FloatArray,
    metric: FloatArray,
    grid: FloatArray,
) -> Answer:
    import gpboost

    present = np.unique(site).astype(np.int64)
    began = time.process_time()
    model = gpboost.GPModel(
        group_data=np.column_stack([rider, site]),
        group_rand_coef_data=_parabola(metric)[:, 1:],
        ind_effect_group_rand_coef=[2, 2],
        likelihood="bernoulli_logit",
        num_parallel_threads=1,
    )
    model.fit(y=outcome.astype(float), X=curve)
    at = np.repeat(present, grid.size)
    predicted = model.predict(
        group_data_pred=np.column_stack([np.full(at.size, rider.max() + 1), at]),
        group_rand_coef_data_pred=np.tile(_parabola(grid)[:, 1:], (present.size, 1)),
        X_pred=np.tile(curve_there, (present.size, 1)),
        predict_var=True,
        predict_response=False,
    )
    variance_of_skill = float(np.asarray(model.get_cov_pars()).ravel()[0])
    a = np.sqrt(variance_of_skill)
    # The variance that it tells has that of a new rider in it, and nothing of the fixed effects.
    se = np.sqrt(np.maximum(predicted["var"] - variance_of_skill, 0.0)) / a
    shaped = (present.size, grid.size)
    return Answer(time.process_time() - began, present, (-predicted["mu"] / a).reshape(shaped), se.reshape(shaped))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
