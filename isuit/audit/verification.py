"""`isuit verify`: everything is computed again from the tables and held against the log.

The order: the catalogue, the chain, the rows that events describe, the tables that change, the commitments (each
cohort's and fit's leaves, each complete cohort's hash), the receipts behind empty leaves. Every disagreement is
listed with its table. Where a leaf cannot tell which of two tables was changed, both are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import rfc8785

from isuit.audit import subjects
from isuit.audit.catalogue import strange_entries, tables_to_come
from isuit.audit.digests import CHANGEABLE, KEYED_ROWS, all_rows_digests, table_digest
from isuit.audit.log import GENESIS, Event, is_head, read_log
from isuit.store.cohorts import cohort_records
from isuit.store.fits import fit_records
from isuit.store.founding import key_digest
from isuit.store.holders import holders
from isuit.store.parts import VIEWS
from isuit.store.query import rows

Progress = Callable[[str, float], None]


@dataclass
class Verification:
    """What verification found. Truthy when everything agrees."""

    log_head: str | None = GENESIS  # None where the last event has none
    log_length: int = 0
    cohorts: int = 0
    complete_cohorts: int = 0
    fits: int = 0
    erased_leaves: int = 0
    disagreements: list[tuple[str, str]] = field(default_factory=list)  # table and sentence

    def __bool__(self) -> bool:
        return not self.disagreements

    def disagree(self, table: str, sentence: str) -> None:
        if (table, sentence) not in self.disagreements:
            self.disagreements.append((table, sentence))

    @contextmanager
    def checking(self, *tables: str) -> Iterator[None]:
        """Tables whose values cannot even be read are a disagreement, not a crash. The error may quote values.

        Every exception, because a check reports whatever it is given: nulls where there are none, text for a time,
        JSON of any depth. A defect of the check itself shows as a disagreement too, which is the safe side.
        """
        try:
            yield
        except Exception as error:
            for table in tables:
                self.disagree(table, f"{' with '.join(tables)} cannot be checked ({type(error).__name__})")


def verify(
    connection: duckdb.DuckDBPyConnection, key: bytes, known_head: str | None = None, progress: Progress | None = None
) -> Verification:
    """Hold every table against the log, and the log against itself and a head that the caller kept."""
    found = Verification()
    tell = progress or (lambda stage, share: None)
    later: set[str] = set()
    with found.checking("catalogue"):
        for name, sentence in strange_entries(connection):
            found.disagree(name, sentence)
        later = tables_to_come(connection)
    events: list[Event] = []
    with found.checking("ledger.log"):
        events = read_log(connection)
        _check_chain(events, known_head, found)
    expected = Expected.from_events(events, found)
    tell("tables", 0.0)
    for table in (table for table in KEYED_ROWS if table not in later):
        with found.checking(table):
            _check_rows(connection, table, expected.rows.get(table, {}), found)
    for table in (table for table in CHANGEABLE if table not in later):
        with found.checking(table):
            _check_table(connection, table, key, expected.tables.get(table), found)
    with found.checking("ledger.store"):
        if rows(connection, "SELECT key_digest FROM ledger.store") != [(key_digest(key),)]:
            found.disagree("ledger.store", "the key file is not the one the store was made with")
    with found.checking("ledger.pending"):
        if rows(connection, "SELECT 1 FROM ledger.pending"):
            found.disagree("ledger.pending", "unfinished work is marked that no command has left")
    tell("tables", 1.0)
    _check_commitments(connection, expected, found, tell)
    return found


def _check_chain(events: list[Event], known_head: str | None, found: Verification) -> None:
    previous = GENESIS
    for position, event in enumerate(events, start=1):
        where = f"event {position} of the log"
        if event.sequence != position:
            found.disagree("ledger.log", f"{where} has another number: events are missing or were added")
        if not is_head(event.head):
            found.disagree("ledger.log", f"{where} has no head")
        if event.previous != previous:
            found.disagree("ledger.log", f"{where} does not follow the one before it")
        with found.checking("ledger.log"):
            if rfc8785.dumps(event.content).decode() != event.payload:
                found.disagree("ledger.log", f"{where} is not in canonical form")
            if event.computed_head() != event.head:
                found.disagree("ledger.log", f"{where} does not have the head that follows from it")
        previous = event.head
    found.log_head, found.log_length = previous if is_head(previous) else None, len(events)
    if known_head is not None and known_head.strip().lower() not in {GENESIS, *(event.head for event in events)}:
        found.disagree("ledger.log", "the known head is not in the log: its end was cut off or rewritten")


@dataclass
class Expected:
    """What the log, read from start to end, says the tables hold."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)  # table, key: digest
    tables: dict[str, str] = field(default_factory=dict)
    commitments: dict[str, str | None] = field(default_factory=dict)  # cohort or fit: root

    @classmethod
    def from_events(cls, events: list[Event], found: Verification) -> Expected:
        expected = cls()
        for event in events:
            with found.checking("ledger.log"):
                content = event.content
                for table, digests in content.get("rows_digest", {}).items():
                    expected.rows.setdefault(table, {}).update(digests)
                expected.tables.update(content.get("table_digest", {}))
                if event.kind in ("cohort-registered", "rows-returned"):
                    expected.commitments[content["cohort_hash"]] = content["commitment"]
                elif event.kind == "fit-recorded":
                    expected.commitments[content["fit_id"]] = content["commitment"]
        return expected


