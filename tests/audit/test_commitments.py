"""Leaves of many riders, some at a time: the same root as of all at once."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from isuit.audit import commitments
from isuit.audit.blocks import SALT_BYTES, Block, as_salts, as_texts, skill_blocks, skill_content
from isuit.audit.commitments import BareLeaves, committed, leaves_root, rider_lines, rows_leaf
from isuit.ingest import read_cohort


def test_blocks_have_the_leaves_of_each_rider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitments, "CHUNK_RIDERS", 3)
    contents = [b"line %d\n" % number * number for number in range(10)]  # the first is empty
    cuts = [(0, 4), (4, 5), (5, 10)]
    blocks = []
    for start, end in cuts:
        bounds = np.cumsum([0, *map(len, contents[start:end])])
        riders = pa.array([f"rider-{number}" for number in range(start, end)])
        blocks.append(Block(riders, memoryview(b"".join(contents[start:end])), bounds))
    bare, told = BareLeaves(), []
    for some in committed(commitments.ROWS_LEAF_TAG, blocks):
        columns = (some.riders, as_salts(some.salts), as_texts(some.leaves))
        told += zip(*(column.to_pylist() for column in columns), strict=True)
        bare.add(some.leaves)
    assert [rider for rider, _, _ in told] == [f"rider-{number}" for number in range(10)]
    assert [leaf for *_, leaf in told] == [
        rows_leaf(salt, content) for (_, salt, _), content in zip(told, contents, strict=True)
    ]
    assert len({salt for _, salt, _ in told}) == 10
    assert all(len(salt) == SALT_BYTES for _, salt, _ in told)
    assert len(bare) == 10
    assert [len(some) for some in bare.in_order()] == [3, 3, 3, 1]
    ordered = [leaf for some in bare.in_order() for leaf in some.to_pylist()]
    assert ordered == sorted(leaf for *_, leaf in told)
    assert bare.root == leaves_root(ordered[::-1])


def test_leaves_that_begin_and_end_in_zeros_keep_their_bytes_and_their_order() -> None:
    leaves = ["00" * 32, "00" * 31 + "01", "ab" + "00" * 31, "ab" + "00" * 30 + "01", "ff" * 32, "00" * 32]
    bare = BareLeaves()
    assert bare.add_texts(pa.array(leaves[::-1]))
    assert [leaf for some in bare.in_order() for leaf in some.to_pylist()] == sorted(leaves)
    assert bare.root == leaves_root(leaves)


@pytest.mark.parametrize("odd", ["AB" * 32, "ab" * 31, "ab" * 33, "", "zz" * 32, " a" * 32, "ä" * 32, None])
def test_a_text_that_is_not_exactly_a_leaf_is_none(odd: str | None) -> None:
    bare = BareLeaves()
    assert not bare.add_texts(pa.array(["ab" * 32, odd], pa.string()))
    assert not len(bare)


ODD_RIDERS = ["anna", 'b"ert', "c\\arl", "d\tora", "é\u2028", "f\x00", "\x7f", "z"]


@pytest.mark.parametrize("riders", [ODD_RIDERS, ["anna", "é\u2028", "\x7f", "z"]])
def test_skills_by_the_block_are_the_exact_lines(riders: list[str]) -> None:
    count = len(riders)
    values = [0.0, -0.0, math.nan, -1.5e-310, math.inf, 1 / 3, 2.0, -7.25][:count]
    table = pa.table(
        {
            "rider": riders,
            "skill_mean": values,
            "skill_sd": values[::-1],
            "n_outcomes": pa.array(range(count), pa.int64()),
            "n_bins": pa.array([5, 0, 12, 1, 2, 3, 4, 9][:count], pa.int64()),
            "usable": [number % 2 == 0 for number in range(count)],
            "path": pa.array([None] * count, pa.string()),
        }
    )
    moving = table.set_column(6, "path", pa.array(['[["2026-01-01", 1.0, 2.0]]', *[None] * (count - 1)]))
    for one in (table, moving, table.drop_columns(["path"])):
        rows = [(*row.values(), None)[:7] for row in one.to_pylist()]
        [block] = skill_blocks(one.to_batches())
        found = [bytes(block.content[a:b]) for a, b in zip(block.bounds[:-1], block.bounds[1:], strict=True)]
        assert found == [skill_content(row) for row in rows]


def test_a_riders_lines_are_together_wherever_batches_end() -> None:
    riders = ["anna", "anna", "anna", "bert", "carl", "carl"]
    table = pa.table({"rider": riders, "metric": [1.0, 2.0, 3.0, 1.0, 5.0, 7.0], "outcome": [0, 1, 1, 0, 1, 1]})
    with read_cohort(table) as cohort:
        whole = dict(rider_lines(cohort.batches()))
        for size in (1, 2, 4):
            batches = [batch for one in cohort.batches(size) for batch in (one.slice(0, 0), one)]
            assert list(rider_lines(batches)) == list(whole.items())
        lines = b"".join(cohort.canonical_bytes()).split(b"\n", 3)[3]
    assert [(rider, content.count(b"\n")) for rider, content in whole.items()] == [
        ("anna", 3),
        ("bert", 1),
        ("carl", 2),
    ]
    assert b"".join(whole.values()) == lines
