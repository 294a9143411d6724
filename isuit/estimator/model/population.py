"""The population of skills: a latent regression, and the units that results are told in.

In the estimator skill is `theta* = mu_r + u_r` with u_r ~ N(0, 1), or of another density with that mean and variance
(`density.py`). Its mean mu_r depends on the rider's clientele (the shares of their outcomes at each site, never the
outcomes themselves) and, with correlated exposure, on where the rider goes along the metric (Mundlak). Shares, and not
only the site visited most: a rider who divides their days between a hard and an easy site is of neither clientele, and
counting them to one pulls the two sites together (measured: a gap comes out at 0.85 of its size with the most visited
site, 0.97 with shares).

Results are in units of the total skill: `theta = (theta* - mean) / sd` with the mean and sd of theta* over the cohort's
riders, so that skill has mean 0 and variance 1 over the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray, IntArray

from .counts import Counts
from .curves import CurveSpace
from .density import NORMAL, Density
from .design import NO_PLACE
from .smoothing import FIXED, FREE, WEAK

_MIXTURE_POINTS = 32
LEAST_WITHIN = 0.01  # share of a function's variance within riders below which nobody changes along it


class Visits(NamedTuple):
    """Which places each rider visited, as compiled loops read it. A visit is a run of entries at one place."""

    visits: IntArray  # of rider r: visits[r] to visits[r + 1]
    entries: IntArray  # of visit v: entries[v] to entries[v + 1]
    place: IntArray  # of a visit, or `NO_PLACE`
    share: FloatArray  # of the rider's outcomes
    pairs_of_rider: IntArray  # of rider r: from pairs_of_rider[r] on, each visit with each later one
    pair: NDArray[np.int32]  # the pair of places
    regressors: FloatArray  # riders x regressors of the prior mean that all share


@dataclass(frozen=True)
class Population:
    """Regressors of each rider's prior mean: shared ones, and one for each place, the share of visits to it.

    Outcomes without a site count as one more place, which has a clientele and no curve of its own. One place's
    clientele is the origin, since a common shift of all is a shift of the curve.
    """

    visits: Visits
    places: int
    first: IntArray  # pairs of places that share a rider: the one with the smaller number, and the other
    second: IntArray
    groups: IntArray  # of the shared regressors
    clientele: IntArray  # group of each place's

    @property
    def riders(self) -> int:
        return int(self.visits.regressors.shape[0])

    def apply(self, shared: FloatArray, clientele: FloatArray) -> FloatArray:
        """Prior means of the riders."""
        visits = self.visits
        mean = visits.regressors @ shared
        if not self.places:
            return np.asarray(mean)
        by_visit = visits.share * clientele[visits.place]
        return np.asarray(mean + np.bincount(self._rider_of_visit, weights=by_visit, minlength=self.riders))

    def pull_back(self, by_rider: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The transpose: one number per rider to shared regressors and places."""
        visits = self.visits
        shared = visits.regressors.T @ by_rider
        if not self.places:
            return shared, np.zeros(0)
        weights = visits.share * by_rider[self._rider_of_visit]
        places = np.bincount(visits.place, weights=weights, minlength=self.places)
        return shared, np.where(self.clientele == FIXED, 0.0, places)

    def squares(self, weight: FloatArray) -> FloatArray:
        """Of each place the sum of squared shares, riders weighted."""
        weights = weight[self._rider_of_visit] * self.visits.share**2
        squares = np.bincount(self.visits.place, weights=weights, minlength=self.places)
        return np.asarray(squares, np.float64)

    def products(self, weight: FloatArray) -> FloatArray:
        """Of each pair of places the sum of products of shares, over the riders who visited both, weighted."""
        total = np.zeros(self.first.size)
        starts, each = self.visits.visits[:-1], np.diff(self.visits.visits)
        for count in np.unique(each[each > 1]).tolist():
            riders = np.flatnonzero(each == count)
            one, two = np.triu_indices(count, 1)
            share = self.visits.share[starts[riders][:, None] + np.arange(count)]
            pair = self.visits.pair[self.visits.pairs_of_rider[riders][:, None] + np.arange(one.size)]
            product = weight[riders][:, None] * share[:, one] * share[:, two]
            total += np.bincount(pair.ravel(), weights=product.ravel(), minlength=total.size)
        return total

    @property
    def _rider_of_visit(self) -> IntArray:
        return np.repeat(np.arange(self.riders), np.diff(self.visits.visits))

    def of_riders(self, counts: Counts, chosen: slice | IntArray) -> Population:
        """The same for some of the riders, whose counts these are."""
        if not self.places:
            visits = _one_visit_each(counts, self.visits.regressors[chosen])
            return Population(visits, 0, self.first, self.second, self.groups, self.clientele)
        visits, first, second = _visits(counts, self.places, self.visits.regressors[chosen])
        return Population(visits, self.places, first, second, self.groups, self.clientele)


