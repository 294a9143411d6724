"""Scores of asymptotes: a chance of success that no difficulty takes away, and one of failure that no skill does.

With P = c + (1 - c - l) p the scores of c and l at zero are (y - p) / p and (p - y) / (1 - p). One success against all
odds would decide the first, so both are softened: (y - p) / (p + s) and (p - y) / (1 - p + s), the scores of asymptotes
that fade where p is within s of its end. A rider's skill is integrated over their posterior.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isuit.compiled import compiled
from isuit.domain import FloatArray

from . import kernels
from .quadrature import Posterior

SOFTNESS = 0.02
_settle: Any = kernels._settle


@compiled
def _scores(begin, end, counts, curve, a, prior_mean, prior, window, table, work, successes, softness, scores):
    """Each rider's two scores, from the expectations of 1 / (p + s) and 1 / (1 - p + s) at each of their items."""
    for rider in range(begin, end):
        _, _, points, _, _, _, where, _ = _settle(rider, counts, curve, a, prior_mean, prior, window, table, work)
        first = counts.entries[rider]
        lower, upper = 0.0, 0.0
        for e in range(first, counts.entries[rider + 1]):
            at, n, k = work.row[e - first], counts.trials[e], successes[e]
            low, high = 0.0, 0.0
            for q in range(points):
                p = where[at + q]
                low += work.weight[q] / (p + softness)
                high += work.weight[q] / (1.0 - p + softness)
            lower += (k + n * softness) * low - n
            upper += (n - k + n * softness) * high - n
        scores[rider, 0], scores[rider, 1] = lower, upper


def asymptote_scores(posterior: Posterior, softness: float = SOFTNESS) -> FloatArray:
    """Scores of a lower and of an upper asymptote, riders x 2; their sums are chance where there are none."""
    scores = np.zeros((posterior.mean.size, 2))
    successes = np.ascontiguousarray(posterior.likelihood.counts.successes.data, np.float64)
    posterior.over(_scores, successes, softness, scores)
    return scores
