"""What lies in a store's directory, and who may read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from isuit.audit.directory import strange_files
from isuit.service import checks
from isuit.store.paths import StorePaths


def test_a_store_of_the_program_holds_nothing_strange(full_store: Path) -> None:
    assert list(strange_files(StorePaths(full_store))) == []


@pytest.mark.parametrize("name", ["key", "store.duckdb", "LOCK", "tmp"])
@pytest.mark.parametrize("bit", [0o040, 0o020, 0o004, 0o002])
def test_what_others_may_open_is_named(store_copy: Path, name: str, bit: int) -> None:
    path = store_copy / name
    path.chmod(path.stat().st_mode | bit)
    assert [named for named, _ in strange_files(StorePaths(store_copy))] == [name]


def test_other_files_links_and_an_open_directory_are_named(store_copy: Path, tmp_path: Path) -> None:
    (store_copy / "rider-0007.csv").write_text("rider-0007")
    store_copy.chmod(0o750)
    shutil.move(store_copy / "key", tmp_path / "key")
    (store_copy / "key").symlink_to(tmp_path / "key")
    report = checks.verify(store_copy)
    assert [found.table for found in report.disagreements] == ["directory", "directory", "key"]
    assert "rider-0007" not in str(report)