def plain_population(counts: Counts, mean: FloatArray | None = None) -> Population:
    """Skill N(0, 1) without regressors, or about one given mean for each rider."""
    regressors = np.zeros((counts.riders, 0)) if mean is None else mean[:, None]
    nothing = np.zeros(0, np.int64)
    groups = np.full(regressors.shape[1], FREE)
    return Population(_one_visit_each(counts, regressors), 0, nothing, nothing, groups, nothing)


def population_of(counts: Counts, space: CurveSpace, correlated: bool, first_group: int) -> Population:
    """Regressors of each rider's prior mean; `first_group` is the first precision that is not yet in use."""
    regressors, groups = np.zeros((counts.riders, 0)), np.zeros(0, np.int64)
    if correlated:
        # The rider's mean basis vector, not the mean metric: difficulty can be U-shaped.
        basis, free = space.spline.exposure_design(counts.item_metric)
        regressors = np.asarray(counts.trials @ basis) / np.maximum(counts.rider_trials, 1.0)[:, None]
        if counts.item_metric.ndim > 1:
            # What no rider changes along cannot be told from difficulty: it stays with difficulty, and is told so.
            moved = within_riders(counts, basis, regressors) >= LEAST_WITHIN
            basis, regressors, free = basis[:, moved], regressors[:, moved], int(moved[:free].sum())
        regressors = regressors - regressors.mean(axis=0)
        groups = np.array([FREE] * free + [first_group] * (basis.shape[1] - free))
        first_group += 1
    nothing = np.zeros(0, np.int64)
    sites = space.sites
    if sites < 2:
        return Population(_one_visit_each(counts, regressors), 0, nothing, nothing, groups, nothing)
    origin = largest_clientele(counts, sites) if space.origin is None else space.origin
    if not space.places:
        shares = visits(counts, sites)
        shares.data /= np.repeat(counts.rider_trials, np.diff(shares.indptr))
        others = np.flatnonzero(np.arange(sites + 1) != origin)
        regressors = np.hstack([regressors, shares[:, others].toarray()])
        groups = np.concatenate([groups, np.full(others.size, WEAK)])
        return Population(_one_visit_each(counts, regressors), 0, nothing, nothing, groups, nothing)
    places = sites + 1
    clientele = np.full(places, first_group)
    clientele[origin] = FIXED
    if not np.any(counts.item_site < 0):
        clientele[sites] = FIXED
    found, first, second = _visits(counts, places, regressors)
    return Population(found, places, first, second, groups, clientele)


def within_riders(counts: Counts, values: FloatArray, means: FloatArray) -> FloatArray:
    """Of functions of the items, a column each, with their means by rider: the share of variance within riders."""
    total = counts.item_trials.sum()
    centre = counts.item_trials @ values / total
    variance = counts.item_trials @ (values - centre) ** 2 / total
    between = counts.rider_trials @ (means - centre) ** 2 / total
    return np.asarray(1.0 - np.divide(between, variance, out=np.ones_like(between), where=variance > 0))


