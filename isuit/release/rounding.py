"""Step 5: what a fit found, as rows that may be published: top-coded, with noise, rounded, bands instead of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np

from isuit.estimator import NODES, WEIGHTS
from isuit.published import ReleaseRow
from isuit.release import noise
from isuit.release.bins import Bins
from isuit.release.carrying import fingerprints
from isuit.release.cell_curves import CellCurves
from isuit.release.cells import centre
from isuit.release.eligibility import GLOBAL, Topic
from isuit.release.format import Declared
from isuit.release.grid import Grid, metric_along
from isuit.release.policy import SATURATION, Policy, band, within
from isuit.release.pooling import Pooled, pooled
from isuit.release.screening import Placed, distinct_riders


def to_step(value: float, step: float) -> float:
    """The nearest multiple of a step, as a short decimal: no digits of the unrounded value, no sign of zero."""
    steps = Decimal(repr(value / step)).quantize(Decimal(1), ROUND_HALF_EVEN)
    return float(steps * Decimal(repr(step))) + 0.0


def to_two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def is_saturated(suitability: float) -> bool:
    """By a probability that follows from the value with noise: outcomes, or a value without, would tell of a person."""
    return not SATURATION[0] <= suitability <= SATURATION[1]


def suitability_at(difficulty: float, discrimination: float) -> float:
    """How often a population of skill N(0, 1), the unit of difficulty, succeeds."""
    return float(WEIGHTS @ (1 / (1 + np.exp(-discrimination * (NODES - difficulty)))))


def published_error(error: float, step: float, noise: float, factor: float = 1.0) -> float:
    """The standard error of what is published: of the fit, of the rounding (uniform over a step) and of the noise."""
    return to_two_digits(factor * math.sqrt(error**2 + step**2 / 12 + noise**2))


@dataclass
class RowMaker:
    """Makes the rows of one activity and dimension in one release."""

    release: str
    topic: Topic
    bins: Bins | Grid
    policy: Policy
    secret: bytes
    bands: Mapping[tuple[str, int], str] = field(default_factory=dict)  # of the rows that were released before
    discrimination: float | None = None  # as published with the topic's first rows, whose fit gives it
    declared: Mapping[str, Declared] = field(default_factory=dict)  # by metric

    def incomparable(self, placed: Placed, riders: dict[tuple[str, int], int]) -> dict[tuple[str, int], ReleaseRow]:
        """Rows of cells without a common origin of difficulty."""
        noise_of, found = self._noise(placed), {}
        for (cell, bin_), number in riders.items():
            told = self._told(number, noise_of[cell], bin_)
            found[cell, bin_] = self._row(cell, bin_, self._band(cell, bin_, told), "incomparable")
        return found

    def rows(self, curves: CellCurves, riders: dict[tuple[str, int], int]) -> dict[tuple[str, int], ReleaseRow]:
        """A row for every (cell, bin) of `riders`, which says how many stand behind each."""
        if self.discrimination is None:
            self.discrimination = self._discrimination(curves)
        expert = self._expert(curves, self.discrimination)
        noise_of, found = list(self._noise(curves.placed).values()), {}
        bands = [curves.difficulty(code) for code in range(len(noise_of))]
        curve = Pooled(
            np.array([one.value + drawn.difficulty for one, drawn in zip(bands, noise_of, strict=True)]),
            np.array([drawn.sd for drawn in noise_of]),
        )
        errors = np.array([one.se for one in bands])
        if not isinstance(self.bins, Grid):  # each number of a surface has noise of its own, in no shape
            curve = pooled(curve.value, np.array([drawn.size for drawn in noise_of]))
            errors = noise.smoothed(errors)
        for code, cell in enumerate(curves.placed.cells):
            drawn = noise_of[code]
            for bin_ in range(self.bins.number):
                if (cell, bin_) not in riders:
                    continue
                number = self._told(riders[cell, bin_], drawn, bin_)
                band = self._band(cell, bin_, number)
                step = self.policy.step(within(number, band))
                value = float(curve.value[code, bin_])
                error = published_error(
                    float(errors[code, bin_]), step, float(curve.sd[code, bin_]), float(drawn.error[bin_])
                )
                saturated = is_saturated(suitability_at(value, self.discrimination))
                found[cell, bin_] = self._row(
                    cell,
                    bin_,
                    band,
                    "saturated" if saturated else "estimated",
                    difficulty=None if saturated else to_step(value, step),
                    difficulty_se=None if saturated else error,
                    expert_difficulty=expert[bin_],
                )
        return found

    def _told(self, riders: int, drawn: noise.Noise, bin_: int) -> int:
        """The number that bands and steps follow from; never one that the rule of k would not have let through."""
        return max(round(riders + float(drawn.riders[bin_])), min(riders, self.policy.k))

    def _band(self, cell: str, bin_: int, riders: int) -> str:
        return band(riders, self.bands.get((cell, bin_)))

    def _about(self, cell: str) -> list[str]:
        return [self.topic.activity, self.topic.dimension, cell]

    def _noise(self, placed: Placed) -> dict[str, noise.Noise]:
        """By cell, drawn from what each rider weighs in each bin."""
        went_in: dict[str, list[tuple[int, int]]] = {cell: [] for cell in placed.cells}
        for (cell, bin_, _), number in fingerprints(placed, self.policy).items():
            went_in[cell].append((bin_, number))
        riders = distinct_riders(placed.cell, placed.outcomes, len(placed.cells)).tolist()
        points, found = self.bins.number, {}
        for code, cell in enumerate(placed.cells):
            told, behind = (self.secret, self._about(cell), went_in[cell], points), riders[code]
            if isinstance(self.bins, Grid):
                places = self.bins.told(went_in[cell][0][0])
                found[cell] = noise.of_places(*told, places, behind, self.policy)
            else:
                found[cell] = noise.of_cell(*told, behind, self.policy)
        return found

    def _discrimination(self, curves: CellCurves) -> float:
        went_in = [(bin_, number) for (_, bin_, _), number in fingerprints(curves.placed, self.policy).items()]
        riders = int(np.unique(curves.placed.outcomes.rider).size)
        factor, told = noise.of_discrimination(self.secret, self._about("")[:2], went_in, riders, self.policy)
        step = self.policy.step(told)
        return max(to_step(factor * curves.fit.discrimination, step), step)

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
        contributors: str,
        status: str,
        *,
        difficulty: float | None = None,
        difficulty_se: float | None = None,
        expert_difficulty: float | None = None,
    ) -> ReleaseRow:
        latitude, longitude = centre(cell)
        dimension, bins, number = self.bins.place(bin_)
        along = self.topic.dimension if dimension is None else metric_along(dimension)
        return ReleaseRow(
            release=self.release,
            activity=self.topic.activity,
            dimension=dimension or self.topic.dimension,
            h3=cell,
            h3_resolution=None if cell == GLOBAL else self.policy.resolution,
            latitude=latitude,
            longitude=longitude,
            metric=bins.centre(number),
            metric_lower=bins.edge(number),
            metric_upper=bins.edge(number + 1),
            units=self.declared.get(along, Declared()).units,
            difficulty=difficulty,
            difficulty_se=difficulty_se,
            expert_difficulty=expert_difficulty,
            contributors=contributors,  # type: ignore[arg-type]  # a band is one of the names that the row allows
            status=status,  # type: ignore[arg-type]  # from this module only
        )
