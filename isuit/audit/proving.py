"""Making proofs from a log's events; `isuit.audit.proofs` checks them without the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isuit.audit import merkle
from isuit.audit.checkpoints import Checkpoint
from isuit.audit.keys import keys_of
from isuit.audit.log import Event, leaves_of
from isuit.audit.notes import SigningKey
from isuit.errors import NotFound
from isuit.published.proofs import ConsistencyProof, InclusionProof, Proof


def prove(
    events: Sequence[Event],
    key: SigningKey,
    *,
    wanted: Callable[[Event], bool] | None = None,
    since: Checkpoint | None = None,
) -> Proof:
    """A signed checkpoint of these events, with the inclusion of the last one wanted and the extension of `since`."""
    leaves = leaves_of(events)
    checkpoint = Checkpoint.of(key.name, leaves)
    inclusion = consistency = None
    if wanted is not None:
        found = [place for place, event in enumerate(events) if wanted(event)]
        if not found:
            raise NotFound("the log has no event of this kind about it, so nothing can be proved; check the reference")
        path = merkle.inclusion_path(leaves, found[-1])
        entry = events[found[-1]].entry().decode()
        inclusion = InclusionProof(index=found[-1], entry=entry, path=[node.hex() for node in path])
    if since is not None and since.size <= len(leaves):
        path = merkle.consistency_path(leaves, since.size)
        consistency = ConsistencyProof(old_size=since.size, path=[node.hex() for node in path])
    return Proof(
        checkpoint=str(checkpoint.signed(key)),
        key=str(key.verifier),
        rotations=[entry.rotation for entry in keys_of(events) if entry.rotation is not None],
        inclusion=inclusion,
        consistency=consistency,
    )
