"""Suitability for a declared skill, from the parameters that a fit records; no data are needed, and no rider."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from isuit.domain import NO_SITE, Z95, FloatArray, IntArray
from isuit.errors import InputError
from isuit.record.parameters import (
    Band,
    CurveParameters,
    LatentCurves,
    LatentParameters,
    Population,
    SingleCurveParameters,
    SlopesRecord,
    SplineRecord,
    VaryingParameters,
)

from .model.anchor import Anchor, JoinedAnchor
from .model.basis import Spline
from .model.curves import CurveSpace
from .model.slopes import Slopes

if TYPE_CHECKING:  # whoever scores need not wait for what fits
    from .likelihood.latent import LatentFit
    from .likelihood.single_curve import SingleCurve

_BAND_POINTS = 21  # standard errors are smoother than the curve
_ROWS_AT_ONCE = 2**15
NO_DIFFICULTY = "No rider links this site to the others, so it has no difficulty; score at another site."


def band_metric(spline: Spline) -> FloatArray:
    return np.linspace(spline.lower, spline.upper, _BAND_POINTS) if spline.degree else np.array([spline.lower])


def single_parameters(space: CurveSpace, sites: tuple[str, ...], single: SingleCurve) -> SingleCurveParameters:
    """What `score` needs to know of a single curve.

    The standard errors take outcomes as independent of one another, because a single curve knows no riders.
    """
    metric = band_metric(_spline(space))
    bands = {}
    for code, name in _curves(space, sites):
        design = space.design(metric, np.full(metric.size, code), 0.0)
        bands[name] = Band(se=tuple(single.log_odds_se(design, code if space.places else NO_SITE).tolist()))
    coefficients = tuple(np.concatenate([single.shared, single.own.ravel()]).tolist())
    return SingleCurveParameters(**_space(space, sites), coefficients=coefficients, bands=bands)


def latent_parameters(
    space: CurveSpace, sites: tuple[str, ...], latent: LatentFit, incomparable: list[str]
) -> LatentCurves:
    """What scoring needs of a latent fit; a site that cannot be compared with the others has no band."""
    from .likelihood.bands import bands_of_places

    metric, apart = band_metric(_spline(space)), set(incomparable)
    bands = {}
    of_sites = bands_of_places(latent, metric) if space.sites else ()
    for (_, name), band in zip(_curves(space, sites), chain([latent.difficulty(metric)], of_sites), strict=True):
        if name not in apart:
            bands[name] = Band(se=tuple(band.se.tolist()), with_discrimination=tuple(band.with_discrimination.tolist()))
    common: dict[str, Any] = {
        **_space(space, sites),
        "raw_discrimination": latent.solution.discrimination,
        "coefficients": tuple(latent.coefficients.tolist()),
        "population": Population(mean=latent.units.mean, sd=latent.units.sd),
        "discrimination_se": latent.discrimination_se,
        "bands": bands,
    }
    if space.slopes is None:
        return LatentParameters(**common)
    record = slopes_record(space.slopes, latent.parameters.slopes)
    return VaryingParameters(**common, slopes=replace(record, se=tuple(latent.discrimination_at(metric).se.tolist())))


def spline_record(spline: Spline, means: tuple[float, ...]) -> SplineRecord:
    return SplineRecord(
        metric_range=(spline.lower, spline.upper),
        inner_knots=tuple(spline.inner_knots),
        degree=spline.degree,
        penalty_order=spline.penalty_order,
        means=means,
    )


def slopes_record(slopes: Slopes, coefficients: FloatArray) -> SlopesRecord:
    return SlopesRecord(
        splines=tuple(map(spline_record, slopes.splines, slopes.means)), coefficients=tuple(coefficients.tolist())
    )


def slopes_of(record: SlopesRecord) -> Slopes:
    """The space that `slopes_record` described."""
    splines = (Spline(*one.metric_range, one.inner_knots, one.degree, one.penalty_order) for one in record.splines)
    return Slopes(tuple(splines), tuple(one.means for one in record.splines))


def _curves(space: CurveSpace, sites: tuple[str, ...]) -> list[tuple[int, str]]:
    """Code and name of each curve; the shared curve has the empty name, which no site can have."""
    return [(NO_SITE, ""), *(enumerate(sites) if space.sites else [])]


def _spline(space: CurveSpace) -> Spline:
    """Of one metric; a fit of several records a surface."""
    assert isinstance(space.spline, Spline)
    return space.spline


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
    spline, anchor = _spline(space), space.anchor
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


def _space_of(parameters: CurveParameters) -> CurveSpace:
    """The space that `_space` described."""
    lower, upper = parameters.metric_range
    spline = Spline(lower, upper, parameters.inner_knots, parameters.degree, parameters.penalty_order)
    return CurveSpace(spline, len(parameters.sites), _anchor(parameters), parameters.site_size)


def _anchor(parameters: CurveParameters) -> Anchor | None:
    """The anchor that a fit was made with; without a spacing it is of a fit whose anchor was joined by lines."""
    if parameters.anchor is None:
        return None
    metric, suitability = np.array(parameters.anchor).T
    if parameters.anchor_spacing is None:
        return JoinedAnchor(metric, suitability)
    return Anchor(metric, suitability, parameters.anchor_spacing)


def score(parameters: CurveParameters, metric: float, site: str | None, skill: float) -> tuple[float, float, float]:
    """Suitability at one metric and site (None: the shared curve) for a skill, and its 95 % band."""
    name = site if site is not None and parameters.sites else ""
    if name not in parameters.bands:
        raise InputError(NO_DIFFICULTY)
    code = parameters.sites.index(name) if name else NO_SITE
    found = score_rows(parameters, np.array([metric]), np.array([code]), np.array([skill]))
    return float(found.suitability[0]), float(found.lower[0]), float(found.upper[0])


class Scored(NamedTuple):
    """Suitability at each row, and the ends of its 95 % band."""

    suitability: FloatArray
    lower: FloatArray
    upper: FloatArray


def score_rows(parameters: CurveParameters, metric: FloatArray, site: IntArray, skill: FloatArray) -> Scored:
    """Suitability for the skill of each row at its metric and site, and its 95 % band.

    A site is its place in `parameters.sites`, or `NO_SITE` for the shared curve, and must have a band. A single curve
    answers for the population whatever the skill. Beyond the observed metrics the curve keeps its distance from the
    anchor, or its last value where there is none.
    """
    codes, band = np.unique(site, return_inverse=True)
    names = ["" if code == NO_SITE else parameters.sites[code] for code in codes.tolist()]
    f, spline = _curve(parameters, metric, site), _spline(_space_of(parameters))
    at = np.clip(metric, spline.lower, spline.upper)
    se = _interpolate(spline, [parameters.bands[name].se for name in names], at, band)
    if not isinstance(parameters, LatentCurves):
        return with_band(-f, se)
    with_discrimination = [parameters.bands[name].with_discrimination or () for name in names]
    a, mean, sd = _discrimination(parameters, metric), parameters.population.mean, parameters.population.sd
    gap, discrimination = skill - (f / a - mean) / sd, a * sd
    discrimination_se = np.full(at.size, parameters.discrimination_se)
    if isinstance(parameters, VaryingParameters):
        discrimination_se = _interpolate(spline, [parameters.slopes.se], at, np.zeros(at.size, np.int64))
    variance = (
        (discrimination * se) ** 2
        + (gap * discrimination_se) ** 2
        - 2 * discrimination * gap * _interpolate(spline, with_discrimination, at, band)
    )
    return with_band(discrimination * gap, np.sqrt(np.maximum(variance, 0.0)))


class DifficultyRows(NamedTuple):
    """Difficulty at each row, in skill sds, and its standard error."""

    difficulty: FloatArray
    se: FloatArray


def _discrimination(parameters: LatentCurves, metric: FloatArray) -> FloatArray:
    """The discrimination at each row, in the units in which the likelihood was maximised."""
    raw = np.full(metric.size, parameters.raw_discrimination)
    if not isinstance(parameters, VaryingParameters):
        return raw
    slopes = slopes_of(parameters.slopes)
    return np.asarray(raw * slopes.relative(metric, np.array(parameters.slopes.coefficients)))


def discrimination_rows(parameters: LatentCurves, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The discrimination at each metric, in skill sds, and its standard error."""
    value = _discrimination(parameters, metric) * parameters.population.sd
    if not isinstance(parameters, VaryingParameters):
        return value, np.full(metric.size, parameters.discrimination_se)
    spline = _spline(_space_of(parameters))
    at = np.clip(metric, spline.lower, spline.upper)
    return value, _interpolate(spline, [parameters.slopes.se], at, np.zeros(at.size, np.int64))


