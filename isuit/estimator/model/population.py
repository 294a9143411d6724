"""The population of skills: a latent regression, and the units that results are told in.

In the estimator skill is `theta* = mu_r + u_r` with u_r ~ N(0, 1). Its mean mu_r depends on the rider's clientele (the
shares of their outcomes at each site, never the outcomes themselves) and, with correlated exposure, on where the rider
goes along the metric (Mundlak). Shares, and not only the site visited most: a rider who divides their days between a
hard and an easy site is of neither clientele, and counting them to one pulls the two sites together (measured: a gap
comes out at 0.85 of its size with the most visited site, 0.97 with shares).

Results are in units of the total skill: `theta = (theta* - mean) / sd` with the mean and sd of theta* over the cohort's
riders, so that skill has mean 0 and variance 1 over the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray

from .basis import Spline
from .counts import Counts
from .curves import FEW_SITES
from .design import Design, local_columns
from .smoothing import FREE, WEAK

_MIXTURE_POINTS = 32


def population_design(
    counts: Counts, sites: int, spline: Spline, correlated: bool, first_group: int, origin: int | None = None
) -> Design:
    """Regressors of each rider's prior mean; `first_group` is the first precision that is not yet in use."""
    dense, groups = np.zeros((counts.riders, 0)), []
    if correlated:
        # The rider's mean basis vector, not the mean metric: difficulty can be U-shaped. The constant is the origin.
        basis = spline.smooth_design(counts.item_metric)[:, 1:]
        dense = np.asarray(counts.trials @ basis) / np.maximum(counts.rider_trials, 1.0)[:, None]
        dense = dense - dense.mean(axis=0)
        rough = spline.size - spline.free
        groups = [FREE] * (spline.free - 1) + [first_group] * rough
        first_group += 1
    if sites < 2:
        return Design(dense, None, np.array(groups, dtype=np.int64))
    shares = visits(counts, sites)
    shares.data /= np.repeat(counts.rider_trials, np.diff(shares.indptr))
    others = np.flatnonzero(np.arange(sites + 1) != (largest_clientele(counts, sites) if origin is None else origin))
    groups += [WEAK if sites < FEW_SITES else first_group] * others.size
    return Design(dense, shares[:, others], np.array(groups, dtype=np.int64))


def largest_clientele(counts: Counts, sites: int) -> int:
    """The site with most outcomes: the origin of prior means, since a common shift of all is a shift of the curve."""
    return int(np.asarray(visits(counts, sites).sum(axis=0)).ravel().argmax())


def visits(counts: Counts, sites: int) -> csr_matrix:
    """Outcomes of each rider at each site; the last column counts outcomes without a site."""
    place = np.where(counts.item_site < 0, sites, counts.item_site)
    return (counts.trials @ local_columns(np.ones((counts.items, 1)), place, sites + 1)).tocsr()


@dataclass(frozen=True)
class Units:
    """Mean and sd of theta* over the cohort, with their derivatives with respect to the population coefficients."""

    mean: float
    sd: float
    mean_slope: FloatArray
    sd_slope: FloatArray
    points: FloatArray  # prior means of theta*, as a few equally likely values

    @classmethod
    def of(cls, population: Design, coefficients: FloatArray) -> Units:
        if population.size == 0:
            return cls(0.0, 1.0, np.zeros(0), np.zeros(0), np.zeros(1))
        prior_mean = population.apply(coefficients)
        riders = prior_mean.size
        mean = float(prior_mean.mean())
        sd = float(np.sqrt(1.0 + np.mean((prior_mean - mean) ** 2)))
        ordered = np.sort(prior_mean)
        points = np.array([part.mean() for part in np.array_split(ordered, min(_MIXTURE_POINTS, riders))])
        return cls(
            mean,
            sd,
            population.pull_back(np.full(riders, 1.0 / riders)),
            population.pull_back((prior_mean - mean) / (riders * sd)),
            points,
        )
