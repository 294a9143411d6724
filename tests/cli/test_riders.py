"""delete-rider, show-rider, reinstate and pseudonymise, through the console script's entry point."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.erasure import rewrite
from isuit.ingest import read_cohort

sys.path.insert(0, str(Path(__file__).parents[1] / "erasure"))
from cohort_stores import MARKED, add_cohort, cohort_table, contents, files_with, held, small_store

if TYPE_CHECKING:
    from conftest import Answer

SCHEMAS = Path(__file__).parents[2] / "schemas"
# Python's splitlines would break at the separators in the middle; control characters cannot be in an ID.
ODD = [
    *("r1", "r10", "R1", "o'brien", 'say "hi"', "100%", "a_c", "abc", "x'; DROP TABLE personal.outcomes; --"),
    *(
        "line\u2028break",
        "para\u2029graph",
        "\u200bzero",
        "日本の人",
        "🏄‍♀️",
        "ß",
        "\u05d0\u05d1",
        "-dash",
        "--json-ish",
    ),
    *("wind", "north", "10", "latent", "core", "1", "back\\slash", '{"a":1}', "isuit-c1", "a b", "ø" * 300),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return small_store(tmp_path / "isuit-store")


def valid(answer: Answer, schema: str) -> Any:
    assert answer.code == 0, answer.err
    jsonschema.validate(answer.json, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return answer.json


def snapshot(store: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(store)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }


def test_a_dry_run_says_the_same_and_changes_no_byte(isuit: Callable[..., Answer], store: Path) -> None:
    before = snapshot(store)
    plan = valid(isuit("delete-rider", MARKED, "--dry-run", "--json"), "erasure-plan")
    assert "personal.outcomes" in isuit("delete-rider", MARKED, "--dry-run").out
    shown = valid(isuit("show-rider", MARKED, "--json"), "show-rider")
    assert snapshot(store) == before
    assert shown["tables"] == plan["tables"]
    assert {table: len(held) for table, held in shown["rows"].items()} == {
        table: count["removed"] for table, count in plan["tables"].items()
    }
    receipt = valid(isuit("delete-rider", MARKED, "--json"), "erasure-receipt")
    assert receipt["tables"] == plan["tables"]
    assert receipt["tables"]["personal.outcomes"] == {"before": 1200, "after": 1144, "removed": 56}
    assert receipt["cohorts"] == plan["cohorts"]
    assert receipt["fits"] == plan["fits"]
    assert [len(part["leaves"]) for part in receipt["cohorts"] + receipt["fits"]] == [1, 1, 1, 1]


def test_deleting_twice_and_unknown_riders_change_nothing(isuit: Callable[..., Answer], store: Path) -> None:
    assert isuit("delete-rider", MARKED).code == 0
    before = snapshot(store)
    assert isuit("delete-rider", MARKED).code == 4
    assert isuit("delete-rider", "nobody").code == 4
    assert isuit("delete-rider", "nobody", "--dry-run").code == 4
    assert isuit("delete-rider", os.fsdecode(b"not-utf8-\xff")).code == 4
    several = isuit("delete-rider", "rider-00001", "nobody", "rider-00002")
    assert several.code == 4
    assert "number 2" in several.err
    assert "nobody" not in several.err
    assert isuit("show-rider", "nobody").code == 4
    assert "reinstate" in isuit("show-rider", MARKED).err
    assert isuit("delete-rider").code == 2
    assert isuit("delete-rider", "").code == 2
    assert snapshot(store) == before


def test_ids_of_any_kind(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    store = small_store(tmp_path / "isuit-store", extra=ODD)
    before = contents(store, without=["r1"])
    assert isuit("delete-rider", "r1").code == 0
    assert contents(store) == before
    rest = [rider for rider in ODD if rider != "r1"]
    listed = tmp_path / "ids.txt"
    listed.write_bytes("\r\n".join([*rest[:10], "", *rest[10:]]).encode() + b"\n")
    before = contents(store, without=rest)
    receipt = valid(isuit("delete-rider", "--from-file", listed, "--json"), "erasure-receipt")
    assert receipt["riders"] == len(rest)
    assert {same["place"] for same in receipt["same_names"]} >= {"atlas.sites.site", "ledger.fits.dimension"}
    assert contents(store) == before
    assert sum(held(store, rider) for rider in ODD) == 0
    assert isuit("verify").code == 0
    for rider in ("-dash", "--json-ish", "o'brien"):
        assert isuit("reinstate", rider).code == 0
        assert isuit("reinstate", rider).code == 4


def test_an_id_that_begins_with_a_dash_is_never_repeated(isuit: Callable[..., Answer], store: Path) -> None:
    for command in ("delete-rider", "show-rider", "reinstate"):
        answer = isuit(command, "-secret-id")
        assert answer.code == 4
        assert "secret" not in answer.out + answer.err


def test_the_id_is_said_nowhere(isuit: Callable[..., Answer], store: Path, tmp_path: Path) -> None:
    answers = [
        isuit("delete-rider", MARKED, "--dry-run"),
        isuit("delete-rider", MARKED, "--receipt", tmp_path / "receipt.json"),
        isuit("delete-rider", MARKED),
        isuit("reinstate", MARKED),
        isuit("reinstate", MARKED),
        isuit("verify", "--json"),
    ]
    assert [answer.code for answer in answers] == [0, 0, 4, 0, 4, 0]
    said = "".join(answer.out + answer.err for answer in answers) + (tmp_path / "receipt.json").read_text()
    assert MARKED not in said
    assert answers[1].out.strip().endswith("Erased 1 rider(s).")
    log = duckdb.connect(str(store / "store.duckdb"), read_only=True)
    assert MARKED not in str(log.execute("SELECT * FROM ledger.log").fetchall())
    log.close()
    assert files_with(tmp_path, MARKED.encode()) == []


def test_a_requesters_copy_is_bound_to_the_id(isuit: Callable[..., Answer], store: Path, tmp_path: Path) -> None:
    from isuit.erasure.receipt import binding

    path = tmp_path / "receipt.json"
    receipt = valid(isuit("delete-rider", MARKED, "rider-00004", "--receipt", path, "--json"), "erasure-receipt")
    copy = json.loads(path.read_text())
    jsonschema.validate(copy, json.loads((SCHEMAS / "erasure-receipt-copy.schema.json").read_text()))
    assert copy["receipt"] == receipt
    assert binding(copy["bindings"][0]["nonce"], MARKED) in receipt["bindings"]
    assert binding(copy["bindings"][1]["nonce"], "rider-00004") in receipt["bindings"]
    assert binding(copy["bindings"][1]["nonce"], "rider-00005") not in receipt["bindings"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert files_with(store, copy["bindings"][0]["nonce"].encode()) == []
    before = snapshot(store)
    assert isuit("delete-rider", "rider-00006", "--receipt", path).code == 2
    assert isuit("delete-rider", "rider-00006", "--receipt", tmp_path / "none" / "receipt.json").code == 2
    assert snapshot(store) == before


def test_a_reader_makes_it_wait(isuit: Callable[..., Answer], store: Path) -> None:
    before = contents(store)
    with (store / "LOCK").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert isuit("delete-rider", MARKED, "--wait", "0.2").code == 75
        assert isuit("delete-rider", MARKED, "--dry-run").code == 0
    assert contents(store) == before
    assert isuit("delete-rider", MARKED, "--wait", "0.2").code == 0


def on_a_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """Run a process with a terminal as standard input; its exit code and what it said."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(["isuit", *arguments], stdin=theirs, capture_output=True, text=True, check=False)
    os.close(ours)
    os.close(theirs)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.usefixtures("quick_isuit")
