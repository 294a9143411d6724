"""Rewriting a store's database so that deleted rows leave no byte, and finishing that after a crash.

DuckDB's DELETE, CHECKPOINT and VACUUM leave deleted values in the file and its zone maps; only a new file is clean.

    settle      checkpoint and close, so that no WAL is left that a later open could apply to the new file
    parts       every part that holds one of the riders is copied without them (`part_copies`), under another name
    copy        schema and rows into tmp/, in one transaction together with `erasure-completed`; compared with the old
                file before the transaction commits
    inspect     physical against logical row counts
    sync, swap  fsync; hard-link the old file to store.duckdb.retired; rename the new one over store.duckdb
    destroy     overwrite and unlink the parts that the new file does not list and the retired file, sync the directory,
                empty tmp/

A crash leaves one of three states, and `finish` continues from each: pending work in the database (start over; whatever
is in tmp/ was swept, and copies of parts, which no database lists yet, are removed), a retired file that still *is* the
database (unlink that name), or one that is not (destroy it, and before it the parts that it alone lists).

Free blocks are no defect of the new file. It begins empty and only rows that are left are written into it, so a block
that DuckDB filled and gave up again holds an earlier version of those. A copy on one thread has none, and is smaller.

Whatever goes wrong raises `Unfinished`: the old file stays, and it can be read, since the decision holds for every
reader; the next command that gets the store to itself tries again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import rfc8785

from isuit.audit.log import append_event
from isuit.erasure.part_copies import copy_parts
from isuit.erasure.part_copies import pending as pending_parts
from isuit.erasure.receipt import METHOD, read_receipt
from isuit.errors import StoreError, Unfinished
from isuit.published import ErasureReceipt
from isuit.store import parts
from isuit.store.connection import STORAGE_VERSION, connect, is_foreign_lock
from isuit.store.opening import sweep
from isuit.store.part_files import DamagedPart, Part, overwrite
from isuit.store.paths import FILE_MODE, StorePaths, sync
from isuit.store.query import quoted, rows

Progress = Callable[[str, float], None]
# Several put a short row group and the full ones after it together a second time: what they wrote first then lies in
# free blocks, 18 of 66 where a cohort of 20,000 outcomes is followed by one of 400,000.
_THREADS = 1
ERASURE = "erasure"  # what `ledger.pending` calls the work
PENDING = "ledger.pending"
WAY_OUT = (
    "the store can be read, and `isuit status` tries again: if it stays so, copy the store's directory to another disk "
    "and run it there."
)


def reached(step: str) -> None:
    """Called at every step. Does nothing; tests replace it to stop the process exactly there."""


def _silent(stage: str, share: float) -> None:
    """Progress that nobody watches."""


def finish(paths: StorePaths, key: bytes, progress: Progress = _silent) -> ErasureReceipt | None:
    """Bring a decided erasure to its end, from wherever it stands; the receipt if one was completed now.

    Needs the exclusive lock and no connection open.
    """
    try:
        return _finish(paths, key, progress)
    except DamagedPart as error:
        raise Unfinished(f"the riders' rows are hidden from every reader, but not gone: {error}") from None
    except (duckdb.Error, OSError) as error:
        if is_foreign_lock(error):  # someone to wait for, not a failure
            raise
        raise Unfinished(
            "the riders' rows are deleted, but the file could not be rewritten without them "
            f"({type(error).__name__}): make room on the disk and run `isuit status`, which finishes it first."
        ) from None


def _finish(paths: StorePaths, key: bytes, progress: Progress) -> ErasureReceipt | None:
    _drop_retired(paths)
    receipt = None
    if work := _settle(paths):
        receipt, listed = _copy(paths, key, work, progress)
        _swap(paths)
        _drop_retired(paths, listed)
    sweep(paths.spill)
    reached("swept")
    return receipt


class _Work(NamedTuple):
    """What was decided and is to be done."""

    receipts: list[str]
    parts: dict[str, set[str]]  # by part, keyed digests of those who have to go
    known: list[Part]  # all parts of the store


def _settle(paths: StorePaths) -> _Work | None:
    """Close the database with nothing outside its file; the work that is pending, if any is."""
    connection = connect(paths.database, paths.spill, read_only=False)
    try:
        pending = rows(connection, "SELECT work, subject FROM ledger.pending")
        if any(work not in (ERASURE, parts.PENDING) for work, _ in pending):
            raise StoreError("the store holds unfinished work of a newer version; install that version to finish it.")
        receipts = [subject for work, subject in pending if work == ERASURE]
        found = _Work(receipts, pending_parts(connection), parts.listed(connection))
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    if pending and paths.wal.exists():
        # It would be applied to the new file. A checkpoint removes it unless its end was torn off.
        raise Unfinished(f"{paths.wal} cannot be taken into the database, and no erasure can be finished; {WAY_OUT}")
    reached("settled")
    return found if receipts else None


def _copy(paths: StorePaths, key: bytes, work: _Work, progress: Progress) -> tuple[ErasureReceipt, list[str]]:
    """Write the new file: every row of the old one, the names of copied parts, and the completion of the receipts.

    Gives the last receipt, and the parts that the new file lists. One connection does it all: opening one costs as much
    as copying a part.
    """
    connection = connect(Path(":memory:"), paths.spill, read_only=False)
    try:
        connection.execute(f"SET threads = {_THREADS}")
        copies = copy_parts(connection, paths.parts, key, work.parts, work.known, reached)
        connection.execute(f"ATTACH {quoted(str(paths.database))} AS old (READ_ONLY)")
        connection.execute(f"ATTACH {quoted(str(paths.rewritten))} AS new (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("BEGIN")
        connection.execute("COPY FROM DATABASE old TO new (SCHEMA)")
        connection.execute("USE new")
        compared = _copy_tables(connection, work.receipts, list(copies), progress)
        parts.insert_parts(connection, copies.values())
        for part in copies.values():
            compared[part.holds] = compared.get(part.holds, 0) + part.row_count
        reached("copied")
        for receipt_id in work.receipts:
            _complete(connection, key, receipt_id, compared, ["ledger.parts"] if copies else [])
        connection.execute("COMMIT")
        reached("committed")
        connection.execute("CHECKPOINT new")
        _inspect(connection)
        receipt = read_receipt(connection, work.receipts[-1])
        listed = [part.part for part in parts.listed(connection)]
        connection.execute("USE memory")
        connection.execute("DETACH new")
    finally:
        connection.close()
    if paths.rewritten.with_name(paths.rewritten.name + ".wal").exists():
        raise Unfinished(f"the rewritten database has a write-ahead log left and was dropped; {WAY_OUT}")
    reached("written")
    return receipt, listed


def _sizes(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The old database's tables and how many rows each has, about."""
    query = (
        "SELECT schema_name || '.' || table_name, estimated_size FROM duckdb_tables() WHERE database_name = 'old' "
        "ORDER BY ALL"
    )
    return dict(rows(connection, query))


