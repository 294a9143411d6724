"""How well a fit recovers the truth: one number per claim of the paper, and more that the paper does not give."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from isuit.domain import (
    Z95,
    CodeArray,
    Estimate,
    FitConfig,
    FloatArray,
    Observations,
    SkillPrior,
    discrimination_interval,
)
from isuit.errors import EstimationError, InputError
from isuit.estimator import fit, predict_held_out
from isuit.estimator.likelihood.solver import TOLERANCE, Progress

from .cohort import FIRST_REPLICATE_SEED, Truth, draw

_METRICS = 321  # evenly spaced, at which difficulty is compared with the truth

# What the paper's Table 1 reports for the reference cohort.
PAPER: dict[str, float | bool | int] = {
    "theta_recovery_corr": 0.9638,
    "difficulty_min_knots": 16.7,
    "discrimination_a": 2.16,
    "marginal_matches": True,
    "held_out_bss_70_30": 0.329,
    "identification_ok": True,
    "n_train": 2400,
}


def recover(truth: Truth, seed: int, skill: SkillPrior = "normal") -> tuple[dict[str, Any], Estimate]:
    """Draw a cohort, fit it with this distribution of skill, and measure."""
    if truth.riders < 1 or truth.outcomes < 1:
        raise InputError("A cohort needs at least one rider and one outcome each; raise --riders or --outcomes.")
    if not np.isfinite([truth.discrimination, truth.optimum, truth.width, truth.floor]).all():
        raise InputError("The truth must be finite; correct --discrimination, --optimum, --width or --floor.")
    data, true_skill = draw(truth, seed)
    estimate = fit(data, FitConfig(skill=skill))
    stats: dict[str, Any] = {
        "seed": seed,
        "n_riders": truth.riders,
        "n_train": len(data),
        "kind": estimate.kind,
        "identification_ok": bool(estimate.identification),
        "shortfalls": [
            *estimate.identification.shortfalls,
            *(() if estimate.promotion is None else estimate.promotion.shortfalls),
        ],
    }
    if estimate.kind == "latent":
        stats |= _measure(truth, data, true_skill, estimate)
    return stats, estimate


def _measure(truth: Truth, data: Observations, skill: FloatArray, estimate: Estimate) -> dict[str, Any]:
    curve, skills, scores = estimate.curves[0], estimate.skills, estimate.held_out
    assert curve.difficulty is not None
    assert curve.difficulty_se is not None
    assert skills is not None
    metric = np.linspace(max(truth.lower, curve.metric[0]), min(truth.upper, curve.metric[-1]), _METRICS)
    error = CubicSpline(curve.metric, curve.difficulty)(metric) - truth.difficulty(metric)
    half_width = Z95 * CubicSpline(curve.metric, curve.difficulty_se)(metric)
    known = dict(zip(data.riders, skill, strict=True))
    true_skill = np.array([known[rider] for rider in skills.riders])
    minimum, marginal = estimate.diagnostics.minimum, estimate.diagnostics.marginal
    assert minimum is not None
    assert marginal is not None
    return {
        "theta_recovery_corr": float(np.corrcoef(true_skill, skills.mean)[0, 1]),
        "difficulty_min_knots": minimum.location,
        "difficulty_min_interval": [minimum.lower, minimum.upper],
        "discrimination_a": estimate.discrimination,
        "discrimination_a_se": estimate.discrimination_se,
        "discrimination_a_interval": discrimination_interval(estimate.discrimination, estimate.discrimination_se),
        "marginal_matches": marginal.matches,
        "marginal_largest_difference": marginal.largest_difference,
        "held_out_bss": None if scores is None else scores.brier_skill,
        "held_out_bss_se": None if scores is None else scores.brier_skill_se,
        "held_out_bss_70_30": published_comparison(data),
        "difficulty_rmse": float(np.sqrt(np.mean(error**2))),
        "difficulty_se_mean": float(curve.difficulty_se.mean()),
        "difficulty_coverage_95": float(np.mean(np.abs(error) <= half_width)),
        "skill_rmse": float(np.sqrt(np.mean((skills.mean - true_skill) ** 2))),
        "skill_sd_mean": float(skills.sd.mean()),
        "skill_coverage_95": float(np.mean(np.abs(skills.mean - true_skill) <= Z95 * skills.sd)),
        "log_likelihood": estimate.log_likelihood,
        "gradient_tolerance": TOLERANCE,
    }


def published_comparison(data: Observations) -> float | None:
    """The Brier skill as the paper's published number has it: 70/30, against a logistic regression on 1, x, x^2."""
    generator = np.random.default_rng(0)
    test = np.zeros(len(data), dtype=bool)
    for rider in range(len(data.riders)):  # sorted order: riders are numbered by their sorted labels
        rows = np.flatnonzero(data.rider == rider)
        chosen = generator.choice(rows.size, round(0.3 * rows.size), replace=False)
        test[rows[chosen]] = True
    try:
        predicted, _ = predict_held_out(data, FitConfig(), test)
    except EstimationError:
        return None
    baseline = _quadratic_logistic(data.metric[~test], data.outcome[~test], data.metric[test])
    outcome = data.outcome[test]
    return float(1 - np.sum((predicted - outcome) ** 2) / np.sum((baseline - outcome) ** 2))


def _quadratic_logistic(metric: FloatArray, outcome: CodeArray, at: FloatArray) -> FloatArray:
    """Logistic regression on 1, x, x^2 by Newton's method; the metric is centred and scaled, which changes nothing."""
    centre, scale = metric.mean(), max(float(metric.std()), 1e-12)

    def columns(x: FloatArray) -> FloatArray:
        unit = (x - centre) / scale
        return np.stack([np.ones_like(unit), unit, unit**2], axis=1)

    design, beta = columns(metric), np.zeros(3)
    for _ in range(100):
        p = expit(design @ beta)
        gradient = design.T @ (outcome - p)
        # A ridge of 1e-9 keeps a separated cohort finite and moves no digit that is shown.
        step = np.linalg.solve(design.T @ ((p * (1 - p))[:, None] * design) + 1e-9 * np.eye(3), gradient)
        beta = beta + np.clip(step, -5, 5)
        if np.max(np.abs(step)) < 1e-10:
            break
    return np.asarray(expit(columns(at) @ beta))


def replicate(truth: Truth, replicates: int, progress: Progress) -> list[dict[str, Any]]:
    """The experiment over fresh cohorts with seeds 100, 101, ..."""
    results = []
    for seed in range(FIRST_REPLICATE_SEED, FIRST_REPLICATE_SEED + replicates):
        results.append(recover(truth, seed)[0])
        progress("cohorts", len(results) / replicates)
    return results


SUMMARISED = (
    "theta_recovery_corr",
    "discrimination_a",
    "difficulty_rmse",
    "difficulty_min_error",
    "difficulty_coverage_95",
    "skill_coverage_95",
    "held_out_bss",
    "held_out_bss_70_30",
)


def summarise(truth: Truth, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and their Monte Carlo errors over replicates."""
    table: dict[str, Any] = {
        "replicates": len(results),
        "latent": sum(result["kind"] == "latent" for result in results),
        "minimum_undefined": sum(result.get("difficulty_min_knots") is None for result in results),
    }
    for name in SUMMARISED:
        if name == "difficulty_min_error":
            values = [abs(r["difficulty_min_knots"] - truth.optimum) for r in results if r.get("difficulty_min_knots")]
        else:
            values = [r[name] for r in results if r.get(name) is not None]
        if values:
            spread = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
            table[name] = {"mean": float(np.mean(values)), "monte_carlo_error": spread}
    return table
