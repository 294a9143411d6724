"""Bytes of a regular file, up to a size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from isuit.errors import InputError

LARGEST_FILE = 64 << 20  # bytes
CLOEXEC, NONBLOCK = getattr(os, "O_CLOEXEC", 0), getattr(os, "O_NONBLOCK", 0)  # Windows has neither


class UnsafeDocument(InputError):
    """A file that costs more than a document may, or holds what no document of its kind holds."""


def require_regular(path: Path, what: str, largest: int | None = None) -> None:
    """Refuse what is no regular file, or too large, before another library opens it. OSError where there is none."""
    _check(path.stat(), what, largest)


def read_bytes(path: Path, what: str, largest: int = LARGEST_FILE) -> bytes:
    """The whole content; `what` is how a refusal calls the file. OSError where it cannot be opened."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
    descriptor = os.open(path, os.O_RDONLY | CLOEXEC | NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        _check(os.fstat(descriptor), what, largest)
        content = file.read(largest + 1)
    if len(content) > largest:  # it grew, or is one of those that the system makes up while they are read
        raise _too_large(what, largest)
    return content


def read_text(path: Path, what: str, largest: int = LARGEST_FILE) -> str:
    """The same as text in UTF-8, without the mark that some editors begin with; UnicodeDecodeError where it is none."""
    return read_bytes(path, what, largest).decode("utf-8-sig")


def _check(found: os.stat_result, what: str, largest: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeDocument(f"{what} is no regular file (a directory, pipe or device); copy it into a file first")
    if largest is not None and found.st_size > largest:
        raise _too_large(what, largest)


def _too_large(what: str, largest: int) -> UnsafeDocument:
    return UnsafeDocument(f"{what} is larger than the {largest >> 20} MiB that are read of such a file; check it")
