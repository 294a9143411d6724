"""The marginal likelihood: each rider's skill integrated out.

With f = a * delta the linear predictor is `a * theta - f[item]`, and up to a sum without theta

    log L_r(theta) = a theta (k_r - n_r) - sum_i n_ri log(1 + exp(f_i - a theta)).

The integral over skill is a sum over the grid that the rider's block shares (`grids.py`). One pass over the counts
gives the log-likelihood, its exact gradient, and, when asked, the observed information (`information.py`). The sums of
blocks are added in the order of the blocks, so no result depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack

from isuit.domain import FloatArray, IntArray

from ..model.counts import Counts
from ..model.curves import Curve
from ..model.design import Design
from . import grids
from .grids import MOST_POINTS, Block, Grid, Nodes
from .information import Columns, Slope, missing

_EDGE = 1e-8  # largest posterior weight at the end of a grid; above, the grid is too short
_NOTHING = 1e-10  # points at which nobody in the block has more weight are dropped from the next grid
_MOST_LOOKS = 12


@dataclass(frozen=True)
class Part:
    """The posterior of a block's riders: weights over the points of its grid, rows sum to one."""

    block: Block
    theta: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class Posterior:
    """Each rider's skill posterior."""

    parts: tuple[Part, ...]
    mean: FloatArray
    sd: FloatArray

    def expect(self, rider: IntArray, a: float, f: FloatArray) -> FloatArray:
        """Posterior-predictive probability of success of these riders at these f, one each."""
        part_of = np.empty(self.mean.size, dtype=np.int64)
        row_of = np.empty(self.mean.size, dtype=np.int64)
        for number, part in enumerate(self.parts):
            part_of[part.block.riders] = number
            row_of[part.block.riders] = np.arange(part.block.riders.size)
        order = np.argsort(part_of[rider], kind="stable")
        edges = np.searchsorted(part_of[rider[order]], np.arange(len(self.parts) + 1))

        def of_part(number: int) -> FloatArray:
            rows, part = order[edges[number] : edges[number + 1]], self.parts[number]
            p = grids.success(a, f[rows], part.theta)
            return np.asarray(np.einsum("eq,eq->e", part.weight[row_of[rider[rows]]], p))

        result = np.empty(rider.size)
        result[order] = np.concatenate([np.zeros(0), *grids.over(range(len(self.parts)), of_part)])
        return result


class ByEntry(NamedTuple):
    """Of each rider at each of their items, riders x items."""

    expected: csr_matrix  # successes
    with_skill: csr_matrix  # their expectation times skill


@dataclass(frozen=True)
class Pass:
    """What one pass found; vectors and matrices run over (a, curve coefficients, population coefficients)."""

    log_likelihood: float
    gradient: FloatArray
    information: FloatArray | None
    item_residual: FloatArray  # successes minus expected successes
    posterior: Posterior
    nodes: Nodes  # for the next pass nearby
    exact: bool  # every grid was wide and fine enough, as all are but far from any maximum
    slope: Slope | None  # of posterior means, with the information


@dataclass(frozen=True)
class _Integral:
    """A block's share of a pass."""

    part: Part
    grid: Grid  # to go on with
    exact: bool
    log_likelihood: float
    mean: FloatArray
    sd: FloatArray
    expected: FloatArray  # successes by item of the block
    score_a: float
    moments: FloatArray | None
    missing: Columns | None
    slope: Slope | None


