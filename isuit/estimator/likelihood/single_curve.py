"""The single suitability curve: a smooth logistic regression on the metric that knows nothing of riders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from isuit.domain import FloatArray
from isuit.errors import EstimationError

from ..model import cholesky
from ..model.design import Design
from ..model.smoothing import choose, precisions
from . import newton, threads

TOLERANCE = 1e-9  # of the gradient, in standard errors
_MOST_CHOICES = 40  # of the smoothing: between two neighbouring values it can alternate for ever


@dataclass(frozen=True)
class SingleCurve:
    """-f, the log odds of success, as coefficients; the same design and penalty as the latent fit's curve."""

    coefficients: FloatArray  # of f, so that suitability = sigmoid(-f)
    rho: FloatArray
    covariance: FloatArray
    log_likelihood: float
    penalised: float

    def suitability(self, design: Design) -> FloatArray:
        return np.asarray(expit(-design.apply(self.coefficients)))


@threads.one_thread()
def fit_single_curve(
    design: Design,
    trials: FloatArray,
    successes: FloatArray,
    rho: FloatArray | None = None,
    start: SingleCurve | None = None,
) -> SingleCurve:
    """Penalised logistic regression; smoothing chosen by marginal likelihood unless `rho` is given.

    A start is for a given smoothing only: on the way from another curve the choice can end elsewhere.
    """
    groups = design.groups
    fixed = rho is not None
    count = int(groups.max()) + 1 if groups.size else 0
    rho = np.zeros(count) if rho is None else rho
    # Half a success and half a failure: the start is finite when all outcomes are equal.
    share = (successes.sum() + 0.5) / (trials.sum() + 1.0)
    beta = np.zeros(design.size)
    beta[0] = -np.log(share / (1 - share))
    if start is not None:
        beta = start.coefficients
    # Outcomes that a condition separates wholly (all fail above 30 knots) have no finite maximum in the free
    # polynomials; a ridge worth a thousandth of an outcome keeps the curve finite and moves nothing else.
    floor = np.where(groups < 0, 1e-3, 0.0)
    floor[0] = 1e-6
    ridge = precisions(rho, groups)

    def log_likelihood_at(beta: FloatArray) -> float:
        eta = design.apply(beta)
        return float(-(successes @ np.logaddexp(0, eta)) - (trials - successes) @ np.logaddexp(0, -eta))

    def penalty(beta: FloatArray) -> float:
        return 0.5 * float((ridge + floor) @ beta**2)

    settled = 0
    for step in range(200):
        p = expit(-(design.apply(beta)))
        weight = trials * p * (1 - p)
        information = design.gram(weight) + np.diag(floor)
        score = -design.pull_back(successes - trials * p) - floor * beta
        choosing = not fixed and settled < 2 and step < _MOST_CHOICES
        if choosing:
            chosen = choose(information, information @ beta + score, groups, rho)
            settled = settled + 1 if np.array_equal(chosen, rho) else 0
            rho = chosen
        ridge = precisions(rho, groups)
        gradient = score - ridge * beta
        factor = cholesky.factor(information + np.diag(ridge))
        move = cholesky.solve(factor, gradient)
        if not choosing and np.sqrt(max(float(gradient @ move), 0.0)) < TOLERANCE:
            break
        gain = float(gradient @ move)
        beta = newton.uphill(beta, move, gain, lambda there: log_likelihood_at(there) - penalty(there))
    else:
        raise EstimationError("The single curve did not converge; check the metric for outliers.")
    log_likelihood = log_likelihood_at(beta)
    covariance = cholesky.inverse(factor)
    return SingleCurve(beta, rho, covariance, log_likelihood, log_likelihood - penalty(beta))
