"""What an auditor gets: verify, rederive, bundle."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field

from isuit.published.base import FIT, HASH, HEAD, Published


class Disagreement(Published):
    """One thing that does not agree with the log."""

    table: str
    sentence: str


class VerifyReport(Published):
    """`isuit verify`."""

    ok: bool
    log_head: str | None = Field(pattern=HEAD, description="Null where the last event's was changed into no head.")
    log_length: int
    known_head: str | None
    checkpoint: int | None = Field(description="Events of the kept checkpoint that the log was held against.")
    cohorts: int
    complete_cohorts: int
    fits: int
    erased_leaves: int = Field(description="Leaves whose rider was erased; each is covered by a receipt.")
    disagreements: list[Disagreement]


class HeadReport(Published):
    """`isuit head`."""

    log_head: str = Field(pattern=HEAD)
    log_length: int
    origin: str = Field(description="What the store is called in checkpoints: isuit/ and its id.")
    root: str = Field(pattern=HEAD, description="Of the RFC 6962 tree over the log's events.")
    key: str = Field(description="The key that signs, as a C2SP verifier key: what --trusted-key reads.")
    checkpoint: str | None = Field(description="The signed note, with --signed.")


class KeyRotated(Published):
    """`isuit rotate-key`."""

    old_key: str
    key: str
    log_head: str = Field(pattern=HEAD)


class Proved(Published):
    """`isuit prove`."""

    file: str
    size: int = Field(description="Events of the log that the checkpoint is about.")
    index: int | None
    since: int | None
    bytes: int


class ProofCheck(Published):
    """`isuit check-proof`."""

    ok: bool
    trusted: bool = Field(description="Whether the signature was held against a key that was given.")
    origin: str | None
    size: int | None
    event: dict[str, Any] | None
    extends: int | None = Field(description="Events of the kept checkpoint, which the log was shown to extend.")
    problems: list[str]


class Witnessed(Published):
    """`isuit witness`."""

    key: str = Field(description="The witness's own key.")
    origin: str | None
    size: int | None = Field(description="Events signed; in a conflict, those that were signed last.")
    checkpoint: str | None = Field(description="The checkpoint with the witness's signature.")
    refused: str | None


class RederiveReport(Published):
    """`isuit rederive FIT`."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    verdict: Literal["identical", "equivalent", "erased", "diverged"]
    largest_difference: float | None = Field(description="Null where the two cannot be compared point by point.")
    differences: dict[str, float | None] = Field(
        description="The largest by part of the record: curves, discrimination, log-likelihood, gates, held-out "
        "scores, parameters, diagnostics, skills. Null where one side has more numbers than the other."
    )
    curve_difference: float | None
    discrimination_difference: float | None
    skill_difference: float | None
    tolerance: float
    skills_compared: int
    recorded_version: str
    estimator_version: str
    disagreements: list[str] = Field(description="What makes the verdict diverged: each part that disagrees, named.")
    notes: list[str]


class BundleManifest(Published):
    """`manifest.json` of a bundle: each file with its SHA-256, and the head up to which the log goes."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str = Field(pattern=HASH)
    with_cohort: bool
    log_head: str = Field(pattern=HEAD)
    tool_version: str
    made_on: date
    files: dict[str, str]


class BundleReport(Published):
    """`isuit bundle FIT --out DIR`."""

    fit_id: str = Field(pattern=FIT)
    files: list[str]
    with_cohort: bool
    log_head: str = Field(pattern=HEAD)
