"""Salted leaves: one per rider for a cohort's rows and for a fit's skills, and a root over the leaves.

    leaf = SHA-256(tag, salt, the rider's canonical lines)      root = SHA-256(tag, leaves sorted)

Erasing a rider destroys rows and salt and keeps the bare leaf. Without the 32 random bytes of salt a leaf says nothing
about the rows behind it, however few they are; with them, every remaining row can still be shown to be one that was
committed to. The root is one flat hash: nobody needs to prove membership without seeing all the leaves, which name
nobody, so a tree would add a format to explain and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from isuit import canonical
from isuit.audit.digests import exact_line, tagged, tagged_all

ROWS_LEAF_TAG = "isuit/leaf/rows/1"
SKILL_LEAF_TAG = "isuit/leaf/skill/1"
ROOT_TAG = "isuit/root/1"
SALT_BYTES = LEAF_BYTES = 32
CHUNK_RIDERS = 1 << 16


class Committed(NamedTuple):
    """Some riders' commitments: who stands behind which salt and leaf."""

    riders: list[str]
    salts: list[bytes]
    leaves: list[str]


def committed(tag: str, contents: Iterable[tuple[str, bytes]]) -> Iterator[Committed]:
    """A salted leaf for each rider and content, so many riders at a time that a large cohort need not be in memory."""
    left = iter(contents)
    while some := list(islice(left, CHUNK_RIDERS)):
        salts = [secrets.token_bytes(SALT_BYTES) for _ in some]
        leaves = [tagged(tag, salt, content) for salt, (_, content) in zip(salts, some, strict=True)]
        yield Committed([rider for rider, _ in some], salts, leaves)


class BareLeaves:
    """All leaves of a cohort or a fit without their riders, 32 bytes each: a root needs them in order."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes) // LEAF_BYTES

    def add(self, leaves: Iterable[str]) -> None:
        self._bytes += bytes.fromhex("".join(leaves))

    def in_order(self) -> Iterator[list[str]]:
        """Sorted, so that their order tells nothing; a few at a time."""
        ordered = np.sort(np.frombuffer(self._bytes, f"S{LEAF_BYTES}"))
        for start in range(0, ordered.size, CHUNK_RIDERS):
            digits = ordered[start : start + CHUNK_RIDERS].tobytes().hex()
            yield [digits[place : place + 2 * LEAF_BYTES] for place in range(0, len(digits), 2 * LEAF_BYTES)]

    @property
    def root(self) -> str:
        return tagged_all(ROOT_TAG, (leaf.encode() for some in self.in_order() for leaf in some))


def leaves_root(leaves: Iterable[str]) -> str:
    """The root over leaves, whatever their order."""
    return tagged_all(ROOT_TAG, (leaf.encode() for leaf in sorted(leaves)))


def rider_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    """Each rider with all their canonical lines, which are adjacent in batches in canonical order."""
    open_rider: str | None = None
    parts: list[bytes] = []
    for batch in batches:
        if not len(batch):
            continue
        content, offsets = canonical.line_bytes(canonical.lines(batch))
        riders = batch.column("rider").dictionary_encode()
        codes = riders.indices.to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        names = riders.dictionary.take(pa.array(codes[starts])).to_pylist()
        ends = np.append(starts[1:], len(batch))
        for rider, start, end in zip(names, offsets[starts].tolist(), offsets[ends].tolist(), strict=True):
            if rider != open_rider:
                if open_rider is not None:
                    yield open_rider, b"".join(parts)
                open_rider, parts = rider, []
            parts.append(bytes(content[start:end]))
    if open_rider is not None:
        yield open_rider, b"".join(parts)


def rows_leaf(salt: bytes, lines: bytes) -> str:
    return tagged(ROWS_LEAF_TAG, salt, lines)


def skill_content(row: Sequence[Any]) -> bytes:
    """A skill's exact bits: rider, mean, sd, outcomes, bins, usable, and, where it moves, its path."""
    return exact_line(row[:-1] if row[-1] is None else row)


def skill_leaf(salt: bytes, row: Sequence[Any]) -> str:
    return tagged(SKILL_LEAF_TAG, salt, skill_content(row))
