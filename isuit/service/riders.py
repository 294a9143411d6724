"""What a data-protection officer runs: delete-rider, show-rider, reinstate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from isuit.erasure import erasure, suppression
from isuit.erasure.personal import searching
from isuit.erasure.receipt import bind
from isuit.erasure.rewrite import Progress, finish
from isuit.errors import InputError, NotFound
from isuit.files import PRIVATE, write_whole
from isuit.published import Binding, ErasurePlan, ErasureReceipt, Reinstated, RequesterCopy, RiderReport
from isuit.service.stores import DEFAULT_WAIT, open_store


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

    `copy_to` gets the requester's copy of the receipt, with the nonces that bind it to their IDs.
    """
    given = list(dict.fromkeys(riders))
    _require_ids(given)
    if copy_to is not None:
        _require_place(copy_to)
    with open_store(store_path, write=True, wait=wait) as store:
        # An ID that is no text is refused as unknown by `decide`, before anything is bound.
        bound = [bind(rider) for rider in given] if copy_to else []
        erasure.decide(store, given, suppress=suppress, bindings=[digest for _, digest in bound])
        store.close_database()
        receipt = finish(store.paths, store.key, progress)
        assert receipt is not None
    if copy_to is not None:
        entries = [Binding(position=i, nonce=nonce, digest=digest) for i, (nonce, digest) in enumerate(bound, start=1)]
        write_private(copy_to, RequesterCopy(receipt=receipt, bindings=entries).model_dump_json(indent=2) + "\n")
    return receipt


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
        with searching(connection, found.names):
            for table in found.tables:
                cursor = connection.execute(f"SELECT * FROM {table.name} WHERE {table.about} ORDER BY ALL")
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
