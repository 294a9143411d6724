"""How many threads linear algebra may use.

OpenBLAS wakes its threads for matrices of some fifty rows, and each spins for milliseconds when it is done: for the
many small products and factors of a fit that costs more than the work itself (measured on 243,319 outcomes: 12.2 s of
CPU time instead of 7.4), and sums would depend on how many there are. Both cores are used by working on two blocks of
riders at once. Only the factors of a thousand parameters are worth threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

CORES = 2
_MANY_PARAMETERS = 200


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on the calling thread alone."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def for_parameters(count: int) -> Iterator[None]:
    """As many threads as pay for matrices of so many rows."""
    with _controller().limit(limits=CORES if count > _MANY_PARAMETERS else 1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
