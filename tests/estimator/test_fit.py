"""One fit from outcomes to estimate: known truth, another program's numbers, invariances, fallbacks, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import Estimate, Exposure, FitConfig, FloatArray, Observations
from isuit.errors import EstimationError, InputError
from isuit.estimator import fit
from isuit.estimator.diagnostics import heldout
from isuit.estimator.diagnostics.exposure import marginal_tolerance
from isuit.experiment.cohort import Truth, draw

from .cohorts import assert_finite, latent_fit, numbers, observations, of_rows, parabola, simulate

LME4 = json.loads((Path(__file__).parents[1] / "golden" / "lme4_reference.json").read_text())


def latent_parts(estimate: Estimate) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Discrimination, difficulty and its standard error, skill means and sds."""
    assert estimate.kind == "latent"
    assert estimate.discrimination is not None
    assert estimate.skills is not None
    curve = estimate.curves[0]
    assert curve.difficulty is not None
    assert curve.difficulty_se is not None
    return estimate.discrimination, curve.difficulty, curve.difficulty_se, estimate.skills.mean, estimate.skills.sd


def assert_same(one: Estimate, other: Estimate, close: float) -> None:
    for here, there in zip(latent_parts(one), latent_parts(other), strict=True):
        assert np.max(np.abs(here - there)) < close


# Known truth


def test_reference_cohort_comes_back(estimate: Estimate, true_skill: FloatArray) -> None:
    a, difficulty, se, skill, sd = latent_parts(estimate)
    assert a == pytest.approx(1.80, abs=0.03)  # the maximum-likelihood value
    assert estimate.discrimination_se == pytest.approx(0.17, abs=0.01)
    assert np.corrcoef(skill, true_skill)[0, 1] >= 0.964
    error = difficulty - parabola(estimate.curves[0].metric)
    assert np.sqrt(np.mean(error**2)) < 0.2
    assert np.mean(np.abs(error) < 1.96 * se) > 0.9
    assert np.mean(np.abs(skill - true_skill) < 1.96 * sd) > 0.9
    assert estimate.diagnostics.minimum.location == pytest.approx(18.0, abs=0.3)
    assert estimate.held_out is not None
    assert estimate.held_out.brier_skill > 4 * estimate.held_out.brier_skill_se
    assert estimate.diagnostics.convergence.gradient_norm < 1e-7
    assert estimate.skills is not None
    assert estimate.skills.usable.all()


@pytest.mark.long
def test_riders_with_two_thousand_outcomes() -> None:
    """A fixed grid of nodes gives a = 1.4 here, and sds twenty times too small."""
    coverage, ratio, sds, errors = [], [], [], []
    for seed in range(6):
        data, skill = draw(Truth(riders=60, outcomes=2000), seed)
        a, _, _, mean, sd = latent_parts(fit(data))
        ratio.append(a / (2 * skill.std()))
        coverage.append(np.mean(np.abs(mean - skill) <= 1.96 * sd))
        sds.append(sd.mean())
        errors.append(np.mean((mean - skill) ** 2))
    assert all(0.95 <= value <= 1.05 for value in ratio)
    # Errors within a cohort are nearly one error, that of its origin: six cohorts are six draws.
    assert np.mean(coverage) > 0.6
    assert 0.5 < np.mean(sds) / np.sqrt(np.mean(errors)) < 2


