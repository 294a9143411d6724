"""How skill is distributed: an estimated density where it can be told, the normal one where it cannot or need not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FitConfig, FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.diagnostics.distribution import distribution
from isuit.estimator.likelihood import skill as skills
from isuit.estimator.likelihood.latent import estimate_density, finished, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.skill import LEAST_RIDERS, known_riders
from isuit.estimator.likelihood.solver import PREDICTING, TOLERANCE
from isuit.estimator.model.bend import FUNCTIONS
from isuit.estimator.model.density import SHAPES

from ..cohorts import latent_fit, observations, parabola, simulate

ESTIMATED = FitConfig(skill="estimated")


def cohort(skill: FloatArray, outcomes: int, seed: int) -> Observations:
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(skill.size), outcomes)
    metric = generator.uniform(5, 31, rider.size)
    return observations(rider, metric, simulate(generator, rider, skill, parabola(metric), 1.5))


def normal(riders: int, outcomes: int = 30, seed: int = 1) -> Observations:
    return cohort(np.random.default_rng(seed).standard_normal(riders), outcomes, seed)


def exponential(riders: int, seed: int = 1) -> Observations:
    return cohort(np.random.default_rng(seed).exponential(size=riders) - 1.0, 30, seed)


def test_a_normal_cohort_stays_normal() -> None:
    plain = latent_fit(normal(400))
    bent = estimate_density(plain)
    # Skewness and tails are held at their bound, where they take 0.9 and 0.4 degrees of freedom of 400 riders; of the
    # finer functions chance alone makes up to 0.4 (eight cohorts), and half of one is what is called other than normal.
    assert bent.solution.rho[-3:-1].tolist() == [2.0, 2.0]
    assert bent.problem.shape.split(bent.degrees_of_freedom)[0][SHAPES - FUNCTIONS :].sum() < 0.5
    assert "no reason" in str(distribution(bent).sentence)
    assert bent.discrimination == pytest.approx(plain.discrimination, abs=plain.discrimination_se / 2)
    metric = np.linspace(6, 30, 25)
    difference = bent.difficulty(metric).value - plain.difficulty(metric).value
    assert np.max(np.abs(difference) / plain.difficulty(metric).se) < 0.7


def test_skewed_skill_is_told_and_difficulty_with_it() -> None:
    plain = latent_fit(exponential(1000))
    bent = estimate_density(plain)
    # In units of the riders between the 5th and the 95th percentile an exponential has a scale of 0.915 sds.
    assert abs(bent.discrimination - 0.915 * 1.5) < 2.5 * bent.discrimination_se
    metric = np.linspace(6, 30, 25)
    errors = [np.abs(fit.difficulty(metric).value - (parabola(metric) + 0.049) / 0.915) for fit in (bent, plain)]
    assert errors[0].mean() < errors[1].mean()
    found = distribution(bent)
    density = np.interp([-2.0, -0.7, 2.5], found.skill, found.density)
    assert density[0] < 0.03, "nobody is two sds below the mean"
    assert density[1] > 0.45, "most are a little below it"
    assert density[2] > 1.5 * np.exp(-0.5 * 2.5**2) / np.sqrt(2 * np.pi), "and more than a few far above"
    assert found.percentiles["beginner"] < 10
    assert 50 < found.percentiles["intermediate"] < 70
    assert all(low <= value <= high for low, value, high in zip(found.lower, found.density, found.upper, strict=True))
    assert np.sum(found.density) * (found.skill[1] - found.skill[0]) == pytest.approx(1, abs=0.02)


def test_two_groups_are_told_apart_and_the_fit_converges() -> None:
    """Two narrow groups once asked for a density finer than its tables, and no maximum was found."""
    generator = np.random.default_rng(7)
    skill = generator.choice([-0.9, 0.9], 300) + 0.4 * generator.standard_normal(300)
    bent = estimate_density(latent_fit(cohort(skill, 30, 7)))
    assert bent.solution.gradient_norm < PREDICTING
    found = distribution(bent)
    valley, peaks = np.interp(0.0, found.skill, found.density), np.interp([-0.9, 0.9], found.skill, found.density)
    assert valley < 0.8 * peaks.min()


def test_tails_are_told_where_nothing_is_skewed() -> None:
    """With one precision for both, the skewness that is not there hid the tails that are."""
    skill = np.random.default_rng(0).standard_t(3, size=600) / np.sqrt(3)
    bent = estimate_density(latent_fit(cohort(skill, 30, 0)))
    skewness, tails = bent.solution.rho[-3:-1]
    assert skewness == 2.0, "as little as the bounds allow"
    assert tails < -1.0
    # In units of the riders between the 5th and the 95th percentile this t has a scale of 0.757 sds.
    assert abs(bent.discrimination - 0.757 * 1.5) < 2.5 * bent.discrimination_se


def test_a_density_with_a_wall_reaches_what_its_sums_can_hold() -> None:
    """Lognormal skill, near whose wall sums on a rider's grid move by a millionth with the grid: with the tolerance of
    a normal fit this cohort did not converge in 80 steps."""
    generator = np.random.default_rng(300079)
    skill = (generator.lognormal(size=200) - np.sqrt(np.e)) / np.sqrt(np.e * (np.e - 1))
    rider = np.repeat(np.arange(200), 30)
    metric = generator.uniform(5, 31, rider.size)
    success = expit(1.5 * (skill[rider] - parabola(metric)))
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    bent = estimate_density(latent_fit(observations(rider, metric, outcome)))
    assert bent.solution.gradient_norm < PREDICTING


def test_riders_are_ordered_by_the_density_that_was_estimated() -> None:
    """A rider who always fails is nowhere below where anybody is."""
    data = exponential(600)
    lowest = {name: estimate(data).skills()[0].min() for name, estimate in ESTIMATES.items()}
    assert lowest["estimated"] > -1.3 > lowest["normal"]


ESTIMATES = {"normal": latent_fit, "estimated": lambda data: estimate_density(latent_fit(data))}


def test_a_fit_records_its_distribution_and_predicts_with_it() -> None:
    data = exponential(300, seed=3)
    plain, bent = fit(data), fit(data, ESTIMATED)
    found = bent.diagnostics.skill_distribution
    assert found is not None
    assert found.estimated
    assert found.sentence is None
    assert found.degrees_of_freedom > 1
    assert bent.held_out is not None
    assert plain.held_out is not None
    assert bent.held_out.brier_skill > plain.held_out.brier_skill
    tests = bent.diagnostics.assumptions
    assert tests is not None
    assert tests.normality_of_skill is not None
    assert tests.normality_of_skill.p_value < 1e-4
    assert "its density is estimated" in str(tests.normality_of_skill.sentence)
    before = plain.diagnostics.assumptions
    assert before is not None
    assert before.normality_of_skill is not None
    assert before.normality_of_skill.p_value == tests.normality_of_skill.p_value
    assert "--skill estimated" in str(before.normality_of_skill.sentence)
    assert bent.promotion == plain.promotion or bent.promotion is not None


@pytest.mark.long
def test_a_rough_normal_fit_leads_to_the_same_density() -> None:
    exact = latent_fit(exponential(600, seed=5))
    counts, se = exact.problem.likelihood.counts, exact.discrimination_se
    rough = fit_latent(counts, exact.space, Prepared(counts, exact.space).single, roughly=True)
    assert TOLERANCE < rough.solution.gradient_norm <= 0.1
    assert rough.discrimination == pytest.approx(exact.discrimination, abs=0.15 * se)
    assert finished(rough).discrimination == pytest.approx(exact.discrimination, abs=0.01 * se)
    densities = [estimate_density(normal).discrimination for normal in (rough, exact)]
    assert densities[0] == pytest.approx(densities[1], abs=0.05 * se)


def test_a_fit_that_stays_normal_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many riders the normal fit is made roughly, and is what the record holds only once it is at its maximum."""
    data = normal(420, outcomes=20)
    plain = fit(data)
    monkeypatch.setattr(skills, "LEAST_RIDERS", 10_000)
    asked = fit(data, ESTIMATED)
    assert asked.diagnostics.skill_distribution is not None
    assert not asked.diagnostics.skill_distribution.estimated
    assert asked.diagnostics.convergence is not None
    assert asked.diagnostics.convergence.gradient_norm < TOLERANCE
    assert asked.discrimination == pytest.approx(plain.discrimination, rel=1e-4)


def test_few_riders_or_few_outcomes_fall_back_to_normal_and_say_so() -> None:
    for data in (normal(45), normal(100, outcomes=4)):
        estimate = fit(data, ESTIMATED)
        if estimate.kind == "single-curve":
            continue
        assert known_riders(latent_fit(data)) < LEAST_RIDERS
        found = estimate.diagnostics.skill_distribution
        assert found is not None
        assert not found.estimated
        assert "taken as normal" in str(found.sentence)
        assert estimate.discrimination == fit(data).discrimination


def test_a_normal_fit_keeps_the_name_it_had_before_there_was_a_choice() -> None:
    assert "skill" not in FitConfig().as_json()
    assert FitConfig(skill="estimated").as_json()["skill"] == "estimated"
