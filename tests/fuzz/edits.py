"""Single edits of a store, as somebody with DuckDB or a shell could make them: rows, columns, catalogue, files, modes.

    python tests/fuzz/edits.py [NUMBER [SEED]]

makes a store with the program, tries NUMBER edits on it (2,500 unless told), and says which ones `isuit verify` did not
name. Edits of the database are made in a transaction that is rolled back; edits of files on a copy.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from isuit.audit.verification import Verification, verify
from isuit.errors import IsuitError
from isuit.service import checks
from isuit.service.stores import open_store
from isuit.store.query import rows

# Values that no column of the type holds, or holds elsewhere; {c} is the column.
VALUES = {
    "VARCHAR": ["{c} || 'x'", "reverse({c}) || ' '", "''", "chr(0)", "repeat('[', 9000)", "'null'", "'{{}}'", "'[]'"],
    "DOUBLE": ["{c} + 1e-9 * greatest(1, abs({c}))", "-{c} - 1", "'nan'::DOUBLE", "'inf'::DOUBLE", "1.7e308"],
    "BIGINT": ["{c} + 1", "{c} - 1", "9223372036854775807", "-9223372036854775807", "-{c} - 1"],
    "TINYINT": ["1 - {c}", "{c} + 1", "127", "-128"],
    "BOOLEAN": ["NOT {c}"],
    "TIMESTAMP": ["{c} + INTERVAL 1 MICROSECOND", "{c} - INTERVAL 1 DAY", "'infinity'::TIMESTAMP"],
    "DATE": ["{c} + 1", "'infinity'::DATE"],
    "BLOB": ["{c} || 'x'::BLOB", "''::BLOB"],
}  # fmt: skip
OTHER_TYPES = ("VARCHAR USING 'text'", "INTEGER[] USING [1, 2]", "BOOLEAN USING true", "BLOB USING '\\xFF'::BLOB")
# {t} is a table, {c} one of its columns, {s} its schema, {n} a number that makes a name new.
CATALOGUE = (
    "ALTER TABLE {t} ADD COLUMN extra_{n} VARCHAR",
    "ALTER TABLE {t} ADD COLUMN extra_{n} INTEGER DEFAULT 7",
    "ALTER TABLE {t} RENAME TO other_{n}",
    "ALTER TABLE {t} RENAME COLUMN {c} TO other_{n}",
    "ALTER TABLE {t} ALTER {c} SET DEFAULT NULL",
    "CREATE VIEW {s}.view_{n} AS SELECT {c} FROM {t}",
    "CREATE TABLE {s}.table_{n} AS SELECT {c} FROM {t}",
    "CREATE INDEX index_{n} ON {t} ({c})",
    "CREATE SEQUENCE {s}.sequence_{n}",
    "CREATE SCHEMA schema_{n}",
    "CREATE MACRO {s}.macro_{n}(x) AS x + 1",
    "CREATE MACRO main.sum(x) AS 0",
    "CREATE MACRO main.list_contains(x, y) AS true",
    "CREATE MACRO main.duckdb_functions() AS TABLE SELECT 1 AS schema_name LIMIT 0",
    "CREATE TYPE {s}.type_{n} AS ENUM ('a', 'b')",
    "COMMENT ON TABLE {t} IS 'a person'",
    "COMMENT ON COLUMN {t}.{c} IS 'a person'",
)
BARE = {"ledger.pending"}  # empty while nobody is at work


@dataclass(frozen=True)
class Edit:
    """What is done, and what `verify` must name."""

    kind: str
    statements: tuple[str, ...]
    names: str  # a table, or the beginning of what the edit makes; empty where any name will do


class Database:
    """A store's database: edits that change what it says, drawn at random."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, chance: random.Random) -> None:
        self._connection, self._chance = connection, chance
        self.columns: dict[str, list[tuple[str, str, bool]]] = {}
        query = (
            "SELECT schema_name || '.' || table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
            "WHERE schema_name IN ('ledger', 'atlas', 'personal') ORDER BY ALL"
        )
        for table, *column in rows(connection, query):
            self.columns.setdefault(table, []).append(tuple(column))
        self.filled = [table for table in self.columns if table not in BARE]

    def edit(self) -> Edit:
        kinds = (self._value, self._value, self._null, self._swap, self._row, self._copy, self._type, self._catalogue)
        return self._chance.choice(kinds)()

    def _column(self) -> tuple[str, str, str, bool]:
        table = self._chance.choice(self.filled)
        name, kind, nullable = self._chance.choice(self.columns[table])
        return table, f'"{name}"', kind, nullable

    def _rowid(self, table: str) -> int:
        return int(self._chance.choice(rows(self._connection, f"SELECT rowid FROM {table}"))[0])

    def _value(self) -> Edit:
        table, column, kind, _ = self._column()
        value = self._chance.choice(VALUES[kind]).format(c=column)
        where = f"rowid = {self._rowid(table)} AND ({column} IS DISTINCT FROM ({value}))"
        return Edit("value", (f"UPDATE {table} SET {column} = {value} WHERE {where}",), table)

    def _null(self) -> Edit:
        table, column, _, nullable = self._column()
        lift = () if nullable else (f"ALTER TABLE {table} ALTER {column} DROP NOT NULL",)
        change = f"UPDATE {table} SET {column} = NULL WHERE rowid = {self._rowid(table)}"
        return Edit("null", (*lift, change), table)

    def _swap(self) -> Edit:
        """Two rows exchange one value: what each is paired with changes, the set of values does not."""
        table, column, *_ = self._column()
        one, two = self._rowid(table), self._rowid(table)
        other = f"CASE {table}.rowid WHEN {one} THEN {two} ELSE {one} END"
        other = f"(SELECT it.{column} FROM {table} AS it WHERE it.rowid = {other})"
        return Edit("swap", (f"UPDATE {table} SET {column} = {other} WHERE rowid IN ({one}, {two})",), table)

    def _row(self) -> Edit:
        table = self._chance.choice(self.filled)
        # Without its last event the log is whole, and what that event vouched for is not.
        names = "" if table == "ledger.log" else table
        return Edit("deleted row", (f"DELETE FROM {table} WHERE rowid = {self._rowid(table)}",), names)

    def _copy(self) -> Edit:
        table = self._chance.choice(self.filled)
        return Edit(
            "added row", (f"INSERT INTO {table} SELECT * FROM {table} WHERE rowid = {self._rowid(table)}",), table
        )

    def _type(self) -> Edit:
        table, column, *_ = self._column()
        return Edit("type", (f"ALTER TABLE {table} ALTER {column} TYPE {self._chance.choice(OTHER_TYPES)}",), table)

    def _catalogue(self) -> Edit:
        table, column, *_ = self._column()
        form = self._chance.choice(CATALOGUE)
        statement = form.format(t=table, c=column, s=table.split(".")[0], n=self._chance.randrange(1000))
        return Edit("catalogue", (statement,), "")


