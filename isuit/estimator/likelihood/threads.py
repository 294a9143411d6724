"""How many threads linear algebra may use.

OpenBLAS wakes its threads for matrices of some fifty rows, and each spins for milliseconds when it is done: for the
many small products and factors of a fit that costs more than the work itself (measured on 243,319 outcomes: 12.2 s of
CPU time instead of 7.4), and sums would depend on how many there are. All cores are used by working on several lanes of
riders at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on the calling thread alone."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
