"""What a rewritten file must be like before it is swapped in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from isuit.erasure.rewrite import _inspect
from isuit.errors import StoreError


@pytest.fixture
def rewriting(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection as a rewrite has it: the old database attached, and the new one with a table of the same name."""
    duckdb.connect(str(tmp_path / "old")).execute("CREATE TABLE person (rider VARCHAR)").close()
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{tmp_path / 'old'}' AS old (READ_ONLY)")
    connection.execute(f"ATTACH '{tmp_path / 'new'}' AS new")
    connection.execute("CREATE TABLE new.person AS SELECT 'rider-' || range AS rider FROM range(200000)")
    connection.execute("USE new")
    connection.execute("CHECKPOINT new")
    yield connection
    connection.close()


def test_a_file_written_once_passes(rewriting: duckdb.DuckDBPyConnection) -> None:
    _inspect(rewriting)


def test_a_deleted_row_still_stands_in_its_segment(rewriting: duckdb.DuckDBPyConnection) -> None:
    rewriting.execute("DELETE FROM new.person WHERE rider = 'rider-7'")
    rewriting.execute("CHECKPOINT new")
    with pytest.raises(StoreError, match="holds rows that no query shows"):
        _inspect(rewriting)
