"""What concerns persons: delete-rider with its plan and receipt, show-rider, reinstate. No receipt names anybody."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from isuit.published.base import FIT, HASH, HEAD, Published, Recorded
from isuit.published.proofs import Proof


class TableCount(Recorded):
    """Rows of a personal table before and after, and how many of them were about the erased riders."""

    before: int
    after: int
    removed: int


class EmptiedCohort(Recorded):
    """A cohort's root, which still holds, and the leaves under it that nobody stands behind any more."""

    cohort_hash: str = Field(pattern=HASH)
    root: str | None
    leaves: list[str]


class EmptiedFit(Recorded):
    """The same for the skills of a fit; `root` is null for a fit that never had skills."""

    fit_id: str = Field(pattern=FIT)
    root: str | None
    leaves: list[str]


class SameName(Recorded):
    """A site, activity or dimension, or a word of the program, that is spelled like an erased rider; it stays."""

    place: str
    count: int


class Kept(Recorded):
    """Something that an erasure leaves, and the reason."""

    what: str
    why: str


class ErasureVerification(Recorded):
    """How absence was verified, and the rows of every table that were compared with the copy and found identical."""

    method: list[str]
    compared: dict[str, int]


class ErasurePlan(Published):
    """`isuit delete-rider --dry-run`: what an erasure would remove."""

    dry_run: Literal[True] = True
    riders: int
    tables: dict[str, TableCount]
    cohorts: list[EmptiedCohort]
    fits: list[EmptiedFit]
    same_names: list[SameName]


class ErasureReceipt(Recorded):
    """`isuit delete-rider`."""

    format: Literal["isuit-erasure-receipt/1"]
    receipt_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    store_id: str
    erased_at: datetime
    completed_at: datetime
    tool_version: str
    duckdb_version: str
    riders: int = Field(description="Number of persons erased.")
    tables: dict[str, TableCount]
    cohorts: list[EmptiedCohort]
    fits: list[EmptiedFit]
    same_names: list[SameName]
    suppressed: int = Field(description="Keyed digests added, so that later imports stay without these riders.")
    bundles_with_rows: int = Field(description="Bundles with rows of these cohorts that were handed out before.")
    bindings: list[str] = Field(description="Each ties the receipt to an ID, for whoever holds its nonce.")
    kept: list[Kept]
    verification: ErasureVerification
    log_head_before: str = Field(pattern=HEAD)
    log_head: str = Field(pattern=HEAD)


class Binding(Published):
    """The nonce for the ID at this place among those given to the command."""

    position: int
    nonce: str
    digest: str


class RequesterCopy(Published):
    """The file of `--receipt`: the receipt, what binds it to the IDs it was asked for, and that the log has it."""

    receipt: ErasureReceipt | None = Field(
        description="Null in a file whose command was cut short; `isuit receipt FILE` completes it."
    )
    bindings: list[Binding]
    proof: Proof | None = Field(
        description="That the log has the event `rider-erased`, whose payload holds the receipt with these bindings."
    )


class RiderReport(Published):
    """`isuit show-rider`: everything held about a person; `tables` are those of an erasure."""

    tables: dict[str, TableCount]
    rows: dict[str, list[dict[str, Any]]] = Field(description="Every row about the person, by table.")
    suppressed: bool


class Reinstated(Published):
    """`isuit reinstate`."""

    suppressed: bool
    log_head: str = Field(pattern=HEAD)
