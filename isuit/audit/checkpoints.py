"""A checkpoint: how many events a log has and the root of their tree, in the form of C2SP's tlog-checkpoint.

    isuit/<store id>
    <number of events>
    <root in base64>

As a signed note it is what a store's operator hands out, what a witness signs too, and what somebody who kept it holds
against the store later.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from isuit.audit import merkle
from isuit.audit.notes import BadNote, Note, SigningKey, decoded, signed

MOST_EVENTS = 2**53


@dataclass(frozen=True)
class Checkpoint:
    """What a log was at one moment."""

    origin: str
    size: int
    root: bytes

    @classmethod
    def of(cls, origin: str, leaves: Sequence[bytes]) -> Checkpoint:
        return cls(origin, len(leaves), merkle.root(leaves))

    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    def signed(self, key: SigningKey) -> Note:
        return signed(self.text(), key)

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        """From a note's text; lines after the third, which other logs may add, are left to whoever added them."""
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] or not lines[0] or not re.fullmatch(r"0|[1-9][0-9]{0,15}", lines[1]):
            raise BadNote("a checkpoint is an origin, a number of events and a root")
        found = cls(lines[0], int(lines[1]), decoded(lines[2]))
        if len(found.root) != 32 or found.size > MOST_EVENTS:
            raise BadNote("a checkpoint's root is 32 bytes")
        return found
