"""Releases as their readers and operators meet them: formats, checks, dates, the ledger, and the way to weather."""

from __future__ import annotations

import json
import re
import struct
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import h3
import jsonschema
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from release_lab import FIRST, OLD, RECENT, SECOND, Answer, Lab, Mutant, Row, draw

from isuit.estimator.weighted_fit import Unfit
from isuit.release.dates import first_of_quarter, today
from isuit.release.policy import Policy, policy_of
from isuit.service.stores import open_store

ROOT = Path(__file__).parents[2]
PLACES = {"alpha": (45.5004, 9.1007), "beta": (46.5, 7.25), "gamma": (36.01, -5.6)}
FORMATS = {"jsonl": "jsonl", "csv": "csv", "geojson": "geojson", "geoparquet": "parquet"}


def three_cells() -> list[Row]:
    """Thirty riders who each visit two of three spots."""
    skills: dict[str, float] = {}
    rows = []
    for number, site in enumerate(PLACES):
        names = [f"rider-{(number * 10 + index) % 30:03d}" for index in range(20)]
        rows += draw(names, 12, seed=number, site=site, skills=skills)
    return rows


@pytest.fixture
def released(lab: Lab) -> tuple[Path, Answer]:
    store = lab.store(three_cells(), sites=PLACES)
    answer = lab.export(store)
    assert answer.code == 0, answer.err
    return store, answer


def schema(name: str) -> Any:
    return json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())


def test_units_names_and_licence_are_declared(lab: Lab) -> None:
    store = lab.store(three_cells(), sites=PLACES)
    declared = ("--units", "knot", "--standard-name", "wind_speed", "--licence", "CC-BY-4.0")
    assert "no fit of the dimension" in lab.export(store, FIRST, "--units", "wave=m").err
    answer = lab.export(store, FIRST, *declared)
    assert answer.code == 0, answer.err
    assert {row["units"] for row in answer.rows} == {"knot"}
    metric = answer.metadata["metrics"][0]
    assert (metric["units"], metric["standard_name"], answer.metadata["licence"]) == ("knot", "wind_speed", "CC-BY-4.0")
    assert lab.isuit("rederive", FIRST, "--store", store).code == 0
    # One that is published is written again as it is, and whoever declares something else is told.
    assert lab.export(store, FIRST, *declared).rows == answer.rows
    late = lab.export(store, FIRST, "--units", "m s-1", "--licence", "CC0-1.0")
    assert (late.code, "--units and --licence would change it" in late.err) == (3, True)
    # The next release has them without being told, and cannot change what its carried rows say.
    refused = lab.export(store, "2026-04-01", "--units", "m s-1")
    assert (refused.code, "leave the option out" in refused.err) == (3, True)
    later = lab.export(store, "2026-04-01")
    assert later.code == 0, later.err
    assert {row["units"] for row in later.rows} == {"knot"}
    assert later.metadata["licence"] == "CC-BY-4.0"
    assert lab.isuit("rederive", "2026-04-01", "--store", store).code == 0


def test_rows_and_metadata_follow_their_schemas(released: tuple[Path, Answer]) -> None:
    _, answer = released
    for row in answer.rows:
        jsonschema.validate(row, schema("release-row"))
    jsonschema.validate(answer.metadata, schema("release-metadata"))
    assert answer.metadata["rows"] == len(answer.rows) > 15
    assert answer.cells == {h3.latlng_to_cell(*place, 7) for place in PLACES.values()}
    assert answer.metadata["observed_before"] == "2025-10-03"
    assert answer.metadata["weaker_than_default"] == ["noise"]
    # Nothing is guessed from a dimension called wind_kn.
    assert answer.metadata["metrics"][0]["standard_name"] is None
    assert {row["units"] for row in answer.rows} == {None}
    assert answer.metadata["licence"] is None
    for row in answer.rows:
        assert (row["latitude"], row["longitude"]) == pytest.approx(h3.cell_to_latlng(row["h3"]), abs=1e-6)
        assert row["metric"] == pytest.approx((row["metric_lower"] + row["metric_upper"]) / 2)


def test_released_values_are_near_the_truth(released: tuple[Path, Answer]) -> None:
    errors = [
        row["difficulty"] - (((row["metric"] - 18) / 8) ** 2 - 1)
        for row in released[1].rows
        if row["difficulty"] is not None
    ]
    assert np.sqrt(np.mean(np.square(errors))) < 0.6  # 30 riders: the units of skill alone are uncertain by a fifth