def _one_visit_each(counts: Counts, regressors: FloatArray) -> Visits:
    """No places: all of a rider's entries are one visit, which has no coefficients."""
    riders = counts.riders
    return Visits(
        np.arange(riders + 1),
        counts.starts,
        np.full(riders, NO_PLACE),
        np.zeros(riders),
        np.zeros(riders, np.int64),
        np.zeros(1, np.int32),
        np.ascontiguousarray(regressors),
    )


def _visits(counts: Counts, places: int, regressors: FloatArray) -> tuple[Visits, IntArray, IntArray]:
    """Visits of each rider, and the pairs of places that share a rider. A rider's entries are in the order of sites."""
    trials = counts.trials
    starts = counts.starts
    place = counts.item_site[trials.indices]
    place = np.where(place < 0, places - 1, place)
    new = np.ones(place.size, dtype=bool)
    new[1:] = place[1:] != place[:-1]
    new[starts[:-1][np.diff(starts) > 0]] = True
    entries = np.append(np.flatnonzero(new), place.size)
    first_visit = np.searchsorted(entries[:-1], starts)
    of_visit = place[entries[:-1]]
    outcomes = np.add.reduceat(trials.data, entries[:-1]) if trials.nnz else np.zeros(0)
    each = np.diff(first_visit)
    share = outcomes / np.repeat(np.maximum(counts.rider_trials, 1e-300), each)
    pairs = each * (each - 1) // 2
    pairs_of_rider = np.concatenate([[0], np.cumsum(pairs)])
    codes = np.empty(int(pairs_of_rider[-1]), np.int64)
    for count in np.unique(each[each > 1]).tolist():
        riders = np.flatnonzero(each == count)
        one, two = np.triu_indices(count, 1)
        low = of_visit[first_visit[riders][:, None] + one]
        high = of_visit[first_visit[riders][:, None] + two]
        codes[pairs_of_rider[riders][:, None] + np.arange(one.size)] = low * places + high
    distinct, pair = np.unique(codes, return_inverse=True)
    found = Visits(
        first_visit,
        entries,
        of_visit,
        share,
        pairs_of_rider[:-1],
        np.append(pair, 0).astype(np.int32),
        np.ascontiguousarray(regressors),
    )
    return found, distinct // places, distinct % places


def largest_clientele(counts: Counts, sites: int) -> int:
    """The site with most outcomes: the origin of prior means, since a common shift of all is a shift of the curve."""
    place = np.where(counts.item_site < 0, sites, counts.item_site)
    return int(np.bincount(place, weights=counts.item_trials, minlength=sites + 1).argmax())


def visits(counts: Counts, sites: int) -> csr_matrix:
    """Outcomes of each rider at each site; the last column counts outcomes without a site."""
    place = np.where(counts.item_site < 0, sites, counts.item_site)
    at = csr_matrix((np.ones(counts.items), (np.arange(counts.items), place)), shape=(counts.items, sites + 1))
    return (counts.trials @ at).tocsr()


@dataclass(frozen=True)
class Units:
    """Mean and sd of theta* over the cohort, with their derivatives with respect to the population's coefficients."""

    mean: float
    sd: float
    mean_slope: tuple[FloatArray, FloatArray]  # by shared regressors, by places
    sd_slope: tuple[FloatArray, FloatArray]
    points: FloatArray  # prior means of theta*, as a few equally likely values
    density: Density  # of skill beside these: of mean 0 and variance 1, whatever its coefficients

    @classmethod
    def of(cls, population: Population, shared: FloatArray, clientele: FloatArray, density: Density = NORMAL) -> Units:
        riders = population.riders
        if not shared.size and not clientele.size:
            nothing = (np.zeros(0), np.zeros(0))
            return cls(0.0, 1.0, nothing, nothing, np.zeros(1), density)
        prior_mean = population.apply(shared, clientele)
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
            density,
        )

    @property
    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Values of theta* and their weights: means over the whole population's mixture are sums over them."""
        density, count = self.density, self.points.size
        return (self.points[:, None] + density.nodes).ravel(), np.tile(density.weights, count) / count
