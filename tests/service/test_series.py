"""Outcomes that come day by day: `isuit add --series` and the fit of the union, with every promise of a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import isuit


@pytest.fixture
def store(tmp_path: Path) -> isuit.service.notebook.StoreHandle:
    return isuit.open(tmp_path / "store")


def test_the_fit_of_a_series_is_that_of_one_file(
    store: isuit.service.notebook.StoreHandle, cohort_table: Callable[..., pa.Table]
) -> None:
    """Three overlapping days give the cohort, the name and the numbers of the file that has all of it."""
    whole = cohort_table(1, sites=("north", "south"))
    rows = whole.num_rows
    days = (whole.slice(0, 150), whole.slice(100, 150), whole.slice(240, rows - 240))
    added = [store.add("kite", day) for day in days]
    assert [report.parts for report in added] == [1, 2, 3]
    again = store.add("kite", days[1])
    assert (again.added, again.parts) == (False, 3)
    fitted = store.fit(isuit.series("kite"), activity="kitesurfing", dimension="wind")
    alone = isuit.fit(whole, activity="kitesurfing", dimension="wind")
    assert fitted.cohort_hash == isuit.hash(whole).cohort_hash
    assert fitted.fit_id == alone.fit_id
    # A refit starts afresh, so these are the very numbers.
    assert fitted.record.result_digest == alone.record.result_digest
    assert fitted.rederive().verdict == "identical"
    assert store.verify().ok
    assert store.verify().cohorts == 4

    # A person leaves every part and the union.
    store.delete_rider("rider-0007")
    assert store.verify().ok
    later = store.fit(isuit.series("kite"), activity="kitesurfing", dimension="wind")
    assert later.cohort_hash != fitted.cohort_hash
    assert "rider-0007" not in later.skills.column("rider").to_pylist()
    left = whole.filter(pa.compute.not_equal(whole.column("rider"), "rider-0007"))
    assert later.cohort_hash == isuit.hash(left).cohort_hash


def test_outcomes_without_a_time_are_all_kept(store: isuit.service.notebook.StoreHandle) -> None:
    """Nothing tells two attempts from one that was written down twice."""
    from isuit.service.series import Series, opened

    first = {"rider": ["a", "a", "b"], "metric": [1.0, 1.0, 2.0], "outcome": [1, 1, 0]}
    second = {"rider": ["a", "b", "c"], "metric": [1.0, 2.0, 3.0], "outcome": [1, 0, 1]}
    store.add("kite", first)
    store.add("kite", second)
    with opened(store.path, Series("kite"), None, 10.0) as (reader, metrics, _):
        assert reader.read_all().num_rows == 6
        assert metrics == ("metric",)


def test_what_a_series_refuses(store: isuit.service.notebook.StoreHandle) -> None:
    one = {"rider": ["Ann", "Bob"], "metric": [1.0, 2.0], "outcome": [1, 0]}
    store.add("kite", one)
    with pytest.raises(isuit.IsuitError, match="to another series"):
        store.add("kite", {**one, "wind": [3.0, 4.0], "wave": [1.0, 2.0]}, metrics=["wind", "wave"])
    with pytest.raises(isuit.IsuitError, match="a series is a letter"):
        store.add("12", one)
    with pytest.raises(isuit.IsuitError, match="choose another name"):
        store.add("ann", {**one, "rider": ["x", "y"]})
    with pytest.raises(isuit.IsuitError, match="no series of that name"):
        store.fit(isuit.series("wave"))
    with pytest.raises(isuit.IsuitError, match="leave --metric out"):
        store.fit(isuit.series("kite"), metrics=["wave"])
