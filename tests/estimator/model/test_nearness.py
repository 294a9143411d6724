"""Sites that lie near one another: the precision of their levels, and what is chosen from the data."""

import numpy as np
import pytest

from isuit.estimator.model.nearness import LEAST_SITES, Nearness, Neighbours, Precision, _alike, _in_space


def places(count: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(40, 46, count), rng.uniform(5, 13, count)])


def covariance(where: np.ndarray, share: float, range_km: float) -> np.ndarray:
    space = _in_space(where)
    distance = np.linalg.norm(space[:, None] - space[None], axis=2)
    return share * _alike(distance, range_km) + (1 - share) * np.eye(len(where))


def dense(precision: Precision) -> np.ndarray:
    whole = np.diag(precision.diagonal)
    whole[precision.first, precision.second] = whole[precision.second, precision.first] = precision.value
    return whole


def test_few_sites_have_the_whole_covariance():
    # With no more sites before it than neighbours are asked, a level is told by all of them: nothing is left out.
    where = places(9)
    precision = Neighbours.of(where).precision(Nearness(0.7, 120.0, 1.0), 0.5)
    assert np.allclose(np.linalg.inv(dense(precision)), 0.5 * covariance(where, 0.7, 120.0), atol=1e-12)


def test_levels_of_many_sites_are_told_nearly_as_by_all():
    where = places(300)
    rng = np.random.default_rng(5)
    whole = covariance(where, 0.8, 80.0)
    level = np.linalg.cholesky(whole) @ rng.standard_normal(300)
    error = rng.uniform(0.1, 1.0, 300)
    seen = level + np.sqrt(error) * rng.standard_normal(300)
    near = dense(Neighbours.of(where).precision(Nearness(0.8, 80.0, 1.0), 1.0))
    by_all, by_some = (
        np.linalg.solve(prior + np.diag(1 / error), seen / error) for prior in (np.linalg.inv(whole), near)
    )
    assert np.sqrt(np.mean((by_some - level) ** 2)) < 1.02 * np.sqrt(np.mean((by_all - level) ** 2))
    assert np.sqrt(np.mean((seen / (1 + error) - level) ** 2)) > 1.2 * np.sqrt(np.mean((by_some - level) ** 2))


def test_a_site_without_coordinates_is_like_no_other():
    where = places(30)
    where[7] = np.nan
    whole = dense(Neighbours.of(where).precision(Nearness(0.7, 120.0, 1.0), 0.25))
    assert whole[7, 7] == 4.0
    assert np.count_nonzero(whole[7]) == 1


def test_the_order_of_sites_does_not_matter():
    where, order = places(60), np.random.default_rng(1).permutation(60)
    one = dense(Neighbours.of(where).precision(Nearness(0.7, 120.0, 1.0), 1.0))
    other = dense(Neighbours.of(where[order]).precision(Nearness(0.7, 120.0, 1.0), 1.0))
    assert np.allclose(one[np.ix_(order, order)], other, atol=1e-12)


def test_share_and_range_are_found():
    where, rng = places(800), np.random.default_rng(8)
    level = 0.7 * np.linalg.cholesky(covariance(where, 0.6, 60.0)) @ rng.standard_normal(800)
    error = np.full(800, 0.05)
    found = Neighbours.of(where).chosen(level + np.sqrt(error) * rng.standard_normal(800), error, 0.49)
    assert found.share == pytest.approx(0.6, abs=0.15)
    assert 30 < found.range_km < 120


def test_what_is_not_there_is_not_found():
    where, found = places(150), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found += Neighbours.of(where).chosen(rng.standard_normal(150), np.full(150, 0.1), 1.1).share > 0
    assert found <= 5  # one in seven is expected


def test_too_few_sites_tell_nothing():
    where = places(LEAST_SITES - 1)
    assert Neighbours.of(where).chosen(np.ones(len(where)), np.full(len(where), 0.1), 1.0).share == 0.0


def test_sites_at_one_place_and_across_the_date_line():
    where = np.array([[10.0, 180.0], [10.0, -180.0], [10.0, 179.9], [-90.0, 0.0], [90.0, 0.0], [10.0, 180.0]])
    whole = dense(Neighbours.of(where).precision(Nearness(0.9, 50.0, 1.0), 1.0))
    back = np.linalg.inv(whole)
    assert np.all(np.linalg.eigvalsh(whole) > 0)
    assert back[0, 1] == pytest.approx(0.9)
    assert back[0, 5] == pytest.approx(0.9)
    assert abs(back[0, 4]) < 1e-9
