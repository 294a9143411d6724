"""Weak skill where riders choose by skill: of how many cohorts the fit is latent, by the likelihood-ratio test."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from isuit.domain import FitConfig, Observations
from isuit.estimator import fit

CORRELATION = 0.5  # of skill with where riders go


def weak(discrimination: float, seed: int, riders: int, outcomes: int) -> Observations:
    """Difficulty is the metric itself, in sds of skill."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), outcomes)
    skill = generator.standard_normal(riders)
    chance = np.sqrt(1 - CORRELATION**2) * generator.standard_normal(rider.size)
    metric = CORRELATION * skill[rider] + chance
    success = expit(discrimination * (skill[rider] - metric))
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    return Observations(tuple(f"rider-{r:05d}" for r in range(riders)), rider, metric, outcome)


def power(first: int, cohorts: int, riders: int, outcomes: int) -> None:
    print(f"{cohorts} cohorts each of {riders} riders x {outcomes} outcomes, correlation {CORRELATION}")
    print("| true a | exposure | passes the likelihood-ratio test | promoted | mean a where promoted |")
    print("|--:|---|--:|--:|--:|")
    for discrimination in (0.0, 0.15, 0.2, 0.3):
        for exposure in ("independent", "correlated"):
            found = [
                fit(weak(discrimination, seed, riders, outcomes), FitConfig(exposure=exposure))
                for seed in range(first, first + cohorts)
            ]
            certain = sum(e.promotion is not None and (e.promotion.p_value or 1.0) < 0.01 for e in found)
            told = [e.discrimination for e in found if e.discrimination is not None]
            mean = f"{np.mean(told):.3f}" if told else ""
            print(f"| {discrimination} | {exposure} | {certain} | {len(told)} | {mean} |", flush=True)
