"""Scores for riders and sites that a fit never saw."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from isuit.domain import Observations
from isuit.errors import EstimationError
from isuit.estimator import fit
from isuit.estimator.diagnostics import heldout, newcomers
from isuit.estimator.diagnostics.forecasts import Forecasts
from isuit.estimator.diagnostics.newcomers import marginals
from isuit.record.predictions import Scores

from ..cohorts import latent_fit, observations, of_rows, parabola, simulate


def many_sites(seed: int, riders: int = 90, outcomes: int = 30, sites: int = 10) -> Observations:
    """Sites that differ in level, riders who go to a few of them each."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(riders), outcomes)
    metric = generator.uniform(3, 35, rider.size)
    site = generator.integers(0, sites, rider.size)
    level = generator.normal(0, 0.5, sites)
    outcome = simulate(generator, rider, generator.standard_normal(riders), parabola(metric) + level[site])
    return observations(rider, metric, outcome, site)


class Caught:
    """Forecasts on their way to be scored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forecasts: list[Forecasts] = []
        self._of_forecasts = newcomers.forecasts.of_forecasts
        monkeypatch.setattr(newcomers.forecasts, "of_forecasts", self._score)

    def _score(self, given: Forecasts) -> Scores:
        self.forecasts.append(given)
        return self._of_forecasts(given)


def test_predictions_for_new_riders_do_not_use_their_outcomes(
    reference: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refit starts from the full solution, so the last digits may move; nothing else may."""
    caught = Caught(monkeypatch)
    kept_back = heldout.of_new_riders(reference)
    fit(reference)
    fit(replace(reference, outcome=np.where(kept_back, 1 - reference.outcome, reference.outcome)))
    _, own, _, other = caught.forecasts  # held out and new riders, twice
    assert own.outcome.size == kept_back.sum()
    assert np.array_equal(own.outcome, 1 - other.outcome)
    assert np.max(np.abs(own.latent - other.latent)) < 1e-4
    assert np.max(np.abs(own.single - other.single)) < 1e-6


