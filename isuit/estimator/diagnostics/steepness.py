"""How the discrimination changes with conditions, for the record of a fit that was asked for it."""

from __future__ import annotations

import numpy as np

from isuit.domain import Z95, FloatArray, Observations
from isuit.record.diagnostics import DiscriminationCurve, VaryingDiscrimination

from ..likelihood.latent import LatentFit

POINTS = 41
_WORTH = 0.5  # degrees of freedom from which the discrimination is said to change


def varying_discrimination(latent: LatentFit, data: Observations, reason: str | None) -> VaryingDiscrimination:
    """Curves along each metric; `reason` says why a change that was asked for is not there."""
    varies = latent.space.slopes is not None
    freedom = float(latent.degrees_of_freedom[latent.slopes].sum())
    if varies and freedom < _WORTH:
        reason = "The outcomes give no reason to take the discrimination as anything but the same everywhere."
    curves = []
    medians = np.array([np.partition(metric, metric.size // 2)[metric.size // 2] for metric in data.conditions])
    for k, metric in enumerate(data.conditions):
        low, high = float(metric.min()), float(metric.max())
        at = np.linspace(low, high, POINTS) if low < high else np.array([low])
        condition = np.tile(medians, (at.size, 1))
        condition[:, k] = at
        name = data.metrics[k] if data.further else "metric"
        curves.append(_curve(latent, name, at, condition if data.further else at))
    return VaryingDiscrimination(varies=varies, sentence=reason, degrees_of_freedom=freedom, curves=tuple(curves))


def _curve(latent: LatentFit, name: str, at: FloatArray, condition: FloatArray) -> DiscriminationCurve:
    """Bands are those of the logarithm: a discrimination is positive."""
    found = latent.discrimination_at(condition)
    half = Z95 * found.se / found.value
    return DiscriminationCurve(
        metric=name,
        at=tuple(at.tolist()),
        discrimination=tuple(found.value.tolist()),
        lower=tuple((found.value * np.exp(-half)).tolist()),
        upper=tuple((found.value * np.exp(half)).tolist()),
    )
