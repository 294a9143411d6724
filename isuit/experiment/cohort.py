"""Cohorts with known truth, drawn as the paper draws its reference cohort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from isuit.domain import FloatArray, Observations

REFERENCE_SEED = 11
FIRST_REPLICATE_SEED = 100


@dataclass(frozen=True)
class Truth:
    """The data-generating process; the defaults are the paper's. Difficulty is ((x - optimum) / width)^2 + floor."""

    riders: int = 80
    outcomes: int = 30  # per rider
    discrimination: float = 2.0
    optimum: float = 18.0  # knots
    width: float = 8.0  # knots
    floor: float = -1.0  # skill sds
    lower: float = 3.0  # knots
    upper: float = 35.0  # knots

    def difficulty(self, metric: FloatArray) -> FloatArray:
        return ((metric - self.optimum) / self.width) ** 2 + self.floor


def draw(truth: Truth, seed: int) -> tuple[Observations, FloatArray]:
    """A cohort and its true skills.

    The order of draws is part of the definition: all skills first, then rider by rider the metrics and the uniforms.
    """
    generator = np.random.default_rng(seed)
    skill = generator.standard_normal(truth.riders)
    metric = np.empty((truth.riders, truth.outcomes))
    outcome = np.empty((truth.riders, truth.outcomes), dtype=np.int64)
    for rider in range(truth.riders):
        metric[rider] = generator.uniform(truth.lower, truth.upper, truth.outcomes)
        uniform = generator.uniform(size=truth.outcomes)
        success = expit(truth.discrimination * (skill[rider] - truth.difficulty(metric[rider])))
        outcome[rider] = uniform < success
    digits = max(3, len(str(truth.riders - 1)))
    return (
        Observations(
            riders=tuple(f"rider-{rider:0{digits}d}" for rider in range(truth.riders)),
            rider=np.repeat(np.arange(truth.riders), truth.outcomes),
            metric=metric.ravel(),
            outcome=outcome.ravel(),
        ),
        skill,
    )
