"""Fit the cohort in a folder with one of the programs that Python runs: `python -m peers.in_python NAME FOLDER OUT`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .accuracy import unit_metric
from .exchange import Answer, Columns, FloatArray, read_columns, write_answer


def quadratic(unit: FloatArray) -> FloatArray:
    """The true shape: a peer that is given it has less to find than a spline has."""
    return np.column_stack([np.ones_like(unit), unit, unit**2])


def isuit(columns: Columns) -> Answer:
    """Counting, single curve, latent fit, standard errors and skill posteriors: what the peers do as well."""
    from isuit.estimator.likelihood.latent import fit_latent
    from isuit.estimator.likelihood.prepared import Prepared
    from isuit.estimator.model.basis import spline_for
    from isuit.estimator.model.counts import count
    from isuit.estimator.model.curves import CurveSpace

    rider, outcome = columns.rider.astype(np.int64), columns.outcome.astype(np.int64)
    riders = columns.riders
    began = time.process_time()
    spline = spline_for(columns.metric)
    counts = count(rider, columns.metric, outcome, spline, riders)
    space = CurveSpace(spline, 0)
    latent = fit_latent(counts, space, Prepared(counts, space).single)
    band = latent.difficulty(columns.grid)
    skill, _ = latent.skills()
    spent = time.process_time() - began
    return Answer(spent, latent.discrimination, band.value, skill, band.se)


def isuit_whole(columns: Columns) -> Answer:
    """The whole fit: also the gate, the refit for held-out scores, promotion and diagnostics."""
    from scipy.interpolate import CubicSpline

    from isuit.domain import Observations
    from isuit.estimator import fit

    labels = tuple(f"rider-{number:07d}" for number in range(columns.riders))
    data = Observations(labels, columns.rider.astype(np.int64), columns.metric, columns.outcome.astype(np.int64))
    began = time.process_time()
    estimate = fit(data)
    spent = time.process_time() - began
    curve, skills = estimate.curves[0], estimate.skills
    if estimate.discrimination is None or curve.difficulty is None or curve.difficulty_se is None or skills is None:
        sys.exit("the fit is a single curve")
    if len(skills.riders) != len(labels):
        sys.exit("the gate left riders out")
    return Answer(
        spent,
        estimate.discrimination,
        CubicSpline(curve.metric, curve.difficulty)(columns.grid),
        skills.mean,
        CubicSpline(curve.metric, curve.difficulty_se)(columns.grid),
    )


def gpboost(columns: Columns) -> Answer:
    unit, grid = unit_metric(columns)
    return _gpboost(columns, quadratic(unit), quadratic(grid))


def gpboost_spline(columns: Columns) -> Answer:
    """The cubic spline space that isuit fits, as unpenalised fixed effects: as free in shape as isuit is."""
    from isuit.estimator.model.basis import spline_for

    spline = spline_for(columns.metric)
    return _gpboost(columns, spline.smooth_design(columns.metric), spline.smooth_design(columns.grid))


def _gpboost(columns: Columns, design: FloatArray, at_grid: FloatArray) -> Answer:
    import gpboost as program

    outcome = columns.outcome.astype(np.float64)
    _, first = np.unique(columns.rider, return_index=True)
    began = time.process_time()
    model = program.GPModel(group_data=columns.rider, likelihood="bernoulli_logit")
    model.fit(y=outcome, X=design, params={"delta_rel_conv": 1e-10, "maxit": 1000})
    effects = np.asarray(model.predict_training_data_random_effects()).ravel()
    coefficients, variances = model.get_coef(std_err=True), model.get_cov_pars(std_err=True)
    spent = time.process_time() - began
    a = float(np.sqrt(np.asarray(variances).ravel()[0]))
    beta = np.asarray(coefficients)[0].ravel()
    # It gives standard errors of single coefficients but not their covariance: no band can be made of them.
    return Answer(spent, a, -(at_grid @ beta) / a, effects[first] / a)


def statsmodels(columns: Columns) -> Answer:
    """Variational Bayes for a random intercept."""
    from scipy.sparse import csr_matrix
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    unit, grid = unit_metric(columns)
    rows = unit.size
    random = csr_matrix((np.ones(rows), (np.arange(rows), columns.rider)), shape=(rows, columns.riders))
    began = time.process_time()
    kind = np.zeros(columns.riders, dtype=np.int64)
    # Wide priors: the log sd of skill about 0 with sd 2, coefficients with sd 10.
    model = BinomialBayesMixedGLM(columns.outcome, quadratic(unit), random, kind, vcp_p=2.0, fe_p=10.0)
    result = model.fit_vb()
    spent = time.process_time() - began
    a = float(np.exp(result.vcp_mean[0]))
    at_grid = quadratic(grid)
    # Means and sds under independent normals: the band takes them at their word.
    difficulty = -(at_grid @ result.fe_mean) / a
    se = np.sqrt((at_grid / a) ** 2 @ result.fe_sd**2 + (difficulty * result.vcp_sd[0]) ** 2)
    return Answer(spent, a, difficulty, result.vc_mean / a, se)


FITS: dict[str, Callable[[Columns], Answer]] = {
    "isuit": isuit,
    "isuit-whole": isuit_whole,
    "gpboost": gpboost,
    "gpboost-spline": gpboost_spline,
    "statsmodels": statsmodels,
}

if __name__ == "__main__":
    name, folder, out = sys.argv[1:]
    write_answer(Path(out), FITS[name](read_columns(Path(folder))))
