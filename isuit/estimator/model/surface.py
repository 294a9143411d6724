"""Surfaces: f over several metrics as a sum of main effects and of interactions of pairs.

    f(x) = level + sum_k f_k(x_k) + sum_{j<k} f_jk(x_j, x_k)

A main effect is a spline along its metric, an interaction a tensor product of two coarser ones. All marginal functions
have mean zero over the cohort, so that the level is the mean, a main effect holds nothing of the level, and an
interaction, where metrics are independent, nothing of the main effects (analysis of variance of functions; Gu 2013,
"Smoothing Spline ANOVA Models"). Every term can shrink to nothing: its polynomials share one precision, its rough
functions another, and those of an interaction are divided by which of the two margins is rough.

An expert's curve of a metric is one more function of its main effect, free in scale: the log odds of the expert's
suitability. The main effect's own functions are shrunk, and so it is towards the expert's shape that it is shrunk.

A surface stands where a `Spline` does: raw functions, a matrix that makes coefficients of them, and groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from isuit.domain import FloatArray, IntArray

from .anchor import Anchor, anchor_of
from .basis import Spline, means_of, spline_for
from .smoothing import FREE

MAIN_INTERVALS = 12
# Intervals of a margin of an interaction, by the number of metrics: pairs grow with its square.
MARGIN_INTERVALS = {2: 5, 3: 3}
_FEW_INTERVALS = 1


@dataclass(frozen=True)
class Term:
    """A part of the surface: the metrics that it is a function of, and its coefficients among the shared ones."""

    metrics: tuple[int, ...]
    coefficients: IntArray


@dataclass(frozen=True)
class MetricAnchor:
    """An expert's curve of one of the metrics, as log odds of failing with mean zero over the cohort."""

    metric: int
    anchor: Anchor
    mean: float = 0.0

    def values(self, metric: FloatArray) -> FloatArray:
        suitability = self.anchor.suitability_at(metric[:, self.metric])
        return np.asarray(np.log1p(-suitability) - np.log(suitability) - self.mean)


