"""Whether skill stands still: a test for every cohort with times, and the fit of moving skill where it is asked for.

The fit of standing skill comes first. It is what the gates are about, and it stands where skill cannot be seen to move:
without times, with one day per rider, with places of their own (five sites or more), or where the outcomes give no
reason to think that it does. The record then says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from isuit import columns
from isuit.domain import FitConfig, FloatArray, IntArray, Observations, Path
from isuit.errors import EstimationError
from isuit.record.diagnostics import Growth, Movement

from .likelihood.latent import LatentFit
from .likelihood.moving_fit import LEVEL, MovingFit, Timed, fit_moving, movement_score, movement_test
from .likelihood.prepared import Prepared
from .likelihood.solver import Progress
from .model.counts import Counts, count, count_conditions
from .model.curves import CurveSpace
from .model.occasions import Occasions, untimed
from .model.surface import Surface

_TESTED_OUTCOMES = 100_000  # that the test of standing skill looks at; of a larger cohort, those of some riders
_GROWTH_YEARS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Moved:
    """What was found; `fit` is None where skill is taken as standing still."""

    report: Movement | None = None
    fit: MovingFit | None = None


def movement(
    data: Observations, config: FitConfig, prepared: Prepared, still: LatentFit, progress: Progress | None = None
) -> Moved:
    """The fit of moving skill where it is asked for and told, and what the record says of it."""
    if config.skill != "moving":
        return Moved(_tested(data, still))
    reason = _untold(data, prepared.space)
    if reason is not None:
        return Moved(_standing(f"Skill is taken as standing still: {reason}."))
    occasions = Occasions.of(data)
    counts = counted(data, occasions.of_row, occasions.size, prepared.space)
    try:
        found = fit_moving(occasions, counts, still, config.exposure == "correlated", progress=progress)
    except (EstimationError, LinAlgError):
        return Moved(_standing("Skill is taken as standing still: no best fit of moving skill was found."))
    statistic, p_value = movement_test(found)
    if p_value >= LEVEL:
        sentence = (
            f"Skill is taken as standing still: the outcomes give no reason to think that it moves (p = {p_value:.2g})."
        )
        return Moved(_standing(sentence, "likelihood-ratio", statistic, p_value))
    return Moved(_report(found, statistic, p_value), found)


def _untold(data: Observations, space: CurveSpace) -> str | None:
    if space.places:
        return f"with {space.sites} sites, each with a curve of its own, moving skill is not fitted"
    return untimed(data)


def _standing(
    sentence: str, test: str | None = None, statistic: float | None = None, p_value: float | None = None
) -> Movement:
    return Movement(moves=False, sentence=sentence, test=test, statistic=statistic, p_value=p_value)


def _tested(data: Observations, still: LatentFit) -> Movement | None:
    """The test of standing skill, by some riders of a large cohort; None where it cannot be had."""
    every = max(1, -(-len(data) // _TESTED_OUTCOMES))
    part = data if every == 1 else of_every(data, every)
    if _untold(part, still.space) is not None:
        return None
    occasions = Occasions.of(part)
    by_rider = counted(part, part.rider.astype(np.int64), len(part.riders), still.space)
    found = movement_score(
        occasions, counted(part, occasions.of_row, occasions.size, still.space), by_rider, still, every
    )
    if found is None:
        return None
    z, p_value = found
    sentence = None
    if p_value < LEVEL:
        sentence = (
            f"Riders' skill moves with time (p = {p_value:.2g}): --skill moving follows it, and predicts later days "
            "from where it was last."
        )
    return Movement(moves=False, sentence=sentence, test="score", statistic=z, p_value=p_value)


def _report(found: MovingFit, statistic: float, p_value: float) -> Movement:
    longest = float(found.timed.since.max(initial=0.0)) * found.timed.unit / 365.25
    years = np.array([year for year in _GROWTH_YEARS if year <= longest] or [longest])
    value, se = found.growth_after(years)
    return Movement(
        moves=True,
        sentence=None,
        test="likelihood-ratio",
        statistic=statistic,
        p_value=p_value,
        walk_per_year=found.walk,
        walk_per_year_se=found.walk_se,
        half_life_years=found.half_life_years,
        growth=tuple(
            Growth(years=year, skill=by, se=error)
            for year, by, error in zip(years.tolist(), value.tolist(), se.tolist(), strict=True)
        ),
        occasions=found.timed.occasions.size,
    )


def of_every(data: Observations, every: int) -> Observations:
    """The outcomes of every so many riders, in their order."""
    rows = [block.start + np.flatnonzero(data.rider[block] % every == 0) for block in columns.slices(len(data))]
    part = data.rows(np.concatenate(rows))
    return replace(part, riders=[data.riders[r] for r in range(0, len(data.riders), every)], rider=part.rider // every)


def counted(
    data: Observations, occasion: IntArray, occasions: int, space: CurveSpace, chosen: NDArray[np.bool_] | None = None
) -> Counts:
    """Outcomes by occasion and item; the items are those that the same rows have by rider."""
    site = data.site if space.sites else None
    if isinstance(space.spline, Surface):
        return count_conditions(occasion, data.conditions, data.outcome, space.spline.splines, occasions, site, chosen)
    return count(occasion, data.metric, data.outcome, space.spline, occasions, site, chosen=chosen)


def refit(
    data: Observations, config: FitConfig, chosen: NDArray[np.bool_], still: LatentFit, full: MovingFit | None
) -> MovingFit:
    """The fit of some outcomes, whose fit of standing skill this is, near that of all."""
    part = data.rows(chosen)
    occasions = Occasions.of(part)
    counts = counted(part, occasions.of_row, occasions.size, still.space)
    return fit_moving(occasions, counts, still, config.exposure == "correlated", full)


def predict(data: Observations, chosen: NDArray[np.bool_], fitted: MovingFit, site: IntArray) -> FloatArray:
    """Probabilities of success of the rows that are not chosen, from the skill of their day.

    `fitted` is the fit of the chosen rows. A day after a rider's last is predicted from where skill was then, and
    where riders went is known from chosen rows alone.
    """
    occasions = Occasions.of(data, chosen)
    by_rider = fitted.problem.likelihood.counts
    counts = counted(data, occasions.of_row, occasions.size, fitted.space, chosen)
    first_group = int(max((g.max(initial=-1) for g in fitted.space.groups()), default=-1)) + 1
    timed = Timed.of(occasions, counts, by_rider, fitted.space, first_group, fitted.timed.half_life, fitted.timed)
    rest = ~chosen
    condition = data.rows(rest).condition
    f = np.empty(len(condition))
    p = fitted.parameters
    for begin in range(0, len(condition), 1 << 16):
        rows = slice(begin, begin + (1 << 16))
        f[rows] = fitted.space.design(condition[rows], site[rows], p.a).apply(p.shared, p.own)
    return fitted.predict_at(timed, by_rider, occasions.of_row[rest], f)


def paths(found: MovingFit, riders: IntArray) -> tuple[Path, ...]:
    """The paths of these riders."""
    mean, sd = found.paths
    occasions, result = found.timed.occasions, []
    for r in riders.tolist():
        own = slice(int(occasions.riders[r]), int(occasions.riders[r + 1]))
        result.append(Path(occasions.day[own], mean[own], sd[own]))
    return tuple(result)
