"""Models of f = a * delta along the metric: smooth, anchored to an expert curve, and different from site to site.

`f(x, s) = shared(x) + deviation_s(x)`. The shared curve is a spline, or, with an anchor,

    shared(x) = offset + scale * f0(x; a) + spline(x),

where f0 turns the expert's suitability s(x) into log odds under the population: E[sigmoid(a theta - f0)] = s. Offset
and scale are free because an expert's score is not a success rate; the spline's whole departure is shrunk, so that
the anchor gives the shape where data are sparse. A site's deviation has a level, a tilt and bend, and a few rough
functions, each kind shrunk with a precision that all sites share.

With fewer than `FEW_SITES` sites a variance between them cannot be known: levels are all but free, the shared curve is
the mean of the sites', and the deviations count among the shared coefficients. With more, they are the sites' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isuit.domain import FloatArray, IntArray

from .anchor import Anchor
from .basis import Spline
from .design import NO_PLACE, Design, Rows
from .slopes import SlopeRows, Slopes, Steepness, relative
from .smoothing import FREE, WEAK
from .surface import Surface

FEW_SITES = 5  # a variance between sites needs about this many; with fewer, levels are all but free
# Outcomes per site from which a site's deviation has a tilt and bend, and from which it is rough: below, shrinkage
# would take the function away again, at the cost of a parameter for every site.
TILT_OUTCOMES, ROUGH_OUTCOMES = 20, 200
# Coefficients of sites from which their precisions are known so well that outcomes kept back would not move them.
MANY_COEFFICIENTS = 1_000


@dataclass(frozen=True)
class Curve:
    """f at each item, its design, and its derivative with respect to the discrimination.

    `by_a` is zero unless an anchor curve, which depends on the discrimination, is part of f. `steepness` is None where
    the discrimination is the same at every item.
    """

    value: FloatArray
    design: Design
    by_a: FloatArray
    steepness: Steepness | None = None

    @property
    def steepest(self) -> float:
        """The largest discrimination of an item, over that of the fit."""
        return 1.0 if self.steepness is None else float(self.steepness.relative.max())


@dataclass(frozen=True)
class CurveSpace:
    """The functions that f is built from: evaluates designs at any metric and site."""

    spline: Spline | Surface
    sites: int
    anchor: Anchor | None = None
    site_size: int | None = None  # functions of a site's deviation; None: all of them
    origin: int | None = None  # the clientele that others are told apart from; None: the largest
    slopes: Slopes | None = None  # of a discrimination that changes with conditions

    @classmethod
    def for_outcomes(
        cls, outcomes: int, spline: Spline | Surface, sites: int, anchor: Anchor | None = None
    ) -> CurveSpace:
        """As rich a deviation per site as so many outcomes can tell."""
        per_site = outcomes / sites if sites else 0
        size = 1 if per_site < TILT_OUTCOMES else spline.free if per_site < ROUGH_OUTCOMES else None
        return cls(spline, sites, anchor, size if sites else None)

    @property
    def places(self) -> int:
        """Sites that have coefficients of their own."""
        return self.sites if self.sites >= FEW_SITES else 0

    @property
    def width(self) -> int:
        """Coefficients of a site's deviation."""
        return len(self._own[1])

    @property
    def smooths_parts_alike(self) -> bool:
        """Whether places are so many that a fit of a part of the outcomes keeps the smoothing of all."""
        return self.places * self.width >= MANY_COEFFICIENTS

    @cached_property
    def _own(self) -> tuple[FloatArray, list[int]]:
        """Raw functions x functions of a site's deviation, and the kind of each."""
        functions, kinds = self.spline.deviation(self.site_size)
        return (functions, kinds) if self.sites else (functions[:, :0], [])

    def groups(self) -> tuple[IntArray, IntArray]:
        """Which coefficients share a precision: of the shared ones, and of a place's own ones."""
        shared = self.spline.groups()
        if self.anchor is not None:
            # Offset and scale of the anchor are free, tilt and bend away from it are shrunk.
            free = self.spline.free
            shared = [FREE, FREE] + [1] * (free - 1) + shared[free:]
        if not self.sites:
            return _renumbered(shared), np.zeros(0, np.int64)
        first, kinds = max(shared) + 1, self._own[1]
        # The level comes first, and its kind is the last.
        own = [WEAK if k == 0 and not self.places else first + kind for k, kind in enumerate(kinds)]
        if not self.places:
            return _renumbered(shared + own * self.sites), np.zeros(0, np.int64)
        both = _renumbered(shared + own)
        return both[: len(shared)], both[len(shared) :]

    def flat_groups(self) -> IntArray:
        """The same of all coefficients one after the other."""
        shared, own = self.groups()
        return np.concatenate([shared, np.tile(own, self.places)])

    def split(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients one after the other, as a record keeps them, into shared ones and places x own ones."""
        cut = coefficients.size - self.places * self.width
        return coefficients[:cut], coefficients[cut:].reshape(self.places, self.width if self.places else 0)

    def design(self, metric: FloatArray, site: IntArray, a: float, derivative: int = 0) -> Design:
        """The design at these metrics and sites (`NO_SITE`: the shared curve), or its derivative along the metric.

        Raw functions are the B-splines, then the anchor, then, of few sites, their deviations.
        """
        index, value = self.spline.raw_rows(metric, derivative)
        splines, dense = self.spline.size, self.spline.in_raw
        raw, shared = splines, dense
        if self.anchor is not None:
            f0 = self.anchor.log_odds(metric, a)[0] if derivative == 0 else self.anchor.slope(metric, a)
            index = np.column_stack([index, np.full(len(metric), raw)])
            value = np.column_stack([value, f0])
            shared = np.zeros((raw + 1, dense.shape[1] + 1))
            shared[:raw, 0], shared[:raw, 2:], shared[raw, 1] = dense[:, 0], dense[:, 1:], 1.0
            raw += 1
        if self.places or not self.sites:
            own = np.zeros((raw, self.width))
            own[:splines] = self._own[0]
            place = np.asarray(site, dtype=np.int64) if self.places else np.full(len(metric), NO_PLACE)
            return Design(Rows(index.astype(np.int32), value, place, own), shared, self.places)
        first, width = raw, self.width
        shared = np.block(
            [
                [shared, np.zeros((raw, self.sites * width))],
                [np.zeros((self.sites * width, shared.shape[1])), np.eye(self.sites * width)],
            ]
        )
        here = np.asarray(site, dtype=np.int64)
        functions = _dense(index, value, raw)[:, :splines] @ self._own[0]
        # Levels that are all but free leave the shared level to chance: the shared curve is the mean of the sites'.
        count = self.sites if np.any(here < 0) else 1
        block = np.where((here < 0)[:, None], np.arange(count), np.where(np.arange(count) == 0, here[:, None], 0))
        weight = np.where((here < 0)[:, None], 1.0 / self.sites, np.where(np.arange(count) == 0, 1.0, 0.0))
        index = np.hstack([index, (first + block[:, :, None] * width + np.arange(width)).reshape(len(metric), -1)])
        value = np.hstack([value, (weight[:, :, None] * functions[:, None, :]).reshape(len(metric), -1)])
        rows = Rows(index.astype(np.int32), value, np.full(len(metric), NO_PLACE), np.zeros((shared.shape[0], 0)))
        return Design(rows, shared, 0)


def _dense(index: IntArray, value: FloatArray, raw: int) -> FloatArray:
    rows = np.zeros((len(index), raw))
    np.add.at(rows, (np.arange(len(index))[:, None], index), value)
    return rows


def _renumbered(groups: list[int]) -> IntArray:
    """Groups as 0, 1, 2, ... without gaps; those below zero stay."""
    present = sorted({g for g in groups if g >= 0})
    return np.array([present.index(g) if g >= 0 else g for g in groups], dtype=np.int64)


@dataclass(frozen=True)
class ItemCurve:
    """f at a cohort's items. Without an anchor it is linear in its coefficients and does not depend on a."""

    space: CurveSpace
    metric: FloatArray
    plain: Design  # the design for a = 1; only the anchor's column depends on a

    @classmethod
    def of(cls, space: CurveSpace, metric: FloatArray, site: IntArray) -> ItemCurve:
        plain = space.design(metric, site, 1.0)
        return cls(space, metric, plain if space.slopes is None else space.slopes.beside(plain))

    @property
    def slopes(self) -> int:
        """Coefficients of the discrimination's change, the last of the shared ones."""
        return 0 if self.space.slopes is None else self.space.slopes.size

    @cached_property
    def slope_rows(self) -> SlopeRows:
        assert self.space.slopes is not None
        return self.space.slopes.rows(self.metric)

    def at(self, a: float, shared: FloatArray, own: FloatArray, slopes: FloatArray | None = None) -> Curve:
        """f, and the discrimination where it changes: with `slopes`, its coefficients."""
        anchor = self.space.anchor
        if self.space.slopes is not None:
            assert anchor is None
            assert slopes is not None
            value = self.plain.apply(np.concatenate([shared, slopes]), own)
            steepness = Steepness(relative(self.slope_rows.columns, slopes), self.slope_rows)
            return Curve(value, self.plain, np.zeros(len(self.metric)), steepness)
        if anchor is None:
            return Curve(self.plain.apply(shared, own), self.plain, np.zeros(len(self.metric)))
        f0, first, _ = anchor.log_odds(self.metric, a)
        assert isinstance(self.space.spline, Spline)
        rows, column = self.plain.rows, self.space.spline.degree + 1
        value = rows.value.copy()
        value[:, column] = f0
        design = Design(rows._replace(value=value), self.plain.shared, self.plain.places)
        return Curve(design.apply(shared, own), design, shared[1] * first)

    def curvature(self, a: float, shared: FloatArray, residual: FloatArray) -> tuple[float, float]:
        """What the second derivatives of f add to the information: of a, and of a with the anchor's scale."""
        if self.space.anchor is None:
            return 0.0, 0.0
        _, first, second = self.space.anchor.log_odds(self.metric, a)
        return float(shared[1] * (residual @ second)), float(residual @ first)
