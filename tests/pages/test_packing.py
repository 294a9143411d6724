"""Packing loses nothing, and what is no packed table is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isuit.pages.packing import packed, packed_rows, rows_of, unpacked

VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(-2, 2).map(float), st.text(max_size=3))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine is no defect
@given(st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES}), max_size=40))
def test_rows_come_back_to_the_type_and_the_digit(rows: list[dict[str, Any]]) -> None:
    through_a_page = json.loads(json.dumps(packed_rows(rows)))
    ordered = [{"a": row["a"], "b": row["b"]} for row in rows]
    assert json.dumps(rows_of(through_a_page), sort_keys=True) == json.dumps(ordered)


def test_arrays_come_back() -> None:
    assert unpacked(packed([0, 1, 65535], "u2")).tolist() == [0, 1, 65535]
    assert np.isnan(unpacked(packed([np.nan], "f4"))[0])
    with pytest.raises(AssertionError):
        packed([70000], "u2")


@pytest.mark.parametrize("change", [{"number": 3}, {"number": -1}, {"names": ["a", "c"]}, {"number": 10**12}])
def test_a_table_that_does_not_fit_itself_is_refused(change: dict[str, Any]) -> None:
    whole = packed_rows([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    with pytest.raises(ValueError, match="pack"):
        rows_of(whole | change)


def test_a_code_without_a_value_is_refused() -> None:
    whole = packed_rows([{"a": 1}, {"a": 2}])
    whole["columns"]["a"]["distinct"].pop()
    with pytest.raises(ValueError, match="pack"):
        rows_of(whole)
