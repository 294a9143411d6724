"""Notes by which a signing key names its successor: whoever trusts one key can follow it to the present one."""

from __future__ import annotations

from collections.abc import Sequence

from isuit.audit.notes import Note, VerifierKey

ROTATION = "isuit-key-rotation/1"


def rotation_text(new: VerifierKey) -> str:
    """What the old key signs."""
    return f"{ROTATION}\n{new.name}\n{new}\n"


def followed(key: VerifierKey, rotation: str) -> VerifierKey | None:
    """The key that a note of rotation names, if `key` signed it."""
    note = Note.read(rotation)
    heading, origin, new = (*note.text.split("\n"), "", "")[:3]
    successor = VerifierKey.read(new)
    if heading != ROTATION or note.text != rotation_text(successor) or origin != key.name or not note.signed_by(key):
        return None
    return successor


def reachable(trusted: VerifierKey, rotations: Sequence[str]) -> list[VerifierKey]:
    """The trusted key and those that it was rotated to, by notes in any order."""
    keys = [trusted]
    while True:
        following = [followed(keys[-1], note) for note in rotations]
        new = [key for key in following if key is not None and key not in keys]
        if not new:
            return keys
        keys.append(new[0])
