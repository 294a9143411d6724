"""Suitability for a declared skill, from the parameters that a fit records; no data are needed, and no rider."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from isuit.domain import NO_SITE, Z95, FloatArray
from isuit.errors import InputError
from isuit.record.parameters import Band, LatentParameters, Parameters, Population, SingleCurveParameters

from .likelihood.latent import LatentFit
from .likelihood.single_curve import SingleCurve
from .model.anchor import Anchor, JoinedAnchor
from .model.basis import Spline
from .model.curves import CurveSpace

_BAND_POINTS = 21  # standard errors are smoother than the curve


def band_metric(spline: Spline) -> FloatArray:
    return np.linspace(spline.lower, spline.upper, _BAND_POINTS) if spline.degree else np.array([spline.lower])


def single_parameters(space: CurveSpace, sites: tuple[str, ...], single: SingleCurve) -> SingleCurveParameters:
    """What `score` needs to know of a single curve.

    The standard errors take outcomes as independent of one another, because a single curve knows no riders.
    """
    metric = band_metric(space.spline)
    bands = {}
    for code, name in _curves(space, sites):
        design = space.design(metric, np.full(metric.size, code), 0.0)
        bands[name] = Band(se=tuple(single.log_odds_se(design, code if space.places else NO_SITE).tolist()))
    coefficients = tuple(np.concatenate([single.shared, single.own.ravel()]).tolist())
    return SingleCurveParameters(**_space(space, sites), coefficients=coefficients, bands=bands)


def latent_parameters(
    space: CurveSpace, sites: tuple[str, ...], latent: LatentFit, incomparable: list[str]
) -> LatentParameters:
    """What scoring needs of a latent fit; a site that cannot be compared with the others has no band."""
    metric = band_metric(space.spline)
    bands = {}
    for code, name in _curves(space, sites):
        if name not in incomparable:
            band = latent.difficulty(metric, code)
            bands[name] = Band(se=tuple(band.se.tolist()), with_discrimination=tuple(band.with_discrimination.tolist()))
    return LatentParameters(
        **_space(space, sites),
        raw_discrimination=latent.solution.discrimination,
        coefficients=tuple(latent.coefficients.tolist()),
        population=Population(mean=latent.units.mean, sd=latent.units.sd),
        discrimination_se=latent.discrimination_se,
        bands=bands,
    )


def _curves(space: CurveSpace, sites: tuple[str, ...]) -> list[tuple[int, str]]:
    """Code and name of each curve; the shared curve has the empty name, which no site can have."""
    return [(NO_SITE, ""), *(enumerate(sites) if space.sites else [])]


class _Space(TypedDict):
    """The part of the parameters that describes the space of curves."""

    metric_range: tuple[float, float]
    inner_knots: tuple[float, ...]
    degree: int
    penalty_order: int
    sites: tuple[str, ...]
    site_size: int | None
    anchor: tuple[tuple[float, float], ...] | None
    anchor_spacing: float | None


def _space(space: CurveSpace, sites: tuple[str, ...]) -> _Space:
    spline, anchor = space.spline, space.anchor
    points = None
    if anchor is not None:
        points = tuple(zip(anchor.metric.tolist(), anchor.suitability.tolist(), strict=True))
    return {
        "metric_range": (spline.lower, spline.upper),
        "inner_knots": tuple(spline.inner_knots),
        "degree": spline.degree,
        "penalty_order": spline.penalty_order,
        "sites": tuple(sites) if space.sites else (),
        "site_size": space.site_size,
        "anchor": points,
        "anchor_spacing": None if anchor is None else anchor.spacing,
    }


def _space_of(parameters: Parameters) -> CurveSpace:
    """The space that `_space` described."""
    lower, upper = parameters.metric_range
    spline = Spline(lower, upper, parameters.inner_knots, parameters.degree, parameters.penalty_order)
    return CurveSpace(spline, len(parameters.sites), _anchor(parameters), parameters.site_size)


def _anchor(parameters: Parameters) -> Anchor | None:
    """The anchor that a fit was made with; without a spacing it is of a fit whose anchor was joined by lines."""
    if parameters.anchor is None:
        return None
    metric, suitability = np.array(parameters.anchor).T
    if parameters.anchor_spacing is None:
        return JoinedAnchor(metric, suitability)
    return Anchor(metric, suitability, parameters.anchor_spacing)


def score(parameters: Parameters, metric: float, site: str | None, skill: float) -> tuple[float, float, float]:
    """Suitability at a metric and site (None: the shared curve) for a skill, and its 95 % band.

    A single curve answers for the population whatever the skill. Beyond the observed metrics the curve keeps its
    distance from the anchor, or its last value where there is none.
    """
    space = _space_of(parameters)
    name = site if site is not None and parameters.sites else ""
    if name not in parameters.bands:
        raise InputError("No rider links this site to the others, so it has no difficulty; score at another site.")
    code = parameters.sites.index(name) if name else NO_SITE
    a = parameters.raw_discrimination if isinstance(parameters, LatentParameters) else 0.0
    design = space.design(np.array([metric]), np.array([code]), a)
    f = float(design.apply(*space.split(np.array(parameters.coefficients)))[0])
    band, spline = parameters.bands[name], space.spline
    at = min(max(metric, spline.lower), spline.upper)
    se = _interpolate(spline, band.se, at)
    if not isinstance(parameters, LatentParameters):
        return _with_band(-f, se)
    assert band.with_discrimination is not None
    mean, sd = parameters.population.mean, parameters.population.sd
    gap, discrimination = skill - (f / a - mean) / sd, a * sd
    variance = (
        (discrimination * se) ** 2
        + (gap * parameters.discrimination_se) ** 2
        - 2 * discrimination * gap * _interpolate(spline, band.with_discrimination, at)
    )
    return _with_band(discrimination * gap, float(np.sqrt(max(variance, 0.0))))


def _interpolate(spline: Spline, values: tuple[float, ...], at: float) -> float:
    metric = band_metric(spline)
    return float(values[0] if metric.size == 1 else CubicSpline(metric, values)(at))


def _with_band(log_odds: float, se: float) -> tuple[float, float, float]:
    return float(expit(log_odds)), float(expit(log_odds - Z95 * se)), float(expit(log_odds + Z95 * se))
