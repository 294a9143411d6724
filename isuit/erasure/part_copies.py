"""Parts that hold a person, written anew without them.

The decision lists what is to be done in `ledger.pending`: a part and a keyed digest of a rider in it, no ID. Whoever
finishes it, now or after a crash, finds the riders by their digests among those of the part, copies everybody else's
rows into a new file with a new name, compares and inspects it. The database that is written next lists the new names;
with its swap (`isuit.erasure.rewrite`) all parts change at once, and what it does not list is overwritten and removed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import datetime
from itertools import accumulate
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from isuit.audit.digests import rider_digest
from isuit.errors import Unfinished
from isuit.store.part_files import Part, PartFile, batches_of, batches_to_copy, gaps
from isuit.store.parts import PENDING, folder_of, listed
from isuit.store.query import rows


def mark(
    connection: duckdb.DuckDBPyConnection, key: bytes, affected: Mapping[str, Set[str]], marked_at: datetime
) -> None:
    """Note, by part, whose rows have to go, in the transaction that decides it."""
    for part, names in sorted(affected.items()):
        for digest in sorted(rider_digest(key, name) for name in names):
            connection.execute("INSERT INTO ledger.pending VALUES (?, ?, ?)", [PENDING, f"{part}:{digest}", marked_at])


def pending(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """By part, the digests of riders whose rows have to go."""
    found: dict[str, set[str]] = {}
    for (subject,) in rows(connection, "SELECT subject FROM ledger.pending WHERE work = ?", [PENDING]):
        part, _, digest = subject.partition(":")
        found.setdefault(part, set()).add(digest)
    return found


def pending_names(connection: duckdb.DuckDBPyConnection, key: bytes) -> list[str]:
    """The riders behind the digests, for a reader of a store whose erasure could not be finished."""
    folder, work = folder_of(connection), pending(connection)
    names: set[str] = set()
    for part in listed(connection):
        if part.part in work:
            names.update(_names(part.path(folder), key, work[part.part], {}))
    return sorted(names)


def copy_parts(
    comparing: duckdb.DuckDBPyConnection,
    folder: Path,
    key: bytes,
    work: Mapping[str, Set[str]],
    known: Iterable[Part],
    reached: Callable[[str], None],
) -> dict[str, Part]:
    """Write every part that pending work names anew; by the old name, what is to be listed instead.

    `comparing` is a connection to any database: the files are read with it.
    """
    copies: dict[str, Part] = {}
    riders: dict[str, str] = {}
    # Outcomes first: they have the fewest riders to compute digests of.
    for part in sorted(known, key=lambda part: part.holds != "personal.outcomes"):
        if part.part in work:
            gone = _names(part.path(folder), key, work[part.part], riders)
            copies[part.part] = _copy(part, folder, gone, comparing)
            reached("part written")
    return copies


def _names(path: Path, key: bytes, digests: Set[str], riders: dict[str, str]) -> list[str]:
    """The riders of a part whom the digests mean; `riders` keeps them by digest, so that nobody is sought twice."""
    if digests - riders.keys():
        known: set[str] = set()
        for batch in batches_of(path, ["rider"]):
            known.update(batch.column("rider").unique().to_pylist())
        for name in known:
            if (digest := rider_digest(key, name)) in digests:
                riders[digest] = name
    return sorted(riders[digest] for digest in digests & riders.keys())


def _copy(part: Part, folder: Path, names: list[str], comparing: duckdb.DuckDBPyConnection) -> Part:
    old, gone = part.path(folder), _array(names)
    schema, batches = batches_to_copy(old)
    file = PartFile(folder, schema)
    try:
        for batch in batches:
            others = pc.invert(pc.is_in(batch.column("rider"), value_set=gone))
            file.add(pa.Table.from_batches([batch.filter(others)]))
        size, digest = file.close()
        _compare(comparing, old, file.path, names, part.holds)
    except BaseException:
        file.discard()
        raise
    return Part(file.name, part.holds, part.subject, part.position, file.rows, size, digest)


def _array(names: list[str]) -> pa.Array:
    """As `pa.array` makes it, which imports pandas where there is one: 0.3 s of an erasure that takes one."""
    texts = [name.encode() for name in names]
    ends = array("i", accumulate(map(len, texts), initial=0))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(texts)))


def _compare(connection: duckdb.DuckDBPyConnection, old: Path, new: Path, gone: list[str], table: str) -> None:
    """Everybody else's rows and no other, by DuckDB and not by what wrote them; and no byte that belongs to no row."""
    query = (
        "SELECT count(*), sum(hash(one)::HUGEINT) FROM read_parquet(?) one WHERE NOT list_contains(?::VARCHAR[], rider)"
    )
    before, after = (rows(connection, query, [str(path), names]) for path, names in ((old, gone), (new, [])))
    if before != after:
        raise Unfinished(f"the copy of a part of {table} is not identical and was dropped; run `isuit status` again.")
    if gaps(new):
        raise Unfinished(
            f"the copy of a part of {table} holds bytes of no row and was dropped; run `isuit status` again."
        )
