"""`isuit fit` and the commands that read what it recorded, through the console script's entry point."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isuit as package
from isuit.service import fitting
from isuit.service.stores import open_store
from isuit.store.opening import Store
from isuit.store.query import rows

if TYPE_CHECKING:
    from conftest import Answer

SCHEMAS = Path(__file__).parents[2] / "schemas"


@pytest.fixture
def cohort_file(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> Path:
    path = tmp_path / "cohort.parquet"
    pq.write_table(cohort_table(7, riders=40, outcomes=25, sites=("north", "south")), path)
    return path


def valid(answer: Answer, schema: str) -> Any:
    assert answer.code == 0, answer.err
    jsonschema.validate(answer.json, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return answer.json


def test_a_fit_is_recorded_and_then_confirmed(isuit: Callable[..., Answer], cohort_file: Path) -> None:
    first = valid(isuit("fit", "--cohort", cohort_file, "--json"), "fit")
    assert first["recorded"]
    assert first["outcomes"] == 1000
    assert first["suppressed_rows"] == 0
    assert first["releasable"] == {"ok": False, "missing": ["--sites: 2 of 2 sites have no coordinates"]}
    again = valid(isuit("fit", "--cohort", cohort_file, "--json"), "fit")
    assert not again["recorded"]
    assert {**again, "recorded": True} == first  # the same log head: nothing was written
    other = valid(isuit("fit", "--cohort", cohort_file, "--gate", "strict", "--json"), "fit")
    assert other["recorded"]
    assert other["cohort_hash"] == first["cohort_hash"]
    assert other["fit_id"] != first["fit_id"]
    assert valid(isuit("status", "--json"), "status")["cohorts"] == 1
    listed = valid(isuit("fits", "--json"), "fits")["fits"]
    assert [fit["fit_id"] for fit in listed] == [first["fit_id"], other["fit_id"]]
    assert valid(isuit("verify", "--json"), "verify")["ok"]


def test_a_person_gets_a_summary_and_a_picture(isuit: Callable[..., Answer], cohort_file: Path) -> None:
    answer = isuit("fit", "--cohort", cohort_file)
    assert answer.code == 0
    for expected in ("isuit-c1:", "isuit-f1:", "gate", "held out", "log head", "█", "cannot enter a public release"):
        assert expected in answer.out


def test_five_outcomes_draw_no_curve(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "five.csv"
    path.write_text("rider,metric,outcome\n" + "".join(f"r{n},{10 + n},{n % 2}\n" for n in range(5)))
    fitted = isuit("fit", "--cohort", str(path))
    for answer in (fitted, isuit("show", fitted.out.partition("isuit-f1:")[2][:64])):
        assert answer.code == 0
        assert "5 outcomes are too few to draw a curve from" in answer.out
        assert "█" not in answer.out


def test_sites_are_stored_also_when_the_fit_is_confirmed(
    isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path
) -> None:
    first = isuit("fit", "--cohort", cohort_file, "--json").json
    (tmp_path / "sites.csv").write_text("site,latitude,longitude\nnorth,60,10\nsouth,45.5,-3.25\n")
    again = isuit("fit", "--cohort", cohort_file, "--sites", "sites.csv", "--json").json
    assert not again["recorded"]
    assert again["releasable"] == {"ok": True, "missing": []}
    assert again["log_head"] != first["log_head"]
    same = isuit("fit", "--cohort", cohort_file, "--sites", "sites.csv", "--json").json
    assert same["log_head"] == again["log_head"]
    assert isuit("verify").code == 0
    (tmp_path / "sites.csv").write_text("site,latitude,longitude\nnorth,61,10\n")
    moved = isuit("fit", "--cohort", cohort_file, "--sites", "sites.csv")
    assert moved.code == 2
    assert "cannot move" in moved.err
    assert isuit("status", "--json").json["log_head"] == same["log_head"]


def test_a_cohort_without_times_declares_until_when(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    pq.write_table(cohort_table(8, riders=40, outcomes=25, timed=False), tmp_path / "c.parquet")
    plain = isuit("fit", "--cohort", "c.parquet", "--json").json
    assert plain["releasable"]["missing"] == ["--observed-until: 1000 outcomes have no observed_at"]
    declared = isuit("fit", "--cohort", "c.parquet", "--observed-until", "2025-06-30", "--json").json
    assert declared["releasable"]["ok"]
    assert declared["fit_id"] != plain["fit_id"]


def test_a_fit_has_many_names(isuit: Callable[..., Answer], cohort_file: Path) -> None:
    first = isuit("fit", "--cohort", cohort_file, "--json").json
    for name in (first["fit_id"], first["fit_id"][9:17], first["cohort_hash"], first["cohort_hash"][9:20]):
        shown = valid(isuit("show", name, "--json"), "show")
        assert shown["fit"]["fit_id"] == first["fit_id"]
    second = isuit("fit", "--cohort", cohort_file, "--dimension", "wind", "--json").json
    several = isuit("show", first["cohort_hash"])
    assert several.code == 2
    assert first["fit_id"] in several.err
    assert second["fit_id"] in several.err
    assert isuit("show", "0" * 8).code == 4
    assert isuit("show", "nothing-like-it").code == 4
    assert isuit("show", first["fit_id"][9:14]).code == 2


def test_show_draws(isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path) -> None:
    fit_id = isuit("fit", "--cohort", cohort_file, "--json").json["fit_id"]
    assert isuit("show", fit_id, "--plot", "curve.png").code == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    for name in ("a.svg", "b.svg"):
        assert isuit("show", fit_id, "--plot", name).code == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    wrong = isuit("show", fit_id, "--plot", "curve.bmp")
    assert (wrong.code, "use .png or .svg" in wrong.err) == (2, True)


def test_the_atlas_holds_the_newest_fit_of_each(
    isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    isuit("fit", "--cohort", cohort_file, "--activity", "kite", "--json")
    pq.write_table(cohort_table(9, riders=40, outcomes=25, sites=("north", "east")), tmp_path / "next.parquet")
    newer = isuit("fit", "--cohort", "next.parquet", "--activity", "kite", "--json").json
    points = valid(isuit("atlas", "--out", "atlas.parquet", "--json"), "atlas")["points"]
    by_site = {point["site"]: point["fit_id"] for point in points}
    assert by_site.keys() == {None, "north", "south", "east"}
    assert [by_site[site] == newer["fit_id"] for site in (None, "north", "east", "south")] == [True, True, True, False]
    assert pq.read_table(tmp_path / "atlas.parquet").num_rows == len(points)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "x,suitability\n1,0.2\n1,0.4\n5,0.5\n", "not a function"),
        ("a.csv", "x,suitability\n1,0.2\n", "at least two points"),
        ("a.csv", "x,suitability\n1,0.2\n2,1.5\n", "outside 0 to 1"),
        ("a.csv", "x,suitability\n1,0.2\n2,nan\n", "not finite"),
        ("a.csv", "x,suitability\n1,0.2\ntwo,0.4\n", "no pair of numbers"),
        ("a.csv", "", "is empty"),
        ("a.json", "{", "well-formed"),
        ("a.json", '{"dimensions": {"wave": [[1, 0.2], [2, 0.3]]}}', "no curve for the dimension"),
        ("a.yaml", "activities: {ski: {wind: [[1, 0.2], [2, 0.3]]}}", "no such activity"),
        ("a.json", "[[1, 0.2, 3], [2, 0.3, 4]]", "must be a pair"),
    ],
)
def test_an_anchor_that_is_none(
    isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path, name: str, content: str, sentence: str
) -> None:
    (tmp_path / name).write_text(content)
    answer = isuit("fit", "--cohort", cohort_file, "--anchor", name, "--dimension", "wind")
    assert answer.code == 2
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "isuit-store").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("site,latitude,longitude\nnorth,91,10\n", "out of range"),
        ("site,latitude,longitude\nnorth,60,181\n", "out of range"),
        ("site,latitude,longitude\nnorth,inf,10\n", "out of range"),
        ("site,latitude,longitude\nnorth,,10\n", "lacks"),
        ("site,latitude,longitude\nnorth,60,10\nnorth,60,11\n", "second place"),
        ("site,lat,lon\nnorth,60,10\n", "needs the columns"),
        ("site,latitude,longitude\nnorth,sixty,10\n", "cannot be read"),
    ],
)
def test_sites_that_are_refused(
    isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    (tmp_path / "sites.csv").write_text(content)
    answer = isuit("fit", "--cohort", cohort_file, "--sites", "sites.csv")
    assert answer.code == 2
    assert sentence in answer.err
    assert not (tmp_path / "isuit-store").exists()


def test_a_file_of_all_spots_may_hold_others(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    """A note, and those that are spelled almost alike by name; a site that no cohort has is not recorded."""
    pq.write_table(cohort_table(61, sites=("north", "San Juan")), tmp_path / "two.parquet")
    rows = "north,60,10\nsan_juan,1,1\n" + "".join(f"spot {number},2,2\n" for number in range(3))
    (tmp_path / "sites.csv").write_text(f"site,latitude,longitude\n{rows}")
    answer = isuit("fit", "--cohort", "two.parquet", "--sites", "sites.csv")
    assert answer.code == 0, answer.err
    assert "note: --sites has 4 sites that the cohort does not have; they are left out" in answer.err
    assert (
        "note: the cohort's site 'San Juan' has no coordinates; --sites has 'san_juan', spelled otherwise" in answer.err
    )
    assert isuit("status", "--json").json["sites"] == 1


def test_a_refused_cohort_makes_no_store(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("rider,metric,outcome\nr1,nan,1\n")
    assert isuit("fit", "--cohort", "bad.csv").code == 2
    assert not (tmp_path / "isuit-store").exists()


def test_init_takes_a_policy_once(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("k: 20\n")
    created = valid(isuit("init", "--policy", "policy.yaml", "--json"), "init")
    assert created["policy"]["k"] == 20
    assert created["policy"]["lag_days"] == 90
    assert isuit("status", "--json").json["policy"]["k"] == 20
    again = isuit("init")
    assert (again.code, "already" in again.err) == (2, True)
    (tmp_path / "policy.yaml").write_text("kay: 20\n")
    assert isuit("init", "--store", "other", "--policy", "policy.yaml").code == 2


def test_no_column_outside_personal_holds_a_rider(
    isuit: Callable[..., Answer], cohort_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "sites.csv").write_text("site,latitude,longitude\nnorth,60,10\nsouth,45.5,-3.25\n")
    isuit("fit", "--cohort", cohort_file, "--sites", "sites.csv")
    isuit("fit", "--cohort", cohort_file, "--gate", "strict")
    riders = sorted(set(pq.read_table(cohort_file).column("rider").to_pylist()))
    with open_store(tmp_path / "isuit-store") as store:
        assert columns_with(store.connection, riders) == []
        held = rows(store.connection, "SELECT count(DISTINCT rider) FROM personal.outcomes")
        assert held == [(len(riders),)]
    with open_store(tmp_path / "isuit-store", write=True) as store:  # the scan finds what it looks for
        store.connection.execute("CREATE TABLE atlas.later AS SELECT 'by ' || rider AS who FROM personal.skills")
        assert columns_with(store.connection, riders) == ["atlas.later.who"]


def columns_with(connection: Any, riders: list[str]) -> list[str]:
    """Every column of every table outside `personal` whose text holds a rider's ID, also as a part."""
    found = []
    columns = rows(
        connection,
        # Temporary views of `personal` and parts together are made by whoever opens the store, and hold nothing.
        "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() "
        "WHERE NOT internal AND schema_name <> 'personal' AND NOT starts_with(table_name, 'all_') "
        "AND table_name <> 'held_outcomes'",
    )
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (id VARCHAR)")
    connection.execute("DELETE FROM wanted")
    connection.executemany("INSERT INTO wanted VALUES (?)", [[rider] for rider in riders])
    for table, column in columns:
        if table == "main.wanted":
            continue
        query = f'SELECT 1 FROM {table}, wanted WHERE contains(CAST("{column}" AS VARCHAR), id) LIMIT 1'
        if rows(connection, query):
            found.append(f"{table}.{column}")
    return found