def test_a_terminal_is_asked(store: Path) -> None:
    code, said = on_a_terminal(b"n\n", "delete-rider", MARKED, "--store", str(store))
    assert code == 2
    assert "Nothing was erased" in said
    assert held(store, MARKED)
    assert MARKED not in said
    code, said = on_a_terminal(b"", "delete-rider", MARKED, "--yes", "--store", str(store))
    assert (code, held(store, MARKED)) == (0, 0)
    code, said = on_a_terminal(b"y\n", "delete-rider", "rider-00003", "--store", str(store))
    assert (code, held(store, "rider-00003")) == (0, 0)


class TestComingBack:
    """Whoever opted out stays out."""

    @pytest.fixture
    def cohort(self, tmp_path: Path) -> Path:
        riders = [f"{number * 7919:016x}-{number:04x}" for number in range(30)]
        path = tmp_path / "cohort.parquet"
        pq.write_table(cohort_table(5, 900, [*riders, MARKED]), path)
        return path

    def test_by_the_old_cohort(self, isuit: Callable[..., Answer], cohort: Path, tmp_path: Path) -> None:
        first = valid(isuit("fit", "--cohort", cohort, "--json"), "fit")
        assert isuit("delete-rider", MARKED).code == 0
        again = valid(isuit("fit", "--cohort", cohort, "--json"), "fit")
        theirs = again["suppressed_rows"]
        assert theirs == 29
        assert again["outcomes"] == 900 - theirs
        assert again["cohort_hash"] != first["cohort_hash"]
        assert any("isuit hash" in sentence for sentence in again["notes"])
        table = pq.read_table(cohort)
        kept = table.filter(pa.compute.not_equal(table.column("rider"), MARKED))
        with read_cohort(kept) as rest:
            assert again["cohort_hash"] == rest.cohort_hash
        store = tmp_path / "isuit-store"
        assert held(store, MARKED) == 0
        assert isuit("verify").code == 0
        assert isuit("reinstate", MARKED).code == 0
        back = valid(isuit("fit", "--cohort", cohort, "--gate", "strict", "--json"), "fit")
        assert (back["suppressed_rows"], back["cohort_hash"]) == (0, first["cohort_hash"])

    def test_not_suppressed_on_request(self, isuit: Callable[..., Answer], store: Path) -> None:
        receipt = valid(isuit("delete-rider", MARKED, "--no-suppress", "--json"), "erasure-receipt")
        assert receipt["suppressed"] == 0
        assert not any("digest" in kept["what"] for kept in receipt["kept"])
        assert isuit("reinstate", MARKED).code == 4
        assert isuit("verify").code == 0

    @pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
    def test_by_the_raw_file(self, isuit: Callable[..., Answer], cohort: Path, tmp_path: Path, ending: str) -> None:
        out, again = tmp_path / f"out.{ending}", tmp_path / f"again.{ending}"
        first = valid(isuit("pseudonymise", cohort, "--out", out, "--json"), "pseudonymise")
        assert (first["riders"], first["new_tokens"], first["outcomes"]) == (31, 31, 900)
        assert MARKED.encode() not in out.read_bytes()
        same = valid(isuit("pseudonymise", cohort, "--out", again, "--json"), "pseudonymise")
        assert (same["new_tokens"], same["cohort_hash"]) == (0, first["cohort_hash"])
        with read_cohort(out) as written:
            assert written.cohort_hash == first["cohort_hash"]
        twice = valid(isuit("pseudonymise", out, "--out", again, "--json"), "pseudonymise")
        assert (twice["new_tokens"], twice["cohort_hash"]) == (0, first["cohort_hash"])

        fit = valid(isuit("fit", "--cohort", out, "--json"), "fit")
        assert not any("guessable" in sentence for sentence in fit["notes"])
        shown = valid(isuit("show-rider", MARKED, "--json"), "show-rider")
        [entry] = shown["rows"]["personal.pseudonyms"]
        token = entry["token"]
        assert len(token) == 32
        assert len(shown["rows"]["personal.outcomes"]) == 29
        assert {row["rider"] for row in shown["rows"]["personal.outcomes"]} == {token}
        assert valid(isuit("show-rider", token, "--json"), "show-rider") == shown

        receipt = valid(isuit("delete-rider", MARKED, "--json"), "erasure-receipt")
        assert (receipt["riders"], receipt["suppressed"]) == (1, 2)
        assert receipt["tables"]["personal.pseudonyms"]["removed"] == 1
        assert isuit("show-rider", token).code == 4
        assert isuit("verify").code == 0
        back = valid(isuit("pseudonymise", cohort, "--out", again, "--json"), "pseudonymise")
        assert (back["suppressed_rows"], back["riders"], back["new_tokens"]) == (29, 30, 0)
        refit = valid(isuit("fit", "--cohort", out, "--json"), "fit")
        assert refit["suppressed_rows"] == 29
        assert (refit["cohort_hash"], held(tmp_path / "isuit-store", token)) == (back["cohort_hash"], 0)
        assert isuit("verify").code == 0

    def test_pseudonymising_refuses_an_unknown_ending(
        self, isuit: Callable[..., Answer], cohort: Path, tmp_path: Path
    ) -> None:
        assert isuit("pseudonymise", cohort, "--out", tmp_path / "out.xlsx").code == 2
        assert isuit("pseudonymise", cohort, "--out", cohort).code == 2
        assert isuit("pseudonymise", cohort, "--out", tmp_path / "none" / "out.csv").code == 2
        assert not list(tmp_path.glob(".isuit-*"))


