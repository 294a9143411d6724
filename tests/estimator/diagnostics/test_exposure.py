"""Who goes out in which conditions: by skill, by their last outcome, or by chance."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.domain import NO_TIME, FitConfig, FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.diagnostics import exposure
from isuit.estimator.diagnostics.exposure import past_outcomes
from isuit.record.diagnostics import PastOutcomes

from ..cohorts import latent_fit, observations, of_rows, parabola, simulate

HOUR = 3_600_000_000


def sequence(
    seed: int, outcomes: int, lasting: float = 0.0, by_outcome: float = 0.0, riders: int = 400
) -> Observations:
    """Riders who go out one time after another, in weather that lasts, or harder after a success.

    Difficulty rises with the metric, which makes the last outcome depend on the last metric.
    """
    generator = np.random.default_rng(seed)
    skill = generator.standard_normal(riders)
    metric = np.empty((riders, outcomes))
    outcome = np.empty((riders, outcomes), dtype=np.int64)
    for t in range(outcomes):
        mean: FloatArray = np.full(riders, 18.0)
        if t:
            mean = mean + lasting * (metric[:, t - 1] - 18) + by_outcome * (2 * outcome[:, t - 1] - 1)
        metric[:, t] = mean + 6 * np.sqrt(1 - lasting**2) * generator.standard_normal(riders)
        outcome[:, t] = simulate(generator, np.arange(riders), skill, (metric[:, t] - 18) / 6)
    rider = np.repeat(np.arange(riders), outcomes)
    time = np.tile(np.arange(outcomes) * HOUR, riders)
    return observations(rider, metric.ravel(), outcome.ravel(), observed_at=time)


def naive(data: Observations) -> float:
    """The next metric against the last outcome, both minus the rider's mean."""
    metric, outcome = (column.reshape(len(data.riders), -1) for column in (data.metric, data.outcome))
    next_metric, last = metric - metric.mean(axis=1)[:, None], outcome - outcome.mean(axis=1)[:, None]
    return float(np.corrcoef(next_metric[:, 1:].ravel(), last[:, :-1].ravel())[0, 1])


@pytest.mark.parametrize(("outcomes", "lasting", "misleading"), [(4, 0.0, 0.15), (20, 0.8, -0.2)])
def test_chance_and_lasting_weather_are_no_choice(outcomes: int, lasting: float, misleading: float) -> None:
    data = sequence(0, outcomes, lasting)
    found = past_outcomes(data, latent_fit(data))
    assert found.pairs == 400 * (outcomes - 1)
    assert abs(found.correlation) < 0.06
    assert found.sentence is None
    assert "limit" in found.limit
    assert naive(data) / misleading > 1, "if this fails, a simpler correlation would do"


def by_skill_or_growing(seed: int, outcomes: int, by_skill: float, growth: float) -> Observations:
    """Riders who choose by skill, or get better and go further; nobody chooses by outcome."""
    generator = np.random.default_rng(seed)
    rider, time = np.repeat(np.arange(400), outcomes), np.tile(np.arange(outcomes), 400)
    skill = generator.standard_normal(400)
    later = time / outcomes - 0.5
    chance = np.sqrt(1 - by_skill**2) * generator.standard_normal(rider.size)
    load = by_skill * skill[rider] + chance + growth / 2 * later
    outcome = simulate(generator, rider, skill, load - growth * later)
    return observations(rider, 18 + 6 * load, outcome, observed_at=time * HOUR)


@pytest.mark.parametrize(
    ("outcomes", "by_skill", "growth", "exposed"), [(3, 0.7, 0.0, False), (4, 0.7, 0.0, False), (20, 0.0, 2.0, True)]
)
def test_choice_by_skill_and_getting_better_are_no_choice_by_outcome(
    outcomes: int, by_skill: float, growth: float, exposed: bool
) -> None:
    """Without the last metric and the place in the series held: 0.12, 0.07 and 0.09."""
    found = []
    for seed in range(4):
        data = by_skill_or_growing(seed, outcomes, by_skill, growth)
        found.append(past_outcomes(data, latent_fit(data, correlated=exposed)))
    assert abs(np.mean([each.correlation for each in found])) < 0.03
    assert not any(each.sentence for each in found)


