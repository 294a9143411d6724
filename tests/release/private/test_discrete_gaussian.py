"""The sampler gives the distribution that the proof speaks of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from isuit.release.private.discrete_gaussian import draw


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5, 2), Fraction(30)])
def test_frequencies_are_those_of_the_discrete_gaussian(variance: Fraction) -> None:
    found = np.array([draw(variance) for _ in range(6_000)])
    reach = int(4 * float(variance) ** 0.5) + 1
    values = np.arange(-reach, reach + 1)
    chance = np.exp(-(values**2) / (2 * float(variance)))
    expected = chance / chance.sum() * found.size
    seen = np.array([np.count_nonzero(found == value) for value in values])
    often = expected > 5
    statistic = float(((seen - expected)[often] ** 2 / expected[often]).sum())
    assert stats.chi2.sf(statistic, often.sum() - 1) > 1e-4


def test_a_large_variance_is_normal() -> None:
    variance = Fraction(10**13, 7)
    found = np.array([draw(variance) for _ in range(3_000)]) / float(variance) ** 0.5
    assert stats.kstest(found, "norm").pvalue > 1e-4


def test_draws_are_fresh() -> None:
    assert len({draw(Fraction(10**12)) for _ in range(50)}) == 50
