"""The store's signing key: made with the store, named in the log, replaced by an event that the old key signed.

The file `signing-key` holds the 32 bytes of an Ed25519 seed. The log says which public key is the store's:

    signing-key-made      {key}
    signing-key-rotated   {key, rotation}    `rotation` is a note about the new key, signed by the old one

So whoever trusts one key of a store can follow it to the present one, with the log or with the notes alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from isuit.audit.log import Event, append_event, read_log
from isuit.audit.notes import LOG, SEED_BYTES, BadNote, SigningKey, VerifierKey, signed
from isuit.audit.rotations import followed, rotation_text
from isuit.errors import StoreError
from isuit.store.paths import StorePaths, sync, write_secret
from isuit.store.query import first


def origin_of(connection: duckdb.DuckDBPyConnection) -> str:
    """What the store is called in checkpoints and keys."""
    row = first(connection, "SELECT store_id FROM ledger.store")
    if row is None:
        raise StoreError("the store does not know its own name, so it was changed; run `isuit verify`")
    return f"isuit/{row[0]}"


@dataclass(frozen=True)
class LogKey:
    """A key that was the store's: since which event, until which (its successor's), and the note that ended it."""

    key: VerifierKey
    since: int
    until: int | None = None
    rotation: str | None = None


def keys_of(events: Sequence[Event]) -> list[LogKey]:
    """The keys of a log, oldest first; raises `BadNote` where one does not follow from the one before it."""
    found: list[LogKey] = []
    for event in events:
        if event.kind == "signing-key-made":
            if found:
                raise BadNote("a second signing key was made, and none may be but by rotation")
            found.append(LogKey(VerifierKey.read(event.content["key"]), event.sequence))
        elif event.kind == "signing-key-rotated":
            rotation = event.content["rotation"]
            new = followed(found[-1].key, rotation) if found else None
            if new is None or str(new) != event.content["key"]:
                raise BadNote("a signing key was replaced without a signature of the one before it")
            found[-1] = LogKey(found[-1].key, found[-1].since, event.sequence, rotation)
            found.append(LogKey(new, event.sequence))
    return found


def begin_signing(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> None:
    """Make the first key, inside the caller's transaction. A file that a killed founding left was never used."""
    seed = paths.signing_key.read_bytes() if paths.signing_key.exists() else b""
    if len(seed) != SEED_BYTES:
        seed = secrets.token_bytes(SEED_BYTES)
        write_secret(paths.signing_key, seed)
    key = SigningKey(origin_of(connection), LOG, seed)
    append_event(connection, "signing-key-made", {"key": str(key.verifier)})


def signing_key(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> SigningKey:
    """The key that the log speaks of."""
    origin, wanted = origin_of(connection), _current(connection)
    for path in (paths.signing_key, paths.next_signing_key):  # the latter where a rotation was cut short
        seed = path.read_bytes() if path.exists() else b""
        if len(seed) == SEED_BYTES and str(SigningKey(origin, LOG, seed).verifier) == wanted:
            return SigningKey(origin, LOG, seed)
    raise StoreError(f"{paths.signing_key} is not the key that the store's log speaks of; restore it from a backup.")


def rotate(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> SigningKey:
    """Log a new key under the old one's signature; inside a transaction, after which `settle_rotation` is due."""
    old = signing_key(connection, paths)
    seed = secrets.token_bytes(SEED_BYTES)
    if paths.next_signing_key.exists() and paths.next_signing_key.read_bytes() == old.seed:
        settle_rotation(paths)
    write_secret(paths.next_signing_key, seed)
    new = SigningKey(old.name, LOG, seed)
    note = signed(rotation_text(new.verifier), old)
    append_event(connection, "signing-key-rotated", {"key": str(new.verifier), "rotation": str(note)})
    return new


def settle_rotation(paths: StorePaths) -> None:
    """The new key takes the old one's place; only after its event is committed."""
    paths.next_signing_key.rename(paths.signing_key)
    sync(paths.directory)


def strange_keys(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> Iterator[tuple[str, str]]:
    """What is wrong with the store's signing keys: where, and a sentence."""
    events = read_log(connection)
    try:
        keys = keys_of(events)
    except (BadNote, LookupError, TypeError, AttributeError):
        yield "ledger.log", "the signing keys in the log do not follow from one another"
        return
    if not keys:
        return  # a store from before there were keys, which the next command that uses it gives one
    origin = origin_of(connection)
    if any(entry.key.name != origin for entry in keys):
        yield "ledger.log", "a signing key in the log is that of another store"
    try:
        signing_key(connection, paths)
    except StoreError:
        yield "signing-key", "the file signing-key is missing or not the key that the log speaks of"


def _current(connection: duckdb.DuckDBPyConnection) -> str:
    events = [event for event in read_log(connection) if event.kind in ("signing-key-made", "signing-key-rotated")]
    return str(events[-1].content["key"]) if events else ""