def test_agreement_with_lme4(estimate: Estimate) -> None:
    """glmer with 25 adaptive nodes, on a parabola: our curve too, because smoothing goes to its limit on this cohort.

    Tolerances: 1e-4 for the discrimination and the curve, in skill sds, and for the log-likelihood; both programs stop
    within about 1e-5 of the maximum. lme4 gives modes and we give means, which differ by the posterior's skew.
    """
    a, difficulty, _, skill, sd = latent_parts(estimate)
    scale = LME4["random_effect_sd"]
    unit = (estimate.curves[0].metric - 18) / 8
    intercept, tilt, bend = LME4["fixed_effects"]
    assert a == pytest.approx(scale, abs=1e-4)
    assert difficulty == pytest.approx(-(intercept + tilt * unit + bend * unit**2) / scale, abs=1e-4)
    assert estimate.log_likelihood == pytest.approx(LME4["log_likelihood"], abs=1e-4)
    assert estimate.skills is not None
    assert list(estimate.skills.riders) == LME4["riders"]
    modes, mode_sds = np.array(LME4["conditional_modes"]) / scale, np.array(LME4["conditional_sds"]) / scale
    assert np.max(np.abs(skill - modes) / sd) < 0.3
    assert np.corrcoef(skill, modes)[0, 1] > 0.9995
    # Ours includes the uncertainty of the curve and of the discrimination.
    assert np.all(sd > 0.98 * mode_sds)


def test_conditional_modes_agree_with_lme4(reference: Observations) -> None:
    """Newton steps on each rider's log posterior, with our curve: lme4's modes and curvatures, to 1e-4 skill sds."""
    found = latent_fit(reference)
    a, f, counts = found.discrimination, found.solution.curve.value, found.problem.likelihood.counts
    mode, trials = found.solution.at.posterior.mean, counts.trials.toarray()
    for _ in range(20):
        p = expit(a * mode[:, None] - f)
        curvature = 1 + a * a * (trials * p * (1 - p)).sum(axis=1)
        mode = mode + (a * (counts.rider_successes - (trials * p).sum(axis=1)) - mode) / curvature
    scale = LME4["random_effect_sd"]
    assert mode == pytest.approx(np.array(LME4["conditional_modes"]) / scale, abs=1e-4)
    assert 1 / np.sqrt(curvature) == pytest.approx(np.array(LME4["conditional_sds"]) / scale, abs=1e-4)


# Invariances


def test_row_order_changes_no_bit(reference: Observations, estimate: Estimate) -> None:
    order = np.random.default_rng(3).permutation(len(reference))
    assert dict(numbers(fit(of_rows(reference, order)))) == dict(numbers(estimate))


def test_row_order_changes_no_bit_with_sites_in_a_large_cohort() -> None:
    generator = np.random.default_rng(1)
    rider = np.repeat(np.arange(130), 40)
    metric, site = generator.uniform(3, 35, rider.size), generator.integers(-1, 3, rider.size)
    outcome = simulate(generator, rider, generator.standard_normal(130), parabola(metric))
    data = observations(rider, metric, outcome, site)
    order = generator.permutation(len(data))
    assert dict(numbers(fit(of_rows(data, order)))) == dict(numbers(fit(data)))


def test_labels_of_riders_do_not_matter(reference: Observations, estimate: Estimate) -> None:
    renamed = replace(reference, rider=79 - reference.rider)
    other = fit(renamed)
    assert other.skills is not None
    turned = replace(other, skills=replace(other.skills, mean=other.skills.mean[::-1], sd=other.skills.sd[::-1]))
    assert_same(estimate, turned, 1e-6)
    assert other.held_out is not None
    assert estimate.held_out is not None
    assert other.held_out.brier_skill == pytest.approx(estimate.held_out.brier_skill, abs=1e-7)


@pytest.mark.parametrize(("scale", "shift"), [(0.514444, 0.0), (1.0, 1e5), (1e-9, -3.0), (1e9, 1e6)])
def test_units_of_the_metric_do_not_matter(
    reference: Observations, estimate: Estimate, scale: float, shift: float
) -> None:
    other = fit(replace(reference, metric=scale * reference.metric + shift))
    assert_same(estimate, other, 1e-5)
    here, there = estimate.diagnostics.minimum, other.diagnostics.minimum
    for end in ("location", "lower", "upper"):
        assert (getattr(there, end) - shift) / scale == pytest.approx(getattr(here, end), abs=0.05)


