"""The quick look accepts what agrees and nothing else: with it and without it, verification says the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from isuit.audit import subjects
from isuit.audit.verification import verify
from isuit.service.stores import open_store
from isuit.store import query
from isuit.store.opening import Store

EDITS = (
    "UPDATE personal.outcomes SET metric = metric + 1e-9 WHERE rowid = (SELECT max(rowid) FROM personal.outcomes)",
    "UPDATE personal.outcomes SET metric = -0.0 WHERE rowid = 7",
    "UPDATE personal.outcomes SET rider = rider || 'x' WHERE rowid = 3",
    "UPDATE personal.outcomes SET metric_2 = 1 WHERE rowid = 3",
    "DELETE FROM personal.outcomes WHERE rider = (SELECT max(rider) FROM personal.outcomes)",
    "UPDATE personal.skills SET n_bins = n_bins + 1 WHERE rowid = 5",
    "UPDATE personal.skills SET path = '[]' WHERE rowid = 5",
    "INSERT INTO personal.skills SELECT * FROM personal.skills WHERE rowid = 2",
    "UPDATE personal.commitments SET salt = salt || 'x'::BLOB WHERE rowid = 4",
    "UPDATE personal.commitments SET leaf = upper(leaf) WHERE rowid = 4",
    "INSERT INTO personal.commitments SELECT * FROM personal.commitments WHERE rowid = 4",
    "DELETE FROM personal.commitments WHERE rowid = 0",
    "UPDATE ledger.leaves SET leaf = upper(leaf)",
    "INSERT INTO ledger.leaves SELECT * FROM ledger.leaves WHERE rowid = 4",
    "DELETE FROM ledger.leaves WHERE rowid = 4",
    "UPDATE ledger.cohorts SET riders = riders - 1",
    "UPDATE ledger.cohorts SET outcomes = outcomes + 1",
    "UPDATE ledger.cohorts SET commitment = leaf FROM ledger.leaves WHERE ledger.leaves.rowid = 0",
    'UPDATE ledger.receipts SET receipt = replace(receipt, \'"leaves":["\', \'"leaves":["a\')',
    "DELETE FROM ledger.receipts",
)


@pytest.fixture(scope="module")
def store(full_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    copy = shutil.copytree(full_store, tmp_path_factory.mktemp("edited") / "store")
    with open_store(Path(copy), write=True) as store:
        yield store


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So short that riders go on in the next one, and that a look which stops leaves others unread."""
    monkeypatch.setattr(query, "BATCH_ROWS", 1 << 11)


def test_nobody_is_looked_at_where_all_agrees(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(subjects, "Leaves")
    found = verify(store.connection, store.key)
    assert found.disagreements == []
    assert (found.cohorts, found.complete_cohorts, found.fits) == (5, 4, 3)
    assert found.erased_leaves >= 2


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_named_as_rider_by_rider(store: Store, monkeypatch: pytest.MonkeyPatch, edit: str) -> None:
    store.connection.execute("BEGIN")
    try:
        store.connection.execute(edit)
        quick = verify(store.connection, store.key)
        monkeypatch.setattr(subjects, "agreement", lambda *arguments: None)
        by_rider = verify(store.connection, store.key)
    finally:
        store.connection.execute("ROLLBACK")
    assert quick.disagreements
    assert sorted(quick.disagreements) == sorted(by_rider.disagreements)
    assert (quick.complete_cohorts, quick.erased_leaves) == (by_rider.complete_cohorts, by_rider.erased_leaves)
