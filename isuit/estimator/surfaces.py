"""What a fit of several metrics records, and suitability from it; no data are needed, and no rider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isuit.domain import FloatArray, IntArray
from isuit.record.parameters import (
    AnchorRecord,
    LatentSurfaceParameters,
    LatentSurfaces,
    Population,
    SingleSurfaceParameters,
    SiteCovariance,
    SplineRecord,
    Support,
    SurfaceParameters,
    VaryingSurfaceParameters,
)

from .model.anchor import Anchor
from .model.basis import Spline
from .model.curves import CurveSpace
from .model.slopes import relative
from .model.surface import MetricAnchor, Surface
from .suitability import Scored, slopes_of, slopes_record, spline_record, with_band

if TYPE_CHECKING:
    from .likelihood.latent import LatentFit
    from .likelihood.single_curve import SingleCurve

_DIGITS = 9  # of a covariance that are recorded
_ROWS_AT_ONCE = 2**13


def single_surface(
    space: CurveSpace, surface: Surface, sites: tuple[str, ...], single: SingleCurve, support: Support
) -> SingleSurfaceParameters:
    """What scoring needs of a single surface; outcomes are taken as independent, because it knows no riders."""
    factor = single.factor
    by_site = [
        SiteCovariance(own=_rounded(factor.blocks[place]), with_shared=_rounded(factor.cross[place]))
        for place in range(space.places)
    ]
    return SingleSurfaceParameters(
        **_space(space, surface, sites, support),
        coefficients=tuple(np.concatenate([single.shared, single.own.ravel()]).tolist()),
        covariance=_triangle(factor.border),
        site_covariances=tuple(by_site),
        incomparable=(),
    )


def latent_surface(
    space: CurveSpace,
    surface: Surface,
    sites: tuple[str, ...],
    latent: LatentFit,
    incomparable: list[str],
    support: Support,
) -> LatentSurfaces:
    """What scoring needs of a latent fit; a site that cannot be compared with the others has no difficulty."""
    shared, by_site = latent.joint_covariances()
    common = {
        **_space(space, surface, sites, support),
        "coefficients": tuple(latent.coefficients.tolist()),
        "covariance": _triangle(shared),
        "site_covariances": tuple(
            SiteCovariance(own=_rounded(own), with_shared=_rounded(with_shared)) for own, with_shared in by_site
        ),
        "incomparable": tuple(incomparable),
        "raw_discrimination": latent.solution.discrimination,
        "population": Population(mean=latent.units.mean, sd=latent.units.sd),
    }
    if space.slopes is None:
        return LatentSurfaceParameters(**common)
    return VaryingSurfaceParameters(**common, slopes=slopes_record(space.slopes, latent.parameters.slopes))


def _space(space: CurveSpace, surface: Surface, sites: tuple[str, ...], support: Support) -> dict[str, Any]:
    return {
        "metrics": surface.metrics,
        "splines": tuple(map(spline_record, surface.splines, surface.spline_means)),
        "margins": tuple(map(spline_record, surface.margins, surface.margin_means)),
        "support": support,
        "sites": tuple(sites) if space.sites else (),
        "site_size": space.site_size,
        "anchors": tuple(map(_anchor_recorded, surface.anchors)),
    }


def _anchor_recorded(found: MetricAnchor) -> AnchorRecord:
    anchor = found.anchor
    points = tuple(zip(anchor.metric.tolist(), anchor.suitability.tolist(), strict=True))
    return AnchorRecord(metric=found.metric, points=points, spacing=anchor.spacing, mean=found.mean)


def space_of(parameters: SurfaceParameters) -> CurveSpace:
    """The space that `_space` described."""

    def spline(record: SplineRecord) -> Spline:
        return Spline(*record.metric_range, record.inner_knots, record.degree, record.penalty_order)

    surface = Surface(
        parameters.metrics,
        tuple(map(spline, parameters.splines)),
        tuple(map(spline, parameters.margins)),
        tuple(record.means for record in parameters.splines),
        tuple(record.means for record in parameters.margins),
        tuple(MetricAnchor(record.metric, _anchor(record), record.mean) for record in parameters.anchors),
    )
    return CurveSpace(surface, len(parameters.sites), None, parameters.site_size)


def _anchor(record: AnchorRecord) -> Anchor:
    metric, suitability = np.array(record.points, np.float64).T
    return Anchor(metric, suitability, record.spacing)


def _rounded(matrix: FloatArray) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in matrix.ravel().tolist())


def _triangle(matrix: FloatArray) -> tuple[float, ...]:
    return _rounded(matrix[np.tril_indices(len(matrix))])


def _whole(triangle: tuple[float, ...]) -> FloatArray:
    size = int((np.sqrt(8 * len(triangle) + 1) - 1) / 2)
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = triangle
    return matrix + np.tril(matrix, -1).T


def score_surface(parameters: SurfaceParameters, condition: FloatArray, site: IntArray, skill: FloatArray) -> Scored:
    """Suitability for the skill of each row at its condition and site, and its 95 % band.

    A condition is a row with a value of each metric. A single surface answers for the population whatever the skill.
    """
    found = [np.empty(len(condition)) for _ in Scored._fields]
    space = space_of(parameters)
    for code in np.unique(site).tolist():
        here = np.flatnonzero(site == code)
        for begin in range(0, here.size, _ROWS_AT_ONCE):
            rows = here[begin : begin + _ROWS_AT_ONCE]
            for column, values in zip(
                found, _at_site(parameters, space, condition[rows], code, skill[rows]), strict=True
            ):
                column[rows] = values
    return Scored(*found)


def discrimination_of_conditions(parameters: LatentSurfaces, condition: FloatArray) -> FloatArray:
    """The discrimination at each condition, in skill sds."""
    found = np.full(len(condition), parameters.raw_discrimination * parameters.population.sd)
    if isinstance(parameters, VaryingSurfaceParameters):
        found *= slopes_of(parameters.slopes).relative(condition, np.array(parameters.slopes.coefficients))
    return found


def _at_site(
    parameters: SurfaceParameters, space: CurveSpace, condition: FloatArray, code: int, skill: FloatArray
) -> Scored:
    place = code if space.places else -1
    shared, own = space.split(np.array(parameters.coefficients))
    a = parameters.raw_discrimination if isinstance(parameters, LatentSurfaces) else 0.0
    design = space.design(condition, np.full(len(condition), code), a)
    f, columns = design.evaluate(shared, own), design.columns(place)
    covariance = _whole(parameters.covariance)
    cut = design.shared_size
    if not isinstance(parameters, LatentSurfaces):
        border, along = columns[:, :cut], columns[:, cut:]
        variance = _variance(parameters, covariance, border, along, place)
        return with_band(-f, np.sqrt(np.maximum(variance, 0.0)))
    mean, sd = parameters.population.mean, parameters.population.sd
    steep, by_slopes = np.ones(len(condition)), np.zeros((len(condition), 0))
    if isinstance(parameters, VaryingSurfaceParameters):
        rows_, slopes = slopes_of(parameters.slopes).rows(condition), np.array(parameters.slopes.coefficients)
        steep = relative(rows_.columns, slopes)
        by_slopes = (a * steep * (sd * skill + mean))[:, None] * rows_.columns
    # Log odds are D (skill - difficulty) with D = a sd and difficulty = (f / a - mean) / sd, which is this sum, where a
    # is what it is at the condition:
    log_odds = a * steep * sd * skill - f + a * steep * mean
    rows = len(condition)
    by_units = [a * steep, np.zeros(rows), steep * skill]  # by the mean, by the sd beside D, and by D
    border = np.column_stack([mean * steep, -columns[:, :cut], by_slopes, *by_units])
    variance = _variance(parameters, covariance, border, -columns[:, cut:], place)
    return with_band(log_odds, np.sqrt(np.maximum(variance, 0.0)))


def _variance(
    parameters: SurfaceParameters, covariance: FloatArray, border: FloatArray, own: FloatArray, place: int
) -> FloatArray:
    variance = np.einsum("xi,ij,xj->x", border, covariance, border)
    if place >= 0:
        site = parameters.site_covariances[place]
        width = own.shape[1]
        block = np.array(site.own).reshape(width, width)
        across = np.array(site.with_shared).reshape(width, -1)
        variance = variance + np.einsum("xw,wv,xv->x", own, block, own)
        variance = variance + 2 * np.einsum("xw,wi,xi->x", own, across, border)
    return np.asarray(variance)