def test_mirrored_outcomes_mirror_the_fit(reference: Observations) -> None:
    """Failures as successes: skills and difficulty change their sign, and nothing else."""
    own, other = latent_fit(reference), latent_fit(replace(reference, outcome=1 - reference.outcome))
    metric = np.linspace(4, 34, 20)
    assert other.discrimination == pytest.approx(own.discrimination, abs=1e-5)
    assert other.difficulty(metric).value == pytest.approx(-own.difficulty(metric).value, abs=1e-4)
    assert other.skills()[0] == pytest.approx(-own.skills()[0], abs=1e-4)


def test_counting_in_cells_changes_estimates_by_little_of_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = draw(Truth(riders=130, outcomes=40), 7)
    in_cells = latent_fit(data)
    assert in_cells.problem.likelihood.counts.items < 500
    monkeypatch.setattr("isuit.estimator.model.counts.EXACT_ROWS", 10_000)
    exact = latent_fit(data)
    assert exact.problem.likelihood.counts.items == 5200
    metric = np.linspace(3, 35, 50)
    here, there = in_cells.difficulty(metric), exact.difficulty(metric)
    assert np.max(np.abs(here.value - there.value) / there.se) < 0.05
    assert abs(in_cells.discrimination - exact.discrimination) < 0.05 * exact.discrimination_se


# Single curve, promotion, and what is honest


@pytest.mark.long
def test_cohorts_without_skill_end_as_a_single_curve() -> None:
    """A test at 1 % may let one of 40 through, and two in one of twelve hundred runs: at most two."""
    promoted = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        rider = np.repeat(np.arange(60), 20)
        metric = generator.uniform(3, 35, rider.size)
        outcome = simulate(generator, rider, np.zeros(60), parabola(metric), a=1.0)
        estimate = fit(observations(rider, metric, outcome))
        promoted += estimate.kind == "latent"
        if estimate.kind == "single-curve":
            assert estimate.skills is None
            assert estimate.discrimination is None
            assert estimate.promotion is not None
            assert estimate.promotion.shortfalls
            assert all(curve.difficulty is None for curve in estimate.curves)
    assert promoted <= 2


def test_marginal_identity(estimate: Estimate) -> None:
    """Integrating skill out of the latent fit gives the single curve, up to its sampling error."""
    marginal = estimate.diagnostics.marginal
    assert marginal.matches
    assert marginal.largest_difference <= marginal.tolerance == marginal_tolerance(80)
    # On a cohort in which every rider meets the same conditions the two agree closely.
    generator = np.random.default_rng(0)
    rider = np.repeat(np.arange(400), 40)
    metric = np.tile(np.linspace(3, 35, 40), 400)
    skill = generator.standard_normal(400)
    skill = (skill - skill.mean()) / skill.std()
    balanced = fit(observations(rider, metric, simulate(generator, rider, skill, parabola(metric))))
    assert balanced.diagnostics.marginal.largest_difference < 0.015


def test_riders_who_always_succeed_or_fail_stay_finite(reference: Observations) -> None:
    outcome = reference.outcome.copy()
    outcome[reference.rider == 3], outcome[reference.rider == 4] = 1, 0
    estimate = fit(replace(reference, outcome=outcome))
    assert_finite(estimate)
    assert estimate.skills is not None
    assert estimate.skills.mean[3] == max(estimate.skills.mean)
    assert estimate.skills.mean[4] == min(estimate.skills.mean)
    assert estimate.skills.mean[3] < 5
    assert estimate.skills.mean[4] > -5


def test_a_rider_outside_the_core_gets_no_skill_but_counts(reference: Observations) -> None:
    """A rider with one outcome: no skill in `core`; `strict` refuses the cohort."""
    data = observations(
        np.append(reference.rider, 80), np.append(reference.metric, 20.0), np.append(reference.outcome, 1)
    )
    core = fit(data)
    assert core.skills is not None
    assert len(core.skills.riders) == 80
    assert core.identification.core_riders == 80
    assert core.log_likelihood != fit(reference).log_likelihood
    strict = fit(data, FitConfig(gate="strict"))
    assert strict.kind == "single-curve"
    assert strict.identification.shortfalls == ("1 of 81 riders were observed in fewer than 3 of the 8 metric bins",)