def _copy_tables(
    connection: duckdb.DuckDBPyConnection, receipts: list[str], replaced: list[str], progress: Progress
) -> dict[str, int]:
    """Copy every table in its order and compare; the number of rows of each.

    Pending work and receipts are completed instead, and parts that are `replaced` are listed under their new names.
    """
    sizes = _sizes(connection)
    copied = [table for table in sizes if table != PENDING]
    where = dict.fromkeys(copied, "true")
    where["ledger.receipts"] = f"receipt_id NOT IN ({_texts(receipts)})"
    if replaced:
        where["ledger.parts"] = f"part NOT IN ({_texts(replaced)})"
    for done, table in enumerate(copied):
        progress("rewrite", sum(sizes[name] for name in copied[:done]) / (sum(sizes.values()) or 1))
        connection.execute(f"INSERT INTO new.{table} SELECT * FROM old.{table} WHERE {where[table]}")
    progress("rewrite", 1.0)
    before = fingerprints(connection, {f"old.{table}": where[table] for table in copied})
    after = fingerprints(connection, {f"new.{table}": "true" for table in copied})
    for table in copied:
        if before[f"old.{table}"] != after[f"new.{table}"]:
            raise Unfinished(f"the copy of {table} is not identical and was dropped; {WAY_OUT}")
    return {table: before[f"old.{table}"][0] for table in copied}


