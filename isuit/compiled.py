"""Loops that are compiled: what numpy cannot say without arrays that are larger than the data.

A compiled function is kept beside its source or in the user's cache, so only the first fit after an installation waits
for the compiler (some ten seconds). Where nothing may be written, every process compiles for itself. The compiler
itself is imported when a loop first runs: a command that runs none, such as `isuit score`, need not wait for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

# Cores that compiled loops may run on side by side: those that this process may use, where the system tells.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """The function as machine code; it runs without the interpreter's lock, so threads run it side by side."""
    return cast(_F, _Loop(function))


class _Loop:
    """A function that is compiled, or taken from what was kept, when it is first called."""

    _building = RLock()  # several threads may be the first

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._machine_code = function, None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.machine_code(*arguments)

    @property
    def machine_code(self) -> Any:
        """What numba makes of the function; loops that it calls are put into its module as numba wants to find them."""
        if self._machine_code is None:
            with self._building:
                known = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(known.get(name), _Loop):
                        known[name] = known[name].machine_code
                if self._machine_code is None:
                    self._machine_code = _machine_code(self._function)
        return self._machine_code

    @property
    def stats(self) -> Any:
        """What numba counted: how often it compiled, and how often it found what was kept."""
        return self.machine_code.stats


def _machine_code(function: Callable[..., Any]) -> Any:
    import numba

    # No fast arithmetic: sums in another order than written would depend on how the compiler came to the code.
    # Measured: other last digits in the process that compiles than in those that load what it kept.
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
    }
    try:
        kept = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it
        return numba.njit(**options)(function)
    _forgive(kept)
    return kept


@cache
def _sources() -> str:
    """A digest of every module with compiled loops. Numba looks at a function's own file alone, and what it kept holds
    copies of the functions of other files that are called."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(path for folder in ("estimator", "release") for path in (here / folder).rglob("*.py")):
        if b"@compiled" in (content := path.read_bytes()):
            digest.update(content)
    return digest.hexdigest()


def _forgive(kept: Any) -> None:
    """Take what another version of isuit kept as nothing kept, where it names classes that are no more.

    Numba looks whether the source is the same only after it has read the index of what it kept, and the index holds the
    types of arguments: without this the first fit after an update would end in an error.
    """
    file: Any = getattr(getattr(kept, "_cache", None), "_cache_file", None)
    read = getattr(file, "_load_index", None)
    if read is None:
        return
    file._source_stamp = (file._source_stamp, _sources())

    def read_or_nothing() -> Any:
        try:
            return read()
        except (AttributeError, ImportError):
            return {}

    file._load_index = read_or_nothing
