"""What lies in a store's directory, and who may read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from isuit.audit.directory import strange_files, strange_parts
from isuit.service import checks
from isuit.service.stores import open_store
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


@pytest.mark.parametrize("name", ["tmp", "parts"])
def test_a_file_where_a_directory_belongs_is_named_as_such(store_copy: Path, name: str) -> None:
    path = store_copy / name
    shutil.rmtree(path, ignore_errors=True)
    path.write_bytes(b"")
    path.chmod(0o600)
    assert list(strange_files(StorePaths(store_copy))) == [
        (name, f"{name} is not a directory of its own but something else")
    ]


def test_a_file_among_the_parts_that_nothing_lists_is_counted(store_copy: Path) -> None:
    parts = store_copy / "parts"
    parts.mkdir(mode=0o700, exist_ok=True)
    (parts / "rider-0007.parquet").write_bytes(b"")
    with open_store(store_copy) as store:
        (parts / "rider-0007.parquet").touch()  # opening may have removed it
        found = list(strange_parts(store.connection, store.paths))
    assert found == [("parts", "parts/ holds a file that the database does not list; `isuit status` removes them")]
