"""A bounded run of every fuzzer; `python tests/fuzz/long.py 2000` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readers import Reader, all_readers


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


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_hostile_files_are_read_or_refused_with_a_sentence(readers: list[Reader], tmp_path: Path, seed: int) -> None:
    for reader in readers:
        reader.round(seed, tmp_path / "hostile")
