"""A requester's copy of a receipt: it proves the erasure, and survives whatever happens to the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from isuit.audit.log import read_log
from isuit.audit.proofs import entry_of, problems_of
from isuit.domain import FitConfig
from isuit.erasure import rewrite
from isuit.erasure.receipt import binding
from isuit.errors import NotFound
from isuit.ingest import read_cohort
from isuit.published import RequesterCopy
from isuit.service import checks, fitting, heads, recording, riders
from isuit.service.stores import open_store
from isuit.store.cohorts import find_cohort
from isuit.store.query import rows


class Killed(BaseException):
    pass


def copy_of(path: Path) -> RequesterCopy:
    return RequesterCopy.model_validate_json(path.read_text())


def proves(copy: RequesterCopy, rider: str) -> bool:
    """What a person checks, with nothing but the file and their ID."""
    assert copy.proof is not None
    assert copy.proof.inclusion is not None
    assert list(problems_of(copy.proof, None, None)) == []
    event = entry_of(copy.proof.inclusion)
    return (
        event["kind"] == "rider-erased"
        and binding(copy.bindings[0].nonce, rider) in event["payload"]["receipt"]["bindings"]
    )


def test_the_copy_proves_the_erasure_to_the_person(store_copy: Path, tmp_path: Path) -> None:
    riders.delete_riders(store_copy, ["rider-0007"], copy_to=tmp_path / "copy.json")
    copy = copy_of(tmp_path / "copy.json")
    assert proves(copy, "rider-0007")
    assert not proves(copy, "rider-0008")
    assert "rider-0007" not in (tmp_path / "copy.json").read_text()
    assert copy.bindings[0].nonce not in (store_copy / "store.duckdb").read_bytes().decode("latin-1")


@pytest.mark.parametrize("step", ["decided", "copied", "swapped"])
def test_the_nonce_survives_a_kill(
    store_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def kill(reached: str) -> None:
        if reached == step:
            raise Killed

    monkeypatch.setattr(rewrite, "reached", kill)
    with pytest.raises(Killed):
        riders.delete_riders(store_copy, ["rider-0007"], copy_to=tmp_path / "copy.json")
    monkeypatch.undo()
    assert copy_of(tmp_path / "copy.json").receipt is None
    done = riders.complete_copy(store_copy, tmp_path / "copy.json")
    assert done.receipt is not None
    assert done == copy_of(tmp_path / "copy.json")
    assert proves(done, "rider-0007")
    heads.rotate_key(store_copy)
    assert proves(riders.complete_copy(store_copy, tmp_path / "copy.json"), "rider-0007")
    assert checks.verify(store_copy).ok


def test_a_kill_before_the_decision_leaves_a_file_that_says_so(
    store_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(reached: str) -> None:
        raise Killed

    monkeypatch.setattr(rewrite, "reached", kill)
    with pytest.raises(Killed):
        riders.delete_riders(store_copy, ["rider-0007"], copy_to=tmp_path / "copy.json")
    monkeypatch.undo()
    with pytest.raises(NotFound, match="nothing was erased"):
        riders.complete_copy(store_copy, tmp_path / "copy.json")
    with pytest.raises(NotFound):
        riders.delete_riders(store_copy, ["nobody"], copy_to=tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_another_spelling_of_whoever_opted_out_stays_out(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    table, store = cohort_table(1, tag="Rider"), tmp_path / "store"
    fitting.fit(store, table, FitConfig(activity="kitesurfing", dimension="wind"))
    riders.delete_riders(store, ["Rider-0007"])
    spelled = json.loads(json.dumps(table.column("rider").to_pylist()).replace("Rider-0007", "rIDER-\u200b0007"))
    again = table.set_column(table.schema.get_field_index("rider"), "rider", pa.array(spelled))
    config = FitConfig(activity="kitesurfing", dimension="gust")
    assert fitting.fit(store, again, config).suppressed_rows == 15
    with pytest.raises(NotFound, match="was erased"):
        riders.show_rider(store, "RIDER-0007")
    assert not riders.reinstate(store, "rider-0007").suppressed
    with open_store(store) as opened:
        assert rows(opened.connection, "SELECT count(*) FROM personal.suppressed") == [(0,)]
    assert fitting.fit(store, again, config).suppressed_rows == 0


@pytest.mark.parametrize("suppress", [True, False])
def test_rows_come_back_under_the_hash_they_have(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], suppress: bool
) -> None:
    """After a new opt-in, or where nobody opted out: the same file again is the same cohort, whole."""
    table, store = cohort_table(1, riders=12), tmp_path / "store"
    config = FitConfig(activity="kitesurfing", dimension="wind")
    first = fitting.fit(store, table, config)
    riders.delete_riders(store, ["rider-0003", "rider-0007"], suppress=suppress)
    assert checks.verify(store).complete_cohorts == 0
    if suppress:
        assert fitting.fit(store, table, config).cohort_hash != first.cohort_hash
        riders.reinstate(store, "rider-0003")
        riders.reinstate(store, "rider-0007")
    again = fitting.fit(store, table, config)
    assert (again.cohort_hash, again.fit_id, again.recorded) == (first.cohort_hash, first.fit_id, False)
    assert any("rows of 2 riders who were erased are back" in note for note in again.notes)
    report = checks.verify(store)
    assert report.ok, report.disagreements
    assert report.complete_cohorts == report.cohorts
    assert report.erased_leaves >= 2  # the empty ones stay with their receipt
    assert checks.rederive(store, first.fit_id).verdict == "identical"
    assert len(riders.show_rider(store, "rider-0007").rows["personal.outcomes"]) == 15
    with open_store(store) as opened:
        events = [event for event in read_log(opened.connection) if event.kind == "rows-returned"]
        assert [event.content["riders"] for event in events] == [2]
        assert "rider-0007" not in events[0].payload
    assert fitting.fit(store, table, config).log_head == again.log_head  # nothing is left to come back
    checks.bundle(store, first.fit_id, tmp_path / "bundle", with_cohort=True)
    riders.delete_riders(store, ["rider-0007"])
    report = checks.verify(store)
    assert report.ok, report.disagreements
    assert checks.rederive(store, first.fit_id).verdict == "erased"


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE personal.outcomes SET outcome = 1 - outcome WHERE rider = 'rider-0007'",
        "UPDATE personal.commitments SET salt = 'x'::BLOB WHERE rider = 'rider-0007'",
        "DELETE FROM ledger.leaves WHERE leaf IN (SELECT leaf FROM personal.commitments WHERE rider = 'rider-0007')",
        "UPDATE ledger.cohorts SET commitment = repeat('0', 64)",
    ],
)
def test_what_came_back_is_verified_like_the_rest(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], edit: str
) -> None:
    table, store = cohort_table(1, riders=12), tmp_path / "store"
    config = FitConfig(activity="kitesurfing", dimension="wind")
    fitting.fit(store, table, config)
    riders.delete_riders(store, ["rider-0007"], suppress=False)
    fitting.fit(store, table, config)
    with open_store(store, write=True) as opened:
        opened.connection.execute(edit)
    assert not checks.verify(store).ok


def test_other_rows_than_those_erased_cannot_come_back(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    """A program that brings back what the cohort never held: with every rider there, the hash is computed again."""
    table, store = cohort_table(1, riders=12), tmp_path / "store"
    config = FitConfig(activity="kitesurfing", dimension="wind")
    first = fitting.fit(store, table, config)
    riders.delete_riders(store, ["rider-0007"], suppress=False)
    flipped = pa.array([1 - outcome for outcome in table.column("outcome").to_pylist()], table.column("outcome").type)
    other = table.set_column(table.schema.get_field_index("outcome"), "outcome", flipped)
    with read_cohort(other) as cohort, open_store(store, write=True) as opened, opened.transaction() as connection:
        known = find_cohort(connection, first.cohort_hash)
        assert known is not None
        cohort.cohort_hash = first.cohort_hash  # a lie
        recording.return_rows(connection, cohort, known)
    found = checks.verify(store)
    assert "personal.outcomes" in {entry.table for entry in found.disagreements}
