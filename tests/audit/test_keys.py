"""The store's signing keys, held against the log that names them."""

from __future__ import annotations

from pathlib import Path

from isuit.audit.keys import strange_keys
from isuit.service.stores import open_store


def test_a_store_from_before_there_were_keys_lacks_none(store_copy: Path) -> None:
    with open_store(store_copy, write=True) as store:
        store.connection.execute("DELETE FROM ledger.log WHERE kind = 'signing-key-made'")
        store.paths.signing_key.unlink()
        assert list(strange_keys(store.connection, store.paths)) == []


def test_a_key_that_is_gone_is_named(store_copy: Path) -> None:
    with open_store(store_copy, write=True) as store:
        store.paths.signing_key.unlink()
        assert [place for place, _ in strange_keys(store.connection, store.paths)] == ["signing-key"]
