"""What an auditor runs, and its exit codes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.published import VerifyReport
from isuit.service import checks

if TYPE_CHECKING:
    from conftest import Answer


def edited(store: Path, statement: str) -> None:
    """By plain DuckDB, as anyone could."""
    connection = duckdb.connect(str(store / "store.duckdb"))
    connection.execute(statement)
    connection.close()


def test_an_untouched_store(isuit: Callable[..., Answer], full_store: Path) -> None:
    answer = isuit("verify", "--store", full_store)
    assert answer.code == 0
    assert "everything agrees" in answer.out
    report = isuit("verify", "--store", full_store, "--json").json
    assert report["ok"]
    head = isuit("status", "--store", full_store, "--json").json["log_head"]
    assert report["log_head"] == head
    assert head in answer.out
    assert isuit("verify", "--store", full_store, "--known-head", head).code == 0
    unknown = isuit("verify", "--store", full_store, "--known-head", "0" * 63 + "1")
    assert unknown.code == 1
    assert "known head" in unknown.out


def verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first `isuit verify` finds is what the next one prints too, in its own way."""
    found, verify = list[VerifyReport](), checks.verify

    def once(*given: Any, **named: Any) -> VerifyReport:
        if not found:
            found.append(verify(*given, **named))
        return found[0]

    monkeypatch.setattr(checks, "verify", once)


# Also what would keep other commands from opening the store at all.
EDITS = [
    ("ledger.migrations", "UPDATE ledger.migrations SET name = '0000-other'"),
    ("ledger.migrations", "DELETE FROM ledger.migrations"),
    ("ledger.store", "UPDATE ledger.store SET policy = '{\"k\":1}'"),
    ("ledger.store", "UPDATE ledger.store SET key_digest = 'x'"),
    ("ledger.log", "UPDATE ledger.log SET payload = 'not JSON' WHERE sequence = 2"),
    ("ledger.log", "UPDATE ledger.log SET logged_at = logged_at + INTERVAL 1 SECOND WHERE sequence = 1"),
    *(
        ("ledger.log", f"UPDATE ledger.log SET {column} = {value} WHERE sequence = {event}")
        for column in ("head", "previous", "payload", "kind")
        for value in ("'text'", "''", "chr(0)", "repeat('x', 100000)")
        for event in ("1", "(SELECT max(sequence) FROM ledger.log)")
    ),
    *(
        ("ledger.log", f"ALTER TABLE ledger.log ALTER {column} DROP NOT NULL; UPDATE ledger.log SET {column} = NULL")
        for column in ("sequence", "logged_at", "kind", "payload", "previous", "head")
    ),
    ("ledger.log", "UPDATE ledger.log SET payload = repeat('[', 100000) WHERE sequence = 3"),
    ("ledger.log", "UPDATE ledger.log SET payload = repeat('9', 5000) WHERE sequence = 3"),
    ("ledger.log", "UPDATE ledger.log SET payload = '[]' WHERE sequence = 3"),
    ("ledger.log", "UPDATE ledger.log SET payload = '{\"rows_digest\":7}' WHERE sequence = 3"),
    ("ledger.log", "UPDATE ledger.log SET logged_at = 'infinity' WHERE sequence = 1"),
    ("ledger.receipts", "UPDATE ledger.receipts SET receipt = '[1]'"),
    ("ledger.receipts", "UPDATE ledger.receipts SET receipt = repeat('[', 100000)"),
    ("ledger.fits", "UPDATE ledger.fits SET log_likelihood = 'nan'"),
    ("atlas.difficulty", "UPDATE atlas.difficulty SET difficulty = 'inf'"),
    ("atlas.difficulty", "UPDATE atlas.difficulty SET difficulty = difficulty + 1e-9 WHERE rowid = 5"),
    ("atlas.sites", "UPDATE atlas.sites SET latitude = 0 WHERE site = 'north'"),
    ("personal.outcomes", "UPDATE personal.outcomes SET outcome = 1 - outcome WHERE rowid = 7"),
    ("personal.suppressed", "DELETE FROM personal.suppressed"),
    ("ledger.pending", "INSERT INTO ledger.pending VALUES ('erasure', 'x', TIMESTAMP '2026-01-01')"),
    ("ledger.receipts", "DROP TABLE ledger.receipts"),
    ("ledger.receipts", "UPDATE ledger.receipts SET receipt = 'not JSON'"),
]


