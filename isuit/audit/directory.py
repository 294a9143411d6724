"""The files of a store beside its tables: what lies in its directory, and who may read it."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from isuit.store.paths import StorePaths

OTHERS = stat.S_IRWXG | stat.S_IRWXO  # everything that group and others could be allowed


def strange_files(paths: StorePaths) -> Iterator[tuple[str, str]]:
    """What no version puts into a store's directory, what is not a file of its own, and what others may open.

    Gives a file's name and a sentence. A name that is not ours may be anybody's: it is not repeated.
    """
    known, folders = paths.names(), {paths.spill.name}
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