TAKE = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('taken', flush=True); input()"


@pytest.fixture
def taken_after_the_record(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """Another process locks the store as soon as a fit has recorded, and keeps it."""
    holders: list[subprocess.Popen[str]] = []

    @contextmanager
    def opened(path: Path, write: bool = False, **how: Any) -> Iterator[Store]:
        with open_store(path, write, **how) as store:
            yield store
        if write:
            holder = subprocess.Popen(
                [sys.executable, "-c", TAKE, str(path / "LOCK")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            holders.append(holder)
            assert holder.stdout is not None
            assert holder.stdout.readline() == "taken\n"

    monkeypatch.setattr(fitting, "open_store", opened)
    yield holders
    for holder in holders:
        holder.communicate("\n")


def test_a_recorded_fit_needs_the_store_no_more(
    isuit: Callable[..., Answer], cohort_file: Path, taken_after_the_record: list[subprocess.Popen[str]]
) -> None:
    answer = isuit("fit", "--cohort", cohort_file, "--wait", "0")
    assert (answer.code, len(taken_after_the_record)) == (0, 1), answer.err
    assert "recorded" in answer.out
    assert "█" in answer.out
    assert isuit("fits", "--wait", "0").code == 75, "the store is in use, as the test wants it"


@pytest.mark.usefixtures("taken_after_the_record")
def test_nor_does_one_from_python(cohort_file: Path, tmp_path: Path) -> None:
    fit = package.open(tmp_path / "store", wait=0).fit(cohort_file)
    assert fit.record.fit_id == fit.fit_id
    assert fit.recorded
