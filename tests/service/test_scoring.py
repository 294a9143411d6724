"""Scores for a declared skill, one by one and by the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from isuit.domain import FitConfig
from isuit.errors import InputError
from isuit.service import history
from isuit.service.fitting import fit
from isuit.service.scoring import score, score_file, score_table
from isuit.service.scoring_conditions import skill_value

ANCHOR = ((3.0, 0.1), (18.0, 0.9), (35.0, 0.1))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, cohort_table: Callable[..., pa.Table]) -> Path:
    """A plain fit, one with an expert curve, and one that falls back to a single curve; read only."""
    path = tmp_path_factory.mktemp("scores") / "store"
    table = cohort_table(41, riders=60, outcomes=30, sites=("north", "south"))
    fit(path, table, FitConfig(activity="plain"))
    fit(path, table, FitConfig(activity="anchored", anchor=ANCHOR))
    fit(path, cohort_table(42, riders=30, outcomes=2), FitConfig(activity="single"))
    return path


@pytest.fixture(scope="module")
def fits(store: Path) -> dict[str, str]:
    return {record.activity: record.fit_id for record in history.fits(store)}


def test_a_better_rider_has_a_better_chance(store: Path, fits: dict[str, str]) -> None:
    scores = [score(store, fits["plain"], 12.0, level) for level in ("beginner", "intermediate", "expert")]
    assert [report.skill for report in scores] == [-1.0, 0.0, 1.0]
    chances = [report.suitability for report in scores]
    assert chances == sorted(chances)
    assert chances[0] < chances[2] - 0.2
    for report in scores:
        assert report.lower is not None
        assert report.upper is not None
        assert 0 < report.lower < report.suitability < report.upper < 1
        assert not report.from_anchor
    assert score(store, fits["plain"], 12.0, 0.0).suitability == chances[1]


def test_a_score_agrees_with_the_recorded_curve(store: Path, fits: dict[str, str]) -> None:
    detail = history.show(store, fits["plain"])
    point = next(point for point in detail.curves if point.site == "north" and point.metric > 10)
    assert point.difficulty is not None
    at_its_level = score(store, fits["plain"], point.metric, point.difficulty, "north")
    assert at_its_level.suitability == pytest.approx(0.5, abs=1e-6)


def test_a_single_curve_answers_for_the_population(store: Path, fits: dict[str, str]) -> None:
    beginner, nobody = (score(store, fits["single"], 12.0, skill) for skill in ("beginner", None))
    assert beginner.kind == "single-curve"
    assert beginner.suitability == nobody.suitability
    assert beginner.skill is None
    assert "whatever the skill" in beginner.notes[0]


def test_beyond_the_observed_range_the_expert_answers_or_nobody(store: Path, fits: dict[str, str]) -> None:
    flagged = score(store, fits["anchored"], 50.0, "expert")
    assert flagged.from_anchor
    assert "the expert curve answers" in flagged.notes[0]
    with pytest.raises(InputError, match="outside the observed range"):
        score(store, fits["plain"], 50.0, "expert")


def test_a_table_is_no_condition(store: Path, fits: dict[str, str]) -> None:
    others: list[Any] = [pa.table({"metric": [12.0]}), [12.0, 13.0], "windy"]
    for given in others:
        with pytest.raises(InputError, match="score_table takes a table"):
            score(store, next(iter(fits.values())), given, 0.0)


def test_what_is_no_skill_and_no_site(store: Path, fits: dict[str, str]) -> None:
    for level in ("rider-0001", "nan", "inf"):
        with pytest.raises(InputError, match="--skill takes") as caught:
            skill_value(level)
        assert "rider-0001" not in str(caught.value)
    with pytest.raises(InputError, match="no site"):
        score(store, fits["plain"], 12.0, "expert", "west")
    with pytest.raises(InputError, match="give a skill"):
        score(store, fits["plain"], 12.0, None)
    with pytest.raises(InputError, match="finite"):
        score(store, fits["plain"], float("nan"), "expert")


def test_a_file_of_conditions(store: Path, fits: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("when,metric,site,skill\nmon,12,north,beginner\ntue,14,,1.5\nwed,16,south,\n")
    assert score_file(store, fits["plain"], tmp_path / "in.csv", tmp_path / "out.parquet", "expert").rows == 3
    scored = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["when"] for row in scored] == ["mon", "tue", "wed"]
    expected = [("beginner", "north", 12.0), (1.5, None, 14.0), ("expert", "south", 16.0)]
    for row, (skill, site, metric) in zip(scored, expected, strict=True):
        report = score(store, fits["plain"], metric, skill, site)
        found = (row["suitability"], row["lower"], row["upper"])
        assert found == pytest.approx((report.suitability, report.lower, report.upper), abs=1e-13)
    score_file(store, fits["plain"], tmp_path / "in.csv", tmp_path / "out.csv", "expert")
    assert pcsv.read_csv(tmp_path / "out.csv").num_rows == 3
    (tmp_path / "bad.csv").write_text("metric\n12\n99\n")
    with pytest.raises(InputError, match="row 2 of the conditions: outside the observed range"):
        score_file(store, fits["plain"], tmp_path / "bad.csv", tmp_path / "bad-out.csv", "expert", strict=True)
    assert not (tmp_path / "bad-out.csv").exists()
    done = score_file(store, fits["plain"], tmp_path / "bad.csv", tmp_path / "bad-out.csv", "expert")
    assert [(count, "outside the observed range" in reason) for reason, count in done.not_scored.items()] == [(1, True)]
    first, second = pcsv.read_csv(tmp_path / "bad-out.csv").to_pylist()
    assert first["suitability"] == pytest.approx(score(store, fits["plain"], 12.0, "expert").suitability)
    assert not first["reason"]
    assert second["suitability"] is second["lower"] is second["from_anchor"] is None
    assert "fit with --anchor" in second["reason"]
    with pytest.raises(InputError, match="names no format"):
        score_file(store, fits["plain"], tmp_path / "in.csv", tmp_path / "out.xlsx", "expert")


@pytest.mark.long
def test_a_table_is_scored_as_its_rows(store: Path, fits: dict[str, str]) -> None:
    """Every way to write a site and a skill, within the metrics and beyond them, with chunks and dictionaries."""
    rows = [
        {"metric": metric, "site": site, "skill": skill, "lower": "what was there goes"}
        for metric in (12.0, 50.0)
        for site in (None, "", "north", "south")
        for skill in (None, "beginner", " Expert ", "0.25")
    ]
    table = pa.Table.from_pylist(rows)
    coded = table.set_column(1, "site", table["site"].dictionary_encode())
    coded = coded.set_column(2, "skill", coded["skill"].dictionary_encode())
    for conditions in (table, pa.concat_tables([table.slice(0, 5), table.slice(5)]), coded):
        scored = score_table(store, fits["anchored"], conditions, "intermediate").to_pylist()
        for row, given in zip(scored, rows, strict=True):
            skill = "intermediate" if given["skill"] is None else given["skill"]
            report = score(store, fits["anchored"], given["metric"], skill, given["site"] or None)
            found = [row[name] for name in ("suitability", "lower", "upper")]
            assert found == pytest.approx([report.suitability, report.lower, report.upper], abs=1e-13)
            assert row["from_anchor"] == (given["metric"] == 50.0)


@pytest.mark.parametrize(
    "skills",
    [pa.array([-1.0, None, 0.5]), pa.array([-1, None, 1]), pa.nulls(3), pa.array([], pa.string())],
    ids=["numbers", "whole numbers", "none at all", "no rows"],
)
def test_skills_can_be_any_numbers(skills: pa.Array, store: Path, fits: dict[str, str]) -> None:
    table = pa.table({"metric": [12.0] * len(skills), "skill": skills})
    scored = score_table(store, fits["plain"], table, 0.25)
    expected = [
        score(store, fits["plain"], 12.0, 0.25 if level is None else level).suitability for level in skills.to_pylist()
    ]
    assert scored["suitability"].to_pylist() == pytest.approx(expected, abs=1e-13)


def test_the_first_row_that_cannot_be_scored_is_named_and_not_quoted(store: Path, fits: dict[str, str]) -> None:
    good = {"metric": 12.0, "site": "north", "skill": "0.5"}
    wrong = {
        "finite": {"metric": None},
        "no site": {"site": "rider-0001"},
        "give a skill": {"skill": None},
        "--skill takes": {"skill": "rider-0001"},
        "outside the observed range": {"metric": 99.0},
    }
    for sentence, change in wrong.items():
        table = pa.Table.from_pylist([good, good, good | change, good | {"metric": float("inf")}])
        with pytest.raises(InputError, match=f"row 3 of the conditions: .*{sentence}") as caught:
            score_table(store, fits["plain"], table, strict=True)
        assert "rider" not in str(caught.value).replace("a rider cannot be named here", "")
        scored = score_table(store, fits["plain"], table)
        assert scored["suitability"].is_valid().to_pylist() == [True, True, False, False]
        reasons = scored["reason"].to_pylist()
        assert reasons[:2] == [None, None]
        assert sentence in reasons[2]
        assert scored["suitability"].slice(0, 2) == score_table(store, fits["plain"], table.slice(0, 2))["suitability"]
    with pytest.raises(InputError, match="declare a skill"):
        score_table(store, fits["plain"], pa.table({"metric": [12.0]}))
    for column in ("site", "skill"):
        table = pa.table({"metric": [12.0], column: pa.array([{"a": 1}])})
        with pytest.raises(InputError, match=f"column {column}"):
            score_table(store, fits["plain"], table, "expert")
    single = pa.table({"metric": [12.0]})
    assert score_table(store, fits["single"], single)["suitability"][0].is_valid


def test_a_site_that_cannot_be_compared_has_no_score(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    linked = cohort_table(41, riders=60, outcomes=30, sites=("north", "south"))
    alone = cohort_table(43, riders=4, outcomes=30, sites=("alone",), tag="other")
    fit_id = fit(tmp_path / "store", pa.concat_tables([linked, alone]), FitConfig()).fit_id
    table = pa.table({"metric": [12.0] * 3, "site": ["south", None, "alone"]})
    with pytest.raises(InputError, match="row 3 of the conditions: No rider links this site"):
        score_table(tmp_path / "store", fit_id, table, "expert", strict=True)
    assert score_table(tmp_path / "store", fit_id, table, "expert")["suitability"].null_count == 1
    with pytest.raises(InputError, match=r"^No rider links this site"):
        score(tmp_path / "store", fit_id, 12.0, "expert", "alone")
    assert score_table(tmp_path / "store", fit_id, table.slice(0, 2), "expert").num_rows == 2


def test_an_only_site_is_scored_by_the_shared_curve(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    fit_id = fit(tmp_path / "store", cohort_table(41, riders=40, outcomes=25, sites=("north",)), FitConfig()).fit_id
    scored = score_table(tmp_path / "store", fit_id, pa.table({"metric": [12.0] * 2, "site": ["north", None]}), 0.5)
    assert len(set(scored["suitability"].to_pylist())) == 1


PROGRAM = """
import contextlib, sys
from isuit.cli.app import main
with contextlib.suppress(SystemExit):
    main()
found = {name.partition(".")[0] for name in sys.modules}
print(*sorted(found & {"matplotlib", "numba"}))
"""


def test_a_score_does_not_wait_for_what_fits(store: Path, fits: dict[str, str]) -> None:
    """Its start is most of it: what compiles loops is not imported."""
    command = [sys.executable, "-c", PROGRAM, "score", fits["plain"], "--metric", "18", "--skill", "0"]
    done = subprocess.run([*command, "--store", str(store)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [""], done.stdout
