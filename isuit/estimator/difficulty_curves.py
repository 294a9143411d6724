"""The curves of an estimate: difficulty and suitability along each metric, for everyone together and at each site."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from isuit.domain import NO_SITE, DifficultyCurve, FloatArray, Observations

from .likelihood.bands import bands_of_places, suitability_of
from .likelihood.latent import Band, LatentFit
from .likelihood.single_curve import SingleCurve
from .model.basis import Spline
from .model.curves import CurveSpace
from .model.surface import Surface
from .support import reference

GRID_POINTS = 101  # metrics at which a curve is evaluated


def of_single(data: Observations, space: CurveSpace, single: SingleCurve) -> tuple[DifficultyCurve, ...]:
    """Those of a single curve, which has suitability and no difficulty."""
    return tuple(
        DifficultyCurve(
            name,
            along.metric,
            None,
            None,
            single.suitability(space.design(along.condition, np.full(len(along.condition), code), 0.0)),
            along.dimension,
        )
        for code, name in _places(data, space)
        for along in _grids(data, space)
    )


def of_latent(
    data: Observations, space: CurveSpace, latent: LatentFit, incomparable: Collection[str]
) -> tuple[DifficultyCurve, ...]:
    """Those of a latent fit; sites that share no origin with the others have a suitability and no difficulty."""
    grids, apart, curves = _grids(data, space), set(incomparable), []
    names = [name for _, name in _places(data, space)]
    for at_name in zip(names, *(_bands(latent, along, len(names)) for along in grids), strict=True):
        name = at_name[0]
        for along, (band, suitability) in zip(grids, at_name[1:], strict=True):
            difficulty, se = (None, None) if name in apart else (band.value, band.se)
            curves.append(DifficultyCurve(name, along.metric, difficulty, se, suitability, along.dimension))
    return tuple(curves)


@dataclass(frozen=True)
class _Along:
    """Where a curve is evaluated: the values of its metric, and the conditions, which of one metric are the same."""

    metric: FloatArray
    condition: FloatArray
    dimension: str | None


def _grids(data: Observations, space: CurveSpace) -> list[_Along]:
    """Where curves are evaluated: along the metric, or along each of several while the others stay at their
    medians."""
    spline = space.spline
    if not isinstance(spline, Surface):
        metric = _grid(spline)
        return [_Along(metric, metric, None)]
    medians = np.array(reference(data.conditions))
    found = []
    for k, name in enumerate(spline.metrics):
        metric = _grid(spline.splines[k])
        condition = np.tile(medians, (metric.size, 1))
        condition[:, k] = metric
        found.append(_Along(metric, condition, name))
    return found


def _grid(spline: Spline) -> FloatArray:
    if spline.lower == spline.upper:
        return np.array([spline.lower])
    return np.linspace(spline.lower, spline.upper, GRID_POINTS)


def _bands(latent: LatentFit, along: _Along, curves: int) -> Iterator[tuple[Band, FloatArray]]:
    """Of the shared curve, then of each site: difficulty, and suitability with skill integrated out.

    Without a curve for each site, each has the shared one.
    """
    shared = latent.difficulty(along.condition)
    of_sites = bands_of_places(latent, along.condition) if latent.space.sites else repeat(shared, curves - 1)
    bands = [shared, *of_sites]
    units, a = latent.units, latent.solution.discrimination
    f = a * (units.mean + units.sd * np.array([band.value for band in bands]))
    relative = None if latent.space.slopes is None else latent.relative(along.condition)
    return zip(bands, suitability_of(latent, f if relative is None else relative * f, relative), strict=True)


def _places(data: Observations, space: CurveSpace) -> list[tuple[int, str | None]]:
    """Code and name of every curve to evaluate: the shared one first."""
    if not space.sites:
        return [(NO_SITE, None), *((NO_SITE, name) for name in data.sites)]
    return [(NO_SITE, None), *enumerate(data.sites)]
