"""What scoring needs of a fit, and no more: the space its curves live in, their coefficients, how certain they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Numbers = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Band:
    """How certain a curve is along the metric, at the points of `estimator.suitability.band_metric`."""

    se: Numbers
    with_discrimination: Numbers | None = None  # covariance of difficulty and discrimination; of a latent fit


@dataclass(frozen=True, kw_only=True)
class Population:
    """Mean and sd of skill over the riders, in the units in which the likelihood was maximised."""

    mean: float
    sd: float


@dataclass(frozen=True, kw_only=True)
class _Curves:
    """The curves of a fit of either kind. `bands` has the shared curve under the empty name, which no site can have;
    a site that cannot be compared with the others has none."""

    metric_range: tuple[float, float]
    inner_knots: Numbers
    degree: int
    penalty_order: int
    sites: tuple[str, ...]
    site_size: int | None
    anchor: tuple[tuple[float, float], ...] | None
    anchor_spacing: float | None = None  # None: no anchor, or one of estimator version 2, its points joined by lines
    coefficients: Numbers
    bands: dict[str, Band]


@dataclass(frozen=True, kw_only=True)
class SingleCurveParameters(_Curves):
    """Of the single curve: its coefficients are log odds."""

    kind: Literal["single-curve"] = "single-curve"


@dataclass(frozen=True, kw_only=True)
class LatentParameters(_Curves):
    """Of a latent fit: its coefficients are discrimination times difficulty."""

    kind: Literal["latent"] = "latent"
    raw_discrimination: float
    population: Population
    discrimination_se: float


Parameters = SingleCurveParameters | LatentParameters
