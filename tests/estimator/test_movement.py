"""Skill that moves: found where it does, left alone where it cannot be seen, and predictions from the day's skill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isuit.domain import NO_TIME, Estimate, FitConfig
from isuit.estimator import fit, movement
from isuit.estimator.likelihood import moving, solver
from isuit.estimator.likelihood.latent import fit_latent
from isuit.estimator.likelihood.moving_fit import fit_moving
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.occasions import DAY, Occasions, recent
from isuit.estimator.model.population import plain_population

from .cohorts import moving_cohort, numbers

MOVING = FitConfig(skill="moving", split="time")


@pytest.fixture(scope="module")
def moved() -> Estimate:
    return fit(moving_cohort()[0], MOVING)


@pytest.mark.long
class TestMovingSkill:
    def test_it_is_followed(self, moved: Estimate) -> None:
        data, skill = moving_cohort()
        report = moved.diagnostics.movement
        assert report is not None
        assert report.moves
        assert report.p_value is not None and report.p_value < 1e-6  # noqa: PT018
        assert moved.skills is not None
        assert moved.skills.paths is not None
        unit = skill.std()
        inside = []
        for rider, path in zip(moved.skills.riders, moved.skills.paths, strict=True):
            own = skill[data.rider == int(rider[-5:])]
            inside.append(np.abs(path.mean - (own - skill.mean()) / unit) < 1.96 * path.sd)
        assert np.mean(np.concatenate(inside)) > 0.9
        assert report.walk_per_year is not None
        assert report.walk_per_year * unit == pytest.approx(1.2, abs=0.35)

    def test_a_fit_of_standing_skill_recommends_it(self) -> None:
        report = fit(moving_cohort()[0], FitConfig()).diagnostics.movement
        assert report is not None
        assert not report.moves
        assert "--skill moving" in (report.sentence or "")

    def test_later_days_are_predicted_better(self, moved: Estimate) -> None:
        still = fit(moving_cohort()[0], replace(MOVING, skill="normal"))
        assert moved.held_out is not None
        assert still.held_out is not None
        assert moved.held_out.brier < still.held_out.brier

    def test_skills_are_those_of_the_last_day(self, moved: Estimate) -> None:
        assert moved.skills is not None
        assert moved.skills.paths is not None
        assert [path.mean[-1] for path in moved.skills.paths] == moved.skills.mean.tolist()

    def test_rows_in_another_order_give_the_same_bits(self, moved: Estimate) -> None:
        data, _ = moving_cohort()
        again = fit(data.rows(np.random.default_rng(2).permutation(len(data))), MOVING)
        assert dict(numbers(again.diagnostics.movement)) == dict(numbers(moved.diagnostics.movement))
        assert again.discrimination == moved.discrimination


@pytest.mark.long
def test_skill_that_stands_still_is_told_so() -> None:
    estimate = fit(moving_cohort(walk=0.0, seed=4)[0], MOVING)
    report = estimate.diagnostics.movement
    assert report is not None
    assert not report.moves
    assert "no reason to think that it moves" in (report.sentence or "")
    assert estimate.skills is not None
    assert estimate.skills.paths is None


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (lambda data: None, "no outcome has a time"),
        (lambda data: np.full(len(data), 17_000 * DAY), "more than one day"),
        (lambda data: data.rider * DAY, "more than one day"),
        (lambda data: np.where(data.rider == 0, NO_TIME, data.observed_at), "have no time"),
    ],
    ids=["none", "one instant", "one day for each rider", "some without"],
)
def test_without_days_to_see_it_move_on_skill_stands_still(times, reason: str) -> None:
    data, _ = moving_cohort(riders=30)
    estimate = fit(replace(data, observed_at=times(data)), FitConfig(skill="moving"))
    assert estimate.kind == "latent"
    report = estimate.diagnostics.movement
    assert report is not None
    assert not report.moves
    assert reason in (report.sentence or "")


@pytest.mark.long
def test_days_in_the_future_are_days() -> None:
    data, _ = moving_cohort(riders=40)
    assert data.observed_at is not None
    later = fit(replace(data, observed_at=data.observed_at + 100_000 * DAY), MOVING)
    now = fit(data, MOVING)
    assert later.discrimination == now.discrimination


def test_it_converges_where_the_information_is_that_of_some_riders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 of the 200 riders here. Asked for again at the same place it is as wrong as before: a fit that went on from
    fresh information alone stepped to and fro for ever."""
    data, _ = moving_cohort(riders=200, days=20, walk=0.6, seed=3)
    spline = spline_for(data.metric)
    space = CurveSpace(spline, 0)
    by_rider = count(data.rider, data.metric, data.outcome, spline, 200)
    still = fit_latent(by_rider, space, Prepared(by_rider, space).single, False)
    occasions = Occasions.of(data)
    counts = count(occasions.of_row, data.metric, data.outcome, spline, occasions.size)
    exact = fit_moving(occasions, counts, still, False)
    monkeypatch.setattr(moving, "EXACT", 800)
    some = fit_moving(occasions, counts, still, False)
    assert some.problem.likelihood.samples_information
    assert not exact.problem.likelihood.samples_information
    assert some.solution.gradient_norm < solver.TOLERANCE
    assert some.walk == pytest.approx(exact.walk, abs=0.1 * exact.walk_se)
    assert some.discrimination == pytest.approx(exact.discrimination, abs=0.01)


