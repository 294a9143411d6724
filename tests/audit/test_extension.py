"""Rollback, fork, another key, history signed anew: each is found by whoever kept a checkpoint and the key."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.audit.keys import begin_signing
from isuit.audit.log import append_event
from isuit.ingest import read_cohort
from isuit.service import checks, heads, history, riders
from isuit.service.pseudonymising import pseudonymise
from isuit.service.recording import register_cohort
from isuit.service.stores import open_store
from isuit.store.paths import write_secret


@pytest.fixture
def grown(tmp_path: Path, cohort_table: Callable[..., object]) -> Callable[[Path, int], None]:
    """Adds an event to a store's log, by a command that does so."""

    def grow(store: Path, number: int) -> None:
        pq.write_table(cohort_table(number, riders=1, outcomes=1, tag=f"guest{number}"), tmp_path / "in.parquet")
        pseudonymise(store, [str(tmp_path / "in.parquet")], tmp_path / f"out-{number}.parquet")

    return grow


class Kept:
    """What an auditor took home: a checkpoint and a key."""

    def __init__(self, store: Path, folder: Path) -> None:
        report = heads.head(store, signed=True)
        self.checkpoint, self.key = folder / "checkpoint", folder / "key"
        self.checkpoint.write_text(str(report.checkpoint))
        self.key.write_text(report.key + "\n")

    def against(self, store: Path) -> list[str]:
        report = checks.verify(store, trusted_key=self.key, checkpoint=self.checkpoint)
        return [found.sentence for found in report.disagreements]


@pytest.fixture
def store(tmp_path: Path, grown: Callable[[Path, int], None]) -> Path:
    path = tmp_path / "store"
    history.init(path)
    grown(path, 1)
    return path


def test_a_log_that_grew_extends_what_was_signed(
    store: Path, tmp_path: Path, grown: Callable[[Path, int], None]
) -> None:
    kept = Kept(store, tmp_path)
    assert kept.against(store) == []
    grown(store, 2)
    assert kept.against(store) == []


def test_an_older_copy_is_found(store: Path, tmp_path: Path, grown: Callable[[Path, int], None]) -> None:
    shutil.copytree(store, tmp_path / "backup")
    grown(store, 2)
    kept = Kept(store, tmp_path)
    assert checks.verify(tmp_path / "backup").ok  # without a checkpoint nothing tells
    [sentence] = kept.against(tmp_path / "backup")
    assert "older copy" in sentence


def test_a_forked_log_is_found(store: Path, tmp_path: Path, grown: Callable[[Path, int], None]) -> None:
    """The operator shows one history to this auditor and another to the rest: the same key signed both."""
    shutil.copytree(store, tmp_path / "fork")
    grown(store, 2)
    kept = Kept(store, tmp_path)
    for number in (3, 4, 5):
        grown(tmp_path / "fork", number)
    assert checks.verify(tmp_path / "fork").ok
    [sentence] = kept.against(tmp_path / "fork")
    assert "rewritten or forked" in sentence


def test_a_replaced_key_is_found(store: Path, tmp_path: Path) -> None:
    kept = Kept(store, tmp_path)
    write_secret(store / "signing-key", b"x" * 32)
    found = checks.verify(store)
    assert [(entry.table, "not the key" in entry.sentence) for entry in found.disagreements] == [("signing-key", True)]
    # A rotation that the old key did not sign is found without anything kept.
    with open_store(store, write=True) as opened, opened.transaction() as connection:
        append_event(connection, "signing-key-rotated", {"key": "x", "rotation": "y"})
    assert "ledger.log" in [entry.table for entry in checks.verify(store).disagreements]
    assert any("do not follow" in sentence for sentence in kept.against(store))


