"""The tree against RFC 6962's own definition, Certificate Transparency's vectors, and proofs that are none."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from isuit.audit import merkle

# The leaves that implementations of Certificate Transparency test with, and the roots over the first 1, 2, ... of them.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def defined_root(entries: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word by word."""
    if not entries:
        return hashlib.sha256().digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    middle = 1
    while middle * 2 < len(entries):
        middle *= 2
    return hashlib.sha256(b"\x01" + defined_root(entries[:middle]) + defined_root(entries[middle:])).digest()


def test_the_roots_are_those_of_certificate_transparency() -> None:
    leaves = [merkle.leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES]
    for size, root in ROOTS.items():
        assert merkle.root(leaves[:size]).hex() == root
    assert merkle.root([]) == hashlib.sha256(b"").digest()


entries = st.lists(st.binary(max_size=3), min_size=1, max_size=40)


@given(entries, st.data())
def test_every_proof_holds_and_proves_nothing_else(given_entries: list[bytes], data: st.DataObject) -> None:
    leaves = [merkle.leaf_hash(entry) for entry in given_entries]
    size, root = len(leaves), merkle.root(leaves)
    assert root == defined_root(given_entries)
    index = data.draw(st.integers(0, size - 1))
    path = merkle.inclusion_path(leaves, index)
    assert merkle.root_from_inclusion(leaves[index], index, size, path) == root
    assert merkle.root_from_inclusion(merkle.leaf_hash(b"another"), index, size, path) != root
    assert merkle.root_from_inclusion(leaves[index], index, size, [*path, root]) is None
    assert merkle.root_from_inclusion(leaves[index], index, 2 * size, path) is None
    old = data.draw(st.integers(0, size))
    steps, old_root = merkle.consistency_path(leaves, old), merkle.root(leaves[:old])
    assert merkle.is_consistent(old, old_root, size, root, steps)
    other = merkle.root([merkle.leaf_hash(b"another"), *leaves[1:old]])
    if old:
        assert not merkle.is_consistent(old, other, size, root, steps)
    assert not merkle.is_consistent(old, old_root, size, merkle.root([*leaves, other]), steps) or old == 0
    assert not merkle.is_consistent(old, old_root, size, root, [*steps, root])
    if steps:
        place = data.draw(st.integers(0, len(steps) - 1))
        assert not merkle.is_consistent(old, old_root, size, root, [*steps[:place], other, *steps[place + 1 :]])
        assert not merkle.is_consistent(old, old_root, size, root, steps[:-1])