def test_every_format_has_the_same_digest_and_passes_its_check(lab: Lab, released: tuple[Path, Answer]) -> None:
    store, first = released
    for kind, extension in FORMATS.items():
        file = lab.directory / f"atlas.{extension}"
        made = lab.isuit(
            "export-atlas", "--store", store, "--release", FIRST, "--format", kind, "--out", file, "--json"
        )
        report = json.loads(made.out)
        jsonschema.validate(report, schema("export-atlas"))
        assert report["digest"] == first.metadata["digest"]
        check = lab.isuit("check-release", file, "--json")
        assert check.code == 0, check.err
        jsonschema.validate(json.loads(check.out), schema("check-release"))
        assert json.loads(check.out)["digest"] == first.metadata["digest"]
    jsonl, csv = (lab.export(store, FIRST, "--format", kind, extension=kind) for kind in ("jsonl", "csv"))
    assert jsonl.file == first.file
    assert csv.file == (lab.directory / "atlas.csv").read_bytes()


@pytest.mark.parametrize("kind", list(FORMATS))
def test_a_damaged_file_is_refused(lab: Lab, released: tuple[Path, Answer], kind: str) -> None:
    store, _ = released
    file = lab.directory / f"atlas.{FORMATS[kind]}"
    assert lab.isuit("export-atlas", "--store", store, "--release", FIRST, "--format", kind, "--out", file).code == 0
    whole = file.read_bytes()
    damaged = [whole[: len(whole) * 3 // 4], whole[: whole.rindex(b"\n", 0, -1) + 1] if kind == "csv" else whole[:-2]]
    if kind != "geoparquet":
        damaged.append(whole.replace(b"10-19", b"20-49", 1).replace(b"20-49", b"10-19", 1) or whole)
        damaged.append(re.sub(rb"(status[^\n]{0,3}estimated|estimated)", b"guessed", whole, count=1))
        damaged.append(whole.replace(b"0.25", b"0.5", 1))
    if kind == "jsonl":
        lines = whole.splitlines(keepends=True)
        cut, moved = [*lines[1:-1], lines[-1]], [lines[1], lines[0], *lines[2:]]
        damaged += [b"".join(some) for some in (lines[:-1], cut, moved)]
    for content in damaged:
        if content == whole:
            continue
        file.write_bytes(content)
        check = lab.isuit("check-release", file)
        assert check.code == 1, content[-200:]
        assert check.err
    file.write_bytes(whole)
    assert lab.isuit("check-release", file).code == 0


def test_geoparquet_has_hexagons_and_its_footer(lab: Lab, released: tuple[Path, Answer]) -> None:
    store, _ = released
    file = lab.directory / "atlas.parquet"
    lab.isuit("export-atlas", "--store", store, "--release", FIRST, "--format", "geoparquet", "--out", file)
    geo = json.loads(pq.ParquetFile(file).metadata.metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    column = geo["columns"][geo["primary_column"]]
    assert column["encoding"] == "WKB"
    assert column["geometry_types"] == ["Polygon"]
    west, south, east, north = column["bbox"]
    for row in pq.read_table(file).to_pylist():
        order, kind, rings, points = struct.unpack_from("<BIII", row["geometry"])
        assert (order, kind, rings, points) == (1, 3, 1, 7)
        ring = [struct.unpack_from("<dd", row["geometry"], 13 + 16 * place) for place in range(points)]
        assert ring[0] == ring[-1]
        area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise(ring))
        assert area > 0  # counter-clockwise
        for longitude, latitude in ring:
            assert west <= longitude <= east
            assert south <= latitude <= north
            assert abs(longitude - row["longitude"]) < 0.1


def test_releases_are_logged_and_any_change_of_them_is_found(lab: Lab, released: tuple[Path, Answer]) -> None:
    store, _ = released
    assert lab.isuit("verify", "--store", store).code == 0
    assert json.loads(lab.isuit("status", "--store", store, "--json").out)["releases"] == 1
    changes = {
        "ledger.releases": "digest = upper(digest) || 'x'",
        "ledger.release_rows": "line = replace(line, 'estimated', 'saturated')",
        "ledger.release_bins": "riders = riders + 1",
        "personal.release_members": "bin = bin + 1",
    }
    for table, change in changes.items():
        other = lab.copy(store)
        with open_store(other, write=True) as opened:
            opened.connection.execute(f"UPDATE {table} SET {change}")
        verdict = json.loads(lab.isuit("verify", "--store", other, "--json").out)
        assert table in {entry["table"] for entry in verdict["disagreements"]}


@pytest.mark.parametrize(("rules", "verdict"), [(1, "earlier-rules"), (None, "diverged")])
def test_other_noise_is_earlier_rules_where_the_record_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, rules: int | None, verdict: str
) -> None:
    """Noise drawn under another tag; a record that names today's rules, and has other rows, is not to be trusted.

    There is so much of it that two draws are not alike to a step of rounding, which would be `equivalent`.
    """
    store = lab.store(draw(26, seed=1), policy={"noise": 2.0})
    with monkeypatch.context() as patched:
        patched.setattr("isuit.release.noise.TAG", b"isuit/release-noise/1")
        if rules is not None:
            patched.setattr("isuit.service.releases.RULES", rules)
        assert lab.export(store).rows
    again = lab.isuit("rederive", FIRST, "--store", store, "--json")
    assert (json.loads(again.out)["verdict"], again.code) == (verdict, 1)
    assert ("only that version" in " ".join(json.loads(again.out)["notes"])) == (rules is not None)
    assert lab.isuit("rederive", FIRST, "--store", store).out.startswith(f"{verdict}: 9 rows recorded, 9 again")


def test_after_an_erasure_the_ledger_still_agrees(lab: Lab, released: tuple[Path, Answer]) -> None:
    store, first = released
    again = lab.isuit("rederive", FIRST, "--store", store, "--json")
    assert json.loads(again.out)["verdict"] == "identical"
    lab.opt_out(store, "rider-004")
    assert lab.isuit("verify", "--store", store).code == 0
    with open_store(store) as opened:
        members = opened.connection.execute("SELECT DISTINCT rider FROM personal.release_members").fetchall()
    assert ("rider-004",) not in members
    assert len(members) == 29
    assert lab.export(store).file == first.file
    assert json.loads(lab.isuit("rederive", FIRST, "--store", store, "--json").out)["verdict"] == "erased"
    assert lab.export(store, SECOND).code == 0
    assert lab.isuit("verify", "--store", store).code == 0


def test_ten_departures_change_a_row(lab: Lab) -> None:
    store = lab.store(draw(26, seed=1))
    first = lab.export(store)
    lab.opt_out(store, *(f"rider-{number:03d}" for number in range(10)))
    second = lab.export(store, SECOND)
    assert second.code == 0, second.err
    assert first.values != second.values


def test_added_riders_change_only_the_bins_they_are_in(lab: Lab) -> None:
    rows = draw(seed=1)
    store = lab.store(rows)
    first = lab.export(store)
    lab.fit(store, [*rows, *draw(12, 8, tag="new", seed=71, low=24.0, high=35.9, skills=dict.fromkeys([], 0.0))])
    second = lab.export(store, SECOND)
    before = {row["metric"]: row for row in first.values}
    after = {row["metric"]: row for row in second.values}
    assert all(after[metric] == row for metric, row in before.items() if metric < 24)
    assert any(after.get(metric) != row for metric, row in before.items() if metric > 24)


def test_dates(lab: Lab) -> None:
    store = lab.store(draw(seed=1))
    assert lab.export(store, "2999-01-01").code == 3
    assert lab.export(store, "soon").code == 2
    assert lab.export(store, SECOND).code == 0
    early = lab.export(store, FIRST)
    assert early.code == 3
    assert early.file is None
    made = lab.isuit("export-atlas", "--store", store, "--json")
    assert json.loads(made.out)["release"] == first_of_quarter(today()).isoformat()
    assert (lab.directory / f"atlas-{first_of_quarter(today())}.jsonl").exists()


def test_a_policy_that_was_stored_without_the_newer_fields_has_their_defaults() -> None:
    old = {name: value for name, value in Policy(k=12).model_dump().items() if name in ("k", "lag_days", "rounding")}
    assert policy_of(old) == Policy(k=12)


def test_nothing_is_written_or_recorded_when_no_cell_qualifies(lab: Lab) -> None:
    rows = [*draw(6, seed=1), *(Row("-", 12.0, 1), Row("rider-001", 13.0, 0, None, RECENT))]
    store = lab.store(rows)
    before = lab.isuit("status", "--store", store, "--json").out
    answer = lab.export(store)
    assert answer.code == 3
    assert answer.file is None
    assert "fewer than 10 riders" in answer.err
    assert "younger than 90 days" in answer.err
    assert "placeholder" in answer.err
    assert lab.isuit("status", "--store", store, "--json").out == before
    assert "run `isuit fit`" in lab.export(lab.store(policy={"k": 10})).err


def test_rows_that_are_all_repeated_are_not_fitted_again(lab: Lab, mutant: Mutant) -> None:
    store = lab.store(three_cells(), sites=PLACES)
    first = lab.export(store)
    mutant("isuit.release.making.fit_cells", lambda *_: pytest.fail("a fit of rows that stay as they are"))
    assert first.rows
    assert lab.export(store, SECOND).values == first.values


def test_the_operator_is_told_of_outcomes_that_give_no_fit_and_of_nothing_else(lab: Lab, mutant: Mutant) -> None:
    def unfit(*_: object) -> None:
        raise Unfit("everybody succeeds everywhere")

    mutant("isuit.release.making.fit_cells", unfit)
    answer = lab.release(three_cells(), sites=PLACES)
    assert (answer.code, answer.file) == (3, None)
    assert "no latent fit: everybody succeeds everywhere" in answer.err
    assert "younger than" not in answer.err


def test_a_cohort_without_times_needs_a_declaration(lab: Lab) -> None:
    rows = [Row(row.rider, row.metric, row.outcome, None, None) for row in draw(seed=1)]
    refused = lab.release(rows)
    assert refused.code == 3
    assert "--observed-until" in refused.err
    assert lab.release(rows, options=("--observed-until", "2025-11-01")).code == 3  # too recent
    assert lab.release(rows, options=("--observed-until", "2025-06-01")).code == 0


def test_explain_says_why_cells_are_missing_and_the_file_does_not(lab: Lab) -> None:
    rows = three_cells()
    rows += draw(5, 12, seed=5, site="delta")
    rows += [Row(row.rider, row.metric, row.outcome, "epsilon", RECENT) for row in draw(24, 12, seed=6)]
    rows += draw(12, 12, seed=7, site="nowhere")
    places = {**PLACES, "delta": (50.0, 5.0), "epsilon": (52.0, 6.0)}
    store = lab.store(rows, sites=places)
    lab.fit(store, draw(11, 12, seed=8, tag="elsewhere"))  # a cohort without sites
    answer = lab.export(store, FIRST, "--explain")
    assert answer.code == 0, answer.err
    delta, epsilon = (h3.latlng_to_cell(*places[name], 7) for name in ("delta", "epsilon"))
    assert f"cell {delta}: fewer than 10 riders" in answer.err
    assert f"cell {epsilon}: too recent" in answer.err
    assert "1 sites have no coordinates" in answer.err
    assert f"{11 * 12} lines have no site" in answer.err
    assert answer.file is not None
    for word in (b"recent", b"coordinates", b"fewer", delta.encode(), epsilon.encode()):
        assert word not in answer.file


def test_cells_that_too_few_riders_link_get_no_difficulty(lab: Lab) -> None:
    rows = three_cells() + draw(14, 18, seed=8, site="island", tag="local")
    answer = lab.release(rows, sites={**PLACES, "island": (64.0, -22.0)})
    island = h3.latlng_to_cell(64.0, -22.0, 7)
    there = [row for row in answer.rows if row["h3"] == island]
    assert there
    assert {row["status"] for row in there} == {"incomparable"}
    assert {row["difficulty"] for row in there} == {None}


def test_a_weaker_policy_says_so_in_every_release(lab: Lab) -> None:
    weak = {"k": 5, "lag_days": 30, "resolution": 9}
    store = lab.store(draw(12, 24, seed=2), policy=weak)
    answer = lab.export(store)
    assert answer.code == 0, answer.err
    assert answer.metadata["weaker_than_default"] == ["k", "lag_days", "resolution", "noise"]
    assert json.loads(lab.isuit("status", "--store", store, "--json").out)["policy"]["k"] == 5
    assert lab.export(lab.store(draw(12, 24, seed=2), policy=weak), FIRST, "--k", "4").code == 3
    log = duckdb.connect(str(store / "store.duckdb"), read_only=True)
    try:
        created = log.execute("SELECT payload FROM ledger.log WHERE kind = 'store-created'").fetchone()
    finally:
        log.close()
    assert created is not None
    assert json.loads(created[0])["policy"]["k"] == 5


@pytest.mark.parametrize("wrong", [{"k": 1}, {"kay": 3}, {"k": "ten"}, {"largest_share": 0.9}, [1]])
def test_a_wrong_policy_is_refused(lab: Lab, wrong: Any) -> None:
    file = lab.directory / "policy.json"
    file.write_text(json.dumps(wrong))
    answer = lab.isuit("init", "--store", lab.directory / "other", "--policy", file)
    assert answer.code == 2
    assert not (lab.directory / "other").exists()


def test_a_tighter_first_release_fixes_the_series(lab: Lab) -> None:
    store = lab.store(draw(26, seed=1))
    assert lab.export(store, FIRST, "--k", "12", "--lag-days", "100").metadata["policy"]["k"] == 12
    assert lab.export(store, SECOND).metadata["policy"]["lag_days"] == 100
    assert lab.export(store, SECOND, "--k", "10").code == 3
    assert lab.export(store, SECOND, "--k", "12").code == 0


def test_an_expert_curve_is_released_with_its_difficulty(lab: Lab) -> None:
    anchor = lab.directory / "expert.csv"
    anchor.write_text("x,suitability\n0,0.05\n18,0.9\n36,0.05\n")
    answer = lab.release(draw(seed=1), options=("--anchor", str(anchor)))
    expert = {row["metric"]: row["expert_difficulty"] for row in answer.rows}
    assert len(expert) > 5
    assert min(expert, key=lambda metric: expert[metric]) == 18
    assert all(value is not None for value in expert.values())


def test_the_how_to_joins_a_release_to_a_weather_file(
    lab: Lab, released: tuple[Path, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer = released
    assert answer.file is not None
    (lab.directory / "atlas.jsonl").write_bytes(answer.file)
    hours = pd.date_range(datetime(2026, 2, 1, tzinfo=UTC), periods=24, freq="h")
    grid = [
        {"time": hour, "latitude": latitude, "longitude": longitude, "wind_speed": float(number % 36)}
        for latitude, longitude in [*PLACES.values(), (0.0, 0.0)]
        for number, hour in enumerate(hours)
    ]
    pd.DataFrame(grid).to_parquet(lab.directory / "weather.parquet")
    text = (ROOT / "docs" / "how-to" / "join-a-release-to-weather.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    joined = names["joined"]
    assert len(joined) == len(grid)
    found = joined[joined["status"].notna()]
    assert set(found["latitude_x"]) == {latitude for latitude, _ in PLACES.values()}
    assert ((found["metric_lower"] <= found["wind_speed"]) & (found["wind_speed"] < found["metric_upper"])).all()
    assert joined[joined["latitude_x"] == 0.0]["status"].isna().all()
    assert len(names["cells"]) == len(PLACES)


def test_saturation_follows_the_curve_and_not_raw_outcomes(lab: Lab) -> None:
    """A bin in which everyone succeeded has its value like any other, and the same after one of them failed."""
    rows = draw(24, seed=1)
    easy = [
        Row(row.rider, row.metric, 1 if 16 <= row.metric < 20 else row.outcome, None, row.observed_at) for row in rows
    ]
    place = next(number for number, row in enumerate(easy) if 16 <= row.metric < 20)
    once = [*easy[:place], Row(easy[place].rider, easy[place].metric, 0, None, OLD), *easy[place + 1 :]]
    statuses = [
        {row["metric"]: row["status"] for row in lab.release(cohort).rows if row["metric"] == 18}
        for cohort in (easy, once)
    ]
    assert statuses[0] == statuses[1]
    assert statuses[0]


def test_the_global_cell_has_no_place(lab: Lab) -> None:
    store = lab.store(draw(seed=1))
    for kind, extension in FORMATS.items():
        file = lab.directory / f"atlas.{extension}"
        lab.isuit("export-atlas", "--store", store, "--release", FIRST, "--format", kind, "--out", file)
        assert lab.isuit("check-release", file).code == 0
    rows = pq.read_table(lab.directory / "atlas.parquet").to_pylist()
    assert {(row["h3"], row["latitude"], row["geometry"]) for row in rows} == {("global", None, None)}


def test_old_is_old_enough() -> None:
    assert (datetime(2026, 1, 1, tzinfo=UTC) - OLD).days > 90 > (datetime(2026, 1, 1, tzinfo=UTC) - RECENT).days
