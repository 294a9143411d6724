"""Leaves of many riders, some at a time: the same root as of all at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from isuit.audit import commitments
from isuit.audit.commitments import BareLeaves, committed, leaves_root, rider_lines, rows_leaf
from isuit.ingest import read_cohort


def test_some_at_a_time_is_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitments, "CHUNK_RIDERS", 3)
    contents = [(f"rider-{number}", b"line %d\n" % number) for number in range(10)]
    chunks = list(committed(commitments.ROWS_LEAF_TAG, iter(contents)))
    assert [len(some.riders) for some in chunks] == [3, 3, 3, 1]
    told = [entry for some in chunks for entry in zip(some.riders, some.salts, some.leaves, strict=True)]
    assert [rider for rider, _, _ in told] == [rider for rider, _ in contents]
    assert [leaf for *_, leaf in told] == [
        rows_leaf(salt, content) for (_, salt, _), (_, content) in zip(told, contents, strict=True)
    ]
    assert len({salt for _, salt, _ in told}) == 10
    assert all(len(salt) == commitments.SALT_BYTES for _, salt, _ in told)
    bare = BareLeaves()
    for some in chunks:
        bare.add(some.leaves)
    assert len(bare) == 10
    ordered = [leaf for some in bare.in_order() for leaf in some]
    assert ordered == sorted(leaf for *_, leaf in told)
    assert bare.root == leaves_root(ordered[::-1])


def test_leaves_that_begin_and_end_in_zeros_keep_their_bytes_and_their_order() -> None:
    leaves = ["00" * 32, "00" * 31 + "01", "ab" + "00" * 31, "ab" + "00" * 30 + "01", "ff" * 32, "00" * 32]
    bare = BareLeaves()
    bare.add(leaves[::-1])
    assert [leaf for some in bare.in_order() for leaf in some] == sorted(leaves)
    assert bare.root == leaves_root(leaves)


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
