"""Which distribution of skill a fit ends with: normal, or a density that the riders' outcomes tell of.

Every fit is made with normal skill first. That is what the gates are about and where normality is tested, and it is
the start from which the density is estimated, for which a large cohort's is made roughly. Where there is too little to
estimate it from, or no maximum is found, the normal fit stands and the record says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import FitConfig, PromotionReport
from isuit.errors import EstimationError

from .latent import LatentFit, estimate_density, finished
from .solver import TOLERANCE, Progress

LEAST_RIDERS = 50  # whose skill were known: a density of fewer is the normal one with noise


@dataclass(frozen=True)
class Skilled:
    """The fit that stands, the one with normal skill, and why they are the same where a density was asked for."""

    latent: LatentFit
    normal: LatentFit
    asked: bool = False
    reason: str | None = None


def skill_of(
    normal: LatentFit, promotion: PromotionReport, config: FitConfig, progress: Progress | None = None
) -> Skilled:
    """The fit with the distribution of skill that the configuration asks for."""
    if config.skill != "estimated" or not promotion:
        return Skilled(normal, normal)
    known = known_riders(normal)
    if known < LEAST_RIDERS:
        return _as_normal(
            normal,
            progress,
            f"Skill is taken as normal: its outcomes tell as much as {known:.0f} riders of known skill would, and a "
            f"density needs {LEAST_RIDERS}.",
        )
    try:
        estimated = estimate_density(normal, progress)
    except EstimationError:
        estimated = None
    if estimated is None or estimated.solution.no_skill:
        return _as_normal(normal, progress, "Skill is taken as normal: no density was found that fits better.")
    return Skilled(estimated, normal, True)


def _as_normal(normal: LatentFit, progress: Progress | None, reason: str) -> Skilled:
    """The normal fit at its maximum, where it was made roughly."""
    if normal.solution.gradient_norm > TOLERANCE:
        normal = finished(normal, progress)
    return Skilled(normal, normal, True, reason)


def known_riders(latent: LatentFit) -> float:
    """Riders times the share of skill's variance that outcomes tell."""
    posterior = latent.solution.at.posterior
    spread, doubt = float(np.var(posterior.mean)), float(np.mean(posterior.sd**2))
    return posterior.mean.size * spread / (spread + doubt)
