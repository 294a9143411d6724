"""A digest says where its parts end, and what it is for."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from datetime import date, datetime

import duckdb
import pytest

from isuit.audit.digests import all_rows_digests, exact_line, rider_digest, rows_digest, table_digest, tagged


def test_a_digest_can_be_computed_by_hand() -> None:
    by_hand = hashlib.sha256(b"isuit/rows/1\x00" + b"\x00" * 7 + b"\x02ab" + b"\x00" * 7 + b"\x01c").hexdigest()
    assert tagged("isuit/rows/1", b"ab", b"c") == by_hand


@pytest.mark.parametrize("other", [("t", b"a", b"bc"), ("t", b"abc"), ("t", b"ab", b"c", b""), ("ta", b"b", b"c")])
def test_parts_cannot_be_moved_into_one_another(other: tuple[str, bytes, bytes]) -> None:
    assert tagged(*other) != tagged("t", b"ab", b"c")


def test_a_riders_digest_needs_the_key_and_is_no_digest_of_rows() -> None:
    assert rider_digest(b"key", "anna") != rider_digest(b"other", "anna")
    assert rider_digest(b"key", "anna") != rider_digest(b"key", "berta")


def test_a_row_is_its_exact_bits() -> None:
    row = (1.5, -0.0, 7, None, True, "ø", datetime(2025, 5, 1, 9, 30), date(2025, 5, 1), b"\x00\xff")
    assert exact_line(row).decode() == (
        '["3ff8000000000000","8000000000000000",7,null,true,"ø","2025-05-01T09:30:00","2025-05-01","00ff"]'
    )


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Two tables of the store's names: one by key, one as a whole."""
    with duckdb.connect() as opened:
        opened.execute("CREATE SCHEMA ledger; CREATE SCHEMA personal")
        opened.execute("CREATE TABLE ledger.migrations (name VARCHAR, applied_at TIMESTAMP)")
        opened.execute("INSERT INTO ledger.migrations VALUES ('b', NULL), ('a', '2025-05-01'), ('a', '2025-04-01')")
        opened.execute("CREATE TABLE personal.suppressed (digest VARCHAR)")
        opened.execute("INSERT INTO personal.suppressed VALUES ('y'), ('x')")
        yield opened


def test_digests_of_rows_can_be_computed_by_hand(connection: duckdb.DuckDBPyConnection) -> None:
    """Columns with their types, then the rows under a key in the order of their bytes."""
    header = b'[["name", "VARCHAR"], ["applied_at", "TIMESTAMP"]]'
    a = tagged(
        "isuit/rows/1", b"ledger.migrations", header, b'["a","2025-04-01T00:00:00"]', b'["a","2025-05-01T00:00:00"]'
    )
    b = tagged("isuit/rows/1", b"ledger.migrations", header, b'["b",null]')
    nothing = tagged("isuit/rows/1", b"ledger.migrations", header)
    assert all_rows_digests(connection, "ledger.migrations") == {"a": a, "b": b}
    assert rows_digest(connection, "ledger.migrations", ["b", "absent"]) == {"b": b, "absent": nothing}


def test_a_personal_table_is_digested_with_the_key(connection: duckdb.DuckDBPyConnection) -> None:
    content = tagged("isuit/rows/1", b"personal.suppressed", b'[["digest", "VARCHAR"]]', b'["x"]', b'["y"]')
    by_hand = hmac.new(b"key", f"isuit/keyed-rows/1\x00{content}".encode(), hashlib.sha256).hexdigest()
    assert table_digest(connection, "personal.suppressed", b"key") == by_hand
