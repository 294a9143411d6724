"""Several metrics: the functions of a surface, its fit against a known truth, its terms, and where it is supported."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

from isuit.domain import Z95, FitConfig, FloatArray, Observations
from isuit.errors import InputError
from isuit.estimator import fit, is_supported, score_surface
from isuit.estimator.likelihood.latent import LatentFit, fit_latent
from isuit.estimator.likelihood.prepared import Prepared
from isuit.estimator.likelihood.solver import evaluate
from isuit.estimator.model import counts as counting
from isuit.estimator.model.counts import count_conditions
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.surface import Surface, surface_for
from isuit.estimator.model.terms import weighted_chi_square_tail
from isuit.estimator.support import support_of
from isuit.published import reading
from isuit.record import as_json
from isuit.record.parameters import LatentSurfaceParameters


def difficulty(wind: FloatArray, wave: FloatArray, together: float = 0.5) -> FloatArray:
    return ((wind - 18) / 8) ** 2 - 1 + 0.6 * (wave - 1.5) + together * ((wind - 18) / 8) * ((wave - 1.5) / 0.8)


def cohort(
    seed: int = 1, correlation: float = 0.0, sites: int = 0, riders: int = 200, effect: float = 1.0
) -> Observations:
    """Wind and wave of this correlation; outcomes with a discrimination of 1.5."""
    rng = np.random.default_rng(seed)
    skill = rng.standard_normal(riders)
    z = rng.standard_normal((riders * 30, 2))
    z[:, 1] = correlation * z[:, 0] + np.sqrt(1 - correlation**2) * z[:, 1]
    wave, wind = 3 * ndtr(z[:, 1]), 3 + 32 * ndtr(z[:, 0])
    rider = np.repeat(np.arange(riders), 30)
    hard = difficulty(wind, wave) if effect else ((wind - 18) / 8) ** 2 - 1
    site = rng.integers(0, sites, rider.size).astype(np.int32) if sites else None
    if site is not None:
        hard = hard + np.linspace(-0.5, 0.5, sites)[site]
    outcome = (rng.random(rider.size) < expit(1.5 * (skill[rider] - hard))).astype(np.int8)
    names = tuple(f"r{number:04d}" for number in range(riders))
    places = tuple(f"s{number:02d}" for number in range(sites))
    return Observations(
        names, rider.astype(np.int32), wave, outcome, places, site, metrics=("wave", "wind"), further=(wind,)
    )


def latent(data: Observations) -> LatentFit:
    surface = surface_for(data.metrics, data.conditions)
    counts = count_conditions(data.rider, data.conditions, data.outcome, surface.splines, len(data.riders), data.site)
    space = CurveSpace.for_outcomes(len(data), surface, len(data.sites))
    return fit_latent(counts, space, Prepared(counts, space).single)


def test_every_function_but_the_level_has_mean_zero_over_the_cohort() -> None:
    data = cohort(riders=20)
    surface = surface_for(data.metrics, data.conditions)
    design = CurveSpace(surface, 0).design(data.condition, np.full(len(data), -1), 1.0)
    columns = design.columns()
    assert columns.shape[1] == len(surface.groups()) == surface.in_raw.shape[1]
    assert np.allclose(columns[:, 0], 1.0)
    mains = np.concatenate([term.coefficients for term in surface.terms if len(term.metrics) == 1])
    assert np.allclose(columns[:, mains].mean(axis=0), 0.0, atol=1e-12)
    together = np.concatenate([[0], *(term.coefficients for term in surface.terms)])
    assert sorted(together.tolist()) == list(range(columns.shape[1]))


def test_an_interaction_is_the_product_of_its_margins() -> None:
    rng = np.random.default_rng(0)
    columns = tuple(rng.random(500) for _ in range(3))
    surface = surface_for(("a", "b", "c"), columns)
    metric = np.column_stack(columns)
    values = CurveSpace(surface, 0).design(metric, np.full(500, -1), 1.0).columns()
    for term, (j, k) in zip(surface.terms[3:], combinations(range(3), 2), strict=True):
        assert term.metrics == (j, k)
        margins = []
        for number in (j, k):
            functions = surface.margins[number].design(columns[number]) @ surface.margins[number].in_raw[:, 1:]
            margins.append(functions - functions.mean(axis=0))
        product = (margins[0][:, :, None] * margins[1][:, None, :]).reshape(500, -1)
        assert np.allclose(values[:, term.coefficients], product, atol=1e-10)


@pytest.mark.parametrize("sites", [0, 3, 8])
def test_gradient_and_information_are_those_of_the_likelihood(sites: int) -> None:
    data = cohort(riders=30, sites=sites)
    fitted = latent(data)
    problem, phi = fitted.problem, fitted.solution.phi.copy()
    at, _ = evaluate(problem, phi, None, True)
    assert at.information is not None
    rng = np.random.default_rng(2)
    free = problem.groups != -3
    for _ in range(3):
        along = rng.standard_normal(phi.size) * free
        along /= np.linalg.norm(along)
        step = 1e-5
        ahead, behind = (evaluate(problem, phi + sign * step * along, None, False)[0] for sign in (1, -1))
        slope = (ahead.log_likelihood - behind.log_likelihood) / (2 * step)
        assert slope == pytest.approx(float(at.gradient @ along), rel=1e-4, abs=1e-4)
        bend = (ahead.gradient - behind.gradient) / (2 * step)
        assert np.allclose(-bend[free], at.information.times(along)[free], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_surface_is_found_with_its_interaction(correlation: float) -> None:
    errors, inside = [], []
    for seed in range(4):
        data = cohort(seed, correlation)
        fitted = latent(data)
        rows = slice(None, None, 20)
        band = fitted.difficulty(data.condition[rows])
        error = band.value - difficulty(data.further[0][rows], data.metric[rows])
        errors.append(np.mean(error**2))
        inside.append(np.mean(np.abs(error) < Z95 * band.se))
    assert np.sqrt(np.mean(errors)) < 0.3  # a tenth of what difficulty varies by
    assert 0.85 < np.mean(inside) <= 1.0


def test_terms_that_the_data_do_not_need_are_told_zero() -> None:
    needed = fit(cohort(3)).diagnostics.terms
    assert needed is not None
    assert [term.metrics for term in needed] == [("wave",), ("wind",), ("wave", "wind")]
    assert [term.is_zero for term in needed] == [False, False, False]
    needless = [fit(cohort(seed, effect=0.0)).diagnostics.terms for seed in range(3)]
    assert all(terms is not None and not terms[1].is_zero for terms in needless)
    told = [term.is_zero for terms in needless if terms is not None for term in (terms[0], terms[2])]
    assert np.mean(told) > 0.5


def test_metrics_that_move_together_are_told_in_a_sentence() -> None:
    data = cohort(1, 0.95)
    terms = fit(data).diagnostics.terms
    assert terms is not None
    assert terms[0].explained_by_others > 0.7
    assert "moves with the other metrics" in (terms[0].sentence or "")
    apart = fit(cohort(1, 0.0)).diagnostics.terms
    assert apart is not None
    assert apart[0].explained_by_others < 0.05
    assert apart[0].sentence is None


@pytest.mark.parametrize(("sites", "exposure"), [(0, "independent"), (3, "independent"), (8, "correlated")])
def test_what_is_recorded_scores_as_the_fit_does(sites: int, exposure: str) -> None:
    estimate = fit(cohort(1, 0.3, sites), FitConfig(exposure=exposure))  # type: ignore[arg-type]
    parameters = estimate.parameters
    assert isinstance(parameters, LatentSurfaceParameters)
    assert estimate.discrimination is not None
    for curve in estimate.curves:
        assert curve.difficulty is not None
        assert curve.difficulty_se is not None
        condition = np.tile(parameters.support.reference, (curve.metric.size, 1))
        condition[:, parameters.metrics.index(curve.dimension or "")] = curve.metric
        code = -1 if curve.site is None or not parameters.sites else parameters.sites.index(curve.site)
        site = np.full(curve.metric.size, code)
        scored = score_surface(parameters, condition, site, np.zeros(curve.metric.size))
        assert np.allclose(logit(scored.suitability), -estimate.discrimination * curve.difficulty, atol=1e-8)
        # At a skill equal to the difficulty the discrimination's error does not matter.
        level = score_surface(parameters, condition, site, curve.difficulty)
        half = (logit(level.upper) - logit(level.suitability)) / Z95
        assert np.allclose(half, estimate.discrimination * curve.difficulty_se, rtol=1e-3)


def test_a_fit_does_not_depend_on_the_order_of_rows() -> None:
    data = cohort(1, riders=60)
    order = np.random.default_rng(5).permutation(len(data))
    one, other = fit(data), fit(data.rows(order))
    assert one.discrimination == pytest.approx(other.discrimination, abs=1e-9)


def test_units_do_not_matter() -> None:
    data = cohort(1, riders=60)
    other = replace(data, metric=data.metric * 1000.0, further=(data.further[0] / 1000.0 - 7.0,))
    assert fit(data).discrimination == pytest.approx(fit(other).discrimination, abs=1e-6)


def test_cells_of_a_large_cohort_change_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = cohort(1, riders=150)
    exact = latent(data)
    monkeypatch.setattr(counting, "EXACT_ROWS", 10)
    merged = latent(data)
    assert merged.problem.likelihood.counts.items < exact.problem.likelihood.counts.items
    at = data.condition[::50]
    one, other = exact.difficulty(at), merged.difficulty(at)
    assert np.max(np.abs(one.value - other.value) / one.se) < 0.1


def test_levels_are_never_merged_in_a_large_cohort(monkeypatch: pytest.MonkeyPatch) -> None:
    data = cohort(1, riders=40)
    attempt = np.arange(len(data)) % 3 + 1.0
    monkeypatch.setattr(counting, "EXACT_ROWS", 10)
    surface = surface_for(("attempt", "wave", "wind"), (attempt, *data.conditions))
    counts = count_conditions(data.rider, (attempt, *data.conditions), data.outcome, surface.splines, 40)
    assert np.unique(counts.item_metric[:, 0]).tolist() == [1.0, 2.0, 3.0]
    assert counts.items < len(data)


@pytest.mark.long
def test_a_metric_that_hardly_changes_for_a_rider_passes_and_is_told() -> None:
    data = cohort(1, riders=80)
    weight = 50.0 + data.rider % 40  # of a rider, always the same
    data = replace(data, metric=weight, metrics=("weight", "wind"))
    for exposure in ("independent", "correlated"):
        estimate = fit(data, FitConfig(exposure=exposure))  # type: ignore[arg-type]
        assert estimate.kind == "latent"
        assert estimate.diagnostics.terms is not None
        of_weight, of_wind, _ = estimate.diagnostics.terms
        assert of_weight.within_riders == pytest.approx(0.0, abs=1e-9)
        assert "compares riders with one another" in (of_weight.sentence or "")
        assert of_wind.sentence is None
        assert of_wind.within_riders is not None
        assert of_wind.within_riders > 0.9
    strict = fit(data, FitConfig(gate="strict"))
    assert strict.kind == "single-curve"
    assert any(told.startswith("weight: ") for told in strict.identification.shortfalls)
    # Where riders move along no metric, nothing tells their skill from difficulty.
    nobody = fit(replace(data, further=(20.0 + data.rider // 2 % 7 + weight / 100,)))
    assert nobody.kind == "single-curve"


def test_the_tail_of_weighted_chi_squares() -> None:
    assert weighted_chi_square_tail(3.841458820694124, np.ones(1)) == pytest.approx(0.05, abs=1e-9)
    assert weighted_chi_square_tail(2 * 7.814727903251179, np.full(3, 2.0)) == pytest.approx(0.05, abs=1e-9)
    weights = np.array([5.0, 2.0, 1.0, 0.3, 0.1])
    drawn = np.random.default_rng(0).standard_normal((200_000, 5)) ** 2 @ weights
    for share in (0.1, 0.05, 0.01):
        assert weighted_chi_square_tail(float(np.quantile(drawn, 1 - share)), weights) == pytest.approx(share, rel=0.08)
    assert weighted_chi_square_tail(1.0, np.zeros(2)) == 1.0


def test_few_levels_are_a_factor() -> None:
    data = cohort(1, riders=80)
    rng = np.random.default_rng(3)
    level = rng.integers(0, 3, len(data)).astype(float)
    outcome = np.where(rng.random(len(data)) < np.where(level == 1, 0.3, 0.0), 0, data.outcome).astype(np.int8)
    data = replace(data, outcome=outcome, metrics=("board", "wind"), metric=level)
    estimate = fit(data)
    terms = estimate.diagnostics.terms
    assert terms is not None
    assert not terms[0].is_zero
    curve = next(curve for curve in estimate.curves if curve.dimension == "board")
    assert curve.difficulty is not None
    middle = curve.difficulty[curve.metric.size // 2]
    assert middle > max(curve.difficulty[0], curve.difficulty[-1]) + 0.2
    two = replace(data, metric=(level > 0).astype(float))
    assert fit(two).kind == "latent"


def test_where_nobody_was_is_not_supported() -> None:
    data = cohort(1, 0.9)
    parameters = fit(data).parameters
    assert isinstance(parameters, LatentSurfaceParameters)
    corner, middle, beyond = [0.05, 34.5], [1.5, 18.0], [1.5, 40.0]
    assert is_supported(parameters.support, np.array([corner, middle, beyond])).tolist() == [False, True, False]
    assert is_supported(parameters.support, data.condition).mean() > 0.95


def test_the_last_bins_of_two_metrics_do_not_stand_for_the_corner_beyond_them() -> None:
    random = np.random.default_rng(3)
    one, two = random.exponential(size=(2, 4000))
    data = Observations(
        tuple(f"r{number:03d}" for number in range(200)),
        np.repeat(np.arange(200, dtype=np.int32), 20),
        one,
        np.zeros(4000, np.int8),
        metrics=("one", "two"),
        further=(two,),
    )
    support = support_of(data, FitConfig())
    far = [[one.max(), two.max()], [one.max() - 1, two.max() - 1]]
    near = [[0.5, 0.5], [3.0, 0.3], [2.5, 2.5]]  # (2.5, 2.5) is in the last bins of equal numbers, and was met
    assert is_supported(support, np.array(far + near)).tolist() == [False, False, True, True, True]
    before = replace(support, wide_edges=(), wide_pairs=())  # as a record of an older version has it
    assert is_supported(before, np.array(far)).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: {"metric": np.full(len(data), 2.0)}, "wave is 2 in every outcome"),
        (lambda data: {"metric": data.further[0] * 1000 + 1}, "follows from the others"),
        (lambda data: {"metric": np.where(np.arange(len(data)) == 3, np.nan, data.metric)}, "metric wave has values"),
    ],
)
def test_a_metric_that_says_nothing_is_refused(change: object, sentence: str) -> None:
    data = cohort(1, riders=20)
    with pytest.raises(InputError, match=sentence):
        fit(replace(data, **change(data)))  # type: ignore[operator]


@pytest.mark.parametrize(("off", "refused"), [(0.0, True), (0.02, True), (0.2, False)])
def test_a_metric_that_is_a_combination_of_two_others_is_refused(off: float, refused: bool) -> None:
    """Neither of the two tells it alone; nearly the same combination is refused too, and what is left of one is not."""
    data = cohort(1, riders=40)
    sum_ = data.metric / data.metric.std() - data.further[0] / data.further[0].std()
    sum_ = sum_ + off * sum_.std() * np.random.default_rng(1).standard_normal(len(data))
    assert max(abs(np.corrcoef(sum_, metric)[0, 1]) for metric in data.conditions) < 0.8
    data = replace(data, metrics=("swell", "wave", "wind"), metric=sum_, further=data.conditions)
    if not refused:
        assert fit(data).kind in ("latent", "single-curve")
        return
    with pytest.raises(InputError, match=r"The metric swell follows from the others \((100.00|99.9.)% of its variance"):
        fit(data)


def test_an_anchor_is_of_one_metric() -> None:
    with pytest.raises(InputError, match="curve of one metric"):
        fit(cohort(riders=20), FitConfig(anchor=((0.0, 0.5), (1.0, 0.9))))
    with pytest.raises(InputError, match="none of the metrics"):
        fit(cohort(riders=20), FitConfig(anchors=(("gust", ((0.0, 0.5), (1.0, 0.9))),)))
    with pytest.raises(InputError, match="The anchor of wave is the same"):
        fit(cohort(riders=20), FitConfig(anchors=(("wave", ((0.0, 0.5), (9.0, 0.5))),)))


# What an expert might say: best from 15 to 20 knots, and soon worse beyond; the lower the waves the better.
EXPERT = (
    ("wave", ((0.0, 0.9), (1.0, 0.7), (2.0, 0.4), (3.0, 0.2))),
    ("wind", ((3.0, 0.03), (11.0, 0.06), (15.0, 0.95), (20.0, 0.95), (24.0, 0.06), (35.0, 0.03))),
)
WRONG = (("wind", ((3.0, 0.95), (18.0, 0.1), (35.0, 0.95))),)  # easiest where it is hardest


def as_the_expert_says(condition: FloatArray) -> FloatArray:
    """Half of the expert's log odds of failing for the wind, and nothing for the wave."""
    spline = surface_for(("wave", "wind"), (np.linspace(0, 3, 50), np.linspace(3, 35, 50)), EXPERT)
    return 0.5 * spline.anchors[1].values(condition)


