"""Opening a store with everything wired in: the log, and whoever finishes pending work."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb

from isuit import __version__
from isuit.audit.log import append_event
from isuit.release.policy import Policy
from isuit.store.opening import Store
from isuit.store.opening import open_store as open_directory
from isuit.store.paths import StorePaths

DEFAULT_WAIT = 10.0  # seconds
# What a store is created with unless it is told otherwise (docs/contract.md, section 8).
DEFAULT_POLICY: Mapping[str, Any] = Policy().model_dump()


def open_store(
    path: Path,
    write: bool = False,
    wait: float = DEFAULT_WAIT,
    create: bool = False,
    *,
    policy: Mapping[str, Any] | None = None,
    inspect: bool = False,
) -> AbstractContextManager[Store]:
    """The store at `path`, as a context manager; see `isuit.store.opening`."""
    return open_directory(
        path,
        write=write,
        wait=wait,
        create=create,
        policy={**DEFAULT_POLICY, **(policy or {})},
        tool_version=__version__,
        record=_record,
        finish=finish_pending,
        hidden=_hidden,
        beside={"0002-signing-key": _begin_signing, "0004-parts": _move_to_parts},
        inspect=inspect,
    )


def _record(
    connection: duckdb.DuckDBPyConnection, kind: str, payload: dict[str, object], rows: dict[str, list[str]]
) -> str:
    return append_event(connection, kind, payload, rows=rows)


def _begin_signing(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> None:
    from isuit.audit.keys import begin_signing

    begin_signing(connection, paths)


def _move_to_parts(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> None:
    from isuit.store.cohorts import order_of
    from isuit.store.parts import move

    if move(connection, lambda cohort_hash: order_of(connection, cohort_hash)):
        append_event(connection, "parts-written", {}, tables=["ledger.parts"])


def _hidden(connection: duckdb.DuckDBPyConnection, key: bytes) -> list[str]:
    from isuit.erasure.part_copies import pending_names

    return pending_names(connection, key)


def finish_pending(paths: StorePaths, key: bytes) -> None:
    """Finish the erasure a killed command left behind, under the exclusive lock, with no connection open."""
    from isuit.erasure.rewrite import finish

    finish(paths, key)
