"""Fits in which sites tell of one another."""

from dataclasses import replace

import numpy as np
import pytest

from isuit.domain import FitConfig, Observations
from isuit.errors import InputError
from isuit.estimator import fit
from isuit.estimator.fit import _functions, _prepare
from isuit.estimator.likelihood.latent import borrow, fit_latent
from isuit.estimator.likelihood.solver import evaluate
from isuit.estimator.model.nearness import _alike, _in_space

SITES = 40


def cohort(share: float = 0.95, seed: int = 2) -> tuple[Observations, np.ndarray, np.ndarray]:
    """Outcomes at sites whose levels go with where they are, the places, and the levels."""
    rng = np.random.default_rng(seed)
    where = np.column_stack([rng.uniform(44, 46, SITES), rng.uniform(6, 9, SITES)])
    space = _in_space(where)
    distance = np.linalg.norm(space[:, None] - space[None], axis=2)
    whole = share * _alike(distance, 150.0) + (1 - share) * np.eye(SITES)
    level = 0.8 * np.linalg.cholesky(whole) @ rng.standard_normal(SITES)
    rider = np.repeat(np.arange(160), 15)
    site = rng.integers(0, SITES, (160, 4))[rider, rng.integers(0, 4, rider.size)]
    metric, skill = rng.uniform(3, 35, rider.size), rng.standard_normal(160)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + level[site]
    outcome = (rng.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))).astype(np.int8)
    names = tuple(f"s{k:02d}" for k in range(SITES))
    return Observations(tuple(f"r{k:03d}" for k in range(160)), rider, metric, outcome, names, site), where, level


def asked(where: np.ndarray) -> FitConfig:
    return FitConfig(nearby=tuple((f"s{k:02d}", *place) for k, place in enumerate(where.tolist())))


@pytest.fixture(scope="module")
def both():
    data, where, level = cohort()
    prepared = _prepare(data, FitConfig(), _functions(data, FitConfig()))
    alone = fit_latent(prepared.counts, prepared.space, prepared.single)
    near, nearness = borrow(alone, where)
    return data, where, level, alone, near, nearness


def test_levels_are_told_better(both):
    _, _, level, alone, near, nearness = both
    at = np.array([18.0])

    def rmse(found):
        return np.sqrt(np.mean([(found.difficulty(at, s).value[0] + 1 - level[s]) ** 2 for s in range(SITES)]))

    assert nearness.share > 0.5
    assert rmse(near) < 0.95 * rmse(alone)


def test_it_is_the_maximum_with_the_plain_covariance(both):
    """Gradient and information by finite differences of likelihood and prior, and errors by the plain inverse."""
    *_, near, _ = both
    problem, phi = near.problem, near.solution.phi
    at = evaluate(problem, phi, None, True)[0]
    size = problem.shape.size
    chosen = [0, 3, problem.shape.border, problem.shape.border + problem.shape.width]
    for k in chosen:
        step = np.zeros(size)
        step[k] = 1e-4
        up, down = (evaluate(problem, phi + sign * step, None, False)[0] for sign in (1, -1))
        assert (up.log_likelihood - down.log_likelihood) / 2e-4 == pytest.approx(at.gradient[k], abs=2e-5)
        column = at.information.times(np.eye(size)[k])
        assert np.allclose(-(up.gradient - down.gradient) / 2e-4, column, atol=1e-3 * max(1.0, np.abs(column).max()))
    groups = problem.groups
    weight = np.where(groups >= 0, np.exp(near.solution.rho[np.maximum(groups, 0)]), 0.0)
    whole = near.solution.covariance.matrix.dense()
    assert np.allclose(whole, at.information.dense() + np.diag(weight), rtol=1e-4, atol=1e-4)
    inverse = np.linalg.inv(whole)
    own = near.problem.shape.split(inverse)[1]
    first = problem.shape.border + problem.shape.width * np.arange(problem.shape.places)
    assert np.allclose(near.solution.covariance.blocks[:, 0, 0], own[np.arange(len(first)), 0, first], rtol=1e-5)
    # Degrees of freedom: the trace of covariance times information of the outcomes alone.
    plain = problem.likelihood.evaluate(near.parameters, near.solution.curve, None, True).information.dense()
    fixed = groups == -3
    plain[fixed] = 0.0
    assert near.effective_degrees_of_freedom == pytest.approx(np.trace(inverse @ plain), rel=1e-3)


def test_a_record_says_it_and_predicts_new_sites_better():
    data, where, _ = cohort()
    alone, near = fit(data), fit(data, asked(where))
    assert alone.diagnostics.nearby is None
    assert near.diagnostics.nearby.share > 0.5
    assert near.diagnostics.nearby.range_km > 30
    assert near.log_likelihood < 0
    assert near.log_likelihood != alone.log_likelihood
    scores, before = near.diagnostics.scores.new_sites, alone.diagnostics.scores.new_sites
    assert scores.brier < before.brier
    assert "sites nearby" in scores.rule
    assert "sites nearby" not in before.rule


def test_unrelated_sites_leave_the_fit_as_it_is():
    data, where, _ = cohort(share=0.0, seed=4)
    alone, near = fit(data), fit(data, asked(where))
    assert near.diagnostics.nearby.share == 0.0
    assert "no more alike" in near.diagnostics.nearby.sentence
    for one, other in zip(alone.curves, near.curves, strict=True):
        assert np.array_equal(one.difficulty, other.difficulty)


def test_few_coordinates_leave_the_fit_as_it_is():
    data, where, _ = cohort()
    near = fit(data, asked(where[:19]))
    assert near.diagnostics.nearby.share == 0.0
    assert "19" in near.diagnostics.nearby.sentence


def test_names_and_order_of_sites_do_not_matter():
    data, where, _ = cohort()
    order = np.random.default_rng(0).permutation(SITES)
    code = np.empty(SITES, np.int64)
    code[order] = np.arange(SITES)
    one, other = fit(data, asked(where)), fit(replace(data, site=code[data.site]), asked(where[order]))
    assert one.discrimination == pytest.approx(other.discrimination, abs=1e-6)
    assert np.allclose(one.curves[1].difficulty, other.curves[1 + code[0]].difficulty, atol=1e-5)


@pytest.mark.parametrize("skill", ["estimated", "moving"])
def test_only_with_normal_skill(skill):
    with pytest.raises(InputError, match="where skill is normal"):
        FitConfig(nearby=(("a", 1.0, 2.0),), skill=skill)


@pytest.mark.parametrize(
    "places", [(("b", 0.0, 0.0), ("a", 0.0, 0.0)), (("a", 91.0, 0.0),), (("a", 0.0, float("nan")),)]
)
def test_places_are_on_the_earth_and_in_order(places):
    with pytest.raises(InputError, match="each site once"):
        FitConfig(nearby=places)