def _check_rows(
    connection: duckdb.DuckDBPyConnection, table: str, expected: dict[str, str], found: Verification
) -> None:
    present = all_rows_digests(connection, table)
    changed = sum(present[key] != expected[key] for key in present.keys() & expected.keys())
    if changed:
        found.disagree(table, f"{table}: the rows of {changed} entries are not the ones that were logged")
    # An event of no rows (a release without cells) has a digest too: that of nothing.
    gone = [key for key in expected.keys() - present.keys() if expected[key] != _nothing(connection, table)]
    if gone:
        found.disagree(table, f"{table}: {len(gone)} entries that were logged are gone")
    if present.keys() - expected.keys():
        number = len(present.keys() - expected.keys())
        found.disagree(table, f"{table}: {number} entries are in no event of the log")
        found.disagree("ledger.log", f"the log lacks the events of {number} entries in {table}, or those were added")


def _nothing(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    return all_rows_digests(connection, table, [""])[""]


def _check_table(
    connection: duckdb.DuckDBPyConnection, table: str, key: bytes, expected: str | None, found: Verification
) -> None:
    if expected is None:
        if rows(connection, f"SELECT 1 FROM {table} LIMIT 1"):
            found.disagree(table, f"{table} holds rows and no event of the log speaks of it")
    elif table_digest(connection, table, key) != expected:
        found.disagree(table, f"{table} is not as the log last left it")


def _check_commitments(
    connection: duckdb.DuckDBPyConnection, expected: Expected, found: Verification, tell: Progress
) -> None:
    erased: dict[str, list[str]] = {}
    with found.checking("ledger.receipts"):
        erased = subjects.erased_leaves(connection)
    known: set[str] = set()
    with found.checking("ledger.cohorts"):
        cohorts = cohort_records(connection)
        total = sum(cohort.outcomes for cohort in cohorts) or 1
        seen = 0
        for cohort in cohorts:
            tell("cohorts", seen / total)
            known.add(cohort.cohort_hash)
            _check_root(cohort.cohort_hash, cohort.commitment, expected, "ledger.cohorts", found)
            with found.checking("personal.outcomes", "personal.commitments", "ledger.leaves"):
                subjects.check_cohort(connection, cohort, erased.get(cohort.cohort_hash, []), found)
            found.cohorts += 1
            seen += cohort.outcomes
        tell("cohorts", 1.0)
    with found.checking("ledger.fits"):
        fits = fit_records(connection)
        for number, fit in enumerate(fits):
            tell("fits", number / len(fits))
            known.add(fit.fit_id)
            _check_root(fit.fit_id, fit.commitment, expected, "ledger.fits", found)
            with found.checking("personal.skills", "personal.commitments", "ledger.leaves", "atlas.difficulty"):
                subjects.check_fit(connection, fit, erased.get(fit.fit_id, []), found)
            found.fits += 1
        tell("fits", 1.0)
    for table, column in subjects.SUBJECT_COLUMNS.items():
        with found.checking(table):
            allowed = _holders(connection, known) if table == "personal.outcomes" else known
            strange = {name for (name,) in rows(connection, f"SELECT DISTINCT {column} FROM {VIEWS[table]}")} - allowed
            if strange:
                found.disagree(table, f"{table} has rows of {len(strange)} cohorts or fits that were never recorded")
    with found.checking("ledger.receipts"):
        for subject in sorted(erased.keys() - known):
            found.disagree("ledger.receipts", f"a receipt speaks of {subject}, which was never recorded")


def _holders(connection: duckdb.DuckDBPyConnection, cohorts: set[str]) -> set[str]:
    """The names under which rows of the cohorts may be stored; a cohort that lists others has none under its own."""
    listed = holders(connection)
    return {name for cohort in cohorts for name in listed.get(cohort, [cohort])}


def _check_root(subject: str, root: str | None, expected: Expected, table: str, found: Verification) -> None:
    if subject not in expected.commitments:
        found.disagree("ledger.log", f"the log lacks the event that recorded {subject}")
    elif expected.commitments[subject] != root:
        found.disagree(table, f"{table}: the commitment of {subject} is not the one in the log")
