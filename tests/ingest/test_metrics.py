"""Cohorts of several metrics: named, mapped, sorted and refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cohort_tables import hash_of
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import canonical as standard_library

from isuit.errors import InputError
from isuit.ingest import RefusedCohort, parse_mapping, read_cohort

ROWS = [
    {"rider": f"r{i % 5}", "site": None, "wind": i % 7 - 3.0, "wave": float(i % 3), "cold": i / 8, "outcome": i % 2}
    for i in range(40)
]
NAMES = ("wind", "wave", "cold")


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    return pa.Table.from_pylist(rows)


def test_the_order_of_names_of_columns_and_of_rows_does_not_matter() -> None:
    expected = hash_of(table(), metrics=NAMES)
    for names in itertools.permutations(NAMES):
        assert hash_of(table(ROWS[::-1]).select(["outcome", *names, "rider"]), metrics=names) == expected
    assert hash_of(table(), metrics=("wind", "wave")) != expected


@pytest.mark.parametrize("name", ["wind", "metric", "anything"])
def test_a_cohort_of_one_metric_is_c1_whatever_it_is_called(name: str) -> None:
    plain = table().rename_columns(["rider", "site", "metric", "wave", "cold", "outcome"])
    named = plain.rename_columns(["rider", "site", name, "wave", "cold", "outcome"])
    assert hash_of(named, metrics=[name]) == hash_of(plain)
    assert hash_of(plain).startswith("isuit-c1:")


def test_columns_map_the_names_of_metrics() -> None:
    theirs = table().rename_columns(["rider", "site", "ws", "hs", "cold", "outcome"])
    mapping = parse_mapping(["wind=ws", "wave=hs"], NAMES)
    assert hash_of(theirs, metrics=NAMES, columns=mapping) == hash_of(table(), metrics=NAMES)
    one = parse_mapping(["wind=ws"], ["wind"])
    assert hash_of(theirs, metrics=["wind"], columns=one) == hash_of(theirs, columns={"metric": "ws"})


def test_observations_hold_every_metric_in_the_order_of_names() -> None:
    with read_cohort(table(), metrics=NAMES) as cohort:
        data = cohort.observations()
        (batch,) = cohort.batches()
    assert data.metrics == ("cold", "wave", "wind")
    for name, column in zip(data.metrics, data.conditions, strict=True):
        assert np.array_equal(column, batch.column(name).to_numpy())
    chosen = data.rows(data.outcome == 1)
    assert len(chosen) == 20
    for part, column in zip(chosen.conditions, data.conditions, strict=True):
        assert np.array_equal(part, column[data.outcome == 1])


values = st.sampled_from(["0.0", "-0.0", "1", "-1", "5e-324", "-2"])
outcome = st.tuples(
    st.sampled_from(["a", "ab", "Å"]),
    st.sampled_from([None, "s"]),
    st.none(),
    st.fixed_dictionaries({"x": values, "y": values, "Å": values}),
    st.sampled_from([0, 1]),
).map(list)


@pytest.mark.long
@settings(max_examples=150, deadline=None, database=None)
@given(st.lists(outcome, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_any_cohort_hashes_as_in_the_standard_library(outcomes: list, random: Any) -> None:
    expected = standard_library.cohort_hash(outcomes)
    random.shuffle(outcomes)
    rows = [
        {"rider": rider, "site": site, **{name: float(text) for name, text in metric.items()}, "outcome": result}
        for rider, site, _, metric, result in outcomes
    ]
    for limit in (0, 1 << 20):
        assert hash_of(pa.Table.from_pylist(rows), metrics=["y", "Å", "x"], in_memory_rows=limit) == expected


def test_a_missing_value_is_counted_with_the_advice() -> None:
    rows = [row | {"wave": None if i < 3 else row["wave"]} for i, row in enumerate(ROWS)]
    with pytest.raises(RefusedCohort, match=r"column wave: missing .fit the rows that have it.* in 3 rows"):
        read_cohort(table(rows), metrics=NAMES)
    assert hash_of(table(rows), metrics=["wind", "cold"]).startswith("isuit-c2:")


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (["wind", "site"], "cannot be called 'site'"),
        (["wind", "pseudonym"], "cannot be called 'pseudonym'"),
        (["wind", "metric"], "cannot be called 'metric'"),
        (["outcome"], "cannot be called 'outcome'"),
        (["wind", "wind"], "given twice"),
        ([f"m{k}" for k in range(7)], "7 metrics are more than the 6"),
        (["wind", "a\tb"], "a metric's name is text"),
        (["wind", "a=b"], "no equals sign"),
        (["wind", ""], "a metric's name is text"),
        ("wind", "a list of names"),
    ],
)
def test_names_that_are_refused(metrics: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_cohort(table(), metrics=metrics)


def test_a_metric_that_a_file_does_not_have(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "c.parquet")
    with pytest.raises(RefusedCohort, match=r"column gust: c[.]parquet has no such column"):
        read_cohort(tmp_path / "c.parquet", metrics=["wind", "gust"])


def test_a_mapping_of_what_is_no_metric() -> None:
    with pytest.raises(InputError, match="no column is called 'metric' here"):
        parse_mapping(["metric=ws"], NAMES)
    with pytest.raises(InputError, match="mapped by --column and named 'wind'"):
        read_cohort(table(), metrics=["wind"], columns={"metric": "wave"})
