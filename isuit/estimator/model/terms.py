"""What each term of a surface does: how large it is, whether it could be nothing, and what the others explain of it.

A term's values at the outcomes are tested against zero by the reduced-rank Wald statistic of penalised terms (Wood
2013, "On p-values for smooth components of an extended generalized additive model"): the values' covariance is
Bayesian, and only as many of its directions count as the term has effective degrees of freedom. A term that shrinkage
took away has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from isuit.domain import FloatArray

from .design import Design
from .surface import Surface, Term

NOTHING = 0.1  # effective degrees of freedom below which shrinkage has taken a term away
LEVEL = 0.05  # of the test by which a term is told to be zero


@dataclass(frozen=True)
class TermEffect:
    """One term at the outcomes' conditions."""

    metrics: tuple[int, ...]
    sd: float  # of f over the outcomes
    degrees_of_freedom: float
    p_value: float
    explained: float  # share of its variance that the other terms explain, as functions of the same conditions

    @property
    def is_zero(self) -> bool:
        return self.p_value >= LEVEL


def term_effects(
    surface: Surface,
    design: Design,
    weight: FloatArray,
    shared: FloatArray,
    covariance: FloatArray,
    degrees_of_freedom: FloatArray,
) -> tuple[TermEffect, ...]:
    """Every term: its design at the items, with their numbers of outcomes as weights, and the shared coefficients with
    their covariance and effective degrees of freedom, one each."""
    root = np.sqrt(weight / weight.sum())[:, None]
    columns = design.columns()[:, : surface.in_raw.shape[1]] * root
    triangle: FloatArray = np.asarray(np.linalg.qr(columns, mode="r"))
    found = []
    for term in surface.terms:
        of_term = triangle[:, term.coefficients]
        values = of_term @ shared[term.coefficients]
        spread = of_term @ covariance[np.ix_(term.coefficients, term.coefficients)] @ of_term.T
        freedom = float(degrees_of_freedom[term.coefficients].sum())
        found.append(
            TermEffect(
                term.metrics,
                float(np.sqrt(values @ values)),
                freedom,
                _p_value(values, spread, freedom),
                _explained(triangle, term, surface),
            )
        )
    return tuple(found)


def _p_value(values: FloatArray, spread: FloatArray, freedom: float) -> float:
    if freedom < NOTHING:
        return 1.0
    sizes, directions = np.linalg.eigh(spread)
    rank = max(1, round(freedom))
    largest = np.argsort(-sizes)[:rank]
    largest = largest[sizes[largest] > 1e-12 * sizes.max()]
    along = directions[:, largest].T @ values
    return float(chdtrc(largest.size, float(np.sum(along**2 / sizes[largest]))))


def _explained(triangle: FloatArray, term: Term, surface: Surface) -> float:
    """The share of the variance of this term's functions that the other terms can take over (concurvity): of a main
    effect's that of the other main effects, of an interaction's that of everything else."""
    alike = [other for other in surface.terms if len(other.metrics) <= len(term.metrics) and other is not term]
    if not alike:
        return 0.0
    others = np.concatenate([[0], *(other.coefficients for other in alike)])
    basis = np.linalg.qr(triangle[:, others])[0]
    own = triangle[:, term.coefficients]
    total = float(np.sum(own**2))
    return float(np.sum((basis.T @ own) ** 2) / total) if total > 0 else 1.0