def test_usable_needs_outcomes_bins_and_a_posterior_narrower_than_the_population(reference: Observations) -> None:
    """Rider 80 has four outcomes; rider 81 five, in three bins, where everybody fails: they tell nothing."""
    generator = np.random.default_rng(0)
    four, five = generator.uniform(3, 35, 4), np.array([3.2, 3.4, 31.0, 34.0, 34.5])
    data = observations(
        np.concatenate([reference.rider, np.full(4, 80), np.full(5, 81)]),
        np.concatenate([reference.metric, four, five]),
        np.concatenate([reference.outcome, np.ones(4), np.zeros(5)]),
    )
    skills = fit(data, FitConfig(min_bins_per_rider=1)).skills
    assert skills is not None
    place = {rider: k for k, rider in enumerate(skills.riders)}
    assert not skills.usable[place["rider-00080"]]
    assert skills.outcomes[place["rider-00081"]] == 5
    assert skills.sd[place["rider-00081"]] > 0.8
    assert not skills.usable[place["rider-00081"]]
    assert skills.usable[:80].all()


# Bad input


def with_metric(data: Observations, row: int, value: float) -> Observations:
    metric = data.metric.copy()
    metric[row] = value
    return replace(data, metric=metric)


EMPTY = observations(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))

REFUSED = {
    "no outcomes": (lambda d: EMPTY, "no outcomes"),
    "NaN": (lambda d: with_metric(d, 5, np.nan), "not finite"),
    "infinite": (lambda d: with_metric(d, 5, -np.inf), "not finite"),
    "outcome 2": (lambda d: replace(d, outcome=d.outcome + 1), "0 or 1"),
    "range beyond binary64": (lambda d: with_metric(with_metric(d, 5, 1.7e308), 6, -1.7e308), "other units"),
    "huge scale": (lambda d: replace(d, metric=d.metric * 1e200), "other units"),
    "tiny scale": (lambda d: replace(d, metric=d.metric * 1e-300), "other units"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_one_sentence(name: str, reference: Observations) -> None:
    spoil, says = REFUSED[name]
    with pytest.raises(InputError, match=says) as caught:
        fit(spoil(reference))
    assert "rider-0" not in str(caught.value)
    assert str(caught.value).endswith(".")


def at_twenty_sites(data: Observations) -> Observations:
    return replace(data, sites=tuple(f"site-{s:03d}" for s in range(20)), site=np.arange(len(data)) % 20)


SINGLE = {
    "one rider": lambda d: replace(d, riders=("only",), rider=np.zeros_like(d.rider)),
    "one outcome": lambda d: observations([0], [1.0], [1]),
    "two riders": lambda d: replace(d, riders=("one", "two"), rider=d.rider % 2),
    "all succeed": lambda d: replace(d, outcome=np.ones_like(d.outcome)),
    "all fail": lambda d: replace(d, outcome=np.zeros_like(d.outcome)),
    "constant metric": lambda d: replace(d, metric=np.full(len(d), 5.0)),
    "metric zero": lambda d: replace(d, metric=np.zeros(len(d))),
    "two distinct metrics": lambda d: replace(d, metric=np.where(d.metric > 18, 1.0, 2.0)),
    "neighbouring metrics": lambda d: replace(d, metric=np.where(d.metric > 18, 1.0, np.nextafter(1.0, 2.0))),
    "the metric decides alone": lambda d: replace(d, outcome=(d.metric > 18).astype(np.int64)),
    "the metric decides alone at every site": lambda d: replace(
        at_twenty_sites(d), outcome=(d.metric > 18).astype(np.int64)
    ),
    "riders always or never succeed": lambda d: replace(d, outcome=d.rider % 2),
    "skill decides": lambda d: replace(d, outcome=(d.rider > 2 * (d.metric - 3)).astype(np.int64)),
    "a single failure": lambda d: replace(d, outcome=(np.arange(len(d)) != 5).astype(np.int64)),
    "a single success": lambda d: replace(d, outcome=(np.arange(len(d)) == 5).astype(np.int64)),
}


@pytest.mark.parametrize("name", SINGLE)
def test_what_tells_nothing_of_skill_ends_as_a_single_curve(name: str, reference: Observations) -> None:
    estimate = fit(SINGLE[name](reference))
    assert estimate.kind == "single-curve"
    reasons = [*estimate.identification.shortfalls]
    if estimate.promotion is not None:
        reasons += estimate.promotion.shortfalls
    assert reasons
    assert_finite(estimate)
    for curve in estimate.curves:
        assert np.all((curve.suitability >= 0) & (curve.suitability <= 1))


HARD = {
    "outlier at 1e9": lambda d: with_metric(d, 7, 1e9),
    "one rider succeeds": lambda d: replace(d, outcome=(d.rider == 5).astype(np.int64)),
    "three metrics": lambda d: replace(d, metric=np.digitize(d.metric, [10.0, 20.0]).astype(np.float64)),
    "five metrics": lambda d: replace(d, metric=np.digitize(d.metric, [8.0, 15.0, 20.0, 30.0]).astype(np.float64)),
    "shifted beyond digits": lambda d: replace(d, metric=d.metric + 1e16),
    "twenty sites": at_twenty_sites,
    "sites that share no rider": lambda d: replace(d, sites=("north", "south"), site=d.rider % 2),
    "sites that share no metric": lambda d: replace(d, sites=("north", "south"), site=(d.metric > 18).astype(np.int64)),
    "riders without rows": lambda d: replace(d, riders=(*d.riders, *(f"z-{k}" for k in range(9)))),
}


@pytest.mark.parametrize(
    ("name", "exposure"), [(name, "independent") for name in HARD] + [(name, "correlated") for name in SINGLE]
)
def test_hard_cohorts_are_fitted_finitely_or_refused(name: str, exposure: Exposure, reference: Observations) -> None:
    try:
        estimate = fit((HARD | SINGLE)[name](reference), FitConfig(exposure=exposure))
    except EstimationError as error:
        sentence = str(error)
    else:
        assert_finite(estimate)
        return
    assert sentence.endswith(".")
    assert "rider-0" not in sentence


@pytest.mark.parametrize(
    ("anchor", "says"),
    [
        ((), "two points"),
        (((3.0, 0.5),), "two points"),
        (((3.0, 0.5), (18.0, float("nan"))), "finite"),
        (((35.0, 0.1), (3.0, 0.9)), "increasing"),
        (((3.0, 0.1), (35.0, 1.2)), "outside 0 to 1"),
        (((100.0, 0.1), (200.0, 0.9)), "no shape"),
    ],
)
def test_anchors_that_say_nothing_are_refused(
    anchor: tuple[tuple[float, float], ...], says: str, reference: Observations
) -> None:
    with pytest.raises(InputError, match=says):
        fit(reference, FitConfig(anchor=anchor))


def test_a_split_by_time_needs_times(reference: Observations) -> None:
    with pytest.raises(InputError, match="observed_at"):
        fit(reference, FitConfig(split="time"))


def test_small_ordinary_cohorts_always_end() -> None:
    """Seed 1075 is one on which the smoothing of the single curve alternates between two values."""
    for seed in (1000, 1001, 1002, 1075):
        estimate = fit(draw(Truth(riders=20, outcomes=10), seed)[0])
        assert_finite(estimate)


def test_a_refit_without_a_best_fit_does_not_stop_the_fit() -> None:
    """What is not kept back is told wholly by skill and metric; what is, is chance, so that the whole has a maximum."""
    generator = np.random.default_rng(4)
    rider, skill = np.repeat(np.arange(30), 30), np.linspace(-2, 2, 30)
    metric = generator.uniform(3, 35, rider.size)
    told = (skill[rider] > parabola(metric)).astype(np.int64)
    kept_back = heldout.kept_back_rows(observations(rider, metric, told), "rider")
    outcome = np.where(kept_back, generator.integers(0, 2, rider.size), told)
    found = fit(observations(rider, metric, outcome))
    assert found.kind == "latent"
    assert found.held_out is None
    assert "There is no best fit" in found.diagnostics.scores.left_out["held_out"]


def test_a_site_that_only_held_out_outcomes_have_does_not_stop_the_fit() -> None:
    generator = np.random.default_rng(4)
    riders, outcomes, sites = 60, 20, 150
    rider = np.repeat(np.arange(riders), outcomes)
    metric = generator.uniform(3, 35, rider.size)
    # About eight outcomes a site, and some with a single one: those vanish when their outcome is kept back.
    site = np.minimum((sites * generator.random(rider.size) ** 0.5).astype(np.int64), sites - 1)
    site[:sites] = np.arange(sites)
    skill = generator.standard_normal(riders)
    success = expit(2 * (skill[rider] - ((metric - 18) / 8) ** 2 + 1))
    data = Observations(
        tuple(f"r{r:02d}" for r in range(riders)),
        rider,
        metric,
        (generator.random(rider.size) < success).astype(np.int64),
        tuple(f"s{s:03d}" for s in range(sites)),
        site,
    )
    estimate = fit(data)
    assert estimate.kind == "latent"
    assert estimate.held_out is not None
    assert len(estimate.curves) == 1 + sites


@pytest.mark.parametrize("seed", [0, 5, 22, 25])
def test_no_skill_beside_correlated_exposure_is_a_single_curve(seed: int) -> None:
    """What riders' conditions explain by chance, they explain with a going to zero and coefficients to infinity."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(150), 20)
    home = generator.uniform(8, 28, 150)
    metric = np.clip(generator.normal(home[rider], 4), 3, 35)
    outcome = (generator.random(rider.size) < expit(-2 * parabola(metric))).astype(np.int64)
    estimate = fit(observations(rider, metric, outcome), FitConfig(exposure="correlated"))
    assert estimate.kind == "single-curve"
    assert estimate.skills is None


@pytest.mark.parametrize("seed", [0, 2])
def test_weak_skill_that_conditions_tell_is_skill(seed: int) -> None:
    """Where riders choose by skill, their conditions tell nearly all of it: what is left beside goes to zero."""
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(400), 50)
    skill = generator.standard_normal(400)
    metric = 0.5 * skill[rider] + np.sqrt(0.75) * generator.standard_normal(rider.size)
    outcome = simulate(generator, rider, skill, metric, a=0.2)
    estimate = fit(observations(rider, metric, outcome), FitConfig(exposure="correlated"))
    assert estimate.kind == "latent"
    assert estimate.discrimination is not None
    assert estimate.discrimination_se is not None
    assert abs(estimate.discrimination - 0.2) < 3 * estimate.discrimination_se < 0.15
    assert_finite(estimate)


def test_riders_who_divide_their_days_evenly_between_two_sites() -> None:
    """Shares of visits that hardly differ are all but collinear with the level: the information must be exact there."""
    generator = np.random.default_rng(2)
    rider = np.repeat(np.arange(250), 800)
    metric, site = generator.integers(6, 71, rider.size) / 2, generator.integers(0, 2, rider.size)
    skill = generator.standard_normal(250)
    outcome = simulate(generator, rider, skill, parabola(metric) + 0.5 * site)
    estimate = fit(observations(rider, metric, outcome, site))
    assert estimate.diagnostics.convergence.steps < 15
    gap = estimate.curves[2].difficulty - estimate.curves[1].difficulty
    assert np.median(gap) * skill.std() == pytest.approx(0.5, abs=0.05)
