"""Score tests: right about as often as they say when the model holds, and certain when it does not."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FloatArray
from isuit.estimator.diagnostics import assumptions

from ..cohorts import latent_fit, observations, parabola

COHORTS = 40
RIDERS, OUTCOMES, SITES = 150, 25, 3


def checked(
    seed: int,
    riders: int = RIDERS,
    steeper: float = 0.0,
    skewed: bool = False,
    sites: int = 0,
    apart: float = 0.0,
    floor: float = 0.0,
    lapse: float = 0.0,
) -> Any:
    """The tests of a cohort in which one assumption may not hold."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), OUTCOMES)
    metric = generator.uniform(3, 35, rider.size)
    unit = (metric - 19) / 9.24
    skill = generator.exponential(size=riders) - 1 if skewed else generator.standard_normal(riders)
    difficulty, site = parabola(metric), None
    if sites:
        home = generator.integers(0, sites, riders)
        away = generator.random(rider.size) < 0.5
        site = np.where(away, generator.integers(0, sites, rider.size), home[rider])
        difficulty = difficulty + apart * unit * (home[rider] == 0)
    success = expit(2.0 * (1 + steeper * unit) * skill[rider] - 2.0 * difficulty)
    success = floor + (1 - floor - lapse) * success
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    fit = latent_fit(observations(rider, metric, outcome, site))
    return assumptions.tests(fit, None, None)


@pytest.mark.long
def test_a_true_model_is_seldom_rejected() -> None:
    """Each test at 5 %: more than 7 rejections of 40 would come by chance once in 300 times."""
    plain = [checked(seed) for seed in range(COHORTS)]
    with_sites = [checked(seed, sites=SITES) for seed in range(COHORTS // 2)]
    for name in ("discrimination_by_metric", "normality_of_skill", "lower_asymptote", "upper_asymptote"):
        assert sum(getattr(found, name).p_value < 0.05 for found in plain) <= 7, name
        assert sum(getattr(found, name).p_value > 0.5 for found in plain) >= 11, name
    assert sum(found.difficulty_by_clientele.p_value < 0.05 for found in with_sites) <= 4
    assert all(found.difficulty_by_clientele is None for found in plain)


def test_discrimination_that_grows_with_the_metric_is_found() -> None:
    for steeper in (0.35, -0.35):
        found = checked(1, steeper=steeper).discrimination_by_metric
        assert found.p_value < 1e-3
        assert np.sign(found.relative_change_per_sd) == np.sign(steeper)
        assert ("high" if steeper > 0 else "low") in found.sentence


def test_skewed_skill_is_found() -> None:
    found = checked(2, skewed=True).normality_of_skill
    assert found.p_value < 1e-3
    assert found.asymmetry > assumptions.NOT_NORMAL
    assert "strong riders" in found.sentence


def test_difficulty_that_differs_between_clienteles_is_found() -> None:
    found = checked(3, sites=SITES, apart=0.8).difficulty_by_clientele
    assert found.p_value < 1e-3
    assert found.clienteles == SITES
    assert "clienteles" in found.sentence


def test_a_floor_is_told_from_lapses() -> None:
    """Each has its own sentence and size, and neither is mistaken for the other."""
    for floor, lapse in ((0.5, 0.0), (0.0, 0.08)):
        found = checked(6, riders=300, floor=floor, lapse=lapse)
        there, other = found.lower_asymptote, found.upper_asymptote
        if lapse:
            there, other = other, there
        assert there.p_value < assumptions.LEVEL
        assert 0.3 * (floor + lapse) < there.size < 2 * (floor + lapse)
        assert ("guess" if floor else "lapse") in there.sentence
        assert other.p_value > 0.5
        assert other.sentence is None


def test_skewed_skill_is_no_asymptote() -> None:
    found = checked(2, skewed=True)
    assert found.lower_asymptote.p_value > assumptions.LEVEL
    assert found.upper_asymptote.p_value > assumptions.LEVEL


def test_some_riders_of_a_large_cohort_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the riders: the same conclusion from about half of the evidence."""
    whole = [checked(seed, riders=300, steeper=0.3).discrimination_by_metric for seed in range(6)]
    monkeypatch.setattr(assumptions, "MOST_ENTRIES", 300 * OUTCOMES // 2 + 1)
    half = [checked(seed, riders=300, steeper=0.3).discrimination_by_metric for seed in range(6)]
    evidence = [np.mean([found.statistic for found in some]) for some in (half, whole)]
    size = [np.mean([found.relative_change_per_sd for found in some]) for some in (half, whole)]
    assert 0.35 < evidence[0] / evidence[1] < 0.7
    assert size[0] == pytest.approx(size[1], rel=0.2)


def test_few_riders_are_not_tested() -> None:
    assert set(astuple(checked(4, riders=assumptions.LEAST_RIDERS - 1))) == {None}


def test_scores_that_the_estimated_parameters_explain_are_no_evidence() -> None:
    """A score that is a combination of the nuisance scores has nothing left; an independent one is a z-test."""
    generator = np.random.default_rng(5)
    nuisance: FloatArray = generator.standard_normal((400, 3))
    nuisance -= nuisance.mean(axis=0)  # as at a maximum
    covariance = np.linalg.inv(nuisance.T @ nuisance)
    explained = nuisance @ np.array([[1.0], [2.0], [-1.0]])
    noise = generator.standard_normal((400, 1)) + 0.3

    def efficient(score: FloatArray) -> FloatArray:
        return score - nuisance @ (covariance @ (nuisance.T @ score))

    statistic, p_value, _ = assumptions.score_test(efficient(explained + 1e-3 * noise))
    alone, p_alone, size = assumptions.score_test(efficient(1e-3 * noise))
    assert statistic == pytest.approx(alone, rel=1e-6)
    assert p_value == pytest.approx(p_alone, rel=1e-4)
    assert p_alone < 1e-4
    assert size[0] > 0
