"""Where there were outcomes: a condition of several metrics is supported or not.

Each metric is cut twice, into bins of equal numbers of outcomes and into bins of equal width. A condition is supported
where every metric is within what was observed and, for every pair of metrics, its two bins of either kind were met
together by enough riders: the first kind is fine where outcomes crowd, the second where they are few, so that the last
bins of two metrics do not stand for the corner beyond them. Pairs, not all metrics at once: a product of six metrics'
bins is empty almost everywhere, also where nothing is missing.
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
    equal, wide = [], []
    for metric in data.conditions:
        ranks = np.arange(1, config.gate_bins) * metric.size // config.gate_bins
        inner = np.unique(order_statistics(metric, ranks))
        equal.append(inner[inner > metric.min()])
        bins = min(config.gate_bins, np.unique(metric).size)  # of a few levels, each has a bin
        wide.append(np.linspace(metric.min(), metric.max(), bins + 1)[1:-1])
    return Support(
        ranges=tuple((float(metric.min()), float(metric.max())) for metric in data.conditions),
        edges=tuple(tuple(edges.tolist()) for edges in equal),
        pairs=_met(data, equal, config.min_riders_per_bin),
        reference=reference(data.conditions),
        wide_edges=tuple(tuple(edges.tolist()) for edges in wide),
        wide_pairs=_met(data, wide, config.min_riders_per_bin),
    )


def _met(data: Observations, edges: list[FloatArray], least: int) -> tuple[PairSupport, ...]:
    """Of each pair of metrics, the bins that so many riders met together."""
    places = [
        np.searchsorted(inner, metric, side="right") for inner, metric in zip(edges, data.conditions, strict=True)
    ]
    pairs = []
    for j, k in combinations(range(len(places)), 2):
        shape = len(edges[j]) + 1, len(edges[k]) + 1
        cell = places[j] * shape[1] + places[k]
        met = np.unique(data.rider.astype(np.int64) * (shape[0] * shape[1]) + cell) % (shape[0] * shape[1])
        enough = np.bincount(met, minlength=shape[0] * shape[1]) >= least
        rows = tuple("".join("1" if yes else "0" for yes in row) for row in enough.reshape(shape).tolist())
        pairs.append(PairSupport(pair=(j, k), met=rows))
    return tuple(pairs)


def is_supported(support: Support, condition: FloatArray) -> NDArray[np.bool_]:
    """Of each condition, a row with a value of every metric."""
    lower, upper = np.array(support.ranges).T
    inside = np.all((condition >= lower) & (condition <= upper), axis=1)
    for edges, pairs in ((support.edges, support.pairs), (support.wide_edges, support.wide_pairs)):
        place = [np.searchsorted(inner, condition[:, k], side="right") for k, inner in enumerate(edges)]
        for pair in pairs:
            met = np.array([[digit == "1" for digit in row] for row in pair.met])
            inside &= met[place[pair.pair[0]], place[pair.pair[1]]]
    return np.asarray(inside)