def difficulty_rows(parameters: LatentCurves, metric: FloatArray, site: IntArray) -> DifficultyRows:
    """Difficulty at each row's metric and site; sites and metrics as for `score_rows`."""
    codes, band = np.unique(site, return_inverse=True)
    bands = [parameters.bands["" if code == NO_SITE else parameters.sites[code]].se for code in codes.tolist()]
    spline = _spline(_space_of(parameters))
    raw = _curve(parameters, metric, site) / _discrimination(parameters, metric)
    at = np.clip(metric, spline.lower, spline.upper)
    return DifficultyRows(
        (raw - parameters.population.mean) / parameters.population.sd, _interpolate(spline, bands, at, band)
    )


def with_discrimination(parameters: LatentCurves, metric: FloatArray, site: IntArray) -> FloatArray:
    """The covariance of the difficulty at each row with the discrimination, which all difficulties are divided by."""
    codes, band = np.unique(site, return_inverse=True)
    names = ["" if code == NO_SITE else parameters.sites[code] for code in codes.tolist()]
    spline = _spline(_space_of(parameters))
    bands = [parameters.bands[name].with_discrimination or () for name in names]
    return _interpolate(spline, bands, np.clip(metric, spline.lower, spline.upper), band)


def _curve(parameters: CurveParameters, metric: FloatArray, site: IntArray) -> FloatArray:
    """f at each row; some at a time, because the anchor's log odds are integrals over skill at each of them."""
    space = _space_of(parameters)
    shared, own = space.split(np.array(parameters.coefficients))
    a = parameters.raw_discrimination if isinstance(parameters, LatentCurves) else 0.0
    f = np.empty(metric.size)
    for begin in range(0, metric.size, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        f[rows] = space.design(metric[rows], site[rows], a).evaluate(shared, own)
    return f


def _interpolate(spline: Spline, bands: list[tuple[float, ...]], at: FloatArray, band: IntArray) -> FloatArray:
    """What the band of each row has at its metric, by a cubic spline through the band's points."""
    if not bands:
        return np.zeros(0)
    points, values = band_metric(spline), np.array(bands).T
    if points.size == 1:
        return np.asarray(values[0, band])
    pieces = CubicSpline(points, values).c  # power from the third down x interval x band
    interval = np.clip(np.searchsorted(points, at, side="right") - 1, 0, points.size - 2)
    step = at - points[interval]
    third, second, first, level = (power[interval, band] for power in pieces)
    return np.asarray(level + first * step + second * step**2 + third * step**3)


def with_band(log_odds: FloatArray, se: FloatArray) -> Scored:
    """Suitability from log odds and their standard error."""
    return Scored(expit(log_odds), expit(log_odds - Z95 * se), expit(log_odds + Z95 * se))