class MarginalLikelihood:
    """The likelihood of a cohort's counts with skill integrated out.

    The prior of skill is normal with variance one about the population's design applied to its coefficients.
    """

    def __init__(self, counts: Counts, population: Design) -> None:
        self.counts = counts
        self.population = population

    def place(self, a: float, f: FloatArray, population: FloatArray) -> Nodes:
        """Blocks and grids for these parameters."""
        return grids.place(self.counts, a, f, self.population.apply(population))

    def evaluate(self, a: float, curve: Curve, population: FloatArray, nodes: Nodes, information: bool = False) -> Pass:
        """Log-likelihood and gradient, and the observed information when asked for."""
        counts = self.counts
        prior_mean = self.population.apply(population)

        def of_block(number: int) -> _Integral:
            block = nodes.blocks[number]
            return self._integrate(block, nodes.grids[number], a, curve, prior_mean[block.riders], information)

        found = grids.over(range(len(nodes.blocks)), of_block)
        expected, moments = np.zeros(counts.items), np.zeros((3, counts.items))
        mean, sd = np.empty(counts.riders), np.empty(counts.riders)
        log_likelihood = float((counts.item_trials - counts.item_successes) @ curve.value)
        score_a, taken = 0.0, None
        for one in found:
            block = one.part.block
            log_likelihood += one.log_likelihood
            score_a += one.score_a
            expected[block.items] += one.expected
            mean[block.riders], sd[block.riders] = one.mean, one.sd
            if one.moments is not None and one.missing is not None:
                moments[:, block.items] += one.moments
                taken = one.missing if taken is None else taken + one.missing
        residual = counts.item_successes - expected
        gradient = np.concatenate(
            [
                [score_a - float(residual @ curve.by_a)],
                -curve.design.pull_back(residual),
                self.population.pull_back(mean - prior_mean),
            ]
        )
        observed = None
        if taken is not None:
            observed = self._complete(curve, moments) - self._in_order_of_parameters(taken.whole(), curve)
        return Pass(
            log_likelihood,
            gradient,
            observed,
            residual,
            Posterior(tuple(one.part for one in found), mean, sd),
            replace(nodes, grids=tuple(one.grid for one in found)),
            all(one.exact for one in found),
            _joined(found, counts.riders) if information else None,
        )

    def _integrate(
        self, block: Block, grid: Grid, a: float, curve: Curve, prior_mean: FloatArray, information: bool
    ) -> _Integral:
        f = curve.value[block.items]
        for _ in range(_MOST_LOOKS):
            theta = grid.points
            logarithm, p = grids.failure(a, f, theta)
            log_joint = block.trials @ logarithm
            log_joint += np.outer(block.outcomes - block.successes, a * theta)
            log_joint += 0.5 * (theta - prior_mean[:, None]) ** 2
            np.negative(log_joint, out=log_joint)
            top = log_joint.max(axis=1)
            log_joint -= top[:, None]
            weight = np.exp(log_joint, out=log_joint)
            total = weight.sum(axis=1)
            weight /= total[:, None]
            centre = float(theta.mean())
            mean = weight @ (theta - centre)
            sd = np.sqrt(np.maximum(weight @ (theta - centre) ** 2 - mean**2, 1e-300))
            exact, grid = _next(grid, theta, weight, sd, a)
            if exact:
                break
        by_item = block.trials.T @ weight
        step = float(theta[1] - theta[0])
        value = float(np.sum(top + np.log(total))) + block.riders.size * float(np.log(step / np.sqrt(2 * np.pi)))
        shares = p * by_item
        score_a = float(block.successes @ mean + centre * block.successes.sum() - shares.sum(axis=0) @ theta)
        moments, taken, slope = None, None, None
        if information:
            varies = shares * (1.0 - p)
            moments = np.stack([varies @ theta**k for k in range(3)])
            shortfall = theta * (block.successes[:, None] - block.trials @ p)
            if curve.by_a.any():
                shortfall += block.trials @ (p * curve.by_a[block.items, None])
            own = curve.design if isinstance(block.items, slice) else curve.design.of_rows(block.items)
            riders = self.population.of_rows(block.riders)
            taken, slope = missing(block, theta, weight, p, shortfall, own, riders)
        return _Integral(
            part=Part(block, theta, weight),
            grid=grid,
            exact=exact,
            log_likelihood=value,
            mean=mean + centre,
            sd=sd,
            expected=shares.sum(axis=1),
            score_a=score_a,
            moments=moments,
            missing=taken,
            slope=slope,
        )

    def skill_variance(self, slope: Slope, curve: Curve, covariance: FloatArray) -> FloatArray:
        """What the parameters' uncertainty adds to the variance of each rider's posterior mean (delta method)."""
        order = self._parameter_of_column(curve)
        ordered = covariance[np.ix_(order, order)]
        width = slope.dense.shape[1]
        added = np.einsum("rm,rm->r", slope.dense @ ordered[:width, :width], slope.dense)
        if slope.local is None:
            return np.asarray(added)
        spread = 2 * (slope.dense @ ordered[:width, width:]) + slope.local @ ordered[width:, width:]
        return np.asarray(added + np.asarray(slope.local.multiply(spread).sum(axis=1)).ravel())

    def expected_by_entry(self, a: float, curve: Curve, posterior: Posterior) -> ByEntry:
        """Expected successes, and their expectation times skill, of each rider at each of their items."""
        trials = self.counts.trials
        share, with_skill = np.empty(trials.nnz), np.empty(trials.nnz)

        def of_part(part: Part) -> None:
            block, length = part.block, np.diff(part.block.trials.indptr)
            p = grids.success(a, curve.value[block.items], part.theta)
            weighted = np.repeat(part.weight, length, axis=0)
            weighted *= p[block.trials.indices]
            place = np.repeat(trials.indptr[block.riders] - block.trials.indptr[:-1], length)
            place += np.arange(place.size)
            share[place] = weighted.sum(axis=1)
            with_skill[place] = weighted @ part.theta

        grids.over(posterior.parts, of_part)
        return ByEntry(
            *(
                csr_matrix((trials.data * values, trials.indices, trials.indptr), shape=trials.shape)
                for values in (share, with_skill)
            )
        )

    def rider_scores(self, curve: Curve, population: FloatArray, posterior: Posterior, by_entry: ByEntry) -> csr_matrix:
        """Each rider's score for (a, curve, population): the rows whose sum is the gradient."""
        counts, one = self.counts, np.ones(self.counts.items)
        residual = (counts.successes - by_entry.expected).tocsr()
        in_a = counts.rider_successes * posterior.mean - by_entry.with_skill @ one - residual @ curve.by_a
        gap = (posterior.mean - self.population.apply(population))[:, None]
        columns = [csr_matrix(in_a[:, None]), csr_matrix(-(residual @ curve.design.dense))]
        if curve.design.local is not None:
            columns.append(-(residual @ curve.design.local))
        columns.append(csr_matrix(gap * self.population.dense))
        if self.population.local is not None:
            columns.append(self.population.local.multiply(gap).tocsr())
        return hstack(columns, format="csr")

    def _parameter_of_column(self, curve: Curve) -> IntArray:
        """For dense and then local columns, the place of each in (a, curve, population)."""
        inner, outer = curve.design, self.population
        first, second = inner.dense.shape[1], outer.dense.shape[1]
        shift = 1 + inner.size
        return np.concatenate(
            [
                np.arange(1 + first),
                shift + np.arange(second),
                1 + np.arange(first, inner.size),
                shift + np.arange(second, outer.size),
            ]
        )

    def _in_order_of_parameters(self, by_column: FloatArray, curve: Curve) -> FloatArray:
        order = self._parameter_of_column(curve)
        result = np.empty_like(by_column)
        result[np.ix_(order, order)] = by_column
        return result

    def _complete(self, curve: Curve, moments: FloatArray) -> FloatArray:
        """The information if skills were known: a logistic regression on (theta - df/da, -design)."""
        v0, v1, v2 = moments
        columns = 1 + curve.design.size
        size = columns + self.population.size
        total = np.zeros((size, size))
        total[0, 0] = float(np.sum(v2 - 2 * curve.by_a * v1 + curve.by_a**2 * v0))
        total[0, 1:columns] = total[1:columns, 0] = curve.design.pull_back(curve.by_a * v0 - v1)
        total[1:columns, 1:columns] = curve.design.gram(v0)
        total[columns:, columns:] = self.population.gram(np.ones(self.population.rows))
        return total


