"""Step 5: what a fit found, as rows that may be published: top-coded, rounded, with bands instead of counts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from isuit.release.bins import Bins
from isuit.release.cell_curves import CellCurves
from isuit.release.cells import centre
from isuit.release.eligibility import GLOBAL, Topic
from isuit.release.format import ReleaseRow, described
from isuit.release.policy import SATURATION, Policy, band


def to_step(value: float, step: float) -> float:
    """The nearest multiple of a step, as a short decimal: no digits of the unrounded value, no sign of zero."""
    steps = Decimal(repr(value / step)).quantize(Decimal(1), ROUND_HALF_EVEN)
    return float(steps * Decimal(repr(step))) + 0.0


def to_one_digit(value: float) -> float:
    return float(f"{value:.1g}")


def is_saturated(suitability: float) -> bool:
    """By the fitted probability alone: whether a bin's raw outcomes are all equal would itself tell."""
    return not SATURATION[0] <= suitability <= SATURATION[1]


@dataclass(frozen=True)
class RowMaker:
    """Makes the rows of one activity and dimension in one release."""

    release: str
    topic: Topic
    bins: Bins
    policy: Policy

    def incomparable(self, cell: str, bin_: int, riders: int) -> ReleaseRow:
        return self._row(cell, bin_, riders, "incomparable")

    def rows(self, curves: CellCurves, riders: dict[tuple[str, int], int]) -> dict[tuple[str, int], ReleaseRow]:
        """A row for every (cell, bin) of `riders`, which says how many stand behind each."""
        everyone = len(curves.placed.outcomes.riders)
        step = self.policy.step(everyone)
        discrimination = max(to_step(curves.fit.discrimination, step), step)
        expert = self._expert(curves, discrimination)
        found = {}
        for code, cell in enumerate(curves.placed.cells):
            difficulty, suitability = curves.difficulty(code), curves.suitability(code)
            for bin_ in range(self.bins.number):
                number = riders.get((cell, bin_))
                if number is None:
                    continue
                saturated = is_saturated(float(suitability[bin_]))
                found[cell, bin_] = self._row(
                    cell,
                    bin_,
                    number,
                    "saturated" if saturated else "estimated",
                    difficulty=None if saturated else to_step(float(difficulty.value[bin_]), self.policy.step(number)),
                    difficulty_se=None if saturated else to_one_digit(float(difficulty.se[bin_])),
                    expert_difficulty=expert[bin_],
                    discrimination=discrimination,
                )
        return found

    def _expert(self, curves: CellCurves, discrimination: float) -> list[float | None]:
        """From the rounded discrimination, so that it carries no more of it than its own column does."""
        difficulty = curves.fit.expert_difficulty(self.bins.centres, discrimination)
        if difficulty is None:
            return [None] * self.bins.number
        return [round(float(value), 2) + 0.0 for value in difficulty]

    def _row(
        self,
        cell: str,
        bin_: int,
        riders: int,
        status: str,
        *,
        difficulty: float | None = None,
        difficulty_se: float | None = None,
        expert_difficulty: float | None = None,
        discrimination: float | None = None,
    ) -> ReleaseRow:
        latitude, longitude = centre(cell)
        return ReleaseRow(
            release=self.release,
            activity=self.topic.activity,
            dimension=self.topic.dimension,
            h3=cell,
            h3_resolution=None if cell == GLOBAL else self.policy.resolution,
            latitude=latitude,
            longitude=longitude,
            metric=self.bins.centre(bin_),
            metric_lower=self.bins.edge(bin_),
            metric_upper=self.bins.edge(bin_ + 1),
            units=described(self.topic.dimension)[1],
            difficulty=difficulty,
            difficulty_se=difficulty_se,
            expert_difficulty=expert_difficulty,
            discrimination=discrimination,
            contributors=band(riders),  # type: ignore[arg-type]  # a band is one of the names that the row allows
            status=status,  # type: ignore[arg-type]  # from this module only
        )
