"""Erasure on the scale where it matters: no byte, nobody else, and a receipt."""

from __future__ import annotations

from pathlib import Path

import pytest
from cohort_stores import MARKED, add_cohort, cohort_table, contents, files_with, rider_names, storage_defects

from isuit.service.checks import verify
from isuit.service.riders import delete_riders

pytestmark = pytest.mark.usefixtures("compression")


@pytest.fixture(params=["default", "uncompressed"])
def compression(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "default":
        monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", request.param)
    return str(request.param)


@pytest.mark.long
def test_no_byte_is_left_and_nobody_else_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "store"
    riders = [*rider_names(999), MARKED]  # one row in a thousand is theirs
    for number, outcomes in enumerate((400_000, 300_000, 300_000)):
        add_cohort(path, cohort_table(number, outcomes, riders), number)
    prefix = MARKED.encode()[:8]
    assert files_with(path, prefix), "the test must be able to see what it looks for"
    before = contents(path, without=[MARKED])

    receipt = delete_riders(path, [MARKED])

    assert receipt.tables["personal.outcomes"].removed == 1_000
    assert receipt.tables["personal.outcomes"].after == 999_000
    assert receipt.tables["personal.skills"].removed == 3
    assert len(receipt.cohorts) == len(receipt.fits) == 3
    assert files_with(path, MARKED.encode(), prefix) == []
    assert storage_defects(path) == []
    assert contents(path) == before
    names = ["LOCK", "key", "parts", "signing-key", "store.duckdb", "tmp"]
    assert sorted(file.name for file in path.iterdir()) == names
    assert list((path / "tmp").iterdir()) == []
    report = verify(path)
    assert report.disagreements == []
    assert report.erased_leaves == 6
    assert report.log_head == receipt.log_head