def test_a_new_rider_is_one_of_the_population(reference: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prediction is the marginal curve of a fit of the other riders, from scratch."""
    caught = Caught(monkeypatch)
    fit(reference)
    kept_back = heldout.of_new_riders(reference)
    assert np.unique(reference.rider[kept_back]).size == 16
    rest = of_rows(reference, ~kept_back)
    others = latent_fit(
        replace(rest, rider=np.unique(rest.rider, return_inverse=True)[1], riders=reference.riders[:64])
    )
    expected = others.marginal(reference.metric[kept_back])
    # The spline's knots are those of the whole cohort.
    assert caught.forecasts[1].latent == pytest.approx(expected, abs=0.003)


def test_new_sites_are_predicted_by_the_shared_curve_and_what_is_known_of_the_rider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = many_sites(0)
    found = fit(data).diagnostics.scores
    assert found.new_sites.sites == 2
    assert found.left_out == {}
    assert found.new_sites.intervals.rider.brier_skill[0] > 0.1
    caught = Caught(monkeypatch)
    fit(data)
    kept_back = heldout.of_new_sites(data)
    others = latent_fit(of_rows(data, ~kept_back))
    expected = others.predict(data.rider[kept_back], data.metric[kept_back], np.full(kept_back.sum(), -1))
    # The spline's knots are those of the whole cohort.
    assert caught.forecasts[2].latent == pytest.approx(expected, abs=0.01)


def test_predictions_at_new_sites_do_not_use_outcomes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = Caught(monkeypatch)
    data = many_sites(1)
    kept_back = heldout.of_new_sites(data)
    generator = np.random.default_rng(0)
    outcome = np.where(kept_back, generator.integers(0, 2, len(data)), data.outcome)
    fit(data)
    fit(replace(data, outcome=outcome))
    own, other = caught.forecasts[2], caught.forecasts[5]
    assert own.outcome.size == kept_back.sum()
    assert not np.array_equal(own.outcome, other.outcome)
    assert np.max(np.abs(own.latent - other.latent)) < 1e-3


def test_where_riders_choose_by_skill_the_population_is_the_wrong_forecast() -> None:
    """Those who go out are not the population: for one of them, the single curve predicts better."""
    generator = np.random.default_rng(0)
    rider = np.repeat(np.arange(200), 25)
    skill = generator.standard_normal(200)
    metric = np.clip(19 + 5 * skill[rider] + generator.normal(0, 6, rider.size), 3, 35)
    data = observations(rider, metric, simulate(generator, rider, skill, parabola(metric)))
    found = fit(data).diagnostics.scores.new_riders
    assert found.intervals.rider.brier_skill[1] < 0
    assert "integrated out" in found.rule


def test_few_sites_are_left_out_with_the_reason(reference: Observations) -> None:
    found = fit(replace(reference, sites=("a", "b"), site=np.arange(2400) % 2)).diagnostics.scores
    assert found.new_riders is not None
    assert found.new_sites is None
    assert found.left_out == {"new_sites": "the cohort has fewer than 5 sites"}


def test_riders_known_from_nowhere_else_are_not_scored_at_new_sites() -> None:
    data = many_sites(2)
    home = replace(data, site=data.rider % 10)
    found = fit(home).diagnostics.scores
    assert found.new_sites is None
    assert found.left_out["new_sites"] == "no rider at the sites kept back was seen elsewhere"


def test_a_refit_that_fails_fails_nothing_else(reference: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("isuit.estimator.fit")  # the package gives its function under the same name
    refit = module._refit

    def fails(*given: Any, **named: Any) -> newcomers.Refit:
        if given[-1] == "new riders":
            raise EstimationError("It did not converge.")
        return refit(*given, **named)

    monkeypatch.setattr(module, "_refit", fails)
    estimate = fit(reference)
    assert estimate.kind == "latent"
    found = estimate.diagnostics.scores
    assert found.held_out is not None
    assert found.new_riders is None
    assert found.left_out["new_riders"] == "the refit without them failed: It did not converge."


def test_others_whose_outcomes_are_all_equal_are_left_out(reference: Observations) -> None:
    kept_back = heldout.of_new_riders(reference)
    data = replace(reference, outcome=np.where(kept_back, reference.outcome, 1))

    def refit(chosen: Any, stage: str) -> newcomers.Refit:
        raise AssertionError("not to be fitted")

    found = newcomers.newcomers(data, refit, None)
    assert found.left_out["new_riders"] == "all outcomes of the others are equal"


def test_stages_of_their_own(reference: Observations) -> None:
    stages: dict[str, float] = {}
    fit(many_sites(0), progress=lambda stage, share: stages.update({stage: share}))
    assert list(stages) == ["fit", "held out", "new riders", "new sites"]
    assert all(share > 0.9 for share in stages.values())


def test_a_table_of_the_marginal_curve_is_as_good_as_the_curve(
    reference: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = latent_fit(reference)
    metric = np.random.default_rng(0).permutation(np.append(reference.metric, [2.0, 40.0]))
    site = np.full(metric.size, -1)
    tabulated = marginals(found, metric, site)
    assert np.max(np.abs(tabulated - found.marginal(metric))) < 1e-6
    # Few metrics are not tabulated.
    few = marginals(found, metric[:50], site[:50])
    assert few == pytest.approx(found.marginal(metric[:50]), rel=1e-13)


def test_sites_keep_their_own_marginal_curves() -> None:
    data = many_sites(3)
    found = latent_fit(data)
    assert data.site is not None
    predicted = marginals(found, data.metric, data.site)
    for code in range(10):
        here = data.site == code
        assert np.max(np.abs(predicted[here] - found.marginal(data.metric[here], code))) < 1e-6


def test_a_cohort_without_skill_is_a_single_curve_and_says_why_nobody_is_scored() -> None:
    generator = np.random.default_rng(0)
    rider = np.repeat(np.arange(60), 20)
    metric = generator.uniform(3, 35, rider.size)
    outcome = simulate(generator, rider, np.zeros(60), parabola(metric), a=1.0)
    estimate = fit(observations(rider, metric, outcome))
    assert estimate.kind == "single-curve"
    assert estimate.skills is None
    assert estimate.promotion is not None
    assert estimate.promotion.shortfalls
    found = estimate.diagnostics.scores
    assert found.new_riders is None
    assert found.left_out == dict.fromkeys(("new_riders", "new_sites"), "the fit is the single curve")
    assert estimate.diagnostics.estimand.startswith("Outcomes exist only for those who went out")


def test_labels_change_no_score_but_by_rounding() -> None:
    data = many_sites(4)
    generator = np.random.default_rng(1)
    own = fit(data).diagnostics.scores
    other = fit(replace(data, rider=generator.permutation(90)[data.rider])).diagnostics.scores
    for here, there in zip(
        (own.held_out, own.new_riders, own.new_sites), (other.held_out, other.new_riders, other.new_sites), strict=True
    ):
        assert here.outcomes == there.outcomes
        for name in ("brier", "brier_skill", "log_score_gain"):
            assert getattr(here, name) == pytest.approx(getattr(there, name), abs=1e-6)
            interval = getattr(here.intervals.rider, name)
            assert interval == pytest.approx(getattr(there.intervals.rider, name), abs=1e-6)
