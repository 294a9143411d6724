"""Erasing riders: one transaction is the decision, and `rewrite` then leaves no byte of them.

    find        every name of each rider (an ID and its token), every personal table, every other place
    decide      in one transaction: delete, check, remember by keyed digest, write receipt and event, mark as pending
    rewrite     `isuit.erasure.rewrite.finish`: copy what is left into a new file, compare, swap, destroy the old one

Before the transaction commits nothing has happened; after it, the riders are gone for every reader, and the next
command that opens the store finishes the rewrite if this one cannot. There is no state in between.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import rfc8785

from isuit import __version__
from isuit.audit.digests import CHANGEABLE, rider_digest
from isuit.audit.log import append_event, instant, log_head, read_log
from isuit.erasure import rewrite
from isuit.erasure.elsewhere import search_elsewhere
from isuit.erasure.part_copies import mark
from isuit.erasure.personal import DIGESTS, PersonalTable, is_text, personal_tables, resolve, searching
from isuit.erasure.receipt import FORMAT, KEPT
from isuit.erasure.rewrite import ERASURE, fingerprints
from isuit.errors import PolicyRefusal, StoreError
from isuit.published import ErasurePlan
from isuit.spelling import fold
from isuit.store.opening import Store
from isuit.store.part_files import Part
from isuit.store.parts import narrowed, parts_rows, riders_in
from isuit.store.query import rows


@dataclass(frozen=True)
class Search:
    """Everything the store holds about some riders, by table; made inside `searching`."""

    persons: list[frozenset[str]]
    tables: list[PersonalTable]
    counts: Mapping[str, tuple[int, int]]  # rows in all, rows about the persons
    leaves: Mapping[str, list[str]]  # by cohort or fit
    roots: Mapping[str, str | None]
    same_names: Mapping[str, int]
    parts: Mapping[str, frozenset[str]]  # names that stand in each part
    part_bytes: int  # of these parts

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*self.persons)

    def as_json(self) -> dict[str, Any]:
        """The part that plan and receipt share."""
        tables = {
            table: {"before": before, "after": before - mine, "removed": mine}
            for table, (before, mine) in self.counts.items()
        }
        touched = [
            {"root": self.roots.get(subject), "leaves": sorted(leaves), "subject": subject}
            for subject, leaves in sorted(self.leaves.items())
        ]

        def renamed(prefix: str, name: str) -> list[dict[str, Any]]:
            found = [entry for entry in touched if str(entry["subject"]).startswith(prefix)]
            return [{name: entry["subject"], "root": entry["root"], "leaves": entry["leaves"]} for entry in found]

        return {
            "riders": len(self.persons),
            "tables": tables,
            "cohorts": renamed("isuit-c", "cohort_hash"),
            "fits": renamed("isuit-f", "fit_id"),
            "same_names": [{"place": place, "count": count} for place, count in self.same_names.items()],
        }


def search(connection: duckdb.DuckDBPyConnection, riders: Sequence[str]) -> Search:
    """Find the riders everywhere; refuses unknown riders, and a store with a person where no person belongs."""
    tables = personal_tables(connection)
    given = frozenset(rider for rider in riders if is_text(rider))
    with searching(connection, given), narrowed(connection, given) as candidates:
        persons = list(dict.fromkeys(resolve(connection, riders, tables)))
        names = frozenset().union(*persons)
        if names == given:
            return _search(connection, persons, tables, candidates)
    with searching(connection, names), narrowed(connection, names) as candidates:
        return _search(connection, persons, tables, candidates)


def _search(
    connection: duckdb.DuckDBPyConnection,
    persons: list[frozenset[str]],
    tables: list[PersonalTable],
    candidates: list[Part],
) -> Search:
    """What the tables and the parts that may hold the persons say; inside `searching` and `narrowed`."""
    counts = {}
    for table in tables:
        query = f"SELECT (SELECT count(*) FROM {table.name}), count(*) FROM {table.source} WHERE {table.about}"
        [(total, mine)] = rows(connection, query)
        counts[table.name] = (total + parts_rows(connection, table.name), mine)
    leaves: dict[str, list[str]] = {}
    for subject, leaf in rows(
        connection, "SELECT subject, leaf FROM all_commitments WHERE rider IN (SELECT name FROM persons)"
    ):
        leaves.setdefault(subject, []).append(leaf)
    parts = riders_in(connection, candidates)
    elsewhere = search_elsewhere(connection, tables, frozenset().union(*persons))
    if elsewhere.blocking:
        raise PolicyRefusal(
            f"the ID also stands in {', '.join(elsewhere.blocking)}, where no rider belongs: nothing was erased, "
            "because a copy would stay; correct that value first and run `isuit verify`."
        )
    roots = dict(
        rows(
            connection,
            "SELECT cohort_hash, commitment FROM ledger.cohorts UNION ALL SELECT fit_id, commitment FROM ledger.fits",
        )
    )
    size = sum(part.bytes for part in candidates if part.part in parts)
    return Search(persons, tables, counts, leaves, roots, elsewhere.same_names, parts, size)


def plan(connection: duckdb.DuckDBPyConnection, riders: Sequence[str]) -> ErasurePlan:
    """What an erasure would remove. Changes nothing."""
    return ErasurePlan(**search(connection, riders).as_json())


def decide(store: Store, riders: Sequence[str], *, suppress: bool, bindings: Sequence[str]) -> str:
    """Delete the riders' rows in one transaction, with receipt, event and the mark of pending work; the receipt's id.

    `bindings` go into the receipt (see `receipt.bind`).
    """
    # The names are registered outside of the transaction: a view made inside would go with a rollback.
    found = search(store.connection, riders)
    _require_space(store, found.part_bytes)
    with searching(store.connection, found.names), store.transaction() as connection:
        head_before = log_head(connection)
        _delete(connection, found)
        digests = _suppress(connection, store.key, found.names) if suppress else 0
        receipt_id = secrets.token_hex(16)
        now = datetime.now(UTC).replace(tzinfo=None)
        core = found.as_json() | {
            "format": FORMAT,
            "receipt_id": receipt_id,
            "store_id": rows(connection, "SELECT store_id FROM ledger.store")[0][0],
            "erased_at": instant(now),
            "tool_version": __version__,
            "duckdb_version": duckdb.__version__,
            "suppressed": digests,
            "bundles_with_rows": _bundles(connection, set(found.leaves)),
            "bindings": sorted(bindings),
            "kept": KEPT if digests else [entry for entry in KEPT if "keyed digests" not in entry["what"]],
            "log_head_before": head_before,
        }
        connection.execute(
            "INSERT INTO ledger.receipts VALUES (?, ?, ?, NULL, NULL)",
            [receipt_id, now, rfc8785.dumps(core).decode()],
        )
        removed_from = {table for table, (_, mine) in found.counts.items() if mine} | ({DIGESTS} if digests else set())
        append_event(
            connection,
            "rider-erased",
            {"receipt": core},
            rows={"ledger.receipts": [receipt_id]},
            tables=removed_from & set(CHANGEABLE),
            key=store.key,
        )
        connection.execute("INSERT INTO ledger.pending VALUES (?, ?, ?)", [ERASURE, receipt_id, now])
        mark(connection, store.key, found.parts, now)
        rewrite.reached("deciding")
    rewrite.reached("decided")
    return receipt_id


def _delete(connection: duckdb.DuckDBPyConnection, found: Search) -> None:
    """Delete, and check in the same transaction that the riders' rows went and that no other row did or changed."""
    others = fingerprints(connection, {table.name: f"NOT ({table.about})" for table in found.tables})
    for table in found.tables:
        connection.execute(f"DELETE FROM {table.name} WHERE {table.about}")
    for name, left in fingerprints(connection, {table.name: "true" for table in found.tables}).items():
        if left != others[name]:
            raise StoreError(f"deleting from {name} would have changed other riders' rows; nothing was erased.")