def test_a_large_cohort_is_tested_by_some_of_its_riders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rider's score is what it is among all riders, and those of the others are left out."""
    data, _ = moving_cohort(riders=200, days=10, walk=2.0)
    spline = spline_for(data.metric)
    space = CurveSpace(spline, 0)
    by_rider = count(data.rider, data.metric, data.outcome, spline, 200)
    prepared = Prepared(by_rider, space)
    still = fit_latent(by_rider, space, prepared.single, False)
    occasions = Occasions.of(data)
    counts = count(occasions.of_row, data.metric, data.outcome, spline, occasions.size)
    gap = occasions.gaps(occasions.since_first() / np.median(occasions.spans()))
    likelihood = moving.MovingLikelihood(
        by_rider, plain_population(by_rider), occasions.riders, counts, gap, np.zeros((occasions.size, 0))
    )
    p = still.parameters
    at = moving.MovingParameters(p.a, p.shared, np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    rate, others = likelihood.rate_scores(at, still.problem.curve.at(p.a, p.shared, np.zeros((0, 0))))
    rate, others = rate[::2], others[::2]
    own = rate - others @ np.linalg.lstsq(others, rate, rcond=None)[0]
    monkeypatch.setattr(movement, "_TESTED_OUTCOMES", 1_000)
    report = movement.movement(data, FitConfig(), prepared, still).report
    assert report is not None
    assert report.statistic == pytest.approx(own.sum() / np.sqrt(own @ own), rel=0.02)
    assert report.p_value is not None and report.p_value < 0.01  # noqa: PT018


@pytest.mark.long
def test_one_rider_may_have_ten_thousand_days() -> None:
    """Beside thirty with twenty each: a fit of moving skill is found and judged, not given up."""
    data, _ = moving_cohort(riders=30, days=20)
    assert data.observed_at is not None
    generator, days = np.random.default_rng(5), 10_000
    with_many = replace(
        data,
        riders=(*data.riders, "many"),
        rider=np.concatenate([data.rider, np.full(days, 30)]),
        metric=np.concatenate([data.metric, generator.choice(np.linspace(4, 34, 9), days)]),
        outcome=np.concatenate([data.outcome, generator.integers(0, 2, days)]),
        observed_at=np.concatenate([data.observed_at, (10_000 + np.arange(days)) * DAY]),
    )
    estimate = fit(with_many, FitConfig(skill="moving"))
    assert estimate.kind == "latent"
    report = estimate.diagnostics.movement
    assert report is not None
    assert report.test == "likelihood-ratio"
    assert report.p_value is not None and np.isfinite(report.p_value)  # noqa: PT018


class TestRecentPast:
    def test_it_is_the_weighted_mean_of_earlier_days_and_of_a_first_day_its_own(self) -> None:
        data, _ = moving_cohort(riders=2, days=4)
        occasions = Occasions.of(data)
        gap = occasions.gaps(occasions.since_first())
        sums, outcomes = np.arange(8.0)[:, None], np.ones(8)
        found = recent(occasions, gap, sums, outcomes, 100.0)[:, 0]
        day = occasions.day[:4]
        weight = 0.5 ** ((day[3] - day[:3]) / 100.0)
        assert found[0] == found[1] == 0.0
        assert found[3] == pytest.approx(weight @ np.arange(3.0) / weight.sum())
        assert found[4] == 4.0

    def test_outcomes_do_not_enter_and_days_kept_back_add_nothing(self) -> None:
        data, _ = moving_cohort(riders=2, days=4)
        kept = np.ones(8, dtype=bool)
        kept[3] = False
        occasions = Occasions.of(data, kept)
        assert not occasions.seen[3]
        gap = occasions.gaps(occasions.since_first())
        outcomes = np.where(occasions.seen, 1.0, 0.0)
        found = recent(occasions, gap, np.arange(8.0)[:, None] * outcomes[:, None], outcomes, 1e12)[:, 0]
        assert found[3] == pytest.approx(1.0)
