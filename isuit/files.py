"""Files that are there whole or not at all: every file that a command writes for its user goes through here.

A file is written beside its target under a name of its own, brought to the disk, and takes the target's name last. Who
reads the target meanwhile reads the old file or the new one, and what is killed or runs out of disk leaves the old one.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isuit.errors import InputError

CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows has none, and hands no descriptor on
PRIVATE = 0o600  # for what names riders
PUBLIC = 0o644


class CannotWrite(InputError):
    """A file that cannot be written; `reason` is the system's, for a caller who has more to say."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{path} cannot be written ({reason}); name another place")


@contextmanager
def whole(target: Path, mode: int | None = None) -> Iterator[Path]:
    """The path to write to; when the block ends well, what is there becomes `target`, otherwise it is removed.

    `mode` is the file's, whatever was there before; without it, that of the file replaced, or of any new file.
    Devices, pipes and symbolic links are written through: /dev/stdout is a link, and must not become a file.
    """
    if target.is_symlink() or (target.exists() and not target.is_file()):
        with _explained(target):
            yield target
        return
    part = target.with_name(f".isuit-{secrets.token_hex(8)}{target.suffix}")  # libraries choose formats by the ending
    try:
        with _explained(target):
            _create(part, target, mode)
            yield part
            _sync(part)
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_whole(target: Path, content: Iterable[bytes | memoryview], mode: int | None = None) -> None:
    """Write these bytes, one piece after the other."""
    with whole(target, mode) as part, part.open("wb") as file:
        file.writelines(content)


@contextmanager
def whole_directory(target: Path, mode: int) -> Iterator[Path]:
    """The same for a new directory and all that the block writes into it; `target` may be there if it is empty."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not an empty directory; name a new one with --out")
    part = target.with_name(f".isuit-{secrets.token_hex(8)}")
    try:
        with _explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            part.mkdir(mode)
            yield part
            for file in part.iterdir():
                _sync(file)
            if target.exists():
                target.rmdir()
            part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _create(part: Path, target: Path, mode: int | None) -> None:
    """An empty file with the permissions it is to have, from the start: nobody may look in while it is written."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o666 if mode is None else mode)
    os.close(descriptor)
    if mode is None and target.exists():
        mode = stat.S_IMODE(target.stat().st_mode)
    if mode is not None:
        part.chmod(mode)


def _sync(part: Path) -> None:
    """Bring it to the disk: otherwise a power cut after the renaming could leave an empty file."""
    with part.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """The system's errors as a sentence. A reader that went away is not an error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotWrite(target, error.strerror or "unknown reason") from None
