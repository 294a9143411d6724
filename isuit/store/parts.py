"""Rows that grow with a cohort: small subjects in the database's tables, large ones in files beside it, by part.

Four tables grow with rows or riders: outcomes, skills, commitments and bare leaves. A cohort or fit that has few of
them keeps them in the database. One that has many has them in parts (`isuit.store.part_files`), so that an erasure
writes the parts that hold the person anew and not everything. A part ends at the first rider's border after so many
rows: parts are a function of the cohort, and one after the other they are its canonical order.

Readers do not see the difference. Every connection has a view for each of the four, of table and parts together:

    personal.outcomes      held_outcomes, and all_outcomes with the rows that cohorts share (`isuit.store.holders`)
    personal.skills        all_skills
    personal.commitments   all_commitments
    ledger.leaves          all_leaves

Views are temporary, made by whoever opens the store, so that a store can be moved.

Files are written and synced first, then one transaction of the database lists them in `ledger.parts`. A file that is
not listed there is nothing: what a killed import left, or what an erasure replaced. `remove_unlisted` overwrites it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from isuit.errors import StoreError
from isuit.store import holders
from isuit.store.part_files import SUFFIX, Part, PartFile, batches_of, may_hold, overwrite
from isuit.store.paths import sync
from isuit.store.query import arrow, batches, insert, quoted, rows

FOLDER = "parts"


@dataclass(frozen=True)
class Parted:
    """How one of the tables is cut."""

    view: str
    subject: str  # the column that names cohort or fit
    rows: int  # of a part, up to the next rider's border

    @property
    def fewest(self) -> int:
        """From so many rows on, a cohort or fit has parts."""
        return self.rows // 2


# An erasure writes the outcomes' part (about 4 MB), two of commitments (1.5 MB each) and one of skills (0.5 MB), and as
# many bytes of zeros over the old ones.
PARTED = {
    "personal.outcomes": Parted(holders.HELD, "cohort_hash", 1 << 18),
    "personal.skills": Parted("all_skills", "fit_id", 1 << 14),
    "personal.commitments": Parted("all_commitments", "subject", 1 << 14),
    "ledger.leaves": Parted("all_leaves", "subject", 1 << 17),
}
PENDING = "part"  # work in `ledger.pending`: a part to be written without somebody
HIDDEN = "hidden_riders"  # a variable of the connection
VIEWS = MappingProxyType({table: parted.view for table, parted in PARTED.items()})
Write = Callable[[pa.Table], None]


def folder_of(connection: duckdb.DuckDBPyConnection) -> Path:
    """Where the parts of the connection's database are."""
    [(path,)] = rows(connection, "SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    return Path(path).parent / FOLDER


def listed(connection: duckdb.DuckDBPyConnection) -> list[Part]:
    """Every part of the store, in order; none in a database from before there were parts."""
    columns = ", ".join(field.name for field in fields(Part))
    try:
        found = rows(connection, f"SELECT {columns} FROM ledger.parts ORDER BY holds, subject, position")
    except duckdb.CatalogException:
        return []
    return [Part(*row) for row in found]


def parts_of(connection: duckdb.DuckDBPyConnection, table: str, subject: str) -> list[Part]:
    return [part for part in listed(connection) if (part.holds, part.subject) == (table, subject)]


def has_parts(connection: duckdb.DuckDBPyConnection, subject: str) -> bool:
    return any(part.subject == subject for part in listed(connection))


# Writing


@contextmanager
def writing(connection: duckdb.DuckDBPyConnection, table: str, subject: str, count: int) -> Iterator[Write]:
    """For adding the `count` rows of a subject to a table, in order, inside the caller's transaction."""
    if count < PARTED[table].fewest:
        yield lambda data: insert(connection, table, data)
        return
    writer = _Writer(folder_of(connection), arrow(connection, f"SELECT * FROM {table} LIMIT 0").schema, table, subject)
    try:
        yield writer.add
        written = writer.finish()
    except BaseException:
        writer.discard()
        raise
    insert_parts(connection, written)
    show(connection)


def insert_parts(connection: duckdb.DuckDBPyConnection, found: Iterable[Part]) -> None:
    marks = ", ".join("?" * len(fields(Part)))
    for part in found:
        connection.execute(f"INSERT INTO ledger.parts VALUES ({marks})", list(astuple(part)))


class _Writer:
    """Cuts rows that come in order into parts."""

    def __init__(self, folder: Path, schema: pa.Schema, table: str, subject: str) -> None:
        self._folder, self._schema, self._table, self._subject = folder, schema, table, subject
        self._rows = PARTED[table].rows
        self._file: PartFile | None = None
        self._last: str | None = None  # the rider of the row before
        self._done: list[tuple[Part, Path]] = []

    def add(self, data: pa.Table) -> None:
        data = self._fitted(data)
        while data.num_rows:
            if self._file is None:
                self._file = PartFile(self._folder, self._schema)
            room = self._border(data, max(0, self._rows - self._file.rows))
            if room:
                self._file.add(data.slice(0, room))
            if room < data.num_rows:
                self._close()
            data = data.slice(room)

    def _fitted(self, data: pa.Table) -> pa.Table:
        """With all columns of the table, in its order: parts of one table are read together."""
        columns = [
            data.column(field.name).cast(field.type)
            if field.name in data.schema.names
            else pa.nulls(data.num_rows, field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _border(self, data: pa.Table, start: int) -> int:
        """How many of the rows still belong to the part: up to the first border at or after `start`."""
        if "rider" not in self._schema.names:
            return min(start, int(data.num_rows))
        riders = data.column("rider")
        before, self._last = self._last, riders[-1].as_py()
        if start >= data.num_rows:
            return int(data.num_rows)
        # A full part begins a batch only with rows before it.
        previous = riders[start - 1].as_py() if start else before
        other = pc.index(pc.equal(riders.slice(start), previous), False).as_py()
        return int(data.num_rows) if other < 0 else start + other

    def _close(self) -> None:
        assert self._file is not None
        size, digest = self._file.close()
        name, count, position = self._file.name, self._file.rows, len(self._done)
        part = Part(name, self._table, self._subject, position, count, size, digest)
        self._done.append((part, self._file.path))
        self._file = None

    def finish(self) -> list[Part]:
        if self._file is not None:
            self._close()
        return [part for part, _ in self._done]

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()
        for _, path in self._done:
            path.unlink(missing_ok=True)


def move(connection: duckdb.DuckDBPyConnection, order: Callable[[str], str]) -> bool:
    """Move the rows of every large subject out of the tables, in the caller's transaction; whether there were any.

    `order` gives the order of a cohort's outcomes, as SQL. What DuckDB leaves of moved rows in its file is of persons
    who are in the store; an erasure writes that file anew.
    """
    moved = False
    for table, parted in PARTED.items():
        counts = f"SELECT {parted.subject}, count(*) FROM {table} GROUP BY ALL HAVING count(*) >= ? ORDER BY ALL"
        for subject, count in rows(connection, counts, [parted.fewest]):
            by = order(subject) if table == "personal.outcomes" else ("leaf" if table == "ledger.leaves" else "rider")
            query = f"SELECT * FROM {table} WHERE {parted.subject} = ? ORDER BY {by}"
            with writing(connection, table, subject, count) as write:
                for batch in batches(connection, query, [subject]):
                    write(pa.Table.from_batches([batch]))
            connection.execute(f"DELETE FROM {table} WHERE {parted.subject} = ?", [subject])
            moved = True
    return moved


# Reading


def show(
    connection: duckdb.DuckDBPyConnection,
    *,
    only: Iterable[Part] | None = None,
    inspect: bool = False,
) -> None:
    """Make the views anew: of all parts, or of `only` some, without rows about those whom `hide` was told.

    A part that is missing makes every answer wrong and is refused, unless the store is opened for inspection.
    """
    known = listed(connection) if only is None else list(only)
    folder = folder_of(connection) if known else Path()
    gone = [part for part in known if not part.path(folder).is_file()]
    if gone and not inspect:
        raise StoreError(
            f"{len(gone)} of the files in {folder} are missing, and with them rows of a cohort or fit: restore the "
            "whole directory of the store; `isuit verify` lists what is missing."
        )
    hidden = hides(connection)
    for table, parted in PARTED.items():
        source = f"SELECT * FROM {table}"
        files = [str(part.path(folder)) for part in known if part.holds == table and part not in gone]
        if files:
            # Skills gained a column, which older parts do not have. Looking into every file costs, so only for them.
            by_name = ", union_by_name = true" if table == "personal.skills" else ""
            source += f" UNION ALL BY NAME SELECT * FROM read_parquet([{', '.join(map(quoted, files))}]{by_name})"
            if hidden and table != "ledger.leaves":
                source += f" WHERE NOT list_contains(getvariable('{HIDDEN}'), rider)"
        _make_view(connection, parted.view, source, inspect=inspect)
    _make_view(connection, "all_outcomes", holders.of_cohorts(connection), inspect=inspect)


def _make_view(connection: duckdb.DuckDBPyConnection, name: str, source: str, *, inspect: bool) -> None:
    try:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {source}")
    except duckdb.Error:
        if not inspect:  # verification names what cannot be read
            raise


def in_order(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    names: Sequence[str],
    columns: list[str],
    order: str,
    *,
    at_once: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows under some names (of cohorts, fits) in order: those of parts one after the other, or else sorted.

    With `at_once` the connection is free for other questions as soon as this returns: rows that are not in parts are
    then in memory. Columns that came later than a part are missing there.
    """
    subject = PARTED[table].subject
    found = parts_of(connection, table, names[0]) if len(names) == 1 else []
    beside = found and rows(connection, f"SELECT 1 FROM {table} WHERE {subject} = ? LIMIT 1", names)
    if found and not beside and not hides(connection):
        folder = folder_of(connection)
        return (batch for part in found for batch in batches_of(part.path(folder), columns))
    by = f"ORDER BY {order}" if order else ""
    marks = ", ".join("?" * len(names))
    query = f"SELECT {', '.join(columns)} FROM {VIEWS[table]} WHERE {subject} IN ({marks}) {by}"
    return iter(arrow(connection, query, names).to_batches()) if at_once else batches(connection, query, names)


def hides(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether parts hold riders whose erasure is decided and not finished."""
    try:
        return bool(rows(connection, "SELECT 1 FROM ledger.pending WHERE work = ? LIMIT 1", [PENDING]))
    except duckdb.CatalogException:
        return False


def hide(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Keep these riders' rows out of the views, which hold what an erasure has decided and could not finish."""
    connection.execute(f"SET VARIABLE {HIDDEN} = [{', '.join(map(quoted, names))}]::VARCHAR[]")


@contextmanager
def narrowed(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> Iterator[list[Part]]:
    """While it lasts, the views hold only parts that may hold one of the riders; which these are."""
    folder, wanted = folder_of(connection), sorted(names)
    known = listed(connection)
    found = [part for part in known if part.holds != "ledger.leaves" and may_hold(part.path(folder), wanted)]
    if known:
        show(connection, only=found)
    try:
        yield found
    finally:
        if known:
            show(connection)


def parts_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """How many rows of a table are in parts."""
    return sum(part.row_count for part in listed(connection) if part.holds == table)


def riders_in(connection: duckdb.DuckDBPyConnection, found: Iterable[Part]) -> dict[str, frozenset[str]]:
    """By part, which of the riders in `persons` it holds (see `isuit.erasure.personal.searching`)."""
    folder = folder_of(connection)
    held: dict[str, frozenset[str]] = {}
    for part in found:
        query = "SELECT DISTINCT rider FROM read_parquet(?) WHERE rider IN (SELECT name FROM persons)"
        if names := frozenset(name for (name,) in rows(connection, query, [str(part.path(folder))])):
            held[part.part] = names
    return held


def remove_unlisted(connection: duckdb.DuckDBPyConnection, tell: Callable[[str], None] = lambda step: None) -> None:
    """Overwrite and remove every file beside the parts that the database lists; needs the exclusive lock."""
    folder = folder_of(connection)
    if not folder.is_dir():
        return
    try:
        names = {name for (name,) in rows(connection, "SELECT part FROM ledger.parts")}
    except duckdb.CatalogException:  # without the list nothing can be told to be unlisted
        return
    remove_others(folder, names, tell)


def remove_others(folder: Path, names: Iterable[str], tell: Callable[[str], None] = lambda step: None) -> None:
    """Overwrite and remove every file that is not a part with one of the names; needs the exclusive lock."""
    kept = {folder / (name + SUFFIX) for name in names}
    strange = [entry for entry in folder.iterdir() if entry not in kept]
    for entry in strange:
        if entry.is_file() and not entry.is_symlink():
            overwrite(entry)
            tell("part overwritten")
        entry.unlink()
    if strange:
        sync(folder)
        tell("parts removed")
