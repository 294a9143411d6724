"""Some of the edits of `edits.py`; `python tests/fuzz/edits.py` tries thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from edits import database_edits, file_edits, file_verdicts, named


@pytest.mark.long
def test_every_single_edit_of_the_database_is_named(store_copy: Path) -> None:
    tried = set()
    for edit, found in database_edits(store_copy, 40, seed=7):
        assert named(edit, found), (edit, found.disagreements)
        tried.add(edit.kind)
    assert len(tried) >= 6


@pytest.mark.long
def test_every_single_edit_of_a_file_or_mode_is_named(full_store: Path, tmp_path: Path) -> None:
    assert len(file_edits(full_store)) > 30
    for name, answer in file_verdicts(full_store, tmp_path, 10, seed=7):
        assert answer, name
