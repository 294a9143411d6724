"""Models of f = a * delta along the metric: smooth, anchored to an expert curve, and different from site to site.

`f(x, s) = shared(x) + deviation_s(x)`. The shared curve is a spline, or, with an anchor,

    shared(x) = offset + scale * f0(x; a) + spline(x),

where f0 turns the expert's suitability s(x) into log odds under the population: E[sigmoid(a theta - f0)] = s. Offset
and scale are free because an expert's score is not a success rate; the spline's whole departure is shrunk, so that
the anchor gives the shape where data are sparse. A site's deviation has a level, a tilt and bend, and a few rough
functions, each kind shrunk with a precision that all sites share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from isuit.domain import FloatArray, IntArray

from .anchor import Anchor
from .basis import Spline
from .design import Design, free_groups, local_columns
from .smoothing import FREE, WEAK

FEW_SITES = 5  # a variance between sites needs about this many; with fewer, levels are all but free
SITE_ROUGH = 4  # rough functions of a site's deviation
# Outcomes per site from which a site's deviation has a tilt and bend, and from which it is rough: below, shrinkage
# would take the function away again, at the cost of a parameter for every site.
TILT_OUTCOMES, ROUGH_OUTCOMES = 20, 200


@dataclass(frozen=True)
class Curve:
    """f at each item, its design, and its derivative with respect to the discrimination.

    `by_a` is zero unless an anchor curve, which depends on the discrimination, is part of f.
    """

    value: FloatArray
    design: Design
    by_a: FloatArray


@dataclass(frozen=True)
class CurveSpace:
    """The functions that f is built from: evaluates designs at any metric and site."""

    spline: Spline
    sites: int
    anchor: Anchor | None = None
    site_size: int | None = None  # functions of a site's deviation; None: all of them
    origin: int | None = None  # the clientele that others are told apart from; None: the largest

    @property
    def shared_size(self) -> int:
        return self.spline.size + (1 if self.anchor else 0)

    @classmethod
    def for_outcomes(cls, outcomes: int, spline: Spline, sites: int, anchor: Anchor | None = None) -> CurveSpace:
        """As rich a deviation per site as so many outcomes can tell."""
        per_site = outcomes / sites if sites else 0
        size = 1 if per_site < TILT_OUTCOMES else spline.free if per_site < ROUGH_OUTCOMES else None
        return cls(spline, sites, anchor, size if sites else None)

    @property
    def _polynomials(self) -> int:
        return self.spline.free if self.site_size is None else min(self.spline.free, self.site_size)

    @property
    def _rough(self) -> int:
        rough = min(SITE_ROUGH, self.spline.size - self.spline.free)
        return rough if self.site_size is None else max(0, min(rough, self.site_size - self.spline.free))

    def _shared_groups(self) -> list[int]:
        rough = [0] * (self.spline.size - self.spline.free)
        if self.anchor is None:
            return [FREE] * self.spline.free + rough
        # Offset and scale of the anchor are free, tilt and bend away from it are shrunk.
        return [FREE, FREE] + [1] * (self.spline.free - 1) + rough

    def _site_groups(self) -> list[int]:
        first = max(self._shared_groups()) + 1
        level = WEAK if self.sites < FEW_SITES else first + 2
        return [level] + [first] * (self._polynomials - 1) + [first + 1] * self._rough

    def design(self, metric: FloatArray, site: IntArray, a: float, derivative: int = 0) -> Design:
        """The design at these metrics and sites (`NO_SITE`: the shared curve), or its slope along the metric."""
        smooth = self.spline.smooth_design(metric, derivative)
        dense = smooth
        if self.anchor is not None:
            anchor = self.anchor.slope(metric, a) if derivative else self.anchor.log_odds(metric, a)[0]
            dense = np.column_stack([smooth[:, 0], anchor, smooth[:, 1:]])
        groups = np.array(self._shared_groups(), dtype=np.int64)
        if self.sites == 0:
            return Design(dense, None, _renumbered(groups))
        # The smoothest of the rough functions come last in the spline's order of eigenvalues.
        rough = smooth[:, smooth.shape[1] - self._rough :]
        values = np.hstack([smooth[:, : self._polynomials], rough])
        own = local_columns(values, site, self.sites)
        if self.sites < FEW_SITES:
            # Levels that are all but free leave the shared level to chance: the shared curve is the mean of the sites'.
            nowhere = np.where((site < 0)[:, None], values / self.sites, 0.0)
            own = own + csr_matrix(np.tile(nowhere, self.sites))
        site_groups = np.array(self._site_groups(), dtype=np.int64)
        return Design(dense, own, _renumbered(np.concatenate([groups, np.tile(site_groups, self.sites)])))


def _renumbered(groups: IntArray) -> IntArray:
    """Groups as 0, 1, 2, ... without gaps; FREE and WEAK stay."""
    present = np.unique(groups[groups >= 0])
    lookup = {int(g): k for k, g in enumerate(present)} | {FREE: FREE, WEAK: WEAK}
    return np.array([lookup[int(g)] for g in groups], dtype=np.int64)


@dataclass(frozen=True)
class ItemCurve:
    """f at a cohort's items. Without an anchor it is linear in its coefficients and does not depend on a."""

    space: CurveSpace
    metric: FloatArray
    plain: Design  # the design for a = 1; only the anchor's column depends on a

    @classmethod
    def of(cls, space: CurveSpace, metric: FloatArray, site: IntArray) -> ItemCurve:
        return cls(space, metric, space.design(metric, site, 1.0))

    def at(self, a: float, coefficients: FloatArray) -> Curve:
        anchor = self.space.anchor
        if anchor is None:
            return Curve(self.plain.apply(coefficients), self.plain, np.zeros(self.metric.size))
        f0, first, _ = anchor.log_odds(self.metric, a)
        dense = self.plain.dense.copy()
        dense[:, 1] = f0
        design = Design(dense, self.plain.local, self.plain.groups)
        return Curve(design.apply(coefficients), design, coefficients[1] * first)

    def curvature(self, a: float, coefficients: FloatArray, residual: FloatArray) -> FloatArray:
        """What the second derivatives of f add to the information of (a, coefficients)."""
        size = 1 + self.plain.size
        extra = np.zeros((size, size))
        if self.space.anchor is not None:
            _, first, second = self.space.anchor.log_odds(self.metric, a)
            extra[0, 0] = coefficients[1] * float(residual @ second)
            extra[0, 2] = extra[2, 0] = float(residual @ first)
        return extra


def plain_population(riders: int) -> Design:
    """Skill N(0, 1), without regressors."""
    return Design(np.zeros((riders, 0)), None, free_groups(0))