@pytest.fixture
def opened(store: Path) -> Callable[[str], None]:
    def run(statement: str) -> None:
        connection = duckdb.connect(str(store / "store.duckdb"))
        connection.execute(statement)
        connection.close()

    return run


class TestOtherPlaces:
    """Tables that a later version might add, and IDs where no ID belongs."""

    def test_a_new_personal_table_is_covered(
        self, isuit: Callable[..., Answer], store: Path, opened: Callable[[str], None]
    ) -> None:
        opened(
            f"CREATE TABLE personal.devices AS SELECT '{MARKED}' AS rider, 'board' AS device UNION ALL SELECT 'x', 'y'"
        )
        receipt = valid(isuit("delete-rider", MARKED, "--json"), "erasure-receipt")
        assert receipt["tables"]["personal.devices"] == {"before": 2, "after": 1, "removed": 1}

    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("CREATE TABLE personal.friends AS SELECT 'a' AS one, 'b' AS other", 2),
            ("CREATE TABLE ledger.visits AS SELECT 'a' AS rider", 2),
            (f"CREATE TABLE personal.friends AS SELECT 'a' AS rider, '{MARKED}' AS friend", 3),
            (f"CREATE TABLE ledger.notes AS SELECT '{MARKED}' AS text", 3),
            (f"CREATE TABLE ledger.notes AS SELECT ['{MARKED}'] AS texts", 3),
            (f"CREATE TABLE ledger.notes AS SELECT encode('{MARKED}') AS bytes", 3),
            (f'UPDATE ledger.fits SET diagnostics = \'{{"worst":["{MARKED}"]}}\'', 3),
        ],
    )
    def test_what_cannot_be_erased_wholly_is_not_erased(
        self, isuit: Callable[..., Answer], store: Path, opened: Callable[[str], None], statement: str, code: int
    ) -> None:
        opened(statement)
        before = contents(store)
        answer = isuit("delete-rider", MARKED)
        assert answer.code == code
        assert MARKED not in answer.err
        assert contents(store) == before


