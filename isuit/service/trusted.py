"""What a checker brings along: a key that is trusted, a checkpoint that was kept."""

from __future__ import annotations

from pathlib import Path

from isuit.audit.checkpoints import Checkpoint
from isuit.audit.notes import BadNote, Note, VerifierKey
from isuit.documents import read_text
from isuit.errors import InputError


def read_key(path: Path) -> VerifierKey:
    """A public key from a file of one line."""
    try:
        return VerifierKey.read(read_text(path, "the trusted key"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    except ValueError as error:
        reason = error if isinstance(error, BadNote) else "it is not text"
        raise InputError(f"the trusted key cannot be used: {reason}; `isuit head --key` prints one.") from None


def read_note(path: Path) -> Note:
    """A signed checkpoint from a file."""
    try:
        note = Note.read(read_text(path, "the checkpoint"))
        Checkpoint.read(note.text)
        return note
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    except ValueError as error:
        reason = error if isinstance(error, BadNote) else "it is not text"
        raise InputError(f"the checkpoint cannot be used: {reason}; `isuit head --signed` prints one.") from None
