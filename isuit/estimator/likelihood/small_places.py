"""The variance between places where many of them are small.

The choice of smoothing takes the log-likelihood as quadratic (`model/smoothing.py`). Of a place with two outcomes that
is far off: its level's posterior is skewed, and the variance between such places would come out at half of what it is.
A level is one number, so its integral can be had as exactly as one likes: the log-likelihood of a place's outcomes
along its level, everything else held, is tabulated, and the integral over the table takes the quadratic's place in V.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isuit.domain import FloatArray

from ..model.arrow import Shape
from ..model.own_part import NO_ROW
from ..model.smoothing import Excess
from . import kernels as compiled_loops
from .quadrature import Pass

kernels: Any = compiled_loops
SMALL = 40  # outcomes up to which a place is small: with more, the quadratic is as good
_NODES = 25  # levels at which a profile is tabulated
_STEP = 0.5  # between them, in standard deviations of the posterior


@dataclass(frozen=True)
class Profiles:
    """For each small place, its log-likelihood as a function of its level, tabulated around the present estimate."""

    level: FloatArray  # where it stands
    slope: FloatArray
    bend: FloatArray  # minus the second derivative
    distance: FloatArray  # places x levels: from where it stands
    value: FloatArray  # the same: the log-likelihood, less that where it stands

    def excess(self, log_precision: float) -> Excess:
        """By how much the exact integrals over the levels differ from those of the quadratic approximation."""
        precision = np.exp(log_precision)
        there = self.level[:, None] + self.distance
        exact = self.value - 0.5 * precision * there**2
        top = exact.max(axis=1, keepdims=True)
        weight = np.exp(exact - top)
        total = weight.sum(axis=1)
        square = (weight * there**2).sum(axis=1) / total
        step = self.distance[:, 1] - self.distance[:, 0]
        integral = np.log(total * step) + top[:, 0]
        # The quadratic's: a normal about its own mean.
        spread = 1.0 / (self.bend + precision)
        mean = self.level + (self.slope - precision * self.level) * spread
        height = (
            self.slope * (mean - self.level) - 0.5 * self.bend * (mean - self.level) ** 2 - 0.5 * precision * mean**2
        )
        quadratic = height + 0.5 * np.log(2 * np.pi * spread)
        return Excess(float(np.sum(integral - quadratic)), float(np.sum(square - mean**2 - spread)))


def profiles_of(at: Pass, own: FloatArray, phi: FloatArray, shape: Shape, precision: float) -> Profiles | None:
    """The profiles at a pass; None where no place is small. `own` has the places' own blocks of the information
    that the choice of smoothing uses."""
    posterior, likelihood = at.posterior, at.posterior.likelihood
    counts, places = likelihood.counts, likelihood.population.places
    sites = places - 1  # the last place has the outcomes without a site, and no level
    place = np.where(counts.item_site < 0, sites, counts.item_site)
    outcomes, successes = (
        np.bincount(place, of_item, places) for of_item in (counts.item_trials, counts.item_successes)
    )
    small = np.flatnonzero((outcomes[:sites] > 0) & (outcomes[:sites] <= SMALL))
    if not small.size:
        return None
    bend = np.maximum(own[small, 0, 0], 0.0)
    steps = _STEP / np.sqrt(bend + precision)
    row_of_place = np.full(places, NO_ROW)
    row_of_place[small] = np.arange(small.size)
    value = posterior.added_over(
        kernels.level_profiles, (small.size, _NODES), likelihood.population.visits, row_of_place, steps
    )
    distance = steps[:, None] * (np.arange(_NODES) - _NODES // 2)
    value += (outcomes - successes)[small, None] * distance
    level, slope = (shape.split(flat)[1][small, 0] for flat in (phi, at.gradient))
    return Profiles(level, slope, bend, distance, value)
