import numpy as np
import pytest

from isuit.estimator.likelihood.boundary import boundary_p_value


@pytest.mark.parametrize("extra", [0, 1, 3])
def test_ratios_of_the_null_are_below_a_level_as_often_as_it_says(extra):
    random = np.random.default_rng(5)
    draws = 20_000
    # What the null gives: the value on the boundary is estimated as zero in half of all cohorts.
    inside = np.maximum(random.standard_normal(draws), 0) ** 2
    ratios = inside + (random.chisquare(extra, draws) if extra else 0)
    for level in (0.2, 0.05):
        share = np.mean([boundary_p_value(ratio, extra) < level for ratio in ratios])
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / draws))


def test_a_ratio_of_zero_says_nothing():
    assert boundary_p_value(0.0, 0) == 0.5
    assert boundary_p_value(0.0, 2) == 1.0
