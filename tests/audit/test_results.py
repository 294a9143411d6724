"""How far apart two results are, number by number."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from isuit.audit.results import largest_difference, number_difference


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        (0.5, 0.25, 0.25),  # up to one as it is
        (4.0, 2.0, 0.5),  # beyond, relative to the larger
        (-4.0, 2.0, 1.5),
        ({"a": [0.5, {"b": 1}]}, {"a": [0.5, {"b": 0.9}]}, 0.1),
        ({"ok": True}, {"ok": False}, 1.0),
        ({"a": 1, "said": "0.51"}, {"a": 1, "said": "0.52"}, 0.0),
        ("words", "other words", 0.0),
        ({"a": 1}, {"a": 1, "b": 0}, math.inf),
        ([1, 2], [1], math.inf),
        ({"a": None}, {"a": 0}, math.inf),
        (1.0, math.nan, math.inf),
        (math.inf, math.inf, math.inf),
    ],
)
def test_numbers_of_two_documents(before: object, after: object, difference: float) -> None:
    assert number_difference(before, after) == pytest.approx(difference)
    assert number_difference(after, before) == pytest.approx(difference)


def test_columns_of_two_tables() -> None:
    table = pa.table({"a": [1.0, None, 3.0], "b": [0.0, 0.0, 0.0], "c": [9.0, 9.0, 9.0]})
    other = pa.table({"a": [1.5, None, 3.0], "b": [0.0, 0.0, 2.0], "c": [0.0, 0.0, 0.0]})
    assert largest_difference(table, other, ("a", "b")) == 2.0
    assert largest_difference(table, other, ("a",)) == 0.5
    assert largest_difference(table, table, ("a", "b", "c")) == 0.0
    assert largest_difference(table.slice(0, 0), other.slice(0, 0), ("a",)) == 0.0
    assert largest_difference(table, other.slice(1), ("b",)) == math.inf
    assert largest_difference(table, pa.table({"a": [1.0, 2.0, 3.0]}), ("a",)) == math.inf
