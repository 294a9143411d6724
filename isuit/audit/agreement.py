"""Whether a cohort or a fit agrees with its commitments, told in one pass over rows, salts and leaves in order.

Verification asks this first. It holds nothing for all riders but 32 bytes of leaf each, takes rows and commitments side
by side, and stops at the first thing that is out of order: it cannot say what is wrong. `isuit.audit.subjects` then
looks at every rider and names what it finds. So whatever is accepted here must be accepted there; whatever is not, is
looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit import canonical
from isuit.audit.blocks import SALT_BYTES, Block, as_texts, salted_leaves
from isuit.audit.commitments import BareLeaves, root_of
from isuit.store.cohorts import stored_commitments, stored_leaves


class Unclear(Exception):
    """Something is not as it should be, or not so simple: every rider must be looked at."""


class Agreement(NamedTuple):
    """What a subject's rows and commitments were found to be, once they agree."""

    riders: int  # who have rows and a commitment
    empty: int  # leaves of erased riders, each covered by a receipt


def agreement(
    connection: duckdb.DuckDBPyConnection,
    subject: str,
    root: str | None,
    tag: str,
    blocks: Generator[Block],
    erased: list[str],
) -> Agreement | None:
    """Every rider of `blocks` has the commitment that follows from them, and every other leaf has a receipt.

    None if anything is otherwise, or cannot even be read: looking at every rider then says what. `blocks` must not be
    begun before: DuckDB answers one question at a time.
    """
    try:
        ordered = _bare(connection, subject, root)
        met = _meet(blocks, stored_commitments(connection, subject), tag)
        return Agreement(len(met), _empty(ordered, met.ordered(), erased))
    except Exception:
        return None
    finally:
        blocks.close()


def _bare(connection: duckdb.DuckDBPyConnection, subject: str, root: str | None) -> NDArray[np.bytes_]:
    """The bare leaves in order, which have the root and are all different."""
    bare = BareLeaves()
    for batch in stored_leaves(connection, subject):
        _demand(bare.add_texts(batch.column("leaf")))
    ordered = bare.ordered()
    _demand(root_of(ordered) == root if ordered.size else root is None)
    _demand(not np.any(ordered[1:] == ordered[:-1]))
    return ordered


def _demand(holds: bool) -> None:
    if not holds:
        raise Unclear


def _meet(blocks: Iterable[Block], commitments: Iterator[pa.RecordBatch], tag: str) -> BareLeaves:
    """The leaves of all riders, each of whom has exactly one commitment, with the leaf that follows."""
    met, ahead, last = BareLeaves(), _Ahead(commitments), None
    for block in blocks:
        tied = ahead.take(len(block.riders))
        riders = tied.column("rider")
        _demand(riders.equals(block.riders) and not riders.null_count)
        _demand(last is None or last < riders[0].as_py().encode())
        _demand(pc.all(pc.less(riders[:-1], riders[1:])).as_py() is not False)  # None of a single rider
        last = riders[-1].as_py().encode()
        leaves = salted_leaves(tag, _salts(tied.column("salt")), block)
        _demand(as_texts(leaves).equals(tied.column("leaf")))
        met.add(leaves)
    _demand(ahead.is_over())
    return met


def _salts(column: pa.Array) -> bytes:
    content, bounds = canonical.line_bytes(column.cast(pa.large_binary()))
    _demand(not column.null_count and not np.any(np.diff(bounds) != SALT_BYTES))
    return bytes(content)


def _empty(bare: NDArray[np.bytes_], met: NDArray[np.bytes_], erased: list[str]) -> int:
    """How many leaves are nobody's: those that receipts name and no others."""
    if not erased:
        _demand(np.array_equal(bare, met))
        return 0
    _demand(met.size <= bare.size)
    places = np.searchsorted(bare, met)
    _demand(bool(np.all(places < bare.size)) and np.array_equal(bare[places], met))
    free = np.ones(bare.size, bool)
    free[places] = False
    left = as_texts(bare[free].tobytes()).to_pylist()
    _demand(Counter(left) == Counter(erased))
    return len(left)


class _Ahead:
    """Batches, of which so many rows are taken as are asked for."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def take(self, count: int) -> pa.RecordBatch:
        found: list[pa.RecordBatch] = []
        while count:
            if self._left is None:
                self._left = next((batch for batch in self._batches if len(batch)), None)
            if self._left is None:
                raise Unclear
            some = self._left.slice(0, count)
            self._left = self._left.slice(len(some)) if len(some) < len(self._left) else None
            found.append(some)
            count -= len(some)
        return found[0] if len(found) == 1 else pa.Table.from_batches(found).combine_chunks().to_batches()[0]

    def is_over(self) -> bool:
        return self._left is None and next((batch for batch in self._batches if len(batch)), None) is None
