"""Riders by the block: what the leaves of many riders are over, one after the other in one buffer.

A block has some riders and their contents, canonical lines or exact skills, as one stretch of bytes with a border after
each rider. It is cut from Arrow batches without a step for each row; only the hash itself is one call for each rider.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isuit import canonical
from isuit.audit.digests import exact_line
from isuit.store.fits import SKILL_COLUMNS

SALT_BYTES = LEAF_BYTES = 32
ESCAPED = '[\\x00-\\x1f"\\\\]'  # characters that JSON writes otherwise


class Block(NamedTuple):
    """Some riders: what the leaf of rider i is over is `content[bounds[i]:bounds[i + 1]]`."""

    riders: pa.Array
    content: bytes | memoryview
    bounds: NDArray[np.int64]


def row_blocks(batches: Iterable[pa.RecordBatch]) -> Generator[Block]:
    """Riders with all their canonical lines, of batches in canonical order that may end anywhere.

    The contents of the blocks, one after the other, are the canonical bytes without their header. The last rider of a
    batch may go on in the next and waits for it.
    """
    waiting: str | None = None
    parts: list[bytes | memoryview] = []  # of the rider who waits
    for batch in batches:
        if not len(batch):
            continue
        content, offsets = canonical.line_bytes(canonical.lines(batch))
        starts = _starts(batch.column("rider"))
        names = batch.column("rider").take(pa.array(starts)).cast(pa.string())
        before = sum(map(len, parts))
        bounds = offsets[starts] + before
        if waiting is not None and waiting != names[0].as_py():
            names, bounds = pa.concat_arrays([pa.array([waiting]), names]), np.append(0, bounds)
        bounds[0] = 0  # whoever waited began before this batch
        if len(names) > 1:
            border = int(bounds[-1]) - before
            yield Block(names[:-1], b"".join((*parts, content[:border])) if parts else content[:border], bounds)
            content, parts = content[border:], []
        waiting = names[-1].as_py()
        parts.append(content)
    if waiting is not None:
        whole = b"".join(parts)
        yield Block(pa.array([waiting]), whole, np.array([0, len(whole)]))


def _starts(riders: pa.Array) -> NDArray[np.int64]:
    """Where a rider begins, who is another than in the row before."""
    values = riders.indices if pa.types.is_dictionary(riders.type) else riders
    other = canonical.as_numpy(pc.not_equal(values[1:], values[:-1]))
    return np.append(0, np.flatnonzero(other) + 1)


def skill_blocks(batches: Iterable[pa.RecordBatch]) -> Generator[Block]:
    """Riders with the exact bits of their skill, of batches with the columns of `personal.skills`."""
    for batch in batches:
        if len(batch):
            content, bounds = canonical.line_bytes(_skill_lines(batch))
            yield Block(batch.column("rider").cast(pa.string()), content, bounds)


def _skill_lines(batch: pa.RecordBatch) -> pa.LargeBinaryArray:
    """What `exact_line` writes of each row, for all rows at once where none holds anything out of the ordinary."""
    rider, mean, sd, outcomes, bins, usable = (batch.column(name) for name in SKILL_COLUMNS[:-1])
    path = batch.column("path") if "path" in batch.schema.names else pa.nulls(len(batch), pa.string())
    ordinary = (
        path.null_count == len(batch)
        and not any(column.null_count for column in (rider, mean, sd, outcomes, bins, usable))
        and all(pa.types.is_float64(column.type) for column in (mean, sd))
        and all(pa.types.is_integer(column.type) for column in (outcomes, bins))
        and pa.types.is_boolean(usable.type)
        and not pc.any(pc.match_substring_regex(rider, ESCAPED)).as_py()
    )
    if not ordinary:
        columns = [column.to_pylist() for column in (rider, mean, sd, outcomes, bins, usable, path)]
        return pa.array([skill_content(row) for row in zip(*columns, strict=True)], pa.large_binary())
    large = pa.large_binary()
    pieces = (
        b'["',
        rider.cast(pa.large_string()).cast(large),
        b'","',
        canonical.bits_text(mean).cast(large),
        b'","',
        canonical.bits_text(sd).cast(large),
        b'",',
        outcomes.cast(pa.large_string()).cast(large),
        b",",
        bins.cast(pa.large_string()).cast(large),
        b",",
        pc.if_else(usable, pa.scalar(b"true]", large), pa.scalar(b"false]", large)),
    )
    joined = (pa.scalar(piece, large) if isinstance(piece, bytes) else piece for piece in pieces)
    return pc.binary_join_element_wise(*joined, pa.scalar(b"", large))


def skill_content(row: tuple[object, ...]) -> bytes:
    """A skill's exact bits: rider, mean, sd, outcomes, bins, usable, and, where it moves, its path."""
    return exact_line(row[:-1] if row[-1] is None else row)


def salted_leaves(tag: str, salts: bytes, block: Block) -> bytes:
    """The leaf of every rider of a block under their salt (32 bytes each, and so are the leaves).

    The same bytes as `isuit.audit.digests.tagged(tag, salt, content)`, in one call for each rider.
    """
    before = tag.encode() + b"\x00" + SALT_BYTES.to_bytes(8, "big")
    layout = np.dtype([("before", f"V{len(before)}"), ("salt", f"V{SALT_BYTES}"), ("length", ">u8")])
    heads = np.empty(len(block.riders), layout)
    heads["before"] = np.void(before)
    heads["salt"] = np.frombuffer(salts, f"V{SALT_BYTES}")
    heads["length"] = np.diff(block.bounds)
    texts, width, content = heads.tobytes(), layout.itemsize, block.content
    places = range(0, len(texts), width)
    bounds = block.bounds.tolist()
    sha256 = hashlib.sha256
    return b"".join(
        [
            sha256(texts[place : place + width] + content[start:end]).digest()
            for place, start, end in zip(places, bounds[:-1], bounds[1:], strict=True)
        ]
    )


def as_texts(leaves: bytes) -> pa.StringArray:
    """Leaves as they are stored: 64 hex digits each."""
    count, width = len(leaves) // LEAF_BYTES, 2 * LEAF_BYTES
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(leaves.hex().encode())])


def as_salts(salts: bytes) -> pa.BinaryArray:
    """Salts as they are stored."""
    offsets = np.arange(0, len(salts) + 1, SALT_BYTES, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(salts) // SALT_BYTES, [None, pa.py_buffer(offsets), pa.py_buffer(salts)]
    )
