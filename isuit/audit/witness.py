"""A witness: keeps the last checkpoint of every log it is shown, and signs only what extends it (C2SP tlog-witness).

Its directory holds `key` (its name and seed) and one folder per log with the log's `key` and its last `checkpoint`.
The new checkpoint is on disk before its signature is given out, and one process at a time works: so a witness that is
killed and started again never signs two histories.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isuit.audit import merkle
from isuit.audit.checkpoints import Checkpoint
from isuit.audit.notes import LOG, SEED_BYTES, WITNESS, BadNote, Note, Signature, SigningKey, VerifierKey, cosignature
from isuit.audit.rotations import reachable
from isuit.documents import read_text
from isuit.errors import InputError
from isuit.files import write_whole
from isuit.store.lock import flock
from isuit.store.paths import DIRECTORY_MODE, FILE_MODE, sync, write_secret

MALFORMED, UNSIGNED, UNKNOWN, CONFLICT, UNPROVEN = 400, 403, 404, 409, 422  # the statuses that C2SP gives a refusal


class Refused(Exception):
    """A checkpoint that the witness does not sign: the status over HTTP, and the size it knows in a conflict."""

    def __init__(self, status: int, sentence: str, size: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.size = status, size


@dataclass(frozen=True)
class Witness:
    """A witness at its directory."""

    directory: Path
    clock: Callable[[], float]

    def key(self) -> SigningKey:
        """The witness's own key, made when it is first asked for."""
        path = self.directory / "key"
        with self._alone():
            if not path.exists():
                write_secret(path, f"isuit-witness/{secrets.token_hex(8)}\n{secrets.token_hex(SEED_BYTES)}\n".encode())
        lines = read_text(path, "the witness's key").split("\n")
        try:
            return SigningKey(lines[0], WITNESS, bytes.fromhex(lines[1]))
        except (ValueError, IndexError):
            raise InputError(f"{path} is damaged; restore it from a backup.") from None

    def trust(self, key: VerifierKey) -> None:
        """Follow a log from now on; a log that is followed keeps the key it has, unless that one was rotated."""
        with self._alone():
            place = self._place(key.name)
            if key.kind != LOG:
                raise InputError("this is the key of a witness and not that of a log")
            if (place / "key").exists():
                if self._log_key(place) != key:
                    raise InputError("this log is followed under another key; a new key must be signed by the old one.")
                return
            place.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            _replace(place / "key", f"{key}\n")

    def known(self, origin: str) -> Checkpoint | None:
        """The last checkpoint of a log that was signed."""
        path = self._place(origin) / "checkpoint"
        return Checkpoint.read(Note.read(read_text(path, "a checkpoint")).text) if path.exists() else None

    def cosign(
        self, note: Note, old_size: int, path: Sequence[bytes], rotations: Sequence[str] = ()
    ) -> tuple[Checkpoint, Signature]:
        """Sign a checkpoint that extends the last one of its log; raises `Refused`."""
        key = self.key()
        with self._alone():
            checkpoint = self._checked(note, old_size, path, rotations)
            _replace(self._place(checkpoint.origin) / "checkpoint", str(note))
            return checkpoint, cosignature(note.text, key, max(1, int(self.clock())))

    def _checked(self, note: Note, old_size: int, path: Sequence[bytes], rotations: Sequence[str]) -> Checkpoint:
        try:
            checkpoint = Checkpoint.read(note.text)
        except BadNote as error:
            raise Refused(MALFORMED, str(error)) from None
        place = self._place(checkpoint.origin)
        if not (place / "key").exists():
            raise Refused(UNKNOWN, "this witness does not follow the log; give its key with --trusted-key")
        try:
            signer = [key for key in reachable(self._log_key(place), rotations) if note.signed_by(key)]
        except BadNote as error:
            raise Refused(UNSIGNED, str(error)) from None
        if not signer:
            raise Refused(UNSIGNED, "the checkpoint is not signed by the log's key nor by one that followed it")
        if old_size > checkpoint.size:
            raise Refused(MALFORMED, "the older size is larger than the newer one")
        known = self.known(checkpoint.origin)
        size, root = (known.size, known.root) if known else (0, merkle.EMPTY)
        if size != old_size or (size == checkpoint.size and root != checkpoint.root):
            raise Refused(
                CONFLICT, f"the witness last signed {size} events of this log, and this does not extend it", size
            )
        if not merkle.is_consistent(old_size, root, checkpoint.size, checkpoint.root, path):
            raise Refused(
                UNPROVEN, "the checkpoint does not extend the one before: the log was cut, rewritten or forked"
            )
        if signer[-1] != self._log_key(place):
            _replace(place / "key", f"{signer[-1]}\n")
        return checkpoint

    def _place(self, origin: str) -> Path:
        return self.directory / "logs" / hashlib.sha256(origin.encode()).hexdigest()

    def _log_key(self, place: Path) -> VerifierKey:
        return VerifierKey.read(read_text(place / "key", "a log's key"))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = os.open(self.directory / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            locks = flock()
            locks.flock(descriptor, locks.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """A reader or a crash sees the old text or the new one; a promise is on the disk before it is given."""
    write_whole(path, [text.encode()], FILE_MODE)
    sync(path.parent)
