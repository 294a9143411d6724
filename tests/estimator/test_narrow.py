"""Products in pieces are products."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.estimator import narrow


@pytest.mark.parametrize("rows", [1, 100, 20_000])
def test_pieces_make_the_whole(rows: int) -> None:
    generator = np.random.default_rng(rows)
    tall, other = generator.normal(size=(rows, 23)), generator.normal(size=(rows, 17))
    square, vector, by_row = generator.normal(size=(23, 23)), generator.normal(size=23), generator.normal(size=rows)
    assert np.allclose(narrow.product(tall, square), tall @ square)
    assert np.allclose(narrow.gram(tall, other), tall.T @ other)
    assert np.allclose(narrow.times(tall, vector), tall @ vector)
    assert np.allclose(narrow.transposed_times(tall, by_row), tall.T @ by_row)
