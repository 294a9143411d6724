"""Checks of one cohort or one fit: rows or skills, salts and bare leaves must give the root that was logged."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Protocol

import duckdb
import numpy as np
import pyarrow as pa

from isuit import canonical
from isuit.audit.agreement import agreement
from isuit.audit.blocks import Block, row_blocks, skill_blocks
from isuit.audit.commitments import (
    ROWS_LEAF_TAG,
    SKILL_LEAF_TAG,
    leaves_root,
    rider_lines,
    rows_leaf,
    skill_leaf,
)
from isuit.audit.results import result_digest
from isuit.documents import from_json
from isuit.store.cohorts import StoredCohort, metric_columns, stored_outcomes
from isuit.store.fits import StoredFit, atlas_rows, stored_skills
from isuit.store.query import rows

# Where each table names the cohort or fit that a row belongs to.
SUBJECT_COLUMNS = {
    "personal.outcomes": "cohort_hash",
    "personal.skills": "fit_id",
    "personal.commitments": "subject",
    "ledger.leaves": "subject",
}


class Findings(Protocol):
    """Where a check writes down what it found."""

    complete_cohorts: int
    erased_leaves: int

    def disagree(self, table: str, sentence: str) -> None: ...


def erased_leaves(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The leaves that receipts say are empty, by cohort hash and fit id.

    A receipt lists them as `cohorts: [{cohort_hash, leaves}]` and `fits: [{fit_id, leaves}]`.
    """
    found: dict[str, list[str]] = {}
    for (text,) in rows(connection, "SELECT receipt FROM ledger.receipts"):
        receipt = from_json(text, "a receipt")
        for part, name in (("cohorts", "cohort_hash"), ("fits", "fit_id")):
            for entry in receipt.get(part, []):
                found.setdefault(entry[name], []).extend(entry["leaves"])
    return found


def check_cohort(
    connection: duckdb.DuckDBPyConnection, cohort: StoredCohort, erased: list[str], found: Findings
) -> None:
    """Every remaining row is one that was committed to; with no row gone, the cohort has its hash."""
    # Columns of metrics that this cohort does not have: no line and so no leaf speaks of what stands there.
    unused = " OR ".join(
        f"{name} IS NOT NULL" for name in metric_columns(canonical.MOST_METRICS)[len(cohort.metrics) :]
    )
    of_cohort = "SELECT 1 FROM all_outcomes WHERE cohort_hash = ?"
    if unused and rows(connection, f"{of_cohort} AND ({unused}) LIMIT 1", [cohort.cohort_hash]):
        found.disagree("personal.outcomes", f"the rows of {cohort.cohort_hash} hold metrics that it does not have")
    whole, digest = _agreeing(connection, cohort, erased, found) or _look_at_riders(connection, cohort, erased, found)
    if whole:
        found.complete_cohorts += 1
        if f"{canonical.format_of(cohort.metrics)}:{digest}" != cohort.cohort_hash:
            found.disagree("personal.outcomes", f"the rows of {cohort.cohort_hash} do not have this hash")


def _agreeing(
    connection: duckdb.DuckDBPyConnection, cohort: StoredCohort, erased: list[str], found: Findings
) -> tuple[bool, str] | None:
    """Whether the rows should be all of the cohort's, and their digest; None where it takes a look at every rider.

    Riders who were erased may be back, each under a new leaf; then the empty leaves say nothing about the rows.
    """
    digest = hashlib.sha256(canonical.header(cohort.outcomes, cohort.metrics))
    outcomes = _canonical(stored_outcomes(connection, cohort.cohort_hash), found)
    seen = agreement(
        connection, cohort.cohort_hash, cohort.commitment, ROWS_LEAF_TAG, _hashed(row_blocks(outcomes), digest), erased
    )
    if seen is None or seen.riders > cohort.riders:
        return None
    found.erased_leaves += seen.empty
    return not seen.empty or seen.riders == cohort.riders, digest.hexdigest()


def _hashed(blocks: Iterable[Block], digest: hashlib._Hash) -> Generator[Block]:
    for block in blocks:
        digest.update(block.content)
        yield block


def _look_at_riders(
    connection: duckdb.DuckDBPyConnection, cohort: StoredCohort, erased: list[str], found: Findings
) -> tuple[bool, str]:
    """The same rider by rider, naming what does not agree."""
    digest = hashlib.sha256(canonical.header(cohort.outcomes, cohort.metrics))
    leaves = Leaves(connection, cohort.cohort_hash, "personal.outcomes", found)
    leaves.check_root(cohort.commitment)
    batches = _canonical(stored_outcomes(connection, cohort.cohort_hash), found)
    for rider, lines in rider_lines(batches):
        digest.update(lines)
        salt = leaves.salts.get(rider)
        leaves.meet(rider, None if salt is None else rows_leaf(salt, lines))
    riders = len(leaves.salts)
    if riders > cohort.riders:
        leaves.too_many(cohort.riders)
    return leaves.close(erased) or riders == cohort.riders, digest.hexdigest()


