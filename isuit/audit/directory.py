"""The files of a store beside its tables: what lies in its directory, who may read it, and rows in parts."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb

from isuit.store.part_files import Part, file_digest, gaps
from isuit.store.parts import PARTED, listed
from isuit.store.paths import StorePaths

OTHERS = stat.S_IRWXG | stat.S_IRWXO  # everything that group and others could be allowed


def strange_files(paths: StorePaths) -> Iterator[tuple[str, str]]:
    """What no version puts into a store's directory, what is not a file of its own, and what others may open.

    Gives a file's name and a sentence. A name that is not ours may be anybody's: it is not repeated.
    """
    known, folders = paths.names(), {paths.spill.name, paths.parts.name}
    strange = [entry for entry in paths.directory.iterdir() if entry.name not in known]
    if strange:
        number = f"{len(strange)} entries" if len(strange) > 1 else "an entry"
        yield "directory", f"the store's directory holds {number} that no version up to this one makes"
    if stat.S_IMODE(paths.directory.stat().st_mode) & OTHERS:
        yield "directory", "the store's directory is open to others than its owner; set its mode to 0700"
    for name in sorted(known):
        path = paths.directory / name
        if not path.is_symlink() and not path.exists():
            continue  # the write-ahead log, the spill directory and a retired file come and go
        mode = path.lstat().st_mode
        if not (stat.S_ISDIR(mode) if name in folders else stat.S_ISREG(mode)):
            yield name, f"{name} is not a {'directory' if name in folders else 'file'} of its own but something else"
        elif stat.S_IMODE(mode) & OTHERS:
            wanted = "0700" if name in folders else "0600"
            yield name, f"{name} is open to others than its owner; set its mode to {wanted}"


def strange_parts(connection: duckdb.DuckDBPyConnection, paths: StorePaths) -> Iterator[tuple[str, str]]:
    """Parts that are missing or are not the files that were written, and files that nothing lists.

    Gives the table whose rows a part holds, and a sentence. Every byte is read once, to be hashed.
    """
    known = listed(connection)
    for part in known:
        if trouble := _trouble(part, part.path(paths.parts)):
            number = f"part {part.position + 1} of {part.subject}"
            yield part.holds if part.holds in PARTED else "ledger.parts", f"{number} in {part.holds} {trouble}"
    twice = [name for name, times in Counter(part.part for part in known).items() if times > 1]
    if twice:
        yield "ledger.parts", f"{len(twice)} parts are listed more than once"
    if paths.parts.is_dir():
        expected = {part.path(paths.parts) for part in known}
        if strange := [entry for entry in paths.parts.iterdir() if entry not in expected]:
            number = f"{len(strange)} files" if len(strange) > 1 else "a file"
            yield (
                paths.parts.name,
                f"parts/ holds {number} that the database does not list; `isuit status` removes them",
            )


def _trouble(part: Part, path: Path) -> str | None:
    """What is wrong with a part's file, if anything is."""
    if path.is_symlink() or not path.is_file():
        return "is missing" if not path.exists() else "is not a file of its own"
    if stat.S_IMODE(path.stat().st_mode) & OTHERS:
        return "is open to others than its owner; set its mode to 0600"
    if path.stat().st_size != part.bytes or file_digest(path) != part.digest:
        return "is not the file that was written"
    return "holds bytes of no row" if gaps(path) else None
