"""How strongly to smooth, chosen by approximate marginal likelihood.

Every penalised coefficient belongs to a group that shares one precision, as in a mixed model. Around the current
estimate the log-likelihood is taken as quadratic with information H; integrating the coefficients out of it gives

    V(rho) = b' A^-1 b / 2 - log|A| / 2 + sum_m n_m rho_m / 2,    A = H + diag(exp(rho[group])),

with b = H phi + gradient, and rho maximises it (Laplace; Wood 2011, "Fast stable restricted maximum likelihood").
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from isuit.domain import FloatArray, IntArray

FREE = -1  # group of a coefficient that is not penalised
WEAK = -2  # group of coefficients with a precision too small to move them: it only makes them sum to about zero
_WEAK_PRECISION = 1e-2
# Precisions that can be told apart: below, the data decide alone; above, the group is zero to any digit shown.
LOWEST, HIGHEST = -12.0, 25.0
STEP = 0.01  # log precisions are whole multiples of this, so that the last bits of a sum cannot move an estimate


def precisions(rho: FloatArray, groups: IntArray) -> FloatArray:
    """The precision of each coefficient; zero where it is free."""
    padded = np.concatenate([np.exp(rho), [_WEAK_PRECISION, 0.0]])  # WEAK and FREE pick from the end
    return np.asarray(padded[groups])


def choose(information: FloatArray, b: FloatArray, groups: IntArray, start: FloatArray) -> FloatArray:
    """The log precisions that maximise V, rounded to `STEP`."""
    if start.size == 0:
        return start
    members = np.array([np.count_nonzero(groups == m) for m in range(start.size)])

    def negative(rho: FloatArray) -> tuple[float, FloatArray]:
        weight = precisions(rho, groups)
        factor = cho_factor(information + np.diag(weight), lower=True)
        x = cho_solve(factor, b)
        inverse = cho_solve(factor, np.eye(b.size))
        spread = weight * (np.diag(inverse) + x * x)
        by_group = np.array([spread[groups == m].sum() for m in range(rho.size)])
        value = 0.5 * float(b @ x) - float(np.log(np.diag(factor[0])).sum()) + 0.5 * float(members @ rho)
        return -value, -0.5 * (members - by_group)

    found = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=[(LOWEST, HIGHEST)] * start.size,
        options={"ftol": 1e-13, "gtol": 1e-8},
    )  # fmt: skip
    return np.asarray(np.round(found.x / STEP) * STEP)
