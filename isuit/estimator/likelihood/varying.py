"""Whether a fit ends with one discrimination or with one that changes with conditions.

Every fit is made with one first: that is what promotion is about, and where its being the same everywhere is tested.
The change is estimated from there where it is asked for. Where no maximum is found, the fit with one discrimination
stands and the record says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from isuit.domain import FitConfig, Observations, PromotionReport
from isuit.errors import EstimationError

from ..model.slopes import Slopes
from .latent import LatentFit, let_discrimination_vary
from .solver import Progress


@dataclass(frozen=True)
class Varied:
    """The fit that stands, the one with one discrimination, and why they are the same where a change was asked for."""

    latent: LatentFit
    constant: LatentFit
    asked: bool = False
    reason: str | None = None


def discrimination_of(
    constant: LatentFit,
    promotion: PromotionReport,
    data: Observations,
    config: FitConfig,
    progress: Progress | None = None,
) -> Varied:
    """The fit with the discrimination that the configuration asks for."""
    if config.discrimination != "varying" or not promotion:
        return Varied(constant, constant)
    slopes = Slopes.for_conditions(data.conditions)
    if not slopes.size:
        return Varied(constant, constant, True, "The discrimination is one number: the metric does not change.")
    try:
        varying = let_discrimination_vary(constant, slopes, progress)
    except EstimationError:
        varying = None
    if varying is None or varying.solution.no_skill:
        reason = "The discrimination is one number: none that changes with conditions was found to fit better."
        return Varied(constant, constant, True, reason)
    return Varied(varying, constant, True)
