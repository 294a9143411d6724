"""Salted leaves: one per rider for a cohort's rows and for a fit's skills, and a root over the leaves.

    leaf = SHA-256(tag, salt, the rider's canonical lines)      root = SHA-256(tag, leaves sorted)

Erasing a rider destroys rows and salt and keeps the bare leaf. Without the 32 random bytes of salt a leaf says nothing
about the rows behind it, however few they are; with them, every remaining row can still be shown to be one that was
committed to. The root is one flat hash: nobody needs to prove membership without seeing all the leaves, which name
nobody, so a tree would add a format to explain and nothing else.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isuit import canonical
from isuit.audit.blocks import (
    LEAF_BYTES,
    SALT_BYTES,
    Block,
    as_texts,
    row_blocks,
    salted_leaves,
    skill_content,
)
from isuit.audit.digests import tagged, tagged_all

ROWS_LEAF_TAG = "isuit/leaf/rows/1"
SKILL_LEAF_TAG = "isuit/leaf/skill/1"
ROOT_TAG = "isuit/root/1"
CHUNK_RIDERS = 1 << 16


class Committed(NamedTuple):
    """Some riders' commitments: who stands behind which salt and leaf."""

    riders: pa.Array
    salts: bytes  # 32 for each rider
    leaves: bytes  # 32 for each rider


def committed(tag: str, blocks: Iterable[Block]) -> Iterator[Committed]:
    """A salted leaf for each rider, block by block, so that a large cohort need not be in memory."""
    for block in blocks:
        salts = secrets.token_bytes(SALT_BYTES * len(block.riders))
        yield Committed(block.riders, salts, salted_leaves(tag, salts, block))


class BareLeaves:
    """All leaves of a cohort or a fit without their riders, 32 bytes each: a root needs them in order."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes) // LEAF_BYTES

    def add(self, leaves: bytes) -> None:
        self._bytes += leaves

    def add_texts(self, leaves: pa.Array) -> bool:
        """Leaves as they are stored; whether these are what leaves look like, or else none of them is added."""
        content, bounds = canonical.line_bytes(leaves.cast(pa.large_binary()))
        if leaves.null_count or np.any(np.diff(bounds) != 2 * LEAF_BYTES):
            return False
        try:
            text = str(content, "ascii")
            found = bytes.fromhex(text)
        except ValueError:
            return False
        if found.hex() != text:  # capital letters have the same value and another root
            return False
        self.add(found)
        return True

    def ordered(self) -> NDArray[np.bytes_]:
        """Sorted by their bytes, which is by their digits."""
        return np.sort(np.frombuffer(self._bytes, f"S{LEAF_BYTES}"))

    def in_order(self) -> Iterator[pa.StringArray]:
        """Sorted, so that their order tells nothing, as they are stored; a few at a time."""
        ordered = self.ordered()
        for start in range(0, ordered.size, CHUNK_RIDERS):
            yield as_texts(ordered[start : start + CHUNK_RIDERS].tobytes())

    @property
    def root(self) -> str:
        return root_of(self.ordered())


def root_of(ordered: NDArray[np.bytes_]) -> str:
    """The root over leaves in order, a few at a time: `leaves_root` of their texts, in a few calls."""
    state = hashlib.sha256(ROOT_TAG.encode() + b"\x00")
    for start in range(0, ordered.size, CHUNK_RIDERS):
        texts = np.frombuffer(ordered[start : start + CHUNK_RIDERS].tobytes().hex().encode(), f"V{2 * LEAF_BYTES}")
        lines = np.empty(texts.size, np.dtype([("length", ">u8"), ("text", texts.dtype)]))
        lines["length"], lines["text"] = 2 * LEAF_BYTES, texts
        state.update(lines.tobytes())
    return state.hexdigest()


def leaves_root(leaves: Iterable[str]) -> str:
    """The root over leaves, whatever their order."""
    return tagged_all(ROOT_TAG, (leaf.encode() for leaf in sorted(leaves)))


def rider_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    """Each rider with all their canonical lines, which are adjacent in batches in canonical order."""
    for block in row_blocks(batches):
        bounds = block.bounds.tolist()
        for rider, start, end in zip(block.riders.to_pylist(), bounds[:-1], bounds[1:], strict=True):
            yield rider, bytes(block.content[start:end])


def rows_leaf(salt: bytes, lines: bytes) -> str:
    return tagged(ROWS_LEAF_TAG, salt, lines)


def skill_leaf(salt: bytes, row: tuple[Any, ...]) -> str:
    return tagged(SKILL_LEAF_TAG, salt, skill_content(row))
