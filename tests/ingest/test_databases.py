"""A cohort from a real PostgreSQL server, from names of directories, and what is said where neither is possible."""

from __future__ import annotations

import builtins
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import isuit

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
INITDB = Path(str(BINARIES[-1] if BINARIES else shutil.which("initdb") or "none"))


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[str, Callable[[str], str]]]:
    """The address of a server that listens on a socket in a directory of its own, and `psql` on it."""
    if not INITDB.exists():
        pytest.skip("no PostgreSQL server is installed")
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    # The server refuses to be run by root.
    as_user = ["runuser", "-u", user, "--"] if os.getuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short: a socket's path has at most 107 bytes
    folder.chmod(0o777)

    def run(*command: str | Path, **more: Any) -> str:
        done = subprocess.run([*as_user, *command], check=False, capture_output=True, text=True, cwd=folder, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    bin_ = INITDB.parent
    run(bin_ / "initdb", "--pgdata", folder / "data", "--auth", "trust", "--username", "surfer", "--no-sync")
    options = f"-c listen_addresses='' -k {folder} -F"
    # Its own output must not keep the pipe open that `run` reads.
    run(bin_ / "pg_ctl", "--pgdata", folder / "data", "--log", folder / "log", "-o", options, "--wait", "start")
    try:
        yield (
            f"postgresql://surfer@/postgres?host={folder}",
            lambda sql: run(bin_ / "psql", "-h", folder, "-U", "surfer", "-d", "postgres", "-qAtc", sql),
        )
    finally:
        run(bin_ / "pg_ctl", "--pgdata", folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_a_database_gives_the_cohort_of_the_file(
    postgres: tuple[str, Callable[[str], str]], cohort_table: Callable[..., pa.Table]
) -> None:
    url, psql = postgres
    table = cohort_table(1, riders=12, outcomes=8, sites=("north", "south"))
    columns = "rider text, metric double precision, outcome smallint, site text, observed_at timestamptz"
    psql(f"CREATE TABLE outings ({columns})")
    rows = ",".join(
        f"('{row['rider']}',{row['metric']!r},{row['outcome']},'{row['site']}','{row['observed_at'].isoformat()}')"
        for row in table.to_pylist()
    )
    psql(f"INSERT INTO outings VALUES {rows}")
    found = isuit.hash(isuit.query(url, "SELECT * FROM outings"))
    assert found.cohort_hash == isuit.hash(table).cohort_hash
    assert found.outcomes == 96
    some = isuit.query(url, "SELECT rider AS who, metric, outcome FROM outings WHERE site = 'north'")
    assert isuit.hash(some, columns={"rider": "who"}).sites == 0


def test_every_command_that_reads_a_cohort_takes_a_query(
    postgres: tuple[str, Callable[[str], str]], cohort_table: Callable[..., pa.Table], tmp_path: Path, quick_isuit: None
) -> None:
    url, psql = postgres
    table = cohort_table(4, riders=30, outcomes=10).select(["rider", "metric", "outcome"])
    rows = ",".join(f"('{row['rider']}',{row['metric']!r},{row['outcome']})" for row in table.to_pylist())
    psql(f"CREATE TABLE all_outings (rider text, metric float8, outcome int); INSERT INTO all_outings VALUES {rows}")
    asked, store = (url, "--query", "SELECT * FROM all_outings"), ("--store", str(tmp_path / "store"))

    def isuit_(*words: str) -> str:
        done = subprocess.run(["isuit", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    out = tmp_path / "cohort.tsv"
    for _ in range(2):  # the second time the target is there, and no file of the cohort
        isuit_("canonicalise", *asked, "--out", str(out))
    name = isuit.hash(table).cohort_hash
    assert name.endswith(hashlib.sha256(out.read_bytes()).hexdigest())
    isuit.open(tmp_path / "store").fit(table)
    assert isuit_("rederive", name, "--cohort", *asked, *store).startswith("identical")
    isuit_("pseudonymise", *asked, "--out", str(tmp_path / "tokens.parquet"), *store)
    assert pq.read_table(tmp_path / "tokens.parquet").num_rows == table.num_rows


def test_an_error_of_a_database_repeats_nothing(postgres: tuple[str, Callable[[str], str]]) -> None:
    url, psql = postgres
    psql("CREATE TABLE riders (id text); INSERT INTO riders VALUES ('rider-0007')")
    for sql in ("SELECT rider FROM nowhere", "SELECT id::int FROM riders", "INSERT INTO riders VALUES ('x')"):
        with pytest.raises(isuit.IsuitError) as refused:
            isuit.hash(isuit.query(url, sql))
        assert "rider-0007" not in str(refused.value)
        assert "\n" not in str(refused.value)
    assert psql("SELECT count(*) FROM riders").strip() == "1", "whoever fits only reads"
    with pytest.raises(isuit.IsuitError, match="has no such column"):
        isuit.hash(isuit.query(url, "SELECT id AS rider FROM riders"))


def test_a_database_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(isuit.IsuitError, match="cannot be reached") as refused:
        isuit.hash(isuit.query(f"postgresql://me:secret@127.0.0.1:{port}/surf", "SELECT 1"))
    assert "secret" not in str(refused.value)


def test_what_a_query_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(isuit.IsuitError, match="needs a query"):
        isuit.hash("postgresql://localhost/surf")
    with pytest.raises(isuit.IsuitError, match="address as postgresql://"):
        isuit.query("cohort.csv", "SELECT 1")
    with pytest.raises(isuit.IsuitError, match="query is empty"):
        isuit.query("postgresql://localhost/surf", " ")
    assert "localhost" not in repr(isuit.query("postgresql://localhost/surf", "SELECT 1"))
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("adbc"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(isuit.IsuitError, match=r"isuit\[postgres\]"):
        isuit.hash(isuit.query("postgresql://localhost/surf", "SELECT 1"))


@pytest.mark.parametrize("address", ["https://127.0.0.1:1/cohort.parquet", "s3://bucket/cohort.csv"])
def test_a_file_elsewhere_needs_the_extension(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where DuckDB keeps its extensions
    with pytest.raises(isuit.IsuitError) as refused:
        isuit.hash(address)
    assert "httpfs, which is not installed" in str(refused.value) or "cannot be fetched" in str(refused.value)
    with pytest.raises(isuit.IsuitError, match="ftp:// is not read"):
        isuit.hash("ftp://127.0.0.1/cohort.csv")


class TestNamesOfDirectories:
    @pytest.fixture
    def table(self, cohort_table: Callable[..., pa.Table]) -> pa.Table:
        return cohort_table(2, riders=6, outcomes=8, sites=("Los Lances", "north/west"))

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_their_values_are_columns(self, table: pa.Table, kind: str, tmp_path: Path) -> None:
        from urllib.parse import quote

        for site in set(table.column("site").to_pylist()):
            folder = tmp_path / "data" / f"site={quote(site, safe='')}"
            folder.mkdir(parents=True)
            rows = table.filter(pa.compute.equal(table.column("site"), site)).drop_columns(["site"])
            write = pq.write_table if kind == "parquet" else pcsv.write_csv
            write(rows, folder / f"part-0.{kind}")
        whole = isuit.hash(table).cohort_hash
        assert isuit.hash(tmp_path / "data").cohort_hash == whole
        assert isuit.hash(str(tmp_path / "data" / "site=*" / f"*.{kind}")).cohort_hash == whole
        # A file that is named itself is its content, wherever it lies.
        assert isuit.hash(str(folder / f"part-0.{kind}")).sites == 0

    def test_numbers_and_missing_values(self, table: pa.Table, tmp_path: Path) -> None:
        rows = table.drop_columns(["site", "outcome"]).slice(0, 4)
        for outcome in (0, 1):
            folder = tmp_path / "data" / f"outcome={outcome}" / "site=__HIVE_DEFAULT_PARTITION__"
            folder.mkdir(parents=True)
            pq.write_table(rows, folder / "part.parquet")
        found = isuit.hash(tmp_path / "data")
        both = pa.concat_tables([rows.append_column("outcome", pa.array([outcome] * 4)) for outcome in (0, 1)])
        assert found.cohort_hash == isuit.hash(both).cohort_hash
        assert found.sites == 0
