"""The identification gate: can skill and difficulty be told apart in this cohort at all?

Riders and metric bins form a graph, with an edge where a rider was observed in a bin. `strict` asks of every rider and
every bin what the paper asks; `core` prunes riders and bins that fall short until nothing changes, and asks that what
is left is connected and holds at least half of the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from isuit.columns import rider_slices
from isuit.domain import CodeArray, FitConfig, FloatArray, GateReport, IntArray

from .model.components import components
from .model.order import order_statistics

CORE_SHARE = 0.5


@dataclass(frozen=True)
class Incidence:
    """How many outcomes each rider has in each metric bin."""

    outcomes: CodeArray  # riders x bins
    lower: FloatArray  # smallest metric in each bin
    upper: FloatArray  # largest

    @property
    def seen(self) -> NDArray[np.bool_]:
        return self.outcomes > 0

    @property
    def bins_of_rider(self) -> IntArray:
        return np.asarray(self.seen.sum(axis=1))

    def coverage(self, riders: NDArray[np.bool_]) -> Coverage:
        return Coverage(self.outcomes.sum(axis=1)[riders], self.bins_of_rider[riders])


@dataclass(frozen=True)
class Coverage:
    """How many outcomes some riders have, and in how many bins."""

    outcomes: IntArray
    bins: IntArray


@dataclass(frozen=True)
class Gate:
    """The report, and which riders are in the core: they get a skill."""

    report: GateReport
    core: NDArray[np.bool_]
    between: tuple[bool, ...] = ()  # of several metrics, which are told by comparing riders (`only_between`)


def incidence(rider: CodeArray, metric: FloatArray, riders: int, bins: int) -> Incidence:
    """How many outcomes each rider has in each of `bins` equal-count bins of the metric.

    Outcomes with the same metric are never divided between bins, so there can be fewer bins than asked for.
    """
    ranks = np.arange(1, bins) * metric.size // bins
    edges = np.unique(order_statistics(metric, ranks)) if metric.size else np.zeros(0)
    size = edges.size + 1
    outcomes = np.zeros((riders, size), dtype=np.int32)
    lower, upper = np.full(size, np.inf), np.full(size, -np.inf)
    for part in rider_slices(rider):
        first, after = int(rider[part].min()), int(rider[part].max()) + 1
        place = np.searchsorted(edges, metric[part], side="right")
        pair = (rider[part].astype(np.int64) - first) * size + place
        outcomes[first:after] = np.bincount(pair, minlength=(after - first) * size).reshape(-1, size)
        np.minimum.at(lower, place, metric[part])
        np.maximum.at(upper, place, metric[part])
    present = lower <= upper
    return Incidence(outcomes[:, present], lower[present], upper[present])


def check(graph: Incidence, config: FitConfig) -> Gate:
    """Apply the reading that the configuration asks for; every shortfall is listed."""
    seen = graph.seen
    riders, bins = seen.shape
    core_riders, core_bins = _core(seen, config.min_bins_per_rider, config.min_riders_per_bin)
    share = float(graph.outcomes[core_riders][:, core_bins].sum() / max(1, graph.outcomes.sum()))
    if config.gate == "strict":
        shortfalls = _strict_shortfalls(graph, config)
        members = np.ones(riders, dtype=bool)
    else:
        shortfalls = _core_shortfalls(graph, config, core_riders, core_bins, share)
        members = core_riders
    report = GateReport(
        ok=not shortfalls,
        reading=config.gate,
        shortfalls=tuple(shortfalls),
        core_share=share,
        core_riders=int(core_riders.sum()),
        riders=riders,
        bins=bins,
    )
    return Gate(report, members)


def check_each(graphs: list[Incidence], names: tuple[str, ...], config: FitConfig) -> Gate:
    """The gate of several metrics: all must pass, and the core is who is in the core of each.

    Skill is told apart from difficulty by riders who move along some metric. So one metric at least must pass as a
    single one would; of another, such as the body weight of a lifter, the core's reading asks only that enough riders
    met each of its bins, because its effect can be told by comparing riders (`only_between` says what it then means).
    The strict reading asks all of every metric. A metric with few levels has few bins: of these a rider needs all but
    one, at most.
    """
    gates = [check(graph, _asked(graph, config)) for graph in graphs]
    between = only_between(graphs, config)
    if config.gate == "core" and not all(between):
        gates = [
            _check_between(graph, config) if apart else gate
            for graph, gate, apart in zip(graphs, gates, between, strict=True)
        ]
    reports = [gate.report for gate in gates]
    core = np.logical_and.reduce([gate.core for gate in gates])
    report = GateReport(
        ok=all(reports),
        reading=config.gate,
        shortfalls=tuple(
            f"{name}: {shortfall}" for name, one in zip(names, reports, strict=True) for shortfall in one.shortfalls
        ),
        core_share=min(one.core_share for one in reports),
        core_riders=int(core.sum()),
        riders=reports[0].riders,
        bins=max(one.bins for one in reports),
    )
    return Gate(report, core, between)


def only_between(graphs: list[Incidence], config: FitConfig) -> tuple[bool, ...]:
    """Of each metric whether its effect is told by comparing riders: too few move along it for a gate of its own.

    Such an effect cannot be told from a difference in skill between those who meet one end of the metric and those who
    meet the other. With independent exposure the model says that there is no such difference, and the effect has both.
    """
    return tuple(not check(graph, replace(_asked(graph, config), gate="core")).report.ok for graph in graphs)


def _check_between(graph: Incidence, config: FitConfig) -> Gate:
    """The gate of a metric whose effect is told by comparing riders: enough riders in the bins that hold most
    outcomes.

    That riders connect its bins is not asked: whoever meets one bin alone connects none, but does so in other metrics.
    """
    riders, bins = _core(graph.seen, 1, config.min_riders_per_bin)
    share = float(graph.outcomes[riders][:, bins].sum() / max(1, graph.outcomes.sum()))
    shortfalls = () if share >= CORE_SHARE else tuple(_thin_bins(graph, config, np.ones(riders.size, dtype=bool)))
    return Gate(
        GateReport(not shortfalls, config.gate, shortfalls, share, int(riders.sum()), riders.size, bins.size), riders
    )


def _asked(graph: Incidence, config: FitConfig) -> FitConfig:
    return replace(config, min_bins_per_rider=min(config.min_bins_per_rider, max(1, graph.seen.shape[1] - 1)))


def _core(seen: NDArray[np.bool_], least_bins: int, least_riders: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    riders = np.ones(seen.shape[0], dtype=bool)
    bins = np.ones(seen.shape[1], dtype=bool)
    while True:
        fewer_riders = riders & (seen[:, bins].sum(axis=1) >= least_bins)
        fewer_bins = bins & (seen[fewer_riders].sum(axis=0) >= least_riders)
        if np.array_equal(fewer_riders, riders) and np.array_equal(fewer_bins, bins):
            return riders, bins
        riders, bins = fewer_riders, fewer_bins


def _strict_shortfalls(graph: Incidence, config: FitConfig) -> list[str]:
    found = _thin_bins(graph, config, np.ones(graph.seen.shape[0], dtype=bool))
    thin = int(np.count_nonzero(graph.bins_of_rider < config.min_bins_per_rider))
    if thin:
        found.insert(
            0,
            f"{thin} of {graph.seen.shape[0]} riders were observed in fewer than {config.min_bins_per_rider} of the "
            f"{graph.seen.shape[1]} metric bins",
        )
    parts = components(csr_matrix(graph.seen))[0]
    if parts > 1:
        found.append(f"the graph of riders and metric bins falls into {parts} unconnected parts")
    return found


def _core_shortfalls(
    graph: Incidence,
    config: FitConfig,
    riders: NDArray[np.bool_],
    bins: NDArray[np.bool_],
    share: float,
) -> list[str]:
    if not riders.any() or not bins.any():
        return [
            f"no core is left: no group of riders shares metric bins so that each rider has "
            f"{config.min_bins_per_rider} bins and each bin {config.min_riders_per_bin} riders",
            *_strict_shortfalls(graph, config),
        ]
    found = []
    parts = components(csr_matrix(graph.seen[riders][:, bins]))[0]
    if parts > 1:
        found.append(f"the core of riders and metric bins falls into {parts} unconnected parts")
    if share < CORE_SHARE:
        found.append(f"the core holds {share:.0%} of the outcomes, less than {CORE_SHARE:.0%}")
    return found + (_strict_shortfalls(graph, config) if found else [])


def _thin_bins(graph: Incidence, config: FitConfig, riders: NDArray[np.bool_]) -> list[str]:
    counts = graph.seen[riders].sum(axis=0)
    return [
        f"the metric bin from {graph.lower[b]:.6g} to {graph.upper[b]:.6g} has {int(counts[b])} riders, fewer than "
        f"{config.min_riders_per_bin}"
        for b in np.flatnonzero(counts < config.min_riders_per_bin)
    ]
