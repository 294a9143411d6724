"""The log as a Merkle tree (RFC 6962, section 2.1): short proofs that an event is in it, and that it only grew.

    leaf = SHA-256(0x00, entry)      node = SHA-256(0x01, left, right)

An entry is the canonical JSON of an event, the same bytes that its head is a digest of. The tree is computed from the
events whenever it is needed and stored nowhere, so there is nothing of it that could disagree with the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()  # the root of a tree without leaves


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes, in their order."""
    level = list(leaves)
    if not level:
        return EMPTY
    while len(level) > 1:  # a last node without a neighbour moves up as it is, which is RFC 6962's split
        paired = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = paired + level[len(level) & ~1 :]
    return level[0]


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def inclusion_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes that lead from the leaf at `index` to the root, nearest first."""
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*inclusion_path(leaves[:middle], index), root(leaves[middle:])]
    return [*inclusion_path(leaves[middle:], index - middle), root(leaves[:middle])]


def consistency_path(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """The hashes that show the tree of the first `old_size` leaves to be the beginning of this one."""
    if not 0 < old_size < len(leaves):
        return []  # an empty tree begins every other, and a tree begins itself
    return _subproof(leaves, old_size, whole=True)


def _subproof(leaves: Sequence[bytes], old_size: int, *, whole: bool) -> list[bytes]:
    if old_size == len(leaves):
        return [] if whole else [root(leaves)]
    middle = _split(len(leaves))
    if old_size <= middle:
        return [*_subproof(leaves[:middle], old_size, whole=whole), root(leaves[middle:])]
    return [*_subproof(leaves[middle:], old_size - middle, whole=False), root(leaves[:middle])]


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a path of inclusion leads to (RFC 9162, section 2.1.3.2); None where the path cannot be one."""
    if not 0 <= index < size:
        return None
    place, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if place & 1 or place == last:
            found = node_hash(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(old_size: int, old_root: bytes, size: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the path shows the older tree to be the beginning of the newer one (RFC 9162, section 2.1.4.2)."""
    if old_size == size:
        return not path and old_root == new_root
    if old_size == 0:
        return not path and old_root == EMPTY
    if not 0 < old_size < size or not path:
        return False
    hashes = list(path)
    if old_size & (old_size - 1) == 0:
        hashes.insert(0, old_root)
    place, last = old_size - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and old == old_root and new == new_root
