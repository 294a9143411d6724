"""The head of a store's log, signed, and the key that signs it."""

from __future__ import annotations

from pathlib import Path

from isuit.audit.checkpoints import Checkpoint
from isuit.audit.keys import origin_of, rotate, settle_rotation, signing_key
from isuit.audit.log import leaves_of, log_head, read_log
from isuit.published import HeadReport, KeyRotated
from isuit.service.stores import DEFAULT_WAIT, open_store


def head(store_path: Path, *, signed: bool = False, wait: float = DEFAULT_WAIT) -> HeadReport:
    """Where the log stands; with `signed` as a checkpoint that others can keep and hold against the store."""
    with open_store(store_path, wait=wait) as store:
        events = read_log(store.connection)
        checkpoint = Checkpoint.of(origin_of(store.connection), leaves_of(events))
        key = signing_key(store.connection, store.paths)
        return HeadReport(
            log_head=log_head(store.connection),
            log_length=len(events),
            origin=checkpoint.origin,
            root=checkpoint.root.hex(),
            key=str(key.verifier),
            checkpoint=str(checkpoint.signed(key)) if signed else None,
        )


def rotate_key(store_path: Path, wait: float = DEFAULT_WAIT) -> KeyRotated:
    """Replace the signing key by a new one, which the old one signs for."""
    with open_store(store_path, write=True, wait=wait) as store:
        old = signing_key(store.connection, store.paths)
        with store.transaction() as connection:
            new = rotate(connection, store.paths)
        settle_rotation(store.paths)
        return KeyRotated(old_key=str(old.verifier), key=str(new.verifier), log_head=log_head(store.connection))
