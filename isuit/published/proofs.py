"""A proof about a log, as it stands in a file of its own, in a release and in a person's receipt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from isuit.published.base import Published


class InclusionProof(Published):
    """An event, and the hashes that lead from it to the root of the log's tree."""

    index: int = Field(ge=0, description="Its place, from 0.")
    entry: str = Field(description="The event in canonical JSON (RFC 8785): the bytes that the leaf is a hash of.")
    path: list[str] = Field(max_length=63)


class ConsistencyProof(Published):
    """The hashes which show that the log of `old_size` events is the beginning of this one."""

    old_size: int = Field(ge=0)
    path: list[str] = Field(max_length=127)


class Proof(Published):
    """The file of `isuit prove`: checked without the store."""

    format: Literal["isuit-proof/1"] = "isuit-proof/1"
    checkpoint: str = Field(description="C2SP tlog-checkpoint, signed.")
    key: str = Field(description="Whose signature it has; to be held against a key that came by another way.")
    rotations: list[str] = Field(description="Notes by which each signing key named the next one.")
    inclusion: InclusionProof | None
    consistency: ConsistencyProof | None
