"""Every error a user can meet: one sentence that says what is wrong and what to do, and an exit code.

The command line catches `IsuitError` in one place (`cli/app.py`) and prints its sentence; nothing else
turns errors into messages. A sentence never holds a rider's ID: it names columns, counts, row numbers,
bins and sites.
"""

from __future__ import annotations

import errno
from typing import ClassVar

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class IsuitError(Exception):
    """Base of all errors that are the caller's to see.

    A sentence may quote a name of a file or a column, and either may hold half a character: it is written as an escape,
    so that every sentence can be written as UTF-8.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, *told: object) -> None:
        super().__init__(*(_writable(part) if isinstance(part, str) else part for part in told))


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


class InputError(IsuitError):
    """Bad usage or bad input: nothing was written."""


class CohortRefused(InputError):
    """A cohort file holds values that cannot be read; the sentence names columns, counts and first rows."""


class EstimationError(IsuitError):
    """The data cannot be fitted, or the fit did not reach its gradient tolerance."""


class StoreError(InputError):
    """The store cannot be used as it is (not a store, another version, read-only, disk full)."""


class Unfinished(StoreError):
    """Work that was decided could not be brought to its end: the store can be read, and not written."""


class UnfinishedWarning(UserWarning):
    """The same, to someone who only reads."""


class CheckFailed(IsuitError):
    """A check came out negative."""

    exit_code = 1


class PolicyRefusal(IsuitError):
    """The disclosure policy does not allow it."""

    exit_code = 3


class NotFound(IsuitError):
    """No such fit, cohort or rider."""

    exit_code = 4


class StoreBusy(IsuitError):
    """Another process uses the store."""

    exit_code = 75


def unexpected(error: Exception) -> str:
    """A sentence for an error that nobody foresaw: its kind and place in the program, and no value.

    A disk can be full wherever something is written, also where compiled loops are kept: that is no defect.
    """
    if isinstance(error, OSError) and error.errno in FULL:
        return "a disk is full, or a file may not grow further; nothing was recorded: free some space and try again"
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_globals.get("__name__", "")
        if file.split(".")[0] == "isuit":
            place = f" in {file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"this is a defect of the program ({type(error).__name__}{place}); please report it with this line"
