"""Signed notes and their keys, as C2SP specifies them (signed-note, tlog-cosignature), with Ed25519.

A note is text that ends in a newline, an empty line, and one line per signature:

    — <name of the key> <base64 of: 4 bytes of key id, signature>

A key's id is the beginning of SHA-256 over its name, a newline and the kind byte with the public key. A verifier key,
which is public, is written `name+id+base64`; that is what `--trusted-key` reads. A witness signs with a kind of its
own, over the time and the note's text, so that its signature can never pass for that of a log.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

LOG, WITNESS = 1, 4  # kinds of keys: Ed25519 over the text; timestamped cosignature
SEED_BYTES = 32
LARGEST_NOTE = 1 << 20  # bytes
MOST_SIGNATURES = 100
NAME = re.compile(r"[^\s+]{1,200}")
DASH = "— "


class BadNote(ValueError):
    """A note or key that does not have the form, or a signature that does not hold."""


@dataclass(frozen=True)
class VerifierKey:
    """A public key with its name."""

    name: str
    kind: int
    public: bytes

    @property
    def id(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"

    @classmethod
    def read(cls, text: str) -> VerifierKey:
        """A key from the one line that `str` gives."""
        name, _, rest = text.strip().partition("+")
        digits, _, encoded = rest.partition("+")
        content = decoded(encoded)
        if not NAME.fullmatch(name) or len(content) != 33 or content[0] not in (LOG, WITNESS):
            raise BadNote("a key is not written as name+id+base64")
        key = cls(name, content[0], content[1:])
        if digits != key.id.hex():
            raise BadNote("a key does not have the id that it says")
        return key

    def holds(self, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """A key that signs; its seed is the content of the file `signing-key`."""

    name: str
    kind: int
    seed: bytes = field(repr=False)

    @property
    def verifier(self) -> VerifierKey:
        public = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return VerifierKey(self.name, self.kind, public.public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


@dataclass(frozen=True)
class Signature:
    """One signature line: who says to have signed, and what comes after the key id."""

    name: str
    key_id: bytes
    content: bytes

    def line(self) -> str:
        return f"{DASH}{self.name} {base64.b64encode(self.key_id + self.content).decode()}\n"


@dataclass(frozen=True)
class Note:
    """A text and the signatures under it, of which none was checked yet."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(signature.line() for signature in self.signatures)}"

    @classmethod
    def read(cls, content: str) -> Note:
        text, gap, lines = content.rpartition("\n\n")
        if len(content.encode()) > LARGEST_NOTE or not gap or not text or not lines.endswith("\n"):
            raise BadNote("a signed note is a text, an empty line and signatures")
        if any(ord(sign) < 0x20 and sign != "\n" for sign in content):
            raise BadNote("a signed note holds no control characters")
        signatures = tuple(_signature(line) for line in lines[:-1].split("\n"))
        if len(signatures) > MOST_SIGNATURES:
            raise BadNote("a signed note has too many signatures")
        return cls(text + "\n", signatures)

    def signed_by(self, key: VerifierKey) -> bool:
        """Whether a log's key signed the text. A signature under its name and id that does not hold spoils the note."""
        mine = [given for given in self.signatures if (given.name, given.key_id) == (key.name, key.id)]
        if key.kind != LOG or not mine:
            return False
        if not all(key.holds(self.text.encode(), given.content) for given in mine):
            raise BadNote("a signature of a known key does not hold")
        return True

    def cosigned_at(self, key: VerifierKey) -> int | None:
        """When a witness signed the text, in seconds since 1970; None where it did not."""
        for given in self.signatures:
            if (given.name, given.key_id) == (key.name, key.id) and key.kind == WITNESS and len(given.content) == 72:
                at = int.from_bytes(given.content[:8], "big")
                if not key.holds(_cosigned(self.text, at), given.content[8:]):
                    raise BadNote("a signature of a known witness does not hold")
                return at
        return None

    def with_signature(self, signature: Signature) -> Note:
        return Note(self.text, (*self.signatures, signature))


def signed(text: str, key: SigningKey) -> Note:
    """A note with one signature."""
    public = key.verifier
    return Note(text, (Signature(key.name, public.id, key.sign(text.encode())),))


def cosignature(text: str, key: SigningKey, at: int) -> Signature:
    """A witness's signature over a checkpoint's text, with the time."""
    return Signature(key.name, key.verifier.id, at.to_bytes(8, "big") + key.sign(_cosigned(text, at)))


def _cosigned(text: str, at: int) -> bytes:
    return f"cosignature/v1\ntime {at}\n{text}".encode()


def _signature(line: str) -> Signature:
    name, _, encoded = line.removeprefix(DASH).partition(" ")
    content = decoded(encoded)
    if not line.startswith(DASH) or not NAME.fullmatch(name) or len(content) < 5:
        raise BadNote("a line of signature has not its form")
    return Signature(name, content[:4], content[4:])


def decoded(text: str) -> bytes:
    """Base64 in its one canonical spelling."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadNote("a text is not base64") from None
    if base64.b64encode(content).decode() != text:
        raise BadNote("a text is not base64 in its canonical spelling")
    return content