def _texts(values: list[str]) -> str:
    """Names that the program made, as SQL."""
    return ", ".join(map(quoted, values))


def _complete(
    connection: duckdb.DuckDBPyConnection, key: bytes, receipt_id: str, compared: dict[str, int], changed: list[str]
) -> None:
    """`erasure-completed`, with how it was verified. Read only if the file is swapped in, which needs every check."""
    now = datetime.now(UTC).replace(tzinfo=None)
    verification = rfc8785.dumps({"method": METHOD, "compared": compared}).decode()
    connection.execute(
        "INSERT INTO ledger.receipts SELECT receipt_id, erased_at, receipt, ?, ? FROM old.ledger.receipts "
        "WHERE receipt_id = ?",
        [now, verification, receipt_id],
    )
    payload = {"receipt_id": receipt_id, "compared": compared}
    written = {"ledger.receipts": [receipt_id]}
    append_event(connection, "erasure-completed", payload, rows=written, tables=changed, key=key)


def fingerprints(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, str]) -> dict[str, tuple[int, int | None]]:
    """By table, those rows that meet a condition and the sum of their hashes, whatever their order.

    It finds what a failing disk or copy would change. It is no commitment (64-bit hashes that are not cryptographic):
    against tampering there are the leaves and the log.
    """
    query = " UNION ALL ".join(
        f"SELECT '{table}', count(*), sum(hash(one)::HUGEINT) FROM {table} one WHERE {where}"
        for table, where in tables.items()
    )
    return {table: (count, total) for table, count, total in rows(connection, query)}


def _inspect(connection: duckdb.DuckDBPyConnection) -> None:
    """No deleted row hides in a segment."""
    query = " UNION ALL ".join(
        f"SELECT '{table}', sum(count), (SELECT count(*) FROM {table}) FROM pragma_storage_info('new.{table}') "
        "GROUP BY column_name, column_path, segment_type"
        for table in _sizes(connection)
    )
    for table, physical, logical in rows(connection, query):
        if physical != logical:
            raise Unfinished(f"the rewritten {table} holds rows that no query shows and was dropped; {WAY_OUT}")


def _swap(paths: StorePaths) -> None:
    """The old file keeps a name until its bytes are overwritten, so that a crash cannot lose sight of them."""
    paths.rewritten.chmod(FILE_MODE)
    sync(paths.rewritten)
    reached("synced")
    os.link(paths.database, paths.retired)
    sync(paths.directory)
    reached("retired")
    paths.rewritten.rename(paths.database)
    sync(paths.directory)
    reached("swapped")


def _drop_retired(paths: StorePaths, listed: Iterable[str] | None = None) -> None:
    """Destroy the retired file; but if it still is the database (no swap happened), only its second name goes.

    `listed` are the parts that the database lists, where that is known.
    """
    if not paths.retired.exists():
        return
    if not paths.retired.samefile(paths.database):
        _remove_replaced(paths, listed)
        overwrite(paths.retired, lambda: reached("overwriting"))
        reached("overwritten")
    paths.retired.unlink()
    sync(paths.directory)
    reached("destroyed")


def _remove_replaced(paths: StorePaths, listed: Iterable[str] | None) -> None:
    """Parts that the database no longer lists go before the retired one, which says that there is work left."""
    if not paths.parts.is_dir():
        return
    if listed is not None:
        parts.remove_others(paths.parts, listed, reached)
        return
    connection = connect(paths.database, paths.spill, read_only=not paths.wal.exists())
    try:
        parts.remove_unlisted(connection, reached)
    finally:
        connection.close()
