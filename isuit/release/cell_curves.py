"""Step 4: the release's own fit, on what the screening left and on nothing else. Cells take the role of sites.

The estimator's gates hold here as for any fit: where skill and difficulty cannot be told apart, or skill explains
nothing, there is no difficulty to release. The held-out score is not asked again: it is about predicting a rider, and
a release predicts none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc  # chi-square's tail; scipy.stats would take a second to import

from isuit.domain import FitConfig, FloatArray
from isuit.errors import EstimationError
from isuit.estimator.fit import PROMOTION_LEVEL
from isuit.estimator.gate import check, incidence
from isuit.estimator.likelihood import threads
from isuit.estimator.likelihood.latent import Band, LatentFit, fit_latent, penalised_log_likelihood
from isuit.estimator.likelihood.single_curve import SingleCurve, fit_single_curve
from isuit.estimator.model.anchor import anchor_of
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import Counts, count
from isuit.estimator.model.curves import CurveSpace
from isuit.release.policy import Policy
from isuit.release.screening import Placed, weights


class Unfit(Exception):
    """The outcomes that are left give no latent fit; `reasons` name bins and numbers, never riders."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


@dataclass(frozen=True)
class CellCurves:
    """A latent fit whose sites are cells; one cell alone is the curve itself."""

    placed: Placed
    counts: Counts
    latent: LatentFit

    def code(self, cell: int) -> int:
        """The estimator's code of a cell."""
        return cell if self.latent.space.sites else -1

    def difficulty(self, cell: int) -> Band:
        """At the centres of all bins."""
        return self.latent.difficulty(self.placed.bins.centres, self.code(cell))

    def marginal(self, cell: int) -> FloatArray:
        return self.latent.marginal(self.placed.bins.centres, self.code(cell))


@threads.one_thread()
def fit_cells(placed: Placed, policy: Policy, config: FitConfig) -> CellCurves:
    """Fit the curves of all cells together; raises `Unfit` where the estimator's gates do not pass."""
    outcomes, cells = placed.outcomes, len(placed.cells)
    if outcomes.outcome.min() == outcomes.outcome.max():
        raise Unfit("all outcomes are equal, so nothing tells riders apart")
    graph = incidence(outcomes.rider, outcomes.metric, len(outcomes.riders), config.gate_bins)
    gate = check(graph, config)
    if not gate.report:
        raise Unfit(*gate.report.shortfalls)
    # The ends of the bins are in the spline's range, so that it does not end at any rider's own extreme.
    spline = spline_for(np.concatenate([outcomes.metric, [placed.bins.lower, placed.bins.upper]]))
    space = CurveSpace(spline, cells if cells > 1 else 0, anchor_of(config.anchor, spline))
    counts = count(
        outcomes.rider,
        outcomes.metric,
        outcomes.outcome,
        spline,
        len(outcomes.riders),
        placed.cell if cells > 1 else None,
        weights(placed, policy),
    )
    try:
        latent = fit_latent(counts, space, _single(counts, space), config.exposure == "correlated")
    except EstimationError as error:
        raise Unfit(str(error)) from None
    if latent.solution.no_skill:
        raise Unfit("skill explains nothing: the discrimination goes to zero")
    p_value = _p_value(counts, space, latent)
    if p_value >= PROMOTION_LEVEL:
        raise Unfit(f"skill does not explain outcomes: the likelihood-ratio test of a = 0 has p = {p_value:.2g}")
    return CellCurves(placed, counts, latent)


def _single(counts: Counts, space: CurveSpace, rho: FloatArray | None = None) -> SingleCurve:
    design = space.design(counts.item_metric, counts.item_site, 0.0)
    return fit_single_curve(design, counts.item_trials, counts.item_successes, rho)


def _p_value(counts: Counts, space: CurveSpace, latent: LatentFit) -> float:
    """The boundary likelihood-ratio test of no discrimination, as for any fit (`isuit.estimator.fit`)."""
    precisions = int(space.design(counts.item_metric[:1], counts.item_site[:1], 0.0).groups.max(initial=-1)) + 1
    null = _single(counts, space, latent.solution.rho[:precisions])
    ratio = max(0.0, 2.0 * (penalised_log_likelihood(latent) - null.penalised))
    extra = int(np.ceil(latent.population_degrees_of_freedom - 1e-9))
    return 0.5 * float(chdtrc(extra + 1, ratio)) + (0.5 * float(chdtrc(extra, ratio)) if extra else 0.0)


def comparable(placed: Placed) -> NDArray[np.bool_]:
    """By cell, whether riders link it to the cells that hold most riders, and would do so without any one of them.

    Cells that nobody links have no common origin of difficulty. A link by one rider alone would make the released level
    that rider's own, and its loss would tell who it was.
    """
    cells, riders = len(placed.cells), len(placed.outcomes.riders)
    visits = csr_matrix((np.ones(placed.cell.size), (placed.outcomes.rider, placed.cell)), shape=(riders, cells))
    visits.data[:] = 1.0
    visits.sum_duplicates()
    visits.data[:] = 1.0
    size = np.asarray(visits.sum(axis=0)).ravel()
    common = (visits.T @ visits).tocsr()
    linked = _largest(common, size)
    several = np.flatnonzero(np.diff(visits.indptr) > 1)
    for rider in several.tolist():
        own = visits.indices[visits.indptr[rider] : visits.indptr[rider + 1]]
        links = common[own][:, own].toarray()
        if np.any(links == 1.0):  # the only rider of some link
            alone = csr_matrix((np.ones(own.size**2), (np.repeat(own, own.size), np.tile(own, own.size))), common.shape)
            linked &= _largest(common - alone, size)
    return linked


def _largest(common: csr_matrix, size: FloatArray) -> NDArray[np.bool_]:
    rows, columns = common.nonzero()
    links = csr_matrix((np.ones(rows.size), (rows, columns)), shape=common.shape)
    part = connected_components(links, directed=False)[1]
    # Of equally large parts the one with the first cell: a choice that follows from places, not from persons.
    return np.asarray(part == np.bincount(part, weights=size).argmax())
