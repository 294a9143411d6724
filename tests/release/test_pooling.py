"""What cells tell of one another's noise: less of it is left, and errors say how much."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from isuit.domain import FloatArray
from isuit.release.noise import shapes, spread
from isuit.release.pooling import _between, pooled

POINTS = 9
SIZES = 0.36 * np.minimum(1.0, 24 / np.linspace(15, 120, 40))


def world(seed: int, form: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Curves of forty cells that differ by 0.4 in level and so much in form, without noise and with it."""
    random = np.random.default_rng(seed)
    x = np.linspace(-1, 1, POINTS)
    exact = 3 * x**2 - 1 + random.normal(0, 0.4, (SIZES.size, 1))
    exact += form * random.standard_normal((SIZES.size, 3)) @ shapes(POINTS)[1:]
    return exact, exact + SIZES[:, None] * (random.standard_normal((SIZES.size, 4)) @ shapes(POINTS))


@pytest.mark.parametrize(("form", "share", "said_of_left"), [(0.0, 0.25, 1.8), (0.3, 0.65, 1.1), (0.6, 0.85, 1.1)])
def test_less_noise_is_left_and_errors_say_how_much(form: float, share: float, said_of_left: float) -> None:
    """Somewhat too much where cells have one form to the last digit: that they do is not known."""
    left, said, noise = [], [], []
    for seed in range(100):
        exact, drawn = world(seed, form)
        found = pooled(drawn, SIZES)
        left.append(found.value - exact)
        said.append(found.sd)
        noise.append(drawn - exact)
    assert np.mean(np.square(left)) < share * np.mean(np.square(noise))
    for cells in (slice(0, 5), slice(5, 20), slice(20, 40)):
        ours, truth = (np.mean(np.square(each)[:, cells]) for each in (np.array(said), np.array(left)))
        assert 0.93 * truth < ours < said_of_left * truth
        inside = np.abs(left)[:, cells] < 1.96 * np.array(said)[:, cells]
        assert 0.94 < np.mean(inside) < 0.985


def test_cells_that_differ_far_more_than_noise_keep_their_curves() -> None:
    _, drawn = world(1)
    apart = drawn + np.random.default_rng(2).normal(0, 100, (SIZES.size, 4)) @ shapes(POINTS)
    assert np.abs(pooled(apart, SIZES).value - apart).max() < 0.02
    assert pooled(apart, SIZES).sd == pytest.approx(SIZES[:, None] * spread(POINTS), rel=1e-3)


def test_a_form_that_noise_cannot_have_is_left_alone() -> None:
    _, drawn = world(3)
    wave = (-1.0) ** np.arange(POINTS)
    wave -= shapes(POINTS).T @ np.linalg.lstsq(shapes(POINTS).T, wave, rcond=None)[0]
    moved = pooled(drawn + np.arange(SIZES.size)[:, None] * wave, SIZES).value - pooled(drawn, SIZES).value
    assert moved == pytest.approx(np.arange(SIZES.size)[:, None] * wave, abs=1e-9)


def test_order_and_origin_of_curves_do_not_matter() -> None:
    _, drawn = world(4)
    found = pooled(drawn, SIZES)
    order = np.random.default_rng(5).permutation(SIZES.size)
    assert pooled(drawn[order] + 7.0, SIZES[order]).value == pytest.approx(found.value[order] + 7.0, abs=1e-9)
    assert pooled(drawn[order] + 7.0, SIZES[order]).sd == pytest.approx(found.sd[order], abs=1e-9)


@pytest.mark.parametrize(("cells", "points", "noise"), [(3, POINTS, 1.0), (40, 3, 1.0), (40, POINTS, 0.0)])
def test_few_cells_few_points_or_no_noise_are_left_as_they_are(cells: int, points: int, noise: float) -> None:
    _, drawn = world(6)
    found = pooled(drawn[:cells, :points], noise * SIZES[:cells])
    assert np.array_equal(found.value, drawn[:cells, :points])
    assert np.array_equal(found.sd, noise * SIZES[:cells, None] * spread(points))
    assert not np.array_equal(pooled(drawn[:4], SIZES[:4]).value, drawn[:4])
    assert not np.array_equal(pooled(drawn[:, :4], SIZES).value, drawn[:, :4])


@pytest.mark.parametrize("cells", [4, 10, 40])
def test_of_cells_that_agree_three_parts_of_the_noise_are_left(cells: int) -> None:
    """Of as many parts as there are cells: one for their mean, and two for what they differ by, which is estimated."""
    found = pooled(np.zeros((cells, POINTS)), np.full(cells, 0.3))
    assert found.sd**2 == pytest.approx(np.tile(3 / cells * (0.3 * spread(POINTS)) ** 2, (cells, 1)))


def test_the_variance_between_cells_solves_its_equation() -> None:
    random = np.random.default_rng(7)
    part = random.normal(0, 0.4, SIZES.size) + SIZES * random.standard_normal(SIZES.size)

    def excess(between: float) -> float:
        weight = 1 / (between + SIZES**2)
        return float(np.sum(weight * (part - np.average(part, weights=weight)) ** 2) - (SIZES.size - 1))

    assert _between(part, SIZES**2) == pytest.approx(brentq(excess, 0, 10), rel=1e-6)
    assert _between(np.zeros(SIZES.size), SIZES**2) == 0.0


@pytest.mark.parametrize("cells", [4, 10, 40])
def test_what_is_left_where_levels_differ_is_as_worked_out_by_hand(cells: int) -> None:
    """Half of the cells are above and half below, with noise of one size: Morris' formulas in these terms."""
    apart, noise = 0.5, 0.3**2
    level, *others = shapes(POINTS)
    found = pooled(apart * (-1.0) ** np.arange(cells)[:, None] * level, np.full(cells, 0.3))
    drawn = (cells - 3) / cells * noise / apart**2
    assert np.abs(found.value) == pytest.approx(np.tile((1 - drawn) * apart * level, (cells, 1)))
    left = noise * (1 - (cells - 1) / cells * drawn) + 2 / (cells - 3) * (drawn * apart) ** 2
    expected = left * level**2 + 3 / cells * noise * np.square(others).sum(axis=0)
    assert found.sd**2 == pytest.approx(np.tile(expected, (cells, 1)))
