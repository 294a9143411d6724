"""A small cohort, and all bits of what a fit finds in it: for tests of fits that are shared out."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from isuit.domain import Observations


def cohort(sites: int, rows: int = 6_000, riders: int = 150) -> Observations:
    random = np.random.default_rng(7)
    rider = np.sort(random.integers(0, riders, rows)).astype(np.int32)
    metric, skill = random.gamma(4.0, 3.0, rows), random.normal(size=riders)
    site = random.integers(0, sites, rows).astype(np.int32) if sites else None
    level = np.zeros(rows) if site is None else random.normal(size=sites)[site] / 2
    chance = 1 / (1 + np.exp(-1.3 * (skill[rider] - (metric - 12) / 6 - level)))
    outcome = (random.random(rows) < chance).astype(np.int8)
    names = tuple(f"somebody-{k:04d}" for k in range(riders))
    return Observations(names, rider, metric, outcome, tuple(f"place-{k:02d}" for k in range(sites)), site)


def bits(value: Any) -> Any:
    """All that an estimate holds, so that two can be compared to the last bit."""
    if is_dataclass(value):
        return {field.name: bits(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (tuple, list)):
        return [bits(one) for one in value]
    return {key: bits(one) for key, one in value.items()} if isinstance(value, dict) else repr(value)
