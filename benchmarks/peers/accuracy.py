"""A program's answer against the truth, and the best that any program could know of riders' skill."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from isuit.domain import Observations
from isuit.experiment.cohort import Truth

from .exchange import Answer, Columns, FloatArray

_Z95 = 1.959963984540054


def measures(answer: Answer, truth: Truth, skill: FloatArray, grid: FloatArray) -> dict[str, float | None]:
    error = answer.difficulty - truth.difficulty(grid)
    se = answer.difficulty_se
    return {
        "skill_correlation": float(np.corrcoef(answer.skill, skill)[0, 1]),
        "difficulty_rmse": float(np.sqrt(np.mean(error**2))),
        "discrimination": answer.discrimination,
        "minimum": _least(grid, answer.difficulty),
        "coverage_95": None if se is None else float(np.mean(np.abs(error) <= _Z95 * se)),
    }


def _least(grid: FloatArray, difficulty: FloatArray) -> float:
    """The grid's easiest metric, made finer by the parabola through its neighbours."""
    best = int(np.clip(difficulty.argmin(), 1, grid.size - 2))
    before, here, after = difficulty[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.0 if bend <= 0 else float(np.clip(0.5 * (before - after) / bend, -1, 1))
    return float(grid[best] + shift * (grid[1] - grid[0]))


def skill_with_known_curve(data: Observations, truth: Truth) -> FloatArray:
    """Posterior means of skill when difficulty and discrimination are known, on a fine grid of skills."""
    theta = np.linspace(-6.0, 6.0, 121)
    f = (truth.discrimination * truth.difficulty(data.metric)).reshape(truth.riders, truth.outcomes)
    sign = np.where(data.outcome == 1, 1.0, -1.0).reshape(truth.riders, truth.outcomes)
    mean = np.empty(truth.riders)
    for first in range(0, truth.riders, 2000):
        part = slice(first, first + 2000)
        log_posterior = np.stack(
            [np.log(expit(sign[part] * (truth.discrimination * t - f[part]))).sum(axis=1) - t * t / 2 for t in theta],
            axis=1,
        )
        weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
        mean[part] = weight @ theta / weight.sum(axis=1)
    return mean


def unit_metric(columns: Columns) -> tuple[FloatArray, FloatArray]:
    """Metrics and grid on [-1, 1], which suits every optimiser that is given powers of them."""
    centre, half = (columns.grid[0] + columns.grid[-1]) / 2, (columns.grid[-1] - columns.grid[0]) / 2
    return (columns.metric - centre) / half, (columns.grid - centre) / half