def test_a_history_signed_anew_is_found(store: Path, tmp_path: Path, grown: Callable[[Path, int], None]) -> None:
    """Everything again, with another key: a store that agrees with itself, under the name of the first."""
    kept = Kept(store, tmp_path)
    forged = tmp_path / "forged"
    history.init(forged)
    with open_store(store) as opened:
        name = opened.connection.execute("SELECT store_id FROM ledger.store").fetchall()[0][0]
    with open_store(forged, write=True) as opened, opened.transaction() as connection:
        connection.execute("UPDATE ledger.store SET store_id = ?", [name])
        connection.execute("DELETE FROM ledger.log")
        append_event(connection, "store-created", {}, rows={"ledger.store": [name]})
        names = [row[0] for row in connection.execute("SELECT name FROM ledger.migrations").fetchall()]
        append_event(connection, "migration-applied", {}, rows={"ledger.migrations": names})
        (forged / "signing-key").unlink()
        begin_signing(connection, opened.paths)
    assert checks.verify(forged).ok
    assert heads.head(forged).origin == heads.head(store).origin
    [sentence] = kept.against(forged)
    assert "trusted key is not in the log" in sentence
    # With the very same key, the checkpoint alone tells.
    shutil.copytree(forged, tmp_path / "same-key")
    with open_store(tmp_path / "same-key", write=True) as opened, opened.transaction() as connection:
        connection.execute("DELETE FROM ledger.log WHERE kind = 'signing-key-made'")
        shutil.copy(store / "signing-key", tmp_path / "same-key" / "signing-key")
        begin_signing(connection, opened.paths)
    for number in range(6, 13):
        grown(tmp_path / "same-key", number)
    assert checks.verify(tmp_path / "same-key").ok
    [sentence] = kept.against(tmp_path / "same-key")
    assert "rewritten or forked" in sentence


def test_a_cohort_rewritten_under_its_hash_by_a_forged_erasure_is_found(
    store: Path, tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    """With a leaf declared empty the hash is not computed again, and everyone else's rows can be others."""
    table, forged = cohort_table(1, riders=6, outcomes=4), tmp_path / "forged"
    shutil.copytree(store, forged)
    with read_cohort(table) as cohort, open_store(store, write=True) as opened, opened.transaction() as connection:
        register_cohort(connection, cohort)
        true_hash = cohort.cohort_hash
    kept, head = Kept(store, tmp_path), heads.head(store).log_head
    assert kept.against(store) == []
    flipped = pa.array([1 - outcome for outcome in table.column("outcome").to_pylist()])
    other = table.set_column(table.schema.get_field_index("outcome"), "outcome", flipped)
    with read_cohort(other) as cohort, open_store(forged, write=True) as opened, opened.transaction() as connection:
        cohort.cohort_hash = true_hash  # a lie
        register_cohort(connection, cohort)
    assert "personal.outcomes" in [entry.table for entry in checks.verify(forged).disagreements]
    riders.delete_riders(forged, ["rider-0003"])
    assert checks.verify(forged).ok  # a store that agrees with itself
    [sentence] = kept.against(forged)
    assert "rewritten or forked" in sentence
    assert not checks.verify(forged, known_head=head).ok


def test_trust_follows_a_rotation_and_ends_for_the_old_key(store: Path, tmp_path: Path) -> None:
    kept = Kept(store, tmp_path)
    shutil.copytree(store, tmp_path / "stolen")  # somebody keeps the old key
    rotated = heads.rotate_key(store)
    assert rotated.old_key == kept.key.read_text().strip() != rotated.key
    assert kept.against(store) == []
    newer = tmp_path / "newer"
    newer.mkdir()
    newest = Kept(store, newer)
    newest.key.write_text(kept.key.read_text())  # the old key is trusted, the new one signed
    assert newest.against(store) == []
    newest.checkpoint.write_text(kept.checkpoint.read_text())
    newest.key.write_text(rotated.key)  # a new key says nothing about what the old one signed
    assert any("not signed by" in sentence for sentence in newest.against(store))


def test_a_key_that_was_replaced_signs_nothing_more(
    store: Path, tmp_path: Path, grown: Callable[[Path, int], None]
) -> None:
    stolen = tmp_path / "stolen"
    shutil.copytree(store, stolen)
    heads.rotate_key(store)
    grown(store, 2)
    for number in (3, 4):
        grown(stolen, number)
    replaced, forked = Kept(stolen, tmp_path).against(store)
    assert "had been replaced by then" in replaced
    assert "rewritten or forked" in forked


def test_a_checkpoint_of_another_store_is_told_as_such(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    history.init(other)
    kept = Kept(other, tmp_path)
    kept.key.write_text(heads.head(store).key + "\n")
    assert kept.against(store) == ["the checkpoint is one of another store"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rotation_cut_short_leaves_a_key_that_signs(
    store: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    before = heads.head(store).key
    place = "isuit.service.heads.settle_rotation" if moment == "after" else "isuit.audit.keys.append_event"
    monkeypatch.setattr(place, kill)
    with pytest.raises(Killed):
        heads.rotate_key(store)
    monkeypatch.undo()
    assert (store / "signing-key.next").exists()
    assert checks.verify(store).ok
    assert (heads.head(store).key == before) == (moment == "before")
    heads.rotate_key(store)
    assert checks.verify(store).ok
    assert not (store / "signing-key.next").exists()
