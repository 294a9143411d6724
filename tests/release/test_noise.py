"""Noise that is drawn, and not sampled: the same for the same input, another for any other, of the stated size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isuit.release.noise import _shapes, draw, scale, spread
from isuit.release.policy import Policy

ABOUT = ["kitesurfing", "wind_kn", "global"]
WENT_IN = [(0, 5), (1, 7), (1, 3)]


def test_the_same_input_gives_the_same_noise_in_any_order() -> None:
    assert draw(b"secret", ABOUT, WENT_IN, 9).tolist() == draw(b"secret", ABOUT, WENT_IN[::-1], 9).tolist()


@pytest.mark.parametrize(
    ("secret", "about", "went_in"),
    [
        (b"other", ABOUT, WENT_IN),
        (b"secret", ["kitesurfing", "wind_kn", "87386d2eaffffff"], WENT_IN),
        (b"secret", ABOUT, WENT_IN[:2]),
        (b"secret", ABOUT, [(0, 5), (1, 7), (1, 4)]),
        (b"secret", ABOUT, [(0, 5), (1, 7), (2, 3)]),
    ],
)
def test_another_secret_cell_or_input_gives_other_noise(
    secret: bytes, about: list[str], went_in: list[tuple[int, int]]
) -> None:
    assert not np.isclose(draw(secret, about, went_in, 9), draw(b"secret", ABOUT, WENT_IN, 9)).any()


def test_noise_is_normal_with_the_stated_spread_and_moves_a_curve_smoothly() -> None:
    drawn = np.array([draw(number.to_bytes(4, "big"), ABOUT, WENT_IN, 9) for number in range(4_000)])
    for point in (0, 4):
        assert stats.kstest(drawn[:, point] / spread(9)[point], "norm").pvalue > 0.01
    assert np.mean(spread(9)) == pytest.approx(1.0, abs=0.25)
    assert np.linalg.matrix_rank(drawn, tol=1e-8) == 4
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.7
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 8])[0, 1]) < 0.3


def test_noise_is_whole_for_few_riders_and_falls_in_proportion() -> None:
    policy = Policy(noise=0.25, noise_riders=24)
    assert [scale(riders, policy) for riders in (10, 24, 48, 240)] == [0.25, 0.25, 0.125, 0.025]


def test_a_curve_of_one_point_has_the_noise_of_a_middle() -> None:
    """Not that of an end, where every shape is at its largest."""
    assert np.array_equal(_shapes(1)[:, 0], _shapes(3)[:, 1])
    assert [_shapes(points).shape[1] for points in (1, 2, 3)] == [1, 2, 3]
