"""Progress of long work in a notebook: one line of HTML that is written again, which needs no widgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

FIRST_AFTER, EVERY = 1.0, 0.25  # seconds: work that is done sooner needs no bar


@contextmanager
def notebook_progress() -> Iterator[Callable[[str, float], None]]:
    """The function that long work reports to: a bar inside a Jupyter kernel, nothing elsewhere."""
    if not _in_a_kernel():
        yield lambda stage, share: None
        return
    bar = _Bar()
    try:
        yield bar.report
    finally:
        bar.clear()


def _in_a_kernel() -> bool:
    """Whether this code runs inside a Jupyter kernel; without one, IPython may still be there."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")


class _Bar:
    """A `<progress>` element under an id of its own."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._next = time.monotonic() + FIRST_AFTER

    def report(self, stage: str, share: float) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        self._write(f'<progress value="{min(max(share, 0.0), 1.0):.3f}" max="1"></progress> {escape(stage)}')

    def clear(self) -> None:
        if self._handle is not None:
            self._write("")

    def _write(self, html: str) -> None:
        display = sys.modules["IPython.display"]  # a kernel has it
        if self._handle is None:
            self._handle = display.display(display.HTML(html), display_id=True)
        else:
            self._handle.update(display.HTML(html))