def contents(connection: duckdb.DuckDBPyConnection, tables: list[str]) -> list[object]:
    """What the tables say, whatever the order of their rows."""
    return [sorted(map(repr, rows(connection, f"SELECT * FROM {table}"))) for table in tables]


def types(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[object, ...]]:
    """The columns of a table with their types."""
    return rows(connection, f"SELECT column_name, column_type FROM (DESCRIBE {table})")


def database_edits(store_path: Path, number: int, seed: int) -> Iterator[tuple[Edit, Verification]]:
    """Each edit that changes something, with what verification found."""
    with open_store(store_path, write=True) as store:
        connection = store.connection
        drawn = Database(connection, random.Random(seed))
        before = {table: contents(connection, [table]) for table in drawn.filled}
        types_before = {table: types(connection, table) for table in drawn.filled}
        while number:
            edit = drawn.edit()
            connection.execute("BEGIN")
            try:
                try:
                    for statement in edit.statements:
                        connection.execute(statement)
                except duckdb.Error:
                    continue  # DuckDB itself refuses it
                if edit.kind in ("value", "null", "swap") and contents(connection, [edit.names]) == before[edit.names]:
                    # The same rows, in another order at most: no table has one, apart from what a column says.
                    if edit.kind != "null":
                        continue
                    if edit.statements == edit.statements[-1:]:
                        continue
                same_types = edit.kind == "type" and types(connection, edit.names) == types_before[edit.names]
                if same_types and contents(connection, [edit.names]) == before[edit.names]:
                    continue  # the type that the column had, and the values
                yield edit, verify(connection, store.key)
                number -= 1
            finally:
                connection.execute("ROLLBACK")


