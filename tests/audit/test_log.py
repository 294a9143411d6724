"""The head of a log, also of one that holds nothing, or nothing that is a head."""

from __future__ import annotations

import duckdb
import pytest

from isuit.audit.log import GENESIS, log_head
from isuit.errors import StoreError


def test_the_head_is_the_last_events_and_of_no_event_the_beginning() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA ledger; CREATE TABLE ledger.log (sequence BIGINT, head VARCHAR)")
    assert log_head(connection) == GENESIS
    connection.execute("INSERT INTO ledger.log VALUES (2, repeat('b', 64)), (1, repeat('a', 64))")
    assert log_head(connection) == "b" * 64
    connection.execute("INSERT INTO ledger.log VALUES (3, 'rider-0007')")
    with pytest.raises(StoreError, match="has no head"):
        log_head(connection)
