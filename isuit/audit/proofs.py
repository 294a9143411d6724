"""Proofs about a log in a few hundred bytes, checked without the store: an event is in it; it extends an older head.

`docs/audit.md` describes the JSON. Nothing in it names anybody, because no event does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from isuit.audit import merkle
from isuit.audit.checkpoints import Checkpoint
from isuit.audit.notes import BadNote, Note, VerifierKey
from isuit.audit.rotations import reachable
from isuit.documents import from_json

if TYPE_CHECKING:
    from isuit.published.proofs import ConsistencyProof, InclusionProof, Proof


def problems_of(proof: Proof, trusted: VerifierKey | None, kept: Note | None) -> Iterator[str]:
    """What keeps a proof from proving what it says. Without a trusted key the proof's own is taken at its word."""
    try:
        note = Note.read(proof.checkpoint)
        checkpoint = Checkpoint.read(note.text)
        claimed = VerifierKey.read(proof.key)
        keys = [claimed] if trusted is None else reachable(trusted, proof.rotations)
        if checkpoint.origin != claimed.name or claimed not in keys or not note.signed_by(claimed):
            yield "the checkpoint is not signed by the trusted key nor by one that followed it"
        if proof.inclusion is not None:
            yield from _inclusion(proof.inclusion, checkpoint)
        if kept is not None:
            yield from _consistency(proof.consistency, checkpoint, kept, keys)
    except (BadNote, ValueError) as error:
        reason = str(error) if isinstance(error, BadNote) else "a value in it is none"
        yield f"the proof cannot be read: {reason}"


def _inclusion(given: InclusionProof, checkpoint: Checkpoint) -> Iterator[str]:
    path = [bytes.fromhex(node) for node in given.path]
    root = merkle.root_from_inclusion(merkle.leaf_hash(given.entry.encode()), given.index, checkpoint.size, path)
    if root != checkpoint.root:
        yield "the event is not in the log that was signed"
    if entry_of(given).get("sequence") != given.index + 1:
        yield "the event does not have the number of its place in the log"


def _consistency(
    given: ConsistencyProof | None, checkpoint: Checkpoint, kept: Note, keys: Sequence[VerifierKey]
) -> Iterator[str]:
    older = Checkpoint.read(kept.text)
    if older.origin != checkpoint.origin:
        yield "the kept checkpoint is one of another store"
    elif not any(kept.signed_by(key) for key in keys):
        yield "the kept checkpoint is not signed by the trusted key nor by one that followed it"
    elif given is None or given.old_size != older.size:
        yield "the proof does not speak of the kept checkpoint; ask for one with --since"
    else:
        path = [bytes.fromhex(node) for node in given.path]
        if not merkle.is_consistent(older.size, older.root, checkpoint.size, checkpoint.root, path):
            yield "the log does not extend the kept checkpoint: it was cut, rewritten or forked"


def entry_of(given: InclusionProof) -> dict[str, Any]:
    """The event that a proof is about."""
    event = from_json(given.entry, "the event of a proof")
    if not isinstance(event, dict) or not isinstance(event.get("payload"), dict):
        raise BadNote("its event is none")
    return event
