"""What a data-protection officer runs: delete-rider, show-rider, reinstate."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

from isuit.audit.keys import signing_key
from isuit.audit.log import Event, read_log
from isuit.audit.proving import prove
from isuit.documents import from_json, read_bytes
from isuit.erasure import erasure, suppression
from isuit.erasure.personal import searching
from isuit.erasure.receipt import bind, read_receipt
from isuit.erasure.rewrite import Progress, finish
from isuit.errors import InputError, NotFound, StoreError
from isuit.files import PRIVATE, write_whole
from isuit.published import Binding, ErasurePlan, ErasureReceipt, Proof, Reinstated, RequesterCopy, RiderReport
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.opening import Store
from isuit.store.parts import narrowed
from isuit.store.query import rows


def plan_erasure(store_path: Path, riders: Sequence[str], wait: float = DEFAULT_WAIT) -> ErasurePlan:
    """What `delete_riders` would remove. Opens the store for reading: not a byte of it changes."""
    _require_ids(riders)
    with open_store(store_path, wait=wait) as store:
        return erasure.plan(store.connection, riders)


def delete_riders(
    store_path: Path,
    riders: Sequence[str],
    *,
    suppress: bool = True,
    copy_to: Path | None = None,
    wait: float = DEFAULT_WAIT,
    progress: Progress = lambda stage, share: None,
) -> ErasureReceipt:
    """Erase the riders, all of them or none, and return when no byte of them is left.

    `copy_to` gets the requester's copy of the receipt, with the nonces that bind it to their IDs. The nonces are in it
    before anything is erased, since nobody else knows them: a file that was cut short is completed by `complete_copy`.
    """
    given = list(dict.fromkeys(riders))
    _require_ids(given)
    if copy_to is not None:
        _require_place(copy_to)
    with open_store(store_path, write=True, wait=wait) as store:
        # An ID that is no text is refused as unknown by `decide`, before anything is bound.
        bound = [bind(rider) for rider in given] if copy_to else []
        entries = [Binding(position=i, nonce=nonce, digest=digest) for i, (nonce, digest) in enumerate(bound, start=1)]
        copy = RequesterCopy(receipt=None, bindings=entries, proof=None)
        with _kept(copy_to, copy):
            erasure.decide(store, given, suppress=suppress, bindings=[digest for _, digest in bound])
        store.close_database()
        receipt = finish(store.paths, store.key, progress)
        assert receipt is not None
        if copy_to is not None:
            _write_copy(copy_to, copy.model_copy(update={"receipt": receipt, "proof": _proof(store, receipt)}))
    return receipt


@contextmanager
def _kept(path: Path | None, copy: RequesterCopy) -> Iterator[None]:
    """The nonces are on disk while an erasure is decided, and gone again where it was refused."""
    if path is not None:
        _write_copy(path, copy)
    try:
        yield
    except Exception:  # not an interruption, which may come after the decision
        if path is not None:
            path.unlink(missing_ok=True)
        raise


def complete_copy(store_path: Path, path: Path, wait: float = DEFAULT_WAIT) -> RequesterCopy:
    """Complete a requester's copy whose command was cut short, or bring its proof up to date."""
    try:
        copy = RequesterCopy.model_validate(from_json(read_bytes(path, "the receipt"), "the receipt"))
    except (OSError, ValueError, TypeError):
        raise InputError(f"{path} is not a file of `isuit delete-rider --receipt`; check the path.") from None
    mine = {entry.digest for entry in copy.bindings}
    with open_store(store_path, wait=wait) as store:
        found = [
            receipt_id
            for receipt_id, core in rows(store.connection, "SELECT receipt_id, receipt FROM ledger.receipts")
            if mine and mine <= set(from_json(core, "a receipt")["bindings"])
        ]
        if not found:
            raise NotFound("no erasure of this store is bound to this file: nothing was erased under it.")
        receipt = read_receipt(store.connection, found[0])
        done = copy.model_copy(update={"receipt": receipt, "proof": _proof(store, receipt)})
    _write_copy(path, done)
    return done


def _proof(store: Store, receipt: ErasureReceipt) -> Proof | None:
    """That the log has the erasure; None where the store can no longer sign, which must not keep anybody in it."""
    events = read_log(store.connection)
    try:
        key = signing_key(store.connection, store.paths)
    except StoreError:
        return None

    def wanted(event: Event) -> bool:
        return event.kind == "rider-erased" and event.content["receipt"]["receipt_id"] == receipt.receipt_id

    return prove(events, key, wanted=wanted)


def _write_copy(path: Path, copy: RequesterCopy) -> None:
    write_private(path, copy.model_dump_json(indent=2) + "\n")


def show_rider(store_path: Path, rider: str, wait: float = DEFAULT_WAIT) -> RiderReport:
    """Everything held about a person, by the same search that an erasure makes."""
    _require_ids([rider])
    with open_store(store_path, wait=wait) as store:
        connection = store.connection
        suppressed = suppression.OptedOut.of(store).has(rider)
        try:
            found = erasure.search(connection, [rider])
        except NotFound:
            if suppressed:
                raise NotFound(
                    "this rider was erased: the store holds only the keyed digest that keeps them out of later "
                    "imports; `isuit reinstate` ends that."
                ) from None
            raise
        held: dict[str, list[dict[str, Any]]] = {}
        with searching(connection, found.names), narrowed(connection, found.names):
            for table in found.tables:
                cursor = connection.execute(f"SELECT * FROM {table.source} WHERE {table.about} ORDER BY ALL")
                columns = [name for name, *_ in cursor.description]
                held[table.name] = [
                    {column: _plain(value) for column, value in zip(columns, row, strict=True)}
                    for row in cursor.fetchall()
                ]
        return RiderReport(tables=found.as_json()["tables"], rows=held, suppressed=suppressed)


def reinstate(store_path: Path, rider: str, wait: float = DEFAULT_WAIT) -> Reinstated:
    """A new opt-in: later cohorts may hold the rider again."""
    _require_ids([rider])
    with open_store(store_path, write=True, wait=wait) as store:
        return Reinstated(suppressed=False, log_head=suppression.reinstate(store, rider))


def read_ids(text: bytes) -> list[str]:
    """One ID per line. Only a line feed ends a line: other separators of Unicode may be part of an ID."""
    try:
        lines = text.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError("the list of IDs is not UTF-8 text; save it as such, one ID per line.") from None
    return [line for line in (line.removesuffix("\r") for line in lines) if line]


def write_private(path: Path, text: str) -> None:
    """Write what only the operator may read."""
    write_whole(path, [text.encode()], PRIVATE)


def _require_ids(riders: Sequence[str]) -> None:
    if not riders or not all(riders):
        raise InputError("give at least one rider's ID, as an argument or with --from-file.")


def _require_place(path: Path) -> None:
    """Before anything is erased: a receipt that cannot be written afterwards would lose its nonces."""
    if path.exists() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(
            f"the receipt cannot be written to {path}: name a new file in a directory that can be written."
        )


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat() + ("Z" if isinstance(value, datetime) else "")
    return value.hex() if isinstance(value, bytes) else value