def test_two_outcomes_of_each_rider_tell_no_choice() -> None:
    """About the mean of two, the next metric is the last one with its sign changed."""
    data = sequence(0, 2)
    found = past_outcomes(data, latent_fit(data))
    assert (found.correlation, found.pairs) == (None, 400)


def test_going_out_in_harder_conditions_after_a_success_is_told() -> None:
    data = sequence(1, 20, by_outcome=2.0)
    found = past_outcomes(data, latent_fit(data))
    assert found.correlation > 0.2
    assert "last outcome" in found.sentence
    assert "the same rider and site" not in found.sentence
    order = np.random.default_rng(0).permutation(len(data))
    assert past_outcomes(of_rows(data, order), latent_fit(data)) == found


def test_outcomes_at_one_instant_have_no_order() -> None:
    data = sequence(1, 20, by_outcome=2.0)
    assert data.observed_at is not None
    together = observations(data.rider, data.metric, data.outcome, observed_at=data.observed_at // (20 * HOUR))
    found = past_outcomes(together, latent_fit(data))
    assert (found.correlation, found.pairs, found.simultaneous_share) == (None, 0, 1.0)
    assert "cannot be seen" in found.sentence


def test_without_times_only_the_limit_is_told() -> None:
    data = sequence(2, 6)
    latent = latent_fit(data)
    for time in (None, np.full(len(data), NO_TIME)):
        untimed = observations(data.rider, data.metric, data.outcome, observed_at=time)
        found = past_outcomes(untimed, latent)
        assert found == PastOutcomes(
            limit=exposure.LIMIT, correlation=None, pairs=0, simultaneous_share=None, sentence=None
        )


def test_a_part_of_the_riders_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sequence(1, 20, by_outcome=2.0)
    latent = latent_fit(data)
    whole = past_outcomes(data, latent)
    monkeypatch.setattr(exposure, "_MOST_ROWS", 4_000)
    part = past_outcomes(data, latent)
    assert part.pairs == 200 * 19
    assert part.correlation == pytest.approx(whole.correlation, abs=0.05)


def by_skill(seed: int) -> Observations:
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(200), 25)
    skill = generator.standard_normal(200)
    metric = np.clip(19 + 5 * skill[rider] + generator.normal(0, 6, rider.size), 3, 35)
    return observations(rider, metric, simulate(generator, rider, skill, parabola(metric)))


def test_the_difference_of_the_two_curves_is_told_with_its_place() -> None:
    """Where the strong go, those who go out do better than the population; where the weak go, worse."""
    estimate = fit(by_skill(0))
    found = estimate.diagnostics.marginal
    assert found.largest_difference == abs(found.signed_difference)
    assert found.signed_difference < -0.1
    assert found.at_metric < 13
    assert 0 < abs(found.mean_difference) < found.mean_absolute_difference < found.largest_difference
    assert "over riders" in found.compares
    assert "over outcomes" in found.compares
    sentence = estimate.diagnostics.exposure.sentence
    assert f"{found.signed_difference:+.2f} at {found.at_metric:.4g}" in sentence
    assert "use --exposure correlated" in sentence
    curve = estimate.curves[0]
    at = np.interp(found.at_metric, curve.metric, curve.suitability)
    assert 0 < at + found.signed_difference < 1


def test_a_fit_with_correlated_exposure_is_not_told_to_use_it() -> None:
    estimate = fit(by_skill(0), FitConfig(exposure="correlated"))
    sentence = estimate.diagnostics.exposure.sentence
    assert "use --exposure" not in sentence
    assert "stayed away" in sentence
