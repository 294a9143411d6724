"""A digest says where its parts end, and what it is for."""

from __future__ import annotations

import hashlib

import pytest

from isuit.audit.digests import rider_digest, tagged


def test_a_digest_can_be_computed_by_hand() -> None:
    by_hand = hashlib.sha256(b"isuit/rows/1\x00" + b"\x00" * 7 + b"\x02ab" + b"\x00" * 7 + b"\x01c").hexdigest()
    assert tagged("isuit/rows/1", b"ab", b"c") == by_hand


@pytest.mark.parametrize("other", [("t", b"a", b"bc"), ("t", b"abc"), ("t", b"ab", b"c", b""), ("ta", b"b", b"c")])
def test_parts_cannot_be_moved_into_one_another(other: tuple[str, bytes, bytes]) -> None:
    assert tagged(*other) != tagged("t", b"ab", b"c")


def test_a_riders_digest_needs_the_key_and_is_no_digest_of_rows() -> None:
    assert rider_digest(b"key", "anna") != rider_digest(b"other", "anna")
    assert rider_digest(b"key", "anna") != rider_digest(b"key", "berta")
