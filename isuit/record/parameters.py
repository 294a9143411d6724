"""What scoring needs of a fit, and no more: the space its curves live in, their coefficients, how certain they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Numbers = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Band:
    """How certain a curve is along the metric, at the points of `estimator.suitability.band_metric`."""

    se: Numbers
    with_discrimination: Numbers | None = None  # covariance of difficulty and discrimination there; of a latent fit


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


@dataclass(frozen=True, kw_only=True)
class VaryingParameters(_Curves):
    """Of a latent fit whose discrimination changes along the metric. A kind of its own: whoever does not know of the
    change must not score without it."""

    kind: Literal["latent-varying"] = "latent-varying"
    raw_discrimination: float
    population: Population
    discrimination_se: float
    slopes: SlopesRecord


@dataclass(frozen=True, kw_only=True)
class SplineRecord:
    """A spline along one metric, and the mean of each of its basis functions over the cohort."""

    metric_range: tuple[float, float]
    inner_knots: Numbers
    degree: int
    penalty_order: int
    means: Numbers


@dataclass(frozen=True, kw_only=True)
class SlopesRecord:
    """How the discrimination changes with the metrics: its logarithm is that of the fit and a centred spline of each.

    `se` are the standard errors of the discrimination at the points of the bands; of several metrics there are none,
    because the covariance has them.
    """

    splines: tuple[SplineRecord, ...]
    coefficients: Numbers
    se: Numbers = ()


@dataclass(frozen=True, kw_only=True)
class PairSupport:
    """Of two metrics, which of their bins were met together by enough riders: a row of 0 and 1 for each bin of the
    first."""

    pair: tuple[int, int]
    met: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Support:
    """Where there were outcomes: the range and inner bin edges of each metric, and the pairs; first with bins of equal
    numbers of outcomes, then with bins of equal width. `reference` has the medians, at which the other metrics are held
    along a main effect."""

    ranges: tuple[tuple[float, float], ...]
    edges: tuple[Numbers, ...]
    pairs: tuple[PairSupport, ...]
    reference: Numbers
    wide_edges: tuple[Numbers, ...] = ()
    wide_pairs: tuple[PairSupport, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AnchorRecord:
    """An expert's curve of one metric of several: its points, how smooth it was made, and its mean log odds."""

    metric: int
    points: tuple[tuple[float, float], ...]
    spacing: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class SiteCovariance:
    """How certain a site's own functions are: their covariance, and that with the shared ones, row by row."""

    own: Numbers
    with_shared: Numbers


@dataclass(frozen=True, kw_only=True)
class _Surfaces:
    """The surfaces of a fit of several metrics, of either kind.

    `covariance` is the lower triangle, row by row, of that of the shared coefficients; before them stands the
    discrimination and after them the mean and sd of skill and the total discrimination, in a latent fit; the
    coefficients of a discrimination that changes stand right after the shared ones. `incomparable` names the sites
    without a difficulty.
    """

    metrics: tuple[str, ...]
    splines: tuple[SplineRecord, ...]
    margins: tuple[SplineRecord, ...]
    support: Support
    sites: tuple[str, ...]
    site_size: int | None
    coefficients: Numbers
    covariance: Numbers
    site_covariances: tuple[SiteCovariance, ...]
    anchors: tuple[AnchorRecord, ...] = ()
    incomparable: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SingleSurfaceParameters(_Surfaces):
    """Of a single surface for all: its coefficients are log odds."""

    kind: Literal["single-surface"] = "single-surface"


@dataclass(frozen=True, kw_only=True)
class LatentSurfaceParameters(_Surfaces):
    """Of a latent fit of several metrics: its coefficients are discrimination times difficulty."""

    kind: Literal["latent-surface"] = "latent-surface"
    raw_discrimination: float
    population: Population


@dataclass(frozen=True, kw_only=True)
class VaryingSurfaceParameters(_Surfaces):
    """The same of a fit whose discrimination changes with the metrics."""

    kind: Literal["latent-varying-surface"] = "latent-varying-surface"
    raw_discrimination: float
    population: Population
    slopes: SlopesRecord


LatentCurves = LatentParameters | VaryingParameters
LatentSurfaces = LatentSurfaceParameters | VaryingSurfaceParameters
CurveParameters = SingleCurveParameters | LatentCurves
SurfaceParameters = SingleSurfaceParameters | LatentSurfaces
Parameters = CurveParameters | SurfaceParameters
