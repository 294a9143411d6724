"""Two fits of the same activity and dimension on one scale, and whether a skill changed between them.

Each cohort has its own population as origin and unit. If the difficulty of a condition stays what it is, two fits A and
B describe one curve in two units:

    a_A (theta_A - delta_A(x)) = a_B (theta_B - delta_B(x))   so   theta_A = scale * theta_B + offset,
    scale = a_B / a_A,   offset = delta_A(x) - scale * delta_B(x)  for every x

The curve gives the offset, and so do the riders whom both cohorts have: on average their skill should be the same on
both scales. Two fits are compared only when both links exist and agree; their weighted mean is the offset. A change is
drift when it is beyond what the two posteriors and the link allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isuit.domain import Z95, FloatArray

FEWEST_COMMON = 5  # riders; fewer say little about a population
FEWEST_POINTS = 3  # of the curve, in the metric range that both observed
AGREEMENT = 3.0  # standard errors between the two links


@dataclass(frozen=True)
class FittedCurve:
    """What a fit says of its scale: the discrimination, and the shared curve by rising metric."""

    discrimination: float
    metric: FloatArray
    difficulty: FloatArray
    se: FloatArray


@dataclass(frozen=True)
class Skill:
    """A rider's skill: mean and sd of its posterior."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Change:
    """By how much a skill changed, and how much of that chance allows."""

    by: float
    allowed: float

    @property
    def is_drift(self) -> bool:
        return abs(self.by) > self.allowed


@dataclass(frozen=True)
class Link:
    """From one fit's scale to another's: theta -> scale * theta + offset, with the offset's standard error."""

    scale: float
    offset: float
    se: float

    @classmethod
    def to_itself(cls) -> Link:
        return cls(1.0, 0.0, 0.0)

    def after(self, other: Link) -> Link:
        """This link applied to what `other` gives."""
        return Link(
            self.scale * other.scale,
            self.scale * other.offset + self.offset,
            float(np.hypot(self.scale * other.se, self.se)),
        )

    def carried(self, skill: Skill) -> Skill:
        """The skill on the other scale."""
        return Skill(self.scale * skill.mean + self.offset, float(np.hypot(self.scale * skill.sd, self.se)))

    def change(self, before: Skill, after: Skill) -> Change:
        """By how much a skill changed: `before` is on the scale that this link leads to, `after` on the one it
        comes from."""
        by = self.scale * after.mean + self.offset - before.mean
        allowed = Z95 * float(np.sqrt(before.sd**2 + (self.scale * after.sd) ** 2 + self.se**2))
        return Change(by, allowed)


def link(first: FittedCurve, second: FittedCurve, common: tuple[FloatArray, FloatArray]) -> Link | str:
    """The link from the second fit's scale to the first's, or why the two cannot be compared.

    `common` has the skills of the riders whom both fits have, in the first and in the second.
    """
    scale = second.discrimination / first.discrimination
    by_curve = _curve_offset(first, second, scale)
    if by_curve is None:
        return "cannot be compared with the fit before: they share too little of the metric's range"
    by_riders = _riders_offset(scale, common)
    if by_riders is None:
        return f"cannot be compared with the fit before: they share {common[0].size} other riders, too few to link them"
    apart = abs(by_curve[0] - by_riders[0])
    if apart > AGREEMENT * float(np.hypot(by_curve[1], by_riders[1])):
        return "cannot be compared with the fit before: the riders they share and the difficulty curve disagree"
    weights = np.array([1 / by_curve[1] ** 2, 1 / max(by_riders[1], 1e-9) ** 2])
    offset = float(weights @ np.array([by_curve[0], by_riders[0]]) / weights.sum())
    return Link(scale, offset, float(weights.sum() ** -0.5))


def link_by_riders(first: float, second: float, common: tuple[FloatArray, FloatArray]) -> Link | None:
    """The link from the second fit's scale to the first's by the riders of both alone; None where they are too few.

    For comparing the curves themselves, which then cannot decide how they are laid on each other. `first` and `second`
    are discriminations.
    """
    offset = _riders_offset(second / first, common)
    return None if offset is None else Link(second / first, *offset)


def _riders_offset(scale: float, common: tuple[FloatArray, FloatArray]) -> tuple[float, float] | None:
    """By how much the riders of both are higher on the first scale, and its standard error."""
    gaps = common[0] - scale * common[1]
    if gaps.size < FEWEST_COMMON:
        return None
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(gaps.size))


def _curve_offset(first: FittedCurve, second: FittedCurve, scale: float) -> tuple[float, float] | None:
    """The offset that lays one curve on the other, and its standard error; None where they hardly meet.

    Neighbouring points of a smooth curve err together, so a mean over points is no more certain than one of them.
    """
    if not first.metric.size or not second.metric.size:
        return None
    shared = (first.metric >= second.metric.min()) & (first.metric <= second.metric.max())
    if np.count_nonzero(shared) < FEWEST_POINTS:
        return None
    metric = first.metric[shared]
    gap = first.difficulty[shared] - scale * np.interp(metric, second.metric, second.difficulty)
    variance = first.se[shared] ** 2 + (scale * np.interp(metric, second.metric, second.se)) ** 2
    weight = 1 / np.maximum(variance, 1e-12)
    return float(weight @ gap / weight.sum()), float(np.sqrt(weight @ variance / weight.sum()))
