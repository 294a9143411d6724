"""Proofs about a store's log, made with the store and checked without it; and a witness that signs what extends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from isuit.audit.checkpoints import Checkpoint
from isuit.audit.keys import signing_key
from isuit.audit.log import Event, read_log
from isuit.audit.notes import BadNote, Note
from isuit.audit.proofs import entry_of, problems_of
from isuit.audit.proving import prove as prove_events
from isuit.audit.witness import Refused, Witness
from isuit.documents import from_json, read_bytes
from isuit.errors import InputError
from isuit.files import PUBLIC, write_whole
from isuit.published import Proof, ProofCheck, Proved, Witnessed
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.service.trusted import read_key, read_note
from isuit.store.fits import find_fit
from isuit.store.opening import Store
from isuit.store.releases import find_release


def prove(
    store_path: Path, reference: str | None, out: Path, *, since: Path | None = None, wait: float = DEFAULT_WAIT
) -> Proved:
    """Write a proof that a fit or a release is in the log, that the log extends a kept checkpoint, or both."""
    kept = None if since is None else Checkpoint.read(read_note(since).text)
    with open_store(store_path, wait=wait) as store:
        wanted = None if reference is None else _about(store, reference)
        events = read_log(store.connection)
        proof = prove_events(events, signing_key(store.connection, store.paths), wanted=wanted, since=kept)
    if kept is not None and proof.consistency is None:
        raise InputError(
            f"the log has {len(events)} events and the kept checkpoint {kept.size}: its end was cut off, or this is an "
            "older copy of the store; nothing can be proved."
        )
    text = json.dumps(proof.as_json(), indent=1) + "\n"
    write_whole(out, [text.encode()], PUBLIC)
    return Proved(
        file=str(out),
        size=len(events),
        index=None if proof.inclusion is None else proof.inclusion.index,
        since=None if kept is None else kept.size,
        bytes=len(text),
    )


def _about(store: Store, reference: str) -> Callable[[Event], bool]:
    """Which event a reference is about: a release by its date, otherwise a fit."""
    if find_release(store.connection, reference) is not None:
        return lambda event: event.kind == "release-made" and event.content["release"] == reference
    fit_id = find_fit(store.connection, reference).fit_id
    return lambda event: event.kind == "fit-recorded" and event.content["fit_id"] == fit_id


def read_proof(path: Path) -> Proof:
    """A proof from a file, which may come from anywhere."""
    try:
        return Proof.model_validate(from_json(read_bytes(path, "the proof"), "the proof"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    except (ValueError, TypeError):
        raise InputError(f"{path} is not a proof; `isuit prove` writes one.") from None


def check_proof(path: Path, trusted_key: Path | None = None, checkpoint: Path | None = None) -> ProofCheck:
    """Check a proof without the store, against a key that is trusted and a checkpoint that was kept."""
    proof = read_proof(path)
    trusted = None if trusted_key is None else read_key(trusted_key)
    kept = None if checkpoint is None else read_note(checkpoint)
    problems = list(problems_of(proof, trusted, kept))
    if problems:
        return ProofCheck(ok=False, trusted=False, origin=None, size=None, event=None, extends=None, problems=problems)
    signed = Checkpoint.read(Note.read(proof.checkpoint).text)
    return ProofCheck(
        ok=True,
        trusted=trusted is not None,
        origin=signed.origin,
        size=signed.size,
        event=None if proof.inclusion is None else entry_of(proof.inclusion),
        extends=None if kept is None else Checkpoint.read(kept.text).size,
        problems=[],
    )


def witness(
    directory: Path, proof: Path | None = None, *, trusted_key: Path | None = None, out: Path | None = None
) -> Witnessed:
    """Sign the checkpoint of a proof if it extends the last one of its log; without a proof, only say who one is."""
    own = Witness(directory, time.time)
    key = str(own.key().verifier)
    if trusted_key is not None:
        own.trust(read_key(trusted_key))
    if proof is None:
        return Witnessed(key=key, origin=None, size=None, checkpoint=None, refused=None)
    given = read_proof(proof)
    try:
        note = Note.read(given.checkpoint)
        older = given.consistency
        path = [] if older is None else [bytes.fromhex(node) for node in older.path]
        checkpoint, signature = own.cosign(note, 0 if older is None else older.old_size, path, given.rotations)
    except (BadNote, ValueError) as error:
        raise InputError(f"the proof cannot be read: {error}") from None
    except Refused as refusal:
        return Witnessed(key=key, origin=None, size=refusal.size, checkpoint=None, refused=str(refusal))
    cosigned = str(note.with_signature(signature))
    if out is not None:
        write_whole(out, [cosigned.encode()], PUBLIC)
    return Witnessed(key=key, origin=checkpoint.origin, size=checkpoint.size, checkpoint=cosigned, refused=None)
