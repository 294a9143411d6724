"""Whether the log has a release as its file says it: rows, metadata and name are those of an event in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from isuit.audit.notes import BadNote, VerifierKey
from isuit.audit.proofs import entry_of, problems_of
from isuit.release.format import metadata_digest

if TYPE_CHECKING:
    from isuit.published.proofs import Proof


def unproved(metadata: Mapping[str, Any], digest: str, trusted: VerifierKey | None) -> Iterator[str]:
    """What keeps a file from proving that it is in the log; nothing where it claims no proof and none is asked for.

    The metadata follow their schema.
    """
    if metadata.get("proof") is None:
        if trusted is not None:
            yield "the file has no proof that a log holds it"
        return
    proof = _with_attributes(metadata["proof"])
    problems = list(problems_of(proof, trusted, None))
    yield from (f"its proof: {problem}" for problem in problems)
    if problems:
        return
    try:
        event = entry_of(proof.inclusion) if proof.inclusion is not None else {}
    except BadNote:
        event = {}
    payload = event.get("payload", {})
    if event.get("kind") != "release-made" or payload.get("release") != metadata["release"]:
        yield "its proof is about something else than this release"
        return
    if payload.get("digest") != digest:
        yield "the rows are not those that the log speaks of"
    if payload.get("metadata_digest") != metadata_digest(metadata):
        yield "the metadata are not those that the log speaks of"


def _with_attributes(given: Mapping[str, Any]) -> Proof:
    """A proof that follows the schema, as the model would have it. To import models takes longer than the check."""
    parts = {name: given[name] and SimpleNamespace(**given[name]) for name in ("inclusion", "consistency")}
    return cast("Proof", SimpleNamespace(**{**given, **parts}))