@pytest.mark.parametrize(("table", "statement"), EDITS)
def test_an_edited_store_is_exit_1_and_names_the_table(
    isuit: Callable[..., Answer], store_copy: Path, table: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(store_copy, statement)
    verified_once(monkeypatch)
    answer = isuit("verify", "--store", store_copy, "--json")
    assert answer.code == 1, answer.err
    assert not answer.json["ok"]
    assert table in {found["table"] for found in answer.json["disagreements"]}
    assert "rider-" not in answer.out + answer.err
    read = isuit("verify", "--store", store_copy)
    assert (read.code, read.err) == (1, "")


def test_other_commands_refuse_a_log_without_a_head(isuit: Callable[..., Answer], store_copy: Path) -> None:
    edited(store_copy, "UPDATE ledger.log SET head = 'secret'")
    answer = isuit("status", "--store", store_copy)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "isuit verify" in answer.err
    assert "secret" not in answer.err


@pytest.mark.parametrize("column", ["configuration", "identification", "held_out", "parameters", "diagnostics"])
def test_a_record_that_is_no_json_is_one_sentence(isuit: Callable[..., Answer], store_copy: Path, column: str) -> None:
    edited(store_copy, f"UPDATE ledger.fits SET {column} = 'secret'")
    with duckdb.connect(str(store_copy / "store.duckdb"), read_only=True) as connection:
        fit_id = connection.execute("SELECT fit_id FROM ledger.fits ORDER BY recorded_at").fetchall()[1][0]
    for command in ("rederive", "show"):
        answer = isuit(command, fit_id, "--store", store_copy)
        if command == "rederive" or column not in ("parameters", "held_out"):
            assert (answer.code, answer.err.count("\n")) == (2, 1), answer.err
            assert "isuit verify" in answer.err
        assert "secret" not in answer.err


def test_flipped_bytes_are_noticed(isuit: Callable[..., Answer], full_store: Path, tmp_path: Path) -> None:
    """A hex editor: DuckDB's checksums or ours object, and never with a traceback."""
    chance = random.Random(8)
    content = (full_store / "store.duckdb").read_bytes()
    noticed = 0
    for trial in range(6):
        copy = Path(shutil.copytree(full_store, tmp_path / f"copy-{trial}"))
        place = chance.randrange(3 * 4096, len(content))
        (copy / "store.duckdb").write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        answer = isuit("verify", "--store", copy)
        assert answer.code in (0, 1, 2)  # 0 where the byte is in unused space
        noticed += answer.code != 0
    assert noticed


def test_rederive_and_bundle(
    isuit: Callable[..., Answer], cohort_table: Callable[..., pa.Table], tmp_path: Path
) -> None:
    table = cohort_table(61, riders=30, outcomes=20)
    pq.write_table(table, tmp_path / "cohort.parquet")
    pq.write_table(table.slice(3), tmp_path / "other.parquet")
    fit_id = isuit("fit", "--cohort", "cohort.parquet", "--json").json["fit_id"]
    report = isuit("rederive", fit_id, "--json")
    assert report.code == 0
    assert report.json["verdict"] == "identical"
    assert report.json["largest_difference"] == 0
    assert isuit("rederive", fit_id, "--cohort", "cohort.parquet").out.startswith("identical")
    other = isuit("rederive", fit_id, "--cohort", "other.parquet")
    assert (other.code, "another cohort" in other.err) == (2, True)
    assert isuit("rederive").code == 2
    assert isuit("rederive", "0" * 16).code == 4

    assert isuit("bundle", fit_id, "--out", "bundle", "--with-cohort").code == 0
    shutil.rmtree(tmp_path / "isuit-store")  # another machine
    assert isuit("rederive", "--bundle", "bundle").out.startswith("identical")
    assert isuit("rederive", "--bundle", "nowhere").code == 2

    # A file that a bundle may have, and that this one's manifest does not name.
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    del manifest["files"]["README.md"]
    (tmp_path / "bundle" / "manifest.json").write_text(json.dumps(manifest))
    unnamed = isuit("rederive", "--bundle", "bundle")
    assert (unnamed.code, "does not name" in unnamed.err) == (2, True)


def test_a_diverged_fit_is_exit_1(isuit: Callable[..., Answer], store_copy: Path) -> None:
    fit_id = isuit("fits", "--store", store_copy, "--json").json["fits"][1]["fit_id"]
    edited(store_copy, "UPDATE personal.outcomes SET outcome = 1")
    answer = isuit("rederive", fit_id, "--store", store_copy)
    assert answer.code == 1
    assert answer.out.startswith("diverged")


def test_an_edited_atlas_is_named(isuit: Callable[..., Answer], store_copy: Path) -> None:
    fit_id = isuit("fits", "--store", store_copy, "--json").json["fits"][1]["fit_id"]
    edited(store_copy, f"UPDATE atlas.difficulty SET difficulty = difficulty + 0.2 WHERE fit_id = '{fit_id}'")
    answer = isuit("rederive", fit_id, "--store", store_copy)
    assert answer.code == 1
    assert "the stored curves differ from those fitted again by 0.2" in answer.out
