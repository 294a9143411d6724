"""Order statistics over slices against numpy's over the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isuit import columns
from isuit.estimator.model import order
from isuit.estimator.model.order import order_statistics, quantiles

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.integers(0, 400).map(lambda k: 18.0 + k / 10),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308]),
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few dozen numbers pass through what many do."""
    monkeypatch.setattr(columns, "SLICE_ROWS", 7)
    monkeypatch.setattr(order, "_FEW", 3)


@settings(max_examples=500, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=120), st.lists(st.integers(0, 119), min_size=1, max_size=8))
def test_exact_with_ties_and_extremes(values: list[float], asked: list[int]) -> None:
    column, ranks = np.array(values), np.minimum(asked, len(values) - 1)
    expected = np.partition(column, ranks)[ranks] + 0.0
    assert order_statistics(column, ranks).tobytes() == expected.tobytes()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=120), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_quantiles_are_numpys_to_the_last_bit(values: list[float], shares: list[float]) -> None:
    column = np.array(values) + 0.0
    assert quantiles(column, np.array(shares)).tobytes() == np.quantile(column, shares).tobytes()


def test_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SLICE_ROWS", 1000)
    monkeypatch.setattr(order, "_FEW", 1000)
    generator = np.random.default_rng(3)
    for column in (generator.normal(0, 1, 50_000), generator.gamma(1, 1, 50_000), np.tile([3.0, 4.0], 25_000)):
        ranks = np.arange(1, 8) * column.size // 8
        assert np.array_equal(order_statistics(column, ranks), np.partition(column, ranks)[ranks])