FileEdit = Callable[[Path, random.Random], None]


def _flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def _link(path: Path) -> None:
    path.rename(path.parent.with_name("elsewhere"))
    path.symlink_to(path.parent.with_name("elsewhere"))


def file_edits(store: Path) -> dict[str, FileEdit]:
    """Edits of the files of a store's directory by what they are called."""
    found: dict[str, FileEdit] = {}
    secrets = [name for name in ("key", "signing-key") if (store / name).exists()]
    for name in secrets:
        found[f"{name}: a bit flipped"] = lambda place, chance, name=name: _flip(place / name, chance)
        found[f"{name}: removed"] = lambda place, chance, name=name: (place / name).unlink()
        found[f"{name}: cut short"] = lambda place, chance, name=name: os.truncate(place / name, chance.randrange(32))
        found[f"{name}: longer"] = lambda place, chance, name=name: (place / name).open("ab").write(b"x")
    for name in (*secrets, "store.duckdb"):
        found[f"{name}: a link"] = lambda place, chance, name=name: _link(place / name)
    for name in (*secrets, "store.duckdb", "LOCK", "tmp", "."):
        mode = 0o700 if name in ("tmp", ".") else 0o600
        for bit in (0o40, 0o20, 0o4, 0o2, 0o10, 0o1):
            found[f"{name}: mode {mode | bit:o}"] = lambda place, chance, name=name, mode=mode | bit: (
                place / name
            ).chmod(mode)
    found["a file added"] = lambda place, chance: (place / f"note-{chance.randrange(99)}").write_text("x")
    found["a directory added"] = lambda place, chance: (place / "backup").mkdir()
    found["a copy added"] = lambda place, chance: (
        shutil.copy(place / "store.duckdb", place / "store.duckdb.bak") and None
    )
    found["a hidden file added"] = lambda place, chance: (place / ".hidden").write_bytes(b"")
    return found


def file_verdicts(store: Path, scratch: Path, number: int, seed: int) -> Iterator[tuple[str, list[str] | str]]:
    """Each edit of a file with the names that verification gave, or the sentence with which it was refused."""
    chance = random.Random(seed)
    edits = file_edits(store)
    names = list(edits)
    chance.shuffle(names)
    for turn in range(number):
        name = names[turn % len(names)]
        place = scratch / "edited"
        shutil.copytree(store, place)
        try:
            edits[name](place, chance)
            try:
                yield name, [found.table for found in checks.verify(place).disagreements]
            except IsuitError as refusal:
                yield name, str(refusal)
        finally:
            shutil.rmtree(place)
            (scratch / "elsewhere").unlink(missing_ok=True)


def named(edit: Edit, found: Verification) -> bool:
    """Whether verification named what was edited."""
    tables = {table for table, _ in found.disagreements}
    return edit.names in tables if edit.names else bool(tables)


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import make_full_store

    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else number
    tried: Counter[str] = Counter()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        store = make_full_store(Path(folder) / "store")
        for edit, found in database_edits(store, number * 9 // 10, seed):
            tried[edit.kind] += 1
            if tried.total() % 50 == 0:
                print(f"{tried.total()} edits, {len(missed)} not named", flush=True)
            if not named(edit, found):
                missed.append(f"{edit.kind}: {'; '.join(edit.statements)}")
        for name, answer in file_verdicts(store, Path(folder), number - number * 9 // 10, seed):
            tried["file or mode"] += 1
            if not answer:
                missed.append(name)
    for kind, count in sorted(tried.items()):
        print(f"{kind:<14}{count:>6}")
    print(f"{tried.total()} edits, {len(missed)} not named", *missed, sep="\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
