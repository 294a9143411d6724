"""Whether a log extends what was signed: a kept checkpoint against the log of today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isuit.audit import merkle
from isuit.audit.checkpoints import Checkpoint
from isuit.audit.keys import LogKey, keys_of
from isuit.audit.log import Event, leaves_of
from isuit.audit.notes import BadNote, Note, VerifierKey


def strange_extension(
    events: Sequence[Event], origin: str, kept: Note | None, trusted: VerifierKey | None
) -> Iterator[str]:
    """What keeps the log from being the one that the trusted key signed, or from extending the checkpoint."""
    try:
        keys = keys_of(events)
    except (BadNote, LookupError, TypeError, AttributeError):
        yield "the signing keys in the log do not follow from one another"
        return
    if trusted is not None:
        places = [place for place, entry in enumerate(keys) if entry.key == trusted]
        if not places:
            yield "the trusted key is not in the log: the key was replaced, or this is another log"
            return
        keys = keys[places[0] :]  # a key vouches for those that followed it, not for those before
    if kept is not None:
        yield from _against(events, origin, kept, keys)


def _against(events: Sequence[Event], origin: str, kept: Note, keys: Sequence[LogKey]) -> Iterator[str]:
    try:
        checkpoint = Checkpoint.read(kept.text)
        signers = [entry for entry in keys if kept.signed_by(entry.key)]
    except BadNote as error:
        yield f"the checkpoint cannot be used: {error}"
        return
    if checkpoint.origin != origin:
        yield "the checkpoint is one of another store"
        return
    if not signers:
        yield "the checkpoint is not signed by the trusted key nor by one that followed it"
        return
    if all(entry.until is not None and checkpoint.size > entry.until for entry in signers):
        yield "the checkpoint is signed by a key that had been replaced by then"
    if checkpoint.size > len(events):
        yield (
            f"the log has {len(events)} events and {checkpoint.size} were signed: its end was cut off, or this is an "
            "older copy of the store"
        )
    elif merkle.root(leaves_of(events[: checkpoint.size])) != checkpoint.root:
        yield f"the log's first {checkpoint.size} events are not those that were signed: it was rewritten or forked"