def test_bundles_with_rows_are_counted(isuit: Callable[..., Answer], store: Path, tmp_path: Path) -> None:
    fit = isuit("fits", "--json").json["fits"][0]["fit_id"]
    assert isuit("bundle", fit, "--out", tmp_path / "with", "--with-cohort").code == 0
    assert isuit("bundle", fit, "--out", tmp_path / "without").code == 0
    assert valid(isuit("delete-rider", MARKED, "--json"), "erasure-receipt")["bundles_with_rows"] == 1


def test_show_rider_writes_a_private_file(isuit: Callable[..., Answer], store: Path, tmp_path: Path) -> None:
    out = tmp_path / "held.json"
    answer = isuit("show-rider", MARKED, "--out", out)
    assert answer.out.splitlines()[0].split() == ["table", "held"]
    assert answer.code == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert len(json.loads(out.read_text())["rows"]["personal.outcomes"]) == 56
    assert "personal.outcomes" in isuit("show-rider", MARKED).out


def test_a_full_disk_is_noticed_before_anything_is_erased(
    isuit: Callable[..., Answer], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    before = contents(store)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    answer = isuit("delete-rider", MARKED)
    assert answer.code == 2
    assert "MiB" in answer.err
    assert contents(store) == before


def test_many_riders_are_one_receipt(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    riders = [f"person-{number}" for number in range(130)]
    store = tmp_path / "isuit-store"
    add_cohort(store, cohort_table(3, 1300, riders))
    before = contents(store, without=riders[:100])
    receipt = valid(isuit("delete-rider", *riders[:100], "--json"), "erasure-receipt")
    assert receipt["riders"] == 100
    assert receipt["tables"]["personal.outcomes"]["removed"] == 1000
    assert contents(store) == before
    assert valid(isuit("verify", "--json"), "verify")["erased_leaves"] == 200


def test_an_erasure_that_cannot_be_finished_is_said_and_locks_nobody_out(
    isuit: Callable[..., Answer], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("always")
        patch.setattr(rewrite, "_swap", full)
        assert isuit("delete-rider", MARKED, "--store", store).code == 2
        shown = isuit("fits", "--json", "--store", store)
        assert shown.code == 0
        assert len(shown.json["fits"]) == 2
        [sentence] = shown.err.splitlines()
        assert sentence.startswith("note: the riders' rows are deleted, but the file could not be rewritten")
    assert isuit("fits", "--json", "--store", store).err == ""
    assert isuit("verify", "--store", store).code == 0
