"""A bounded run of every fuzzer; `python tests/fuzz/long.py 2000` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers import Reader, all_readers

from isuit.release.checking import check_file

ROUNDS = 25


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> list[Reader]:
    return all_readers(tmp_path_factory.mktemp("good"))


def test_good_files_are_read(readers: list[Reader], tmp_path: Path) -> None:
    for reader in readers:
        folder = tmp_path / reader.name
        folder.mkdir()
        for name, content in reader.good.items():
            (folder / name).write_bytes(content)
        reader.read(folder)


def test_hostile_files_are_read_or_refused_with_a_sentence(readers: list[Reader], tmp_path: Path) -> None:
    read = 0
    for reader in readers:
        for seed in range(ROUNDS):
            try:
                read += reader.round(seed, tmp_path / "hostile")
            except Exception as crash:
                raise AssertionError(f"{reader.name}, seed {seed}") from crash
    assert 0 < read < ROUNDS * len(readers)  # some hostile files are harmless, and not all are


def test_half_a_character_in_a_name_of_a_column_is_refused_in_a_sentence(readers: list[Reader], tmp_path: Path) -> None:
    [reader] = [reader for reader in readers if reader.name == "cohort as TSV"]
    assert not reader.round(52387, tmp_path / "hostile")


@pytest.mark.parametrize("cell", ["9" * 400, "f" * 16, "-1", "", "871f1d489fffffff"])
def test_a_place_that_is_no_cell_is_a_damaged_file(readers: list[Reader], tmp_path: Path, cell: str) -> None:
    [(name, content)] = next(reader.good for reader in readers if reader.name == "release as geojson").items()
    (tmp_path / name).write_bytes(content.replace(b"871f1d489ffffff", cell.encode()))
    assert b"871f1d489ffffff" in content
    [problem] = check_file(tmp_path / name).problems
    assert "damaged" in problem
