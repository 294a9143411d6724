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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from isuit import canonical
from isuit.audit.digests import exact_line, tagged

ROWS_LEAF_TAG = "isuit/leaf/rows/1"
SKILL_LEAF_TAG = "isuit/leaf/skill/1"
ROOT_TAG = "isuit/root/1"
SALT_BYTES = 32


@dataclass
class Commitment:
    """The leaves of one cohort or fit, in the making: one entry per rider."""

    riders: list[str] = field(default_factory=list)
    salts: list[bytes] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)

    def add(self, rider: str, tag: str, content: bytes) -> None:
        salt = secrets.token_bytes(SALT_BYTES)
        self.riders.append(rider)
        self.salts.append(salt)
        self.leaves.append(tagged(tag, salt, content))

    @property
    def root(self) -> str:
        return leaves_root(self.leaves)


def leaves_root(leaves: Iterable[str]) -> str:
    """The root over leaves, whatever their order."""
    return tagged(ROOT_TAG, *(leaf.encode() for leaf in sorted(leaves)))


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
    """A skill's exact bits: rider, mean, sd, outcomes, bins, usable."""
    return exact_line(row)


def skill_leaf(salt: bytes, row: Sequence[Any]) -> str:
    return tagged(SKILL_LEAF_TAG, salt, skill_content(row))
