"""The single suitability curve: a smooth logistic regression on the metric that knows nothing of riders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from isuit.domain import FloatArray, IntArray
from isuit.errors import EstimationError

from ..model.arrow import Arrow, Factor, Shape
from ..model.design import NO_PLACE, Design
from ..model.smoothing import choose, precisions
from . import newton, threads

TOLERANCE = 1e-9  # of the gradient, in standard errors
_MOST_CHOICES = 40  # of the smoothing: between two neighbouring values it can alternate for ever


@dataclass(frozen=True)
class SingleCurve:
    """-f, the log odds of success, as coefficients; the same design and penalty as the latent fit's curve."""

    shared: FloatArray  # of f, so that suitability = sigmoid(-f)
    own: FloatArray  # places x width
    rho: FloatArray
    factor: Factor  # of the information plus precisions: its inverse is the covariance
    log_likelihood: float
    penalised: float

    def suitability(self, design: Design) -> FloatArray:
        return np.asarray(expit(-design.apply(self.shared, self.own)))

    def log_odds_se(self, design: Design, place: int = NO_PLACE) -> FloatArray:
        """Standard errors at rows that are all at one place, taking outcomes as independent."""
        columns, n = design.columns(place), self.shared.size
        border, own = columns[:, :n], columns[:, n:]
        variance = np.einsum("xm,mn,xn->x", border, self.factor.border, border)
        if place != NO_PLACE:
            variance += np.einsum("xk,kl,xl->x", own, self.factor.blocks[place], own)
            variance += 2 * np.einsum("xk,km,xm->x", own, self.factor.cross[place], border)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@threads.one_thread()
def fit_single_curve(
    design: Design,
    groups: IntArray,
    trials: FloatArray,
    successes: FloatArray,
    rho: FloatArray | None = None,
    start: SingleCurve | None = None,
) -> SingleCurve:
    """Penalised logistic regression; smoothing chosen by marginal likelihood unless `rho` is given.

    A start is for a given smoothing only: on the way from another curve the choice can end elsewhere.
    """
    shape = Shape(design.shared_size, design.places, design.width)
    fixed = rho is not None
    count = int(groups.max(initial=-1)) + 1
    rho = np.zeros(count) if rho is None else rho
    # Half a success and half a failure: the start is finite when all outcomes are equal.
    share = (successes.sum() + 0.5) / (trials.sum() + 1.0)
    beta = np.zeros(shape.size)
    beta[0] = -np.log(share / (1 - share))
    if start is not None:
        beta = shape.join(start.shared, start.own)
    # Outcomes that a condition separates wholly (all fail above 30 knots) have no finite maximum in the free
    # polynomials; a ridge worth a thousandth of an outcome keeps the curve finite and moves nothing else.
    floor = np.where(groups < 0, 1e-3, 0.0)
    floor[0] = 1e-6

    ridge = precisions(rho, groups)

    def log_likelihood_at(beta: FloatArray) -> float:
        f = design.apply(*shape.split(beta))
        return float(-(successes @ np.logaddexp(0, f)) - (trials - successes) @ np.logaddexp(0, -f))

    def penalty(beta: FloatArray) -> float:
        return 0.5 * float((ridge + floor) @ beta**2)

    settled = 0
    for step in range(200):
        p = expit(-design.apply(*shape.split(beta)))
        information = Arrow.uncoupled(*design.gram(trials * p * (1 - p))).plus(floor)
        score = -shape.join(*design.pull_back(successes - trials * p)) - floor * beta
        choosing = not fixed and settled < 2 and step < _MOST_CHOICES
        if choosing:
            chosen = choose(information, information.times(beta) + score, groups, rho)
            settled = settled + 1 if np.array_equal(chosen, rho) else 0
            rho = chosen
        ridge = precisions(rho, groups)
        gradient = score - ridge * beta
        factor = Factor(information.plus(ridge))
        move = factor.solve(gradient)
        if not choosing and np.sqrt(max(float(gradient @ move), 0.0)) < TOLERANCE:
            break
        beta = newton.uphill(
            beta, move, float(gradient @ move), lambda there: log_likelihood_at(there) - penalty(there)
        )
    else:
        raise EstimationError("The single curve did not converge; check the metric for outliers.")
    log_likelihood = log_likelihood_at(beta)
    shared, own = shape.split(beta)
    return SingleCurve(shared, own, rho, factor, log_likelihood, log_likelihood - penalty(beta))
