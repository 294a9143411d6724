"""The marginal likelihood: each rider's skill integrated out.

With f = a * delta the linear predictor is `a * theta - f[item]`, and up to a sum without theta

    log L_r(theta) = a theta (k_r - n_r) - sum_i n_ri log(1 + exp(f_i - a theta)).

Where the discrimination changes with the item, a_i stands for a (`model/slopes.py`).

The integral over skill is a sum over the rider's own grid (`kernels.py`). One pass over the counts gives the
log-likelihood, its exact gradient, and, when asked, the observed information by Louis' identity: what complete data
would tell, minus what not knowing skill takes away.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array, hstack

from isuit.domain import FloatArray, IntArray

from ..model.arrow import Arrow, Factor, Shape
from ..model.counts import Counts
from ..model.curves import Curve
from ..model.density import NORMAL, Density
from ..model.population import Population
from ..model.slopes import Steepness
from ..model.smoothing import FIXED
from . import kernels as compiled_loops
from .far import FarFound, Near, far_riders, windows_of
from .grids import AtItems, Entries, Spans, Table, Work, added, lanes, most_lanes, one_by_one, over
from .shares import Asked, Bends, OfLane, Share, Sums, in_order

kernels: Any = compiled_loops  # they take what numba makes of their arguments
_PAIR_BYTES = 1 << 28  # of the sums over pairs of places, in all lanes together


@dataclass(frozen=True)
class Parameters:
    """Discrimination, curve and population.

    `own` are the places' deviations, `clientele` their prior means, and `density` is that of skill beside these.
    `slopes` are the coefficients of the discrimination's change, none where it is the same everywhere.
    """

    a: float
    shared: FloatArray
    own: FloatArray
    regression: FloatArray
    clientele: FloatArray
    density: Density = NORMAL
    slopes: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Posterior:
    """Each rider's skill posterior: its mean and sd, and all that is needed to integrate over it again."""

    likelihood: MarginalLikelihood
    a: float
    at: AtItems
    prior_mean: FloatArray
    density: Density
    windows: IntArray
    mean: FloatArray
    sd: FloatArray
    pull: FloatArray  # score of the prior mean

    @property
    def near(self) -> Near:
        """What a pass nearby begins with."""
        return self.windows

    def expect(self, rider: IntArray, f: FloatArray, relative: FloatArray | None = None) -> FloatArray:
        """Posterior-predictive probability of success of these riders at these f, one each.

        `relative` are the discriminations over a, where these differ.
        """
        relative = np.ones(rider.size) if relative is None else relative
        order = np.argsort(rider, kind="stable")
        rows = np.concatenate([[0], np.cumsum(np.bincount(rider, minlength=self.mean.size))])
        ordered, expected = np.ascontiguousarray(f[order]), np.empty(rider.size)
        self.over(kernels.expectations, rows, ordered, np.ascontiguousarray(relative[order]), expected)
        result = np.empty(rider.size)
        result[order] = expected
        return result

    def polynomials(self, coefficients: FloatArray) -> FloatArray:
        """Posterior means of polynomials of 2 Phi(theta - prior mean) - 1, riders x polynomials."""
        means = np.empty((self.mean.size, len(coefficients)))
        self.over(kernels.polynomial_means, np.ascontiguousarray(coefficients), means)
        return means

    def density_scores(self) -> FloatArray:
        """Each rider's score of the density's coefficients."""
        functions = np.zeros((self.mean.size, self.density.size))
        if self.density.size:
            self.over(kernels.prior_scores, functions)
        return functions

    def over(self, kernel: Any, *arguments: Any) -> None:
        """Run a loop over all riders that writes into its arguments."""
        entries = self.likelihood.entries
        windows, table = self.windows.copy(), self.table()

        def of_lane(lane: tuple[int, int]) -> None:
            work = self.likelihood.work()
            kernel(
                *lane, entries, self.at, self.a, self.prior_mean, self.density.tables, windows, table, work, *arguments
            )

        over(lanes(entries.entries), of_lane)

    def table(self) -> Table:
        spans = Spans.of(self.windows)
        return Table.of(spans, self.likelihood.entries.item.size, len(self.windows), self.a, self.at)

    def added_over(self, kernel: Any, shape: tuple[int, ...], *arguments: Any) -> FloatArray:
        """Run a loop over all riders that adds to an array of this shape, its last argument."""
        entries = self.likelihood.entries
        windows, table = self.windows.copy(), self.table()

        def of_lane(lane: tuple[int, int]) -> FloatArray:
            work, total = self.likelihood.work(), np.zeros(shape)
            common = (entries, self.at, self.a, self.prior_mean, self.density.tables, windows, table, work)
            kernel(*lane, *common, *arguments, total)
            return total

        return added(one_by_one(lanes(entries.entries), of_lane))


