"""How skill is distributed among riders: the density that a fit estimated, and where declared levels stand in it."""

from __future__ import annotations

import numpy as np

from isuit.domain import SKILL_LEVELS, Z95, FloatArray
from isuit.record.diagnostics import SkillDistribution

from ..likelihood.latent import LatentFit
from ..model.density import SHAPES

_SKILL = np.linspace(-5.0, 5.0, 81)  # sds at which the density is recorded
_WORTH = 0.5  # degrees of freedom beside skewness and tails from which a density is said to be other than normal


def distribution(latent: LatentFit, reason: str | None = None) -> SkillDistribution:
    """For the record; `reason` says why a density that was asked for is not there."""
    estimated = latent.problem.likelihood.density > 0
    freedom = latent.density_degrees_of_freedom
    density, se = _density(latent)
    if estimated and _as_normal(latent):
        reason = "The riders give no reason to take skill as anything but normal."
    return SkillDistribution(
        estimated=estimated,
        sentence=reason,
        degrees_of_freedom=freedom,
        skill=tuple(_SKILL.tolist()),
        density=tuple(density.tolist()),
        lower=tuple((density * np.exp(-Z95 * se)).tolist()),
        upper=tuple((density * np.exp(Z95 * se)).tolist()),
        percentiles={name: 100 * _share_below(latent, level) for name, level in SKILL_LEVELS.items()},
    )


def _as_normal(latent: LatentFit) -> bool:
    """Whether the estimated density may be called normal: its skewness and its tails, which are never estimated as
    exactly zero, are within chance of it, and the finer departures together have hardly any degrees of freedom."""
    count = latent.problem.likelihood.density
    eta, variance = latent.parameters.density.eta, np.diag(latent.solution.covariance.border)[-count:]
    border, _ = latent.problem.shape.split(latent.degrees_of_freedom)
    certain = np.abs(eta[:SHAPES]) > Z95 * np.sqrt(variance[:SHAPES])
    return not certain.any() and float(border[-count:][SHAPES:].sum()) < _WORTH


def _density(latent: LatentFit) -> tuple[FloatArray, FloatArray]:
    """Of the whole population's mixture, in units of its sd, and the standard error of its logarithm.

    The error is that of the density's coefficients, units and prior means held.
    """
    units, count = latent.units, latent.problem.likelihood.density
    u = units.mean + units.sd * _SKILL[:, None] - units.points  # skill x prior means
    each = np.exp(units.density.log_density(u)) / units.points.size
    total = each.sum(axis=1)
    if not count:
        return units.sd * total, np.zeros(_SKILL.size)
    slope = units.density.log_density_slope(u.ravel()).reshape(*u.shape, count)
    slope = np.einsum("xp,xpk->xk", each, slope) / total[:, None]
    border = latent.solution.covariance.border[-count:, -count:]
    return units.sd * total, np.sqrt(np.einsum("xk,kj,xj->x", slope, border, slope))


def _share_below(latent: LatentFit, level: float) -> float:
    """Of the riders, those whose skill is below this many sds."""
    units = latent.units
    u = units.mean + units.sd * level - units.points
    return float(units.density.share_below(u).mean())
