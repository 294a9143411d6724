"""`isuit alias`: names of the operator's for fits, each set by an event of the log."""

from __future__ import annotations

from pathlib import Path

from isuit.audit.log import append_event, log_head
from isuit.errors import InputError, NotFound
from isuit.published import Alias, Aliases
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.aliases import aliases, checked_alias
from isuit.store.fits import find_fit
from isuit.store.opening import Store
from isuit.store.query import first


def listed(store_path: Path, wait: float = DEFAULT_WAIT) -> Aliases:
    """Every alias, by name."""
    with open_store(store_path, wait=wait) as store:
        return _published(store)


def set_alias(store_path: Path, alias: str, reference: str, wait: float = DEFAULT_WAIT) -> Aliases:
    """Let the name mean this fit from now on; an earlier meaning stays in the log.

    A rider's ID is refused: the log keeps what it is told, and an erasure could not take it out.
    """
    checked_alias(alias)
    with open_store(store_path, write=True, wait=wait) as store:
        fit_id = find_fit(store.connection, reference).fit_id
        if first(store.connection, "SELECT 1 FROM all_commitments WHERE lower(rider) = lower(?)", [alias]):
            raise InputError("a rider of this store is called so, and the log must not hold that: choose another alias")
        before = aliases(store.connection).get(alias)
        if before is None or before.fit_id != fit_id:
            with store.transaction() as connection:
                append_event(connection, "alias-set", {"alias": alias, "fit_id": fit_id})
        return _published(store)


def remove_alias(store_path: Path, alias: str, wait: float = DEFAULT_WAIT) -> Aliases:
    """Let the name mean nothing any more; that it did stays in the log."""
    with open_store(store_path, write=True, wait=wait) as store:
        if alias not in aliases(store.connection):
            raise NotFound("this store has no such alias; `isuit alias` lists them")
        with store.transaction() as connection:
            append_event(connection, "alias-set", {"alias": alias, "fit_id": None})
        return _published(store)


def _published(store: Store) -> Aliases:
    found = [
        Alias(alias=name, fit_id=meant.fit_id, set_at=meant.set_at) for name, meant in aliases(store.connection).items()
    ]
    return Aliases(aliases=found, log_head=log_head(store.connection))