class FarPosterior(Posterior):
    """The same of riders who are elsewhere: what is known of each comes here when it is first asked for."""

    def __init__(
        self, likelihood: MarginalLikelihood, asked: Asked, prior_mean: FloatArray, density: Density, found: FarFound
    ) -> None:
        values = {"likelihood": likelihood, "a": asked.a, "at": asked.at, "prior_mean": prior_mean, "density": density}
        for name, value in {**values, "_found": found}.items():
            object.__setattr__(self, name, value)

    @property
    def near(self) -> Near:
        return self._found

    @property
    def windows(self) -> IntArray:
        return self._found.all.windows

    @property
    def mean(self) -> FloatArray:
        return self._found.all.mean

    @property
    def sd(self) -> FloatArray:
        return self._found.all.sd

    @property
    def pull(self) -> FloatArray:
        return self._found.all.pull

    _found: FarFound


class ByEntry(NamedTuple):
    """Of each rider at each of their items, riders x items."""

    expected: csr_matrix  # successes
    with_skill: csr_matrix  # their expectation times skill


@dataclass(frozen=True)
class Pass:
    """What one pass found; vectors run over the parameters in the order of `MarginalLikelihood.shape`."""

    log_likelihood: float
    gradient: FloatArray
    information: Arrow | None
    complete: Arrow | None  # the information if skills were known: positive definite everywhere
    item_residual: FloatArray  # successes minus expected successes
    posterior: Posterior
    exact: bool  # every grid was wide and fine enough, as all are but far from any maximum
    item_tilt: FloatArray = field(default_factory=lambda: np.zeros(0))  # of their discriminations, where these differ


class Seen(NamedTuple):
    """What a pass saw of all riders."""

    total: OfLane  # of all lanes
    posterior: Posterior
    pull: FloatArray
    bends: Bends


