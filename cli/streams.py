"""Standard output and error of a command, where the other end may be closed, gone or full.

A command writes and ends as if every line arrived. What cannot be written is dropped, and at the end the exit code says
so where it matters: a full disk is an error (2), a reader that went away (`isuit fits | head`) or an output closed by
the caller (`>&-`) is not. Never 1, which means that a check came out negative.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, TextIO

from isuit.errors import UnfinishedWarning

from .output import note

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class LastingFile(io.FileIO):
    """A descriptor whose first failing write is remembered, and after it nothing is written any more."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        if self.failure is None:
            try:
                return super().write(data)
            except BlockingIOError:
                raise
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes


def outlast() -> LastingFile | None:
    """Make the standard streams outlast a failing write; gives the file of standard output.

    None where standard output is not the process's own, as in a notebook or a test.
    """
    warnings.showwarning = _told(warnings.showwarning)
    # A closed descriptor is given to the next file that is opened, which may be the database: fill the places.
    while (place := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(place, True)
    os.close(place)
    if sys.stderr is sys.__stderr__:
        sys.stderr, _ = _lasting(sys.stderr, 2)
    if sys.stdout is not sys.__stdout__:
        return None
    sys.stdout, file = _lasting(sys.stdout, 1)
    return file


def exit_code(asked: int, file: LastingFile | None) -> int:
    """The code to end with, where the command itself would have ended with `asked`."""
    sys.stdout.flush()
    if file is None or file.failure is None or file.failure.errno == errno.EPIPE:
        return asked
    note(
        f"isuit: the output could not be written whole ({os.strerror(file.failure.errno or errno.EIO)}); what the "
        "command did is done: make room and run it again to see the output."
    )
    return asked or 2


def _lasting(stream: TextIO | None, descriptor: int) -> tuple[TextIO, LastingFile]:
    """The same stream over a lasting file; one that was closed leads nowhere."""
    file = LastingFile(os.devnull if stream is None else descriptor, "w", closefd=stream is None)
    kept: dict[str, Any] = {"encoding": "utf-8"}
    if isinstance(stream, io.TextIOWrapper):
        stream.flush()
        kept = {name: getattr(stream, name) for name in ("encoding", "errors", "line_buffering", "write_through")}
    # Where nothing is to be buffered (PYTHONUNBUFFERED, as in containers), a line is written when it ends.
    kept["line_buffering"] = kept.get("line_buffering", False) or kept.get("write_through", False)
    return io.TextIOWrapper(io.BufferedWriter(file), **kept), file


def _told(otherwise: Any) -> Any:
    """Warnings about the store are sentences for the person at the terminal; others are the interpreter's."""

    def show(message: Any, category: type[Warning], *details: Any, **more: Any) -> None:
        if issubclass(category, UnfinishedWarning):
            note(f"note: {message}")
        else:
            otherwise(message, category, *details, **more)

    return show
