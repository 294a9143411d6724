"""What a picture of a surface needs: of each pair of metrics a grid of difficulties with their errors, and where there
were outcomes. Other metrics are held at their medians. It comes from the record's parameters alone: no rider is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isuit.domain import NO_SITE, Z95, FloatArray
from isuit.published import reading
from isuit.record import Parameters, SurfaceParameters
from isuit.record.parameters import LatentSurfaces
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import find_fit

POINTS = 41  # along each metric


@dataclass(frozen=True)
class SurfaceMap:
    """Difficulty over two metrics, a row for each value of the first; of a single surface the log odds of failing."""

    pair: tuple[int, int]
    first: FloatArray
    second: FloatArray
    difficulty: FloatArray
    se: FloatArray
    supported: NDArray[np.bool_]


@dataclass(frozen=True)
class Surface:
    """The maps of all pairs of these metrics."""

    metrics: tuple[str, ...]
    maps: list[SurfaceMap]


def surface_of(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> Surface | None:
    """The maps of a fit; None where it has one metric."""
    with open_store(store_path, wait=wait) as store:
        return surface_in(reading.parameters(find_fit(store.connection, reference).parameters))


def surface_in(parameters: Parameters) -> Surface | None:
    """The same from what is recorded of the fit."""
    if not isinstance(parameters, SurfaceParameters):
        return None
    return Surface(parameters.metrics, surface_maps(parameters))


def surface_maps(parameters: SurfaceParameters) -> list[SurfaceMap]:
    """The maps of all pairs, of the surface that all sites share."""
    from isuit.estimator import is_supported

    support = parameters.support
    along = [np.linspace(low, high, POINTS) for low, high in support.ranges]
    found = []
    for j, k in combinations(range(len(parameters.metrics)), 2):
        condition = np.tile(support.reference, (POINTS * POINTS, 1))
        condition[:, j], condition[:, k] = np.repeat(along[j], POINTS), np.tile(along[k], POINTS)
        difficulty, se = _difficulty(parameters, condition)
        shape = (POINTS, POINTS)
        inside = is_supported(support, condition).reshape(shape)
        found.append(SurfaceMap((j, k), along[j], along[k], difficulty.reshape(shape), se.reshape(shape), inside))
    return found


def _difficulty(parameters: SurfaceParameters, condition: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Difficulty and its standard error, from what a score of these conditions says."""
    from isuit.estimator import discrimination_of_conditions, score_surface

    place, nobody = np.full(len(condition), NO_SITE), np.zeros(len(condition))
    at_zero = score_surface(parameters, condition, place, nobody)
    if not isinstance(parameters, LatentSurfaces):
        return -_log_odds(at_zero.suitability), (_log_odds(at_zero.upper) - _log_odds(at_zero.suitability)) / Z95
    discrimination = discrimination_of_conditions(parameters, condition)
    difficulty = -_log_odds(at_zero.suitability) / discrimination
    # Where skill equals difficulty the error of the discrimination does not matter, and the chance is one half.
    level = score_surface(parameters, condition, place, difficulty)
    return difficulty, (_log_odds(level.upper) - _log_odds(level.suitability)) / (Z95 * discrimination)


def _log_odds(chance: FloatArray) -> FloatArray:
    inside = np.clip(chance, 1e-15, 1 - 1e-15)
    return np.asarray(np.log(inside) - np.log1p(-inside))