@dataclass(frozen=True)
class Surface:
    """The functions of several metrics; a condition is a row with a value of each."""

    metrics: tuple[str, ...]
    splines: tuple[Spline, ...]
    margins: tuple[Spline, ...]
    spline_means: tuple[tuple[float, ...], ...]  # of each basis function over the cohort
    margin_means: tuple[tuple[float, ...], ...]
    anchors: tuple[MetricAnchor, ...] = ()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.splines)), 2))

    @property
    def size(self) -> int:
        """Raw functions."""
        margins = [spline.size for spline in self.margins]
        mains = sum(spline.size for spline in self.splines) + len(self.anchors)
        return mains + sum(margins[j] * margins[k] for j, k in self.pairs)

    @property
    def free(self) -> int:
        """The level and the polynomials of main effects, which come first."""
        return 1 + sum(spline.free - 1 for spline in self.splines)

    def raw_rows(self, metric: FloatArray, derivative: int = 0) -> tuple[IntArray, FloatArray]:
        """The raw functions that are not zero at each condition, as indices and values, a row each."""
        if derivative:
            raise NotImplementedError("a surface has no one derivative")
        indices, values, first = [], [], 0
        for k, spline in enumerate(self.splines):
            index, value = spline.raw_rows(metric[:, k])
            indices.append(first + index)
            values.append(value)
            first += spline.size
        margins = [spline.raw_rows(metric[:, k]) for k, spline in enumerate(self.margins)]
        for j, k in self.pairs:
            (one, by_one), (two, by_two) = margins[j], margins[k]
            size = self.margins[k].size
            indices.append((first + one[:, :, None] * size + two[:, None, :]).reshape(len(metric), -1))
            values.append((by_one[:, :, None] * by_two[:, None, :]).reshape(len(metric), -1))
            first += self.margins[j].size * size
        for anchor in self.anchors:
            indices.append(np.full((len(metric), 1), first))
            values.append(anchor.values(metric)[:, None])
            first += 1
        return np.hstack(indices), np.hstack(values)

    @cached_property
    def in_raw(self) -> FloatArray:
        """Coefficients as combinations of the raw functions, a column each: level, polynomials, rough functions of main
        effects, interactions, then the experts' curves."""
        total, columns_, first = self.size, [], 0
        level = np.zeros((total, 1))
        level[: self.splines[0].size] = 1.0  # the basis functions of a spline sum to one
        polynomials, rough = [], []
        for spline, mean in zip(self.splines, self.spline_means, strict=True):
            centred = _centred(spline, mean)
            polynomials.append(_embedded(centred[:, : spline.free - 1], first, total))
            rough.append(_embedded(centred[:, spline.free - 1 :], first, total))
            first += spline.size
        margins = [_centred(spline, mean) for spline, mean in zip(self.margins, self.margin_means, strict=True)]
        for j, k in self.pairs:
            columns_.append(_embedded(np.asarray(np.kron(margins[j], margins[k]), np.float64), first, total))
            first += len(margins[j]) * len(margins[k])
        for _ in self.anchors:
            columns_.append(_embedded(np.ones((1, 1)), first, total))
            first += 1
        return np.hstack([level, *polynomials, *rough, *columns_])

    def groups(self) -> list[int]:
        """Which coefficients share a precision."""
        count = len(self.splines)
        groups = [FREE]
        for k, spline in enumerate(self.splines):
            groups += [k] * (spline.free - 1)
        for k, spline in enumerate(self.splines):
            groups += [count + k] * (spline.size - spline.free)
        following = 2 * count
        for j, k in self.pairs:
            one, two = (np.arange(m.size - 1) >= m.free - 1 for m in (self.margins[j], self.margins[k]))
            kind = 2 * one[:, None] + two[None, :].astype(np.int64)
            groups += (following + kind).ravel().tolist()
            following += 4
        return groups + [FREE] * len(self.anchors)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Main effects, then interactions."""
        found, first, rough = [], 1, self.free
        for k, spline in enumerate(self.splines):
            after, end = first + spline.free - 1, rough + spline.size - spline.free
            found.append(Term((k,), np.concatenate([np.arange(first, after), np.arange(rough, end)])))
            first, rough = after, end
        for j, k in self.pairs:
            size = (self.margins[j].size - 1) * (self.margins[k].size - 1)
            found.append(Term((j, k), np.arange(rough, rough + size)))
            rough += size
        for place, anchor in enumerate(self.anchors):
            term = found[anchor.metric]
            found[anchor.metric] = Term(term.metrics, np.append(term.coefficients, rough + place))
        return tuple(found)

    def deviation(self, size: int | None) -> tuple[FloatArray, list[int]]:
        """Functions of a site's deviation, raw functions x functions, and the kind of each: tilts of each metric, and
        the level as the last kind. With a size of one, the level alone."""
        last = len(self.splines)
        functions, kinds = self.in_raw[:, :1], [last]
        if size == 1:
            return functions, kinds
        for k, spline in enumerate(self.splines):
            kinds += [k] * (spline.free - 1)
        return np.hstack([functions, self.in_raw[:, 1 : self.free]]), kinds

    def exposure_design(self, metric: FloatArray) -> tuple[FloatArray, int]:
        """Functions of where riders go: of each metric the polynomials, and then the rough functions of its margin."""
        polynomials, rough = [], []
        for k, (spline, mean) in enumerate(zip(self.margins, self.margin_means, strict=True)):
            values = spline.design(metric[:, k]) @ _centred(spline, mean)
            polynomials.append(values[:, : spline.free - 1])
            rough.append(values[:, spline.free - 1 :])
        return np.hstack([*polynomials, *rough]), sum(part.shape[1] for part in polynomials)


def _centred(spline: Spline, mean: tuple[float, ...]) -> FloatArray:
    """The spline's functions but the constant, each with mean zero, in its basis functions."""
    functions = spline.in_raw[:, 1:]
    return np.asarray(functions - np.asarray(mean) @ functions)


def _embedded(block: FloatArray, first: int, total: int) -> FloatArray:
    result = np.zeros((total, block.shape[1]))
    result[first : first + len(block)] = block
    return result


Points = tuple[tuple[float, float], ...]


def surface_for(
    metrics: tuple[str, ...], conditions: tuple[FloatArray, ...], anchors: tuple[tuple[str, Points], ...] = ()
) -> Surface:
    """The surface for these columns, one for each metric, with the experts' curves of some."""
    intervals = MARGIN_INTERVALS.get(len(conditions), _FEW_INTERVALS)
    splines = tuple(spline_for(metric, MAIN_INTERVALS) for metric in conditions)
    margins = tuple(spline_for(metric, intervals) for metric in conditions)
    return Surface(
        metrics,
        splines,
        margins,
        tuple(means_of(spline, metric) for spline, metric in zip(splines, conditions, strict=True)),
        tuple(means_of(spline, metric) for spline, metric in zip(margins, conditions, strict=True)),
        tuple(_anchored(metrics.index(name), points, splines, conditions) for name, points in anchors),
    )


def _anchored(
    place: int, points: Points, splines: tuple[Spline, ...], conditions: tuple[FloatArray, ...]
) -> MetricAnchor:
    anchor = anchor_of(points, splines[place])
    assert anchor is not None
    found = MetricAnchor(place, anchor)
    ordered = np.zeros((conditions[place].size, place + 1))
    ordered[:, place] = np.sort(conditions[place])
    return MetricAnchor(place, anchor, float(found.values(ordered).mean()))