def _suppress(connection: duckdb.DuckDBPyConnection, key: bytes, names: frozenset[str]) -> int:
    """Remember every name by its keyed digest, in an order that does not pair an ID with its token.

    The digest is of the folded name, so that another spelling of it stays out too.
    """
    known = {digest for (digest,) in rows(connection, f"SELECT digest FROM {DIGESTS}")}
    new = sorted({rider_digest(key, fold(name)) for name in names} - known)
    if new:
        connection.execute(f"INSERT INTO {DIGESTS} SELECT unnest(?::VARCHAR[])", [new])
    return len(new)


def _bundles(connection: duckdb.DuckDBPyConnection, subjects: set[str]) -> int:
    """Bundles with rows of the touched cohorts and fits (only those are logged): copies that no erasure reaches."""
    made = [event.content for event in read_log(connection) if event.kind == "bundle-made"]
    return sum(bool({content.get("cohort_hash"), content.get("fit_id")} & subjects) for content in made)


def _require_space(store: Store, part_bytes: int) -> None:
    """A rewrite that cannot be finished leaves a store that nobody can write to: look before deciding."""
    needed = int((store.paths.database.stat().st_size + part_bytes) * 1.1) + (16 << 20)
    if shutil.disk_usage(store.paths.directory).free < needed:
        raise StoreError(
            f"erasing writes the database and the riders' parts anew and needs {needed >> 20} MiB of free disk; "
            "nothing was erased: free some space and try again."
        )
