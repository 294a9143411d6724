"""A cohort ready to be fitted: its outcomes counted, and the space that its curves live in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from isuit.domain import FloatArray, IntArray

from ..model.counts import Counts
from ..model.curves import CurveSpace
from ..model.design import Design
from .single_curve import SingleCurve, fit_single_curve


@dataclass(frozen=True)
class Prepared:
    """Counts and the space of curves; the single curve of the two is fitted when it is first asked for."""

    counts: Counts
    space: CurveSpace

    @cached_property
    def _design(self) -> Design:
        return self.space.design(self.counts.item_metric, self.counts.item_site, 0.0)

    @property
    def _groups(self) -> IntArray:
        return self.space.flat_groups()

    @cached_property
    def single(self) -> SingleCurve:
        """The single curve, its smoothing chosen."""
        counts = self.counts
        return fit_single_curve(self._design, self._groups, counts.item_trials, counts.item_successes)

    def single_near(self, whole: SingleCurve) -> SingleCurve:
        """The single curve of a part of a cohort, from that of the whole; with many places it keeps its smoothing."""
        if not self.space.smooths_parts_alike:
            return self.single
        counts = self.counts
        return fit_single_curve(self._design, self._groups, counts.item_trials, counts.item_successes, whole.rho, whole)

    def single_with(self, rho: FloatArray) -> SingleCurve:
        """The single curve with the smoothing of another fit, whose first log precisions are those of its curve."""
        own = rho[: int(self._groups.max(initial=-1)) + 1]
        counts = self.counts
        return fit_single_curve(self._design, self._groups, counts.item_trials, counts.item_successes, own, self.single)