def _next(grid: Grid, theta: FloatArray, weight: FloatArray, sd: FloatArray, a: float) -> tuple[bool, Grid]:
    """Whether the grid was wide and fine enough, and the one to go on with."""
    highest = weight.max(axis=0)
    step = float(theta[1] - theta[0])
    fine = Grid.over(0.0, 0.0, sd, a).step
    coarse = step > 1.1 * fine and theta.size < MOST_POINTS
    if highest[0] > _EDGE or highest[-1] > _EDGE or coarse:
        further = 0.4 * (grid.upper - grid.lower)
        lower = grid.lower - (further if highest[0] > _EDGE else 0.0)
        upper = grid.upper + (further if highest[-1] > _EDGE else 0.0)
        # A posterior that fell between two points seems to have no width: go on in steps.
        return False, Grid(lower, upper, max(fine, step / 4))
    needed = np.flatnonzero(highest > _NOTHING)
    return True, Grid(float(theta[needed[0]]) - step, float(theta[needed[-1]]) + step, fine)


def _joined(found: list[_Integral], riders: int) -> Slope:
    """Slopes of all riders in the order of riders."""
    order = np.concatenate([one.part.block.riders for one in found])
    back = np.empty(riders, dtype=np.int64)
    back[order] = np.arange(riders)
    slopes = [one.slope for one in found if one.slope is not None]
    local = [slope.local for slope in slopes if slope.local is not None]
    dense = np.concatenate([slope.dense for slope in slopes])[back]
    return Slope(dense, vstack(local, format="csr")[back] if local else None)
