"""Cohorts and fits that several tests use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, is_dataclass, replace
from typing import Any

import numpy as np

from isuit.domain import FloatArray, IntArray, Observations
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.model.anchor import Anchor
from isuit.estimator.model.basis import INTERVALS, PENALTY_ORDER, spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace


def observations(rider: Any, metric: Any, outcome: Any, site: Any = None, observed_at: Any = None) -> Observations:
    """Outcomes with made-up labels, as many riders and sites as the codes have."""
    rider = np.asarray(rider, dtype=np.int64)
    riders = int(rider.max(initial=-1)) + 1
    sites = 0 if site is None else int(np.max(site)) + 1
    return Observations(
        riders=tuple(f"rider-{r:05d}" for r in range(riders)),
        rider=rider,
        metric=np.asarray(metric, dtype=np.float64),
        outcome=np.asarray(outcome, dtype=np.int64),
        sites=tuple(f"site-{s:03d}" for s in range(sites)),
        site=None if site is None else np.asarray(site, dtype=np.int64),
        observed_at=None if observed_at is None else np.asarray(observed_at, dtype=np.int64),
    )


def of_rows(data: Observations, chosen: Any) -> Observations:
    return replace(
        data,
        rider=data.rider[chosen],
        metric=data.metric[chosen],
        outcome=data.outcome[chosen],
        site=None if data.site is None else data.site[chosen],
        observed_at=None if data.observed_at is None else data.observed_at[chosen],
    )


def latent_fit(
    data: Observations,
    anchor: Anchor | None = None,
    correlated: bool = False,
    intervals: int = INTERVALS,
    order: int = PENALTY_ORDER,
) -> LatentFit:
    """The latent model alone: no gate, no promotion, no held-out score."""
    spline = spline_for(data.metric, intervals, order)
    sites = len(data.sites) if len(data.sites) > 1 else 0
    counts = count(data.rider, data.metric, data.outcome, spline, len(data.riders), data.site if sites else None)
    space = CurveSpace(spline, sites, anchor)
    return fit_latent(counts, space, Prepared(counts, space).single, correlated)


def parabola(metric: FloatArray) -> FloatArray:
    """The paper's difficulty."""
    return ((metric - 18) / 8) ** 2 - 1


def simulate(
    generator: np.random.Generator, rider: IntArray, skill: FloatArray, difficulty: FloatArray, a: float = 2.0
) -> IntArray:
    """Outcomes of riders with these skills against these difficulties."""
    p = 1 / (1 + np.exp(-a * (skill[rider] - difficulty)))
    return (generator.random(rider.size) < p).astype(np.int64)


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a result with its place."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, list | tuple | np.ndarray):
        for place, part in enumerate(value):
            yield from numbers(part, f"{path}[{place}]")
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        yield path, float(value)


def assert_finite(estimate: Any) -> None:
    found = dict(numbers(estimate))
    assert found
    assert [path for path, value in found.items() if not np.isfinite(value)] == []


def moving_cohort(
    riders: int = 60, days: int = 24, walk: float = 1.2, growth: float = 0.0, seed: int = 1, years: float = 3.0
) -> tuple[Observations, FloatArray]:
    """Riders with one outcome on each of some days, whose skill walks by so much in a year; and each row's skill."""
    rng = np.random.default_rng(seed)
    span = round(365.25 * years)
    day = np.sort(np.array([rng.choice(span, days, replace=False) for _ in range(riders)]), axis=1)
    steps = walk * np.sqrt(np.diff(day, axis=1) / 365.25) * rng.standard_normal((riders, days - 1))
    path = np.cumsum(np.column_stack([rng.standard_normal(riders), steps]), axis=1)
    skill = (path + growth * np.log1p((day - day[:, :1]) / 365.25)).ravel()
    metric = rng.choice(np.linspace(4, 34, 9), riders * days)
    outcome = rng.random(skill.size) < 1 / (1 + np.exp(-1.5 * (skill - parabola(metric))))
    time = (day.ravel() + 15_000) * 86_400_000_000
    return observations(np.repeat(np.arange(riders), days), metric, outcome, observed_at=time), skill
