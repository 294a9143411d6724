"""What readers of a release get, for `benchmarks/disclosure.py`: errors against the truth, cohort by cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from attackers import BINS, TOPIC, Cohort, declared, draw

from isuit.domain import FitConfig
from isuit.published import ReleaseRow
from isuit.release import screening
from isuit.release.cell_curves import CellCurves, comparable, fit_cells
from isuit.release.influence import refused_bins
from isuit.release.making import screen
from isuit.release.policy import Policy
from isuit.release.private.releasing import draft, drawn, entries_of
from isuit.release.rounding import RowMaker
from isuit.release.screening import Reasons

BANDS = ("10-19", "20-49", "50-99", "100+")


@dataclass
class Utility:
    """Of one cohort: squared errors, and which published errors covered, by band of contributors as published."""

    squares: list[float] = field(default_factory=list)
    inside: dict[str, list[bool]] = field(default_factory=dict)
    released: float = 0.0

    def add(self, row: ReleaseRow, truth: float, counts: bool = True) -> None:
        if row.difficulty is None or row.difficulty_se is None:
            return
        error = row.difficulty - truth
        if counts:
            self.squares.append(error**2)
        self.inside.setdefault(row.contributors, []).append(abs(error) <= 1.96 * row.difficulty_se)


def told(cohorts: Sequence[Utility]) -> str:
    """RMSE, share released and coverage, in brackets the standard error by cohorts."""

    def mean(values: list[float], how: str) -> str:
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return f"{np.mean(values):{how}} ({error:{how}})"

    rmse = [float(np.sqrt(np.mean(each.squares))) for each in cohorts]
    shares = [100 * each.released for each in cohorts]
    covered = [
        f"{band} {mean([100 * float(np.mean(each.inside[band])) for each in cohorts if band in each.inside], '.1f')}"
        for band in BANDS
        if any(band in each.inside for each in cohorts)
    ]
    return f"RMSE {mean(rmse, '.3f')}, released {mean(shares, '.1f')} %, coverage {', '.join(covered)} %"


def healthy(seed: int) -> Cohort:
    """720 riders at 12 places."""
    home = np.arange(720) // 60
    second = (home + np.random.default_rng(seed).integers(1, 12, 720)) % 12
    return draw(np.column_stack([home, second]), 720, 20, seed)


def platform(seed: int, riders: int = 5_000, cells: int = 153) -> Cohort:
    """Cells whose popularity falls like one over the rank."""
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, cells + 1)
    return draw(random.choice(cells, (riders, 2), p=popularity / popularity.sum()), riders, 20, seed)


COHORTS = {"healthy": healthy, "platform": platform}


def threshold(kind: str, seed: int, modes: Sequence[Policy]) -> list[Utility]:
    """By mode, of the rows that first releases of five stores would have; shares are of points with k riders."""
    cohort = COHORTS[kind](seed)
    found, points = _screened(cohort)
    riders = {key: len(members) for key, members in screening.members(found.placed).items()}
    made = []
    for policy in modes:
        utility = Utility(released=len(riders) / points)
        for secret in range(5):
            rows = RowMaker("2026-01-01", TOPIC, BINS, policy, bytes([secret])).rows(found, riders)
            for (cell, bin_), row in rows.items():
                truth = cohort.truth(np.array([BINS.centre(bin_)]), cohort.placed.cells.index(cell))
                utility.add(row, float(truth[0]))
        made.append(utility)
    return made


def _screened(cohort: Cohort) -> tuple[CellCurves, int]:
    """The fit of a first release after all refusals, and how many points have k riders."""
    policy, reasons = Policy(), Reasons()
    held = np.bincount(np.unique(cohort.placed.pair * 10**6 + cohort.placed.outcomes.rider) // 10**6)
    left = screen(cohort.placed, policy, reasons)
    assert left is not None
    left = left.of_rows(comparable(left)[left.cell])
    refused = np.ones(1, bool)
    while refused.any():
        found = fit_cells(left, policy, FitConfig())
        points = np.zeros((len(left.cells), BINS.number), bool)
        points[left.cell, left.bin] = True
        refused = refused_bins(found, points, policy)
        if refused.any():
            thinner = screening.without(left, refused)
            assert thinner is not None
            left = screen(thinner, policy, reasons)
            assert left is not None
    return found, int(np.sum(held >= policy.k))


def private(kind: str, seed: int, epsilon: float) -> Utility:
    """Of the rows of a release; RMSE of cells with 20 riders or more, the share that of cells with k."""
    cohort = COHORTS[kind](seed)
    placed = cohort.placed
    topic, costs, policy = declared(epsilon, placed.cells)
    sums = drawn(entries_of(placed.outcomes, placed.cell, topic, policy), topic, costs)
    rows = draft([sums], date(2026, 1, 1), policy, {}).rows
    riders = screening.distinct_riders(placed.cell, placed.outcomes, len(placed.cells))
    found = Utility()
    for row in rows:
        cell = placed.cells.index(row.h3)
        found.add(row, float(cohort.truth(np.array([row.metric]), cell)[0]), bool(riders[cell] >= 20))
    shown = {placed.cells.index(row.h3) for row in rows}
    found.released = sum(riders[cell] >= policy.k for cell in shown) / int(np.sum(riders >= policy.k))
    return found