def error_of(data: Observations, anchors: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]) -> float:
    surface = surface_for(data.metrics, data.conditions, anchors)
    counts = count_conditions(data.rider, data.conditions, data.outcome, surface.splines, len(data.riders))
    space = CurveSpace.for_outcomes(len(data), surface, 0)
    found = fit_latent(counts, space, Prepared(counts, space).single)
    at = data.condition[::7]
    return float(np.sqrt(np.mean((found.difficulty(at).value - as_the_expert_says(at)) ** 2)))


@pytest.mark.long
def test_experts_help_where_they_are_right_and_are_overruled_where_they_are_wrong() -> None:
    alone, told, misled = [], [], []
    for seed in range(3):
        data, rng = cohort(seed, riders=40), np.random.default_rng(seed)
        chance = expit(1.5 * (rng.standard_normal(40)[data.rider] - as_the_expert_says(data.condition)))
        data = replace(data, outcome=(rng.random(len(data)) < chance).astype(np.int8))
        alone.append(error_of(data, ()))
        told.append(error_of(data, EXPERT))
        misled.append(error_of(data, WRONG))
    assert np.mean(told) < 0.9 * np.mean(alone)
    assert np.mean(misled) < 1.1 * np.mean(alone)


def test_an_anchored_surface_is_scored_from_its_record_and_read_back() -> None:
    data = cohort(1, riders=60)
    estimate = fit(data, FitConfig(anchors=EXPERT))
    assert isinstance(estimate.parameters, LatentSurfaceParameters)
    again = reading.parameters(json.dumps(as_json(estimate.parameters)))
    assert again == estimate.parameters
    for curve in estimate.curves:
        assert curve.difficulty is not None
        assert estimate.discrimination is not None
        condition = np.tile(estimate.parameters.support.reference, (curve.metric.size, 1))
        condition[:, data.metrics.index(curve.dimension or "")] = curve.metric
        nowhere = np.full(curve.metric.size, -1)
        scored = score_surface(estimate.parameters, condition, nowhere, np.zeros(curve.metric.size))
        assert np.allclose(logit(scored.suitability), -estimate.discrimination * curve.difficulty, atol=1e-8)


def test_a_configuration_without_anchors_keeps_its_name() -> None:
    assert "anchors" not in FitConfig().as_json()
    assert FitConfig(anchors=EXPERT).as_json()["anchors"]["wave"][0] == [0.0, 0.9]


def test_ten_riders_have_an_answer() -> None:
    assert fit(cohort(riders=10)).kind in ("latent", "single-curve")
    assert isinstance(surface_for(("a", "b"), cohort(riders=10).conditions), Surface)