class MarginalLikelihood:
    """The likelihood of a cohort's counts with skill integrated out.

    The prior of skill is a density about the population's regression: normal with variance one, or a departure from
    it with so many coefficients. With `apart` the discrimination may differ between items.
    """

    samples_information = False  # whether the information is told by some riders only

    def __init__(self, counts: Counts, population: Population, density: int = 0, apart: bool = False) -> None:
        self.counts, self.population, self.density, self.apart = counts, population, density, apart
        self.entries = Entries.of(counts, apart)
        pairs = int(population.first.size)
        self.share = Share(self.entries, population.visits, population.places, pairs, density)
        self.far = far_riders(self.share)

    def of_riders(self, chosen: slice | IntArray) -> MarginalLikelihood:
        """The same for some of the riders."""
        counts = self.counts.of_riders(chosen)
        return MarginalLikelihood(counts, self.population.of_riders(counts, chosen), self.density, self.apart)

    def shape(self, curve: Curve) -> Shape:
        """Border: discrimination, shared curve, shared regressors, density. Own: a place's deviation, its clientele."""
        regressors = self.population.visits.regressors.shape[1]
        places = self.population.places
        border = 1 + curve.design.shared_size + regressors + self.density
        return Shape(border, places, curve.design.width + 1 if places else 0)

    def work(self) -> Work:
        return self.share.work()

    def lanes(self, curve: Curve, information: bool) -> list[tuple[int, int]]:
        """Riders in lanes: fewer of them where the sums of a pass with information are large."""
        pair_bytes = self.population.first.size * self.shape(curve).width ** 2 * 8
        most = most_lanes(self.entries.item.size)
        return lanes(
            self.entries.entries, int(np.clip(_PAIR_BYTES // max(1, pair_bytes), 1, most)) if information else most
        )

    def evaluate(self, p: Parameters, curve: Curve, windows: Near | None = None, information: bool = False) -> Pass:
        """Log-likelihood and gradient, and the observed information when asked for.

        `windows` are those of a pass nearby (`Posterior.near`); without them the first look finds some.
        """
        counts, shape = self.counts, self.shape(curve)
        seen = self._looked(p, curve, windows, information)
        sums = seen.total.sums
        residual = counts.item_successes - sums.expected
        value = float((counts.item_trials - counts.item_successes) @ curve.value) + seen.total.value
        score = seen.total.score - float(residual @ curve.by_a)
        if curve.steepness is not None:
            score = float(sums.tilts @ curve.steepness.relative)
        complete = self._complete(p, curve, shape, sums.moments) if information else None
        scores = np.tensordot(sums.looked_up, p.density.tables.functions) if self.density else np.zeros(0)
        return Pass(
            log_likelihood=value,
            gradient=self._gradient(p, curve, shape, score, residual, sums.tilts, seen.pull, scores),
            information=None
            if complete is None
            else self._observed(curve, shape, complete, sums, seen.posterior, seen.bends),
            complete=complete,
            item_residual=residual,
            posterior=seen.posterior,
            exact=not seen.total.short,
            item_tilt=sums.tilts,
        )

    def _looked(self, p: Parameters, curve: Curve, near: Near | None, information: bool) -> Seen:
        """One pass over all lanes, here or wherever the riders are."""
        prior_mean = self.population.apply(p.regression, p.clientele)
        own = self.lanes(curve, information)
        first = Spans.first(prior_mean, p.a * curve.steepest) if near is None else None
        if self.far is not None and self.far.is_worth_it(self.lanes(curve, False), self.lanes(curve, True)):
            begin = self.far.begin(near)
            asked = self.asked(p, curve, first or begin.spans, information)
            prior = partial(self.population.apply, p.regression, p.clientele) if self.share.regressed else None
            far = self.far.look(asked, own, prior, begin)
            there = FarPosterior(self, asked, prior_mean, p.density, far.found)
            return Seen(in_order(far.lanes), there, far.pull, far.bends)
        windows = np.zeros((self.counts.riders, 3), np.int64) if near is None else windows_of(near)
        asked = self.asked(p, curve, first or Spans.of(windows), information)
        looked = self.share.look(asked, own, prior_mean, windows, asked.table())
        together = in_order(looked.lanes)
        posterior = Posterior(self, p.a, asked.at, prior_mean, p.density, *looked.found)
        return Seen(together, posterior, looked.found.pull, looked.bends)

    def asked(self, p: Parameters, curve: Curve, spans: Spans, information: bool) -> Asked:
        """What a pass asks of every share of the riders."""
        at, size = AtItems.of(curve.value, curve.by_a, curve.steepness), self.entries.item.size
        rows = curve.design.rows if information else None
        return Asked(p.a, at, p.density.tables, spans, size, self.counts.riders, information, rows)

    def _gradient(
        self,
        p: Parameters,
        curve: Curve,
        shape: Shape,
        score: float,
        residual: FloatArray,
        tilts: FloatArray,
        pull: FloatArray,
        density: FloatArray,
    ) -> FloatArray:
        shared, own = curve.design.pull_back(-residual)
        if curve.steepness is not None:
            shared[-curve.steepness.rows.columns.shape[1] :] += tilts @ slopes_of(p.a, curve.steepness)
        regression, clientele = self.population.pull_back(pull)
        by_place = np.zeros((shape.places, shape.width))
        if shape.places:
            by_place[: len(own), :-1] = own
            by_place[:, -1] = clientele
        return shape.join(np.concatenate([[score], shared, regression, density]), by_place)

    def _complete(self, p: Parameters, curve: Curve, shape: Shape, moments: FloatArray) -> Arrow:
        """The information if skills were known: a logistic regression on (theta - df/da, -design), and the prior's.

        Of the prior it is what is expected of it, near the normal: positive definite everywhere.
        """
        v0, v1, v2 = moments.T
        population, design = self.population, curve.design
        n = 1 + design.shared_size
        border = np.zeros((shape.border, shape.border))
        relative = np.ones(v0.size) if curve.steepness is None else curve.steepness.relative
        border[0, 0] = float(np.sum(relative**2 * v2 - 2 * curve.by_a * v1 + curve.by_a**2 * v0))
        shared, by_place = design.pull_back(curve.by_a * v0 - relative * v1)
        border[0, 1:n] = border[1:n, 0] = shared
        border[1:n, 1:n], across, blocks = design.gram(v0)
        if curve.steepness is not None:
            self._add_slopes(p.a, curve, curve.steepness, v1, v2, border, across)
        regressors = population.visits.regressors
        last = n + regressors.shape[1]
        border[n:last, n:last] = regressors.T @ regressors
        border[last:, last:] = self.counts.riders * p.density.expected_information
        cross = np.zeros((shape.places, shape.width, shape.border))
        own = np.zeros((shape.places, shape.width, shape.width))
        if shape.places:
            cross[: design.places, :-1, 0] = by_place
            cross[: design.places, :-1, 1:n] = across
            own[: design.places, :-1, :-1] = blocks
            for k in range(regressors.shape[1]):
                cross[:, -1, n + k] = population.pull_back(regressors[:, k])[1]
            own[:, -1, -1] = population.squares(np.ones(self.counts.riders))
        return self.without_fixed(Arrow.uncoupled(border, cross, own), design.places)

    def _add_slopes(
        self,
        a: float,
        curve: Curve,
        steepness: Steepness,
        v1: FloatArray,
        v2: FloatArray,
        border: FloatArray,
        across: FloatArray,
    ) -> None:
        """The part of the complete information that the discrimination's change has, into the border and `across`."""
        slopes, n = slopes_of(a, steepness), 1 + curve.design.shared_size
        first = n - slopes.shape[1]
        with_a = (steepness.relative * v2) @ slopes
        border[0, first:n] += with_a
        border[first:n, 0] += with_a
        border[first:n, first:n] += slopes.T @ (v2[:, None] * slopes)
        for k, slope in enumerate(slopes.T):
            shared, by_place = curve.design.pull_back(-v1 * slope)
            border[first + k, 1:n] += shared
            border[1:n, first + k] += shared
            across[:, :, first - 1 + k] += by_place

    def _bent(self, complete: Arrow, at: Posterior, pooled: FloatArray, bends: Bends) -> Arrow:
        """The complete information with the prior's part as it is for these riders, and not as it is expected."""
        if not self.density:
            return complete
        population = self.population
        regressors, excess = population.visits.regressors, bends.bend - 1.0
        border, cross, own = complete.border.copy(), complete.cross.copy(), complete.own.copy()
        last = len(border) - self.density
        n = last - regressors.shape[1]
        border[last:, last:] = at.density.information(pooled)
        if excess.size:
            border[n:last, n:last] += regressors.T @ (excess[:, None] * regressors)
            border[n:last, last:] += regressors.T @ bends.slopes
            border[last:, n:last] += bends.slopes.T @ regressors
        if excess.size and complete.shape.places:
            for k in range(regressors.shape[1]):
                cross[:, -1, n + k] += population.pull_back(excess * regressors[:, k])[1]
            for k in range(self.density):
                cross[:, -1, last + k] += population.pull_back(bends.slopes[:, k])[1]
            own[:, -1, -1] += population.squares(excess)
        return replace(complete, border=border, cross=cross, own=own)

    def _observed(self, curve: Curve, shape: Shape, complete: Arrow, taken: Sums, at: Posterior, bends: Bends) -> Arrow:
        """What is left of the complete information; sums over raw functions become those over shared coefficients."""
        raw, shared = curve.design.shared.shape
        to_border = np.zeros((len(taken.shared), shape.border))
        to_border[0, 0] = 1.0
        to_border[1 : 1 + raw, 1 : 1 + shared] = curve.design.shared
        rest = np.arange(shape.border - 1 - shared)
        to_border[1 + raw + rest, 1 + shared + rest] = 1.0
        lower = taken.shared.copy()
        lower[: 1 + raw, 1 + raw :] = lower[1 + raw :, : 1 + raw].T
        pairs = -taken.pairs
        if shape.places:
            pairs[:, -1, -1] += self.population.products(bends.bend if bends.bend.size else np.ones(self.counts.riders))
        complete = self._bent(complete, at, taken.pooled, bends)
        observed = Arrow(
            complete.border - to_border.T @ lower @ to_border,
            complete.cross - taken.across @ to_border,
            complete.own - taken.own,
            pairs,
            self.population.first,
            self.population.second,
        )
        return self.without_fixed(observed, curve.design.places)

    def without_fixed(self, matrix: Arrow, sites: int) -> Arrow:
        """Parameters that are not estimated touch nothing: the origin's clientele, a curve where there is no site."""
        if not matrix.shape.places:
            return matrix
        fixed, width = fixed_parameters(self.population, sites, matrix.shape.width), matrix.shape.width
        matrix.cross[fixed] = 0.0
        matrix.own[fixed] = 0.0
        matrix.own.transpose(0, 2, 1)[fixed] = 0.0
        matrix.own[:, np.arange(width), np.arange(width)] += fixed
        matrix.pairs[fixed[matrix.first]] = 0.0
        matrix.pairs.transpose(0, 2, 1)[fixed[matrix.second]] = 0.0
        return matrix

    def skill_variance(self, posterior: Posterior, curve: Curve, factor: Factor) -> FloatArray:
        """What the parameters' uncertainty adds to the variance of each rider's posterior mean (delta method)."""
        added_variance = np.empty(self.counts.riders)
        n = 1 + curve.design.shared.shape[0]
        to_shared = np.zeros((n, 1 + curve.design.shared_size))
        to_shared[0, 0] = 1.0
        to_shared[1:, 1:] = curve.design.shared
        entries, at = self.entries, posterior.at
        windows, table = posterior.windows.copy(), posterior.table()
        own, pairs = np.zeros((0, 0, 0)), np.zeros((0, 0, 0))
        if factor.shape.places:
            own, pairs = factor.own.blocks.copy(), np.ascontiguousarray(factor.own.pairs)
            fixed = fixed_parameters(self.population, curve.design.places, factor.shape.width)
            own[np.arange(len(own))[:, None], np.arange(factor.shape.width), np.arange(factor.shape.width)] *= ~fixed
        slope = np.ascontiguousarray(factor.slope)

        def of_lane(lane: tuple[int, int]) -> None:
            kernels.skill_variance(
                *lane, entries, at, curve.design.rows, self.population.visits, posterior.a, posterior.prior_mean,
                posterior.density.tables, windows, table, self.work(), to_shared, factor.border, slope, own, pairs,
                added_variance,
            )  # fmt: skip

        over(lanes(entries.entries), of_lane)
        return added_variance

    def expected_by_entry(self, posterior: Posterior) -> ByEntry:
        """Expected successes, and their expectation times skill, of each rider at each of their items."""
        trials = self.counts.trials
        success, with_skill = np.empty(trials.nnz), np.empty(trials.nnz)
        posterior.over(kernels.by_entry, success, with_skill)
        return ByEntry(
            *(
                csr_matrix((trials.data * values, trials.indices, trials.indptr), shape=trials.shape)
                for values in (success, with_skill)
            )
        )

    def rider_scores(self, curve: Curve, posterior: Posterior, by_entry: ByEntry) -> csr_matrix:
        """Each rider's score, in the order of `shape`: the rows whose sum is the gradient."""
        counts, design, population = self.counts, curve.design, self.population
        residual = (counts.successes - by_entry.expected).tocsr()
        ones = np.ones(counts.items)
        in_a = counts.rider_successes * posterior.mean - by_entry.with_skill @ ones - residual @ curve.by_a
        raw = csr_matrix(
            (
                design.rows.value.ravel(),
                design.rows.function.ravel(),
                np.arange(0, design.rows.value.size + 1, design.rows.value.shape[1]),
            ),
            shape=(counts.items, design.shared.shape[0]),
        )
        pull, visits = posterior.pull, population.visits
        in_curve = -((residual @ raw) @ design.shared)
        if curve.steepness is not None:
            tilts = csr_matrix(diags_array(posterior.mean) @ counts.successes) - by_entry.with_skill
            slopes = slopes_of(posterior.a, curve.steepness)
            in_a = tilts @ curve.steepness.relative
            in_curve[:, -slopes.shape[1] :] += tilts @ slopes
        columns = [
            csr_matrix(in_a[:, None]),
            csr_matrix(in_curve),
            csr_matrix(pull[:, None] * visits.regressors),
            csr_matrix(posterior.density_scores()),
        ]
        if population.places:
            columns.append(self._own_scores(curve, residual, pull))
        return hstack(columns, format="csr")

    def _own_scores(self, curve: Curve, residual: csr_matrix, pull: FloatArray) -> csr_matrix:
        """Scores of the places' own parameters: a row per rider, entries only at the places that they visited."""
        design, visits = curve.design, self.population.visits
        shape = self.shape(curve)
        rows = design.rows
        functions = np.zeros((self.counts.items, design.width))
        for d in range(rows.function.shape[1]):
            functions += rows.value[:, d, None] * rows.own[rows.function[:, d]]
        functions[rows.place < 0] = 0.0
        by_entry = -residual.data[:, None] * functions[residual.indices]
        by_visit = np.empty((visits.place.size, shape.width))
        if visits.place.size:
            by_visit[:, :-1] = np.add.reduceat(by_entry, visits.entries[:-1], axis=0)
        by_visit[:, -1] = visits.share * np.repeat(pull, np.diff(visits.visits))
        by_visit[fixed_parameters(self.population, design.places, shape.width)[visits.place]] = 0.0
        columns = visits.place[:, None] * shape.width + np.arange(shape.width)
        return csr_matrix(
            (by_visit.ravel(), columns.ravel(), visits.visits * shape.width),
            shape=(self.counts.riders, shape.places * shape.width),
        )


def slopes_of(a: float, steepness: Steepness) -> FloatArray:
    """Derivatives of the items' discriminations by the coefficients of their change, the last shared ones."""
    return np.asarray((a * steepness.relative)[:, None] * steepness.rows.columns)


def fixed_parameters(population: Population, sites: int, width: int) -> Any:
    """Places x width: which own parameters are not estimated."""
    fixed = np.zeros((population.places, width), dtype=bool)
    fixed[sites:, :-1] = True
    fixed[:, -1] = population.clientele == FIXED
    return fixed
