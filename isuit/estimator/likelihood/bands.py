"""Difficulty with its standard error at many places at once, and skill integrated out of many values of f.

A place at a time would evaluate the same functions of the metric thousands of times. The formulas are those of
`LatentFit.difficulty` and `LatentFit.marginal`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from isuit.domain import FloatArray

from .latent import Band, LatentFit

_PLACES = 256  # at a time: places x metrics x border is what is held
_STEP = 1 / 64  # of f between the points of a table: the cubic through them is right to ten digits
_SURE = 40.0  # log odds beyond which a probability is 0 or 1
_TABULATED = 4_096  # values of f from which a table pays


def bands_of_places(latent: LatentFit, metric: FloatArray) -> Iterator[Band]:
    """The band of each place in turn, as `latent.difficulty` gives it."""
    if not latent.space.places or latent.space.slopes is not None:
        for site in range(latent.space.sites):
            yield latent.difficulty(metric, site)
        return
    for begin in range(0, latent.space.places, _PLACES):
        some = _of_some(latent, metric, slice(begin, min(begin + _PLACES, latent.space.places)))
        for k in range(len(some.value)):
            yield Band(some.value[k], some.se[k], some.with_discrimination[k])


def _of_some(latent: LatentFit, metric: FloatArray, chosen: slice) -> Band:
    """Arrays are places x metrics."""
    p, sd, space = latent.parameters, latent.units.sd, latent.space
    design = space.design(metric, np.zeros(len(metric), np.int64), p.a)
    columns, size = design.columns(0), design.shared_size
    f = columns[:, :size] @ p.shared + p.own[chosen] @ columns[:, size:].T
    by_a = np.zeros(len(metric))
    if space.anchor is not None:
        by_a = p.shared[1] * space.anchor.log_odds(metric, p.a)[1]
    value = (f / p.a - latent.units.mean) / sd
    # The slope by the border is the same at every place, but for the discrimination's.
    by_first = (by_a - f / p.a) / (p.a * sd)
    border = np.zeros((len(metric), latent.problem.shape.border))
    border[:, 1 : 1 + size] = columns[:, :size] / (p.a * sd)
    own = np.hstack([columns[:, size:] / (p.a * sd), np.zeros((len(metric), 1))])
    along = np.stack([np.full(value.shape, -1 / sd), -value / sd, np.zeros(value.shape)], axis=2)

    factor = latent.solution.covariance
    above, below = latent.problem.shape.split(latent.solved_directions)
    crossed = by_first[:, :, None] * above[0] + border @ above + own @ below[chosen]
    half = border @ factor.border
    variance = by_first**2 * factor.border[0, 0] + 2 * by_first * half[:, 0] + np.einsum("xb,xb->x", half, border)
    variance += np.einsum("pxv,xv->px", own @ factor.blocks[chosen], own)
    across = own @ latent.cross[chosen]
    variance += 2 * (by_first * across[:, :, 0] + np.einsum("pxb,xb->px", across, border))
    variance += 2 * np.einsum("pxk,pxk->px", along, crossed)
    variance += np.einsum("pxk,pxk->px", along @ latent.products, along)
    with_discrimination = crossed[:, :, 2] + along @ latent.products[:, 2]
    return Band(value, np.sqrt(np.maximum(variance, 0.0)), with_discrimination)


def suitability_of(latent: LatentFit, f: FloatArray, relative: FloatArray | None = None) -> FloatArray:
    """Suitability at these values of f with skill integrated out; of many values it is read off a table.

    `relative` are discriminations over the fit's, in the shape of f, where they differ.
    """
    theta, weight = latent.units.nodes
    if relative is not None:
        steep, values = np.broadcast_to(relative, f.shape).ravel(), f.ravel()
        parts = np.array_split(np.arange(f.size), 1 + f.size // _TABULATED)
        a = latent.solution.discrimination
        found = [expit(a * steep[part, None] * theta - values[part, None]) @ weight for part in parts]
        return np.asarray(np.concatenate(found).reshape(f.shape))
    skill = latent.solution.discrimination * theta

    def exactly(values: FloatArray) -> FloatArray:
        return np.asarray(expit(skill - values[:, None]) @ weight)

    if f.size <= _TABULATED:
        return exactly(f.ravel()).reshape(f.shape)
    low, high = max(float(f.min()), skill.min() - _SURE), min(float(f.max()), skill.max() + _SURE)
    points = low + _STEP * np.arange(int(np.ceil(max(high - low, 0.0) / _STEP)) + 4)
    table = np.concatenate([exactly(part) for part in np.array_split(points, 1 + points.size // _TABULATED)])
    return np.asarray(np.clip(CubicSpline(points, table)(np.clip(f, low, high)), 0.0, 1.0))
