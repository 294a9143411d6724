"""From a key that is trusted to the present one: each successor by a signature of the one before it."""

from __future__ import annotations

from isuit.audit.notes import LOG, SigningKey, signed
from isuit.audit.rotations import followed, reachable, rotation_text

A, B, C = (SigningKey("isuit/a", LOG, bytes([number]) * 32) for number in (1, 2, 3))


def rotation(new: SigningKey, old: SigningKey, text: str | None = None) -> str:
    return str(signed(text or rotation_text(new.verifier), old))


def test_keys_are_reached_by_notes_in_any_order() -> None:
    notes = [rotation(C, B), rotation(B, A)]
    assert reachable(A.verifier, notes) == [A.verifier, B.verifier, C.verifier]
    assert reachable(A.verifier, notes[::-1]) == [A.verifier, B.verifier, C.verifier]
    assert reachable(B.verifier, notes) == [B.verifier, C.verifier], "nobody goes back"
    assert reachable(A.verifier, notes[:1]) == [A.verifier], "a link is missing"
    assert reachable(A.verifier, [rotation(B, A), rotation(A, B)]) == [A.verifier, B.verifier], "a circle ends"


def test_what_is_no_rotation() -> None:
    assert followed(A.verifier, rotation(B, A)) == B.verifier
    assert followed(A.verifier, rotation(B, C)) is None, "signed by another"
    stranger = SigningKey("isuit/b", LOG, b"9" * 32)
    assert followed(A.verifier, rotation(stranger, A)) is None, "of another log"
    told = rotation_text(B.verifier)
    assert followed(A.verifier, rotation(B, A, told.replace("rotation/1", "rotation/2"))) is None
    assert followed(A.verifier, rotation(B, A, told + "and more\n")) is None
    assert followed(A.verifier, rotation(B, A, told.replace("isuit/a\n", "isuit/c\n", 1))) is None