def _canonical(batches: Iterable[pa.RecordBatch], found: Findings) -> Iterator[pa.RecordBatch]:
    """Values that the canonical form writes like others, and that no cohort is stored with."""
    for batch in batches:
        metrics = [batch.column(name).to_numpy(zero_copy_only=False) for name in canonical.metrics_of(batch.schema)]
        if (
            any(np.any(np.signbit(metric) & (metric == 0)) for metric in metrics)
            or "" in batch.column("site").unique().to_pylist()
        ):
            found.disagree("personal.outcomes", "personal.outcomes holds values that are not in canonical form")
        yield batch


def check_fit(connection: duckdb.DuckDBPyConnection, fit: StoredFit, erased: list[str], found: Findings) -> None:
    """The recorded curves have their digest, and every remaining skill is one that was committed to."""
    atlas = atlas_rows(connection, fit.fit_id)
    if result_digest(fit.kind, fit.discrimination, fit.discrimination_se, atlas) != fit.result_digest:
        found.disagree("ledger.fits", f"{fit.fit_id}: discrimination and curves do not have the recorded result digest")
    blocks = skill_blocks(stored_skills(connection, fit.fit_id))
    seen = agreement(connection, fit.fit_id, fit.commitment, SKILL_LEAF_TAG, blocks, erased)
    if seen is None:
        _look_at_skills(connection, fit, erased, found)
    else:
        found.erased_leaves += seen.empty


def _look_at_skills(connection: duckdb.DuckDBPyConnection, fit: StoredFit, erased: list[str], found: Findings) -> None:
    leaves = Leaves(connection, fit.fit_id, "personal.skills", found)
    leaves.check_root(fit.commitment)
    skills = rows(
        connection,
        "SELECT rider, skill_mean, skill_sd, n_outcomes, n_bins, usable, path FROM all_skills WHERE fit_id = ?",
        [fit.fit_id],
    )
    for row in skills:
        salt = leaves.salts.get(row[0])
        leaves.meet(row[0], None if salt is None else skill_leaf(salt, row))
    leaves.close(erased)


class Leaves:
    """The leaves of one cohort or fit, ticked off rider by rider."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, subject: str, table: str, found: Findings) -> None:
        self._subject, self._table, self._found = subject, table, found
        bare = rows(connection, "SELECT leaf FROM all_leaves WHERE subject = ?", [subject])
        self._bare = Counter(leaf for (leaf,) in bare)
        tied = rows(connection, "SELECT rider, salt, leaf FROM all_commitments WHERE subject = ?", [subject])
        self.salts: dict[str, bytes] = {rider: salt for rider, salt, _ in tied}
        self._leaf = {rider: leaf for rider, _, leaf in tied}
        self._unmet = set(self.salts)
        if len(tied) != len(self.salts):
            found.disagree("personal.commitments", f"{subject} has two commitments for one rider")

    def check_root(self, root: str | None) -> None:
        if not self._bare and root is None:
            return
        if leaves_root(self._bare.elements()) != root:
            self._found.disagree("ledger.leaves", f"the leaves of {self._subject} do not have its root")

    def meet(self, rider: str, leaf: str | None) -> None:
        """A rider's rows or skill, with the leaf that follows from them and the salt (None without a salt)."""
        subject, table = self._subject, self._table
        if leaf is None:
            self._either(f"{subject}: {table} holds a rider without a commitment")
            return
        if rider not in self._unmet:
            self._found.disagree(table, f"{subject}: {table} holds a rider twice")
        self._unmet.discard(rider)
        if leaf == self._leaf[rider]:
            if not self._bare[leaf]:
                self._found.disagree("ledger.leaves", f"{subject}: a rider's leaf is not among the bare leaves")
        elif self._bare[leaf]:
            self._found.disagree("personal.commitments", f"{subject}: a rider's stored leaf is not that of the rows")
        else:
            self._either(f"{subject}: a rider's rows in {table} are not the ones that were committed to")

    def close(self, erased: list[str]) -> bool:
        """What no rider met must be covered by a receipt; whether nothing was erased."""
        if self._unmet:
            self._either(f"{self._subject}: a commitment has no rows in {self._table}")
        empty = self._bare - Counter(self._leaf.values())
        receipted = Counter(erased)
        if empty - receipted:
            number = (empty - receipted).total()
            self._either(f"{self._subject}: {number} riders are gone from {self._table} and no receipt says why")
        if receipted - empty:
            number = (receipted - empty).total()
            self._found.disagree(
                "ledger.receipts", f"{self._subject}: a receipt covers {number} leaves that are not empty or not there"
            )
        self._found.erased_leaves += empty.total()
        return not empty

    def too_many(self, registered: int) -> None:
        self._either(f"{self._subject}: there are rows of more than the {registered} riders that were registered")

    def _either(self, sentence: str) -> None:
        """A leaf cannot tell rows from salts: both tables are named."""
        self._found.disagree(self._table, sentence)
        self._found.disagree("personal.commitments", sentence)
