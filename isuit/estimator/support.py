"""Where there were outcomes: a condition of several metrics is supported or not.

Each metric is cut into bins of equal numbers of outcomes. A condition is supported where every metric is within what
was observed and, for every pair of metrics, its two bins were met together by enough riders. Pairs, not all metrics at
once: a product of six metrics' bins is empty almost everywhere, also where nothing is missing.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FitConfig, FloatArray, Observations
from isuit.record.parameters import PairSupport, Support

from .model.order import order_statistics


def reference(conditions: tuple[FloatArray, ...]) -> tuple[float, ...]:
    """The median of each metric: what the others are held at where one is looked at alone."""
    return tuple(float(order_statistics(metric, np.array([metric.size // 2]))[0]) for metric in conditions)


def support_of(data: Observations, config: FitConfig) -> Support:
    """The bins of each metric, and of each pair which of them at least as many riders met as the gate asks of a bin."""
    edges, places = [], []
    for metric in data.conditions:
        ranks = np.arange(1, config.gate_bins) * metric.size // config.gate_bins
        inner = np.unique(order_statistics(metric, ranks))
        inner = inner[inner > metric.min()]
        edges.append(tuple(inner.tolist()))
        places.append(np.searchsorted(inner, metric, side="right"))
    pairs = []
    for j, k in combinations(range(len(places)), 2):
        shape = len(edges[j]) + 1, len(edges[k]) + 1
        cell = places[j] * shape[1] + places[k]
        met = np.unique(data.rider.astype(np.int64) * (shape[0] * shape[1]) + cell) % (shape[0] * shape[1])
        enough = np.bincount(met, minlength=shape[0] * shape[1]) >= config.min_riders_per_bin
        rows = tuple("".join("1" if yes else "0" for yes in row) for row in enough.reshape(shape).tolist())
        pairs.append(PairSupport(pair=(j, k), met=rows))
    ranges = tuple((float(metric.min()), float(metric.max())) for metric in data.conditions)
    return Support(ranges=ranges, edges=tuple(edges), pairs=tuple(pairs), reference=reference(data.conditions))


def is_supported(support: Support, condition: FloatArray) -> NDArray[np.bool_]:
    """Of each condition, a row with a value of every metric."""
    lower, upper = np.array(support.ranges).T
    inside = np.all((condition >= lower) & (condition <= upper), axis=1)
    place = [np.searchsorted(edges, condition[:, k], side="right") for k, edges in enumerate(support.edges)]
    for pair in support.pairs:
        met = np.array([[digit == "1" for digit in row] for row in pair.met])
        inside &= met[place[pair.pair[0]], place[pair.pair[1]]]
    return np.asarray(inside)
