"""Noise that is drawn, and not sampled: the same for the same input, another for any other, of the stated size."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from isuit.release.noise import RULES, _uniform, draw, of_cell, scale, shapes, smoothed, spread
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
    assert np.array_equal(shapes(1)[:, 0], shapes(3)[:, 1])
    assert [shapes(points).shape[1] for points in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("riders", [10, 24, 60])
def test_errors_that_have_noise_cover_as_often_as_without(riders: int) -> None:
    """Whatever the noise on them, 1.96 published errors hold 95 % of normal differences, to half a point."""
    policy = Policy()
    drawn = np.array(
        [of_cell(number.to_bytes(4, "big"), ABOUT, WENT_IN, 9, riders, policy).error for number in range(4_000)]
    )
    inside = 2 * stats.norm.cdf(1.96 * drawn) - 1
    assert inside.mean(axis=0) == pytest.approx(np.full(9, 0.95), abs=0.006)
    assert np.log(drawn).std(axis=0) == pytest.approx(0.25 * min(1, 24 / riders) * spread(9), rel=0.05)


def test_a_policy_without_noise_has_none_of_any_kind() -> None:
    found = of_cell(b"secret", ABOUT, WENT_IN, 9, 12, Policy(noise=0.0))
    assert (found.difficulty.any(), found.size, found.error.tolist(), found.riders.any()) == (
        False,
        0.0,
        [1.0] * 9,
        False,
    )


def test_errors_are_smoothed_to_the_shapes_that_have_noise() -> None:
    """What is in the shapes stays; a jump from point to point goes."""
    smooth = np.exp(np.array([[0.3, -0.1, 0.4, 0.2], [-2.0, 0.0, 0.1, 0.0]]) @ shapes(9))
    assert smoothed(smooth) == pytest.approx(smooth)
    jumps = np.exp(0.1 * (-1.0) ** np.arange(9))
    assert np.abs(np.log(smoothed(smooth * jumps) / smooth)).max() < 0.08
    assert np.linalg.matrix_rank(np.log(smoothed(np.random.default_rng(1).uniform(0.1, 1, (30, 9)))), tol=1e-8) == 4


@pytest.mark.parametrize(
    ("digest", "uniform"),
    [(bytes(32), 2.0**-54), (b"\x80" + bytes(31), 0.5), (b"\xff" * 32, 1 - 2.0**-53)],
)
def test_a_draw_is_never_zero_or_one(digest: bytes, uniform: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their quantiles are infinite."""
    monkeypatch.setattr("isuit.release.noise.hmac.new", lambda *_: SimpleNamespace(digest=lambda: digest))
    assert _uniform(b"key", 0) == pytest.approx(uniform, rel=1e-15, abs=0)
    assert 0 < _uniform(b"key", 0) < 1


def test_noise_of_releases_on_record_is_drawn_again() -> None:
    """Another value here is another rule: releases that were made with this one cannot be derived again."""
    assert RULES == 2
    assert draw(b"secret", ABOUT, WENT_IN, 3) == pytest.approx([0.908350654, -0.906338034, -1.919735835], abs=1e-8)
