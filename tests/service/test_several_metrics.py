"""A cohort of several metrics through the store: fitted, scored, audited, erased, and drawn."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit

import isuit
from isuit.errors import InputError, PolicyRefusal
from isuit.pages import data_of
from isuit.pages.packing import unpacked
from isuit.published import reading
from isuit.record import SurfaceParameters
from isuit.service import checks, history, releases, reports
from isuit.service.details import detail_of
from isuit.service.riders import delete_riders
from isuit.service.scoring_conditions import parse_condition
from isuit.service.stores import open_store
from isuit.service.surface_maps import surface_of
from isuit.store.fits import find_fit
from isuit.store.query import rows

METRICS = ["wind_kn", "wave_m"]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(4)
    riders, each = 60, 20
    skill, rider = rng.standard_normal(riders), np.repeat(np.arange(riders), each)
    wind, wave = rng.uniform(3, 35, rider.size), rng.uniform(0, 3, rider.size)
    hard = ((wind - 18) / 8) ** 2 - 1 + 0.8 * (wave - 1.5)
    outcome = (rng.random(rider.size) < expit(2 * (skill[rider] - hard))).astype(np.int8)
    return pa.table(
        {"rider": [f"xq{number * 7919:06x}" for number in rider], "wind_kn": wind, "wave_m": wave, "outcome": outcome}
    )


@pytest.fixture
def fitted(table: pa.Table, tmp_path: Path) -> tuple[Path, str]:
    store = tmp_path / "store"
    made = isuit.open(store).fit(table, metrics=METRICS, activity="kite")
    return store, made.fit_id


def test_fit_score_verify_and_rederive(fitted: tuple[Path, str], table: pa.Table) -> None:
    store, fit_id = fitted
    fit = isuit.open(store)[fit_id]
    assert fit.record.cohort_hash.startswith("isuit-c2:")
    assert fit.record.dimension == "wave_m + wind_kn"
    assert set(fit.curves.column("dimension").to_pylist()) == set(METRICS)
    calm = fit.score({"wind_kn": 18, "wave_m": 0.5}, "intermediate")
    rough = fit.score({"wave_m": 2.5, "wind_kn": 18}, "intermediate")
    assert calm.suitability > rough.suitability + 0.1
    assert calm.metric == {"wind_kn": 18, "wave_m": 0.5}
    scored = fit.score_table({"wind_kn": [18.0, 99.0], "wave_m": [0.5, 0.5]}, "intermediate").to_pylist()
    assert scored[0]["suitability"] == calm.suitability
    assert scored[1]["suitability"] is None
    assert "met these conditions together" in scored[1]["reason"]
    assert isuit.open(store).verify().ok
    assert fit.rederive().verdict == "identical"
    assert fit.rederive(table.select(["outcome", "wave_m", "wind_kn", "rider"])).verdict == "identical"
    again = isuit.open(store).fit(table, metrics=METRICS[::-1], activity="kite")
    assert again.fit_id == fit_id
    assert again.recorded is False


def test_a_profile_anchors_the_metrics_that_it_knows(table: pa.Table, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    wind = [[3, 0.05], [18, 0.95], [35, 0.05]]
    profile.write_text(json.dumps({"curves": {"wind_kn": {"points": wind}, "water_c": wind}}))
    store = isuit.open(tmp_path / "store")
    made = store.fit(table, metrics=METRICS, activity="kite", anchor=profile)
    assert made.record.configuration["anchors"] == {"wind_kn": [[3.0, 0.05], [18.0, 0.95], [35.0, 0.05]]}
    assert store[made.fit_id].rederive().verdict == "identical"
    assert store.fit(table, metrics=METRICS, activity="kite").fit_id != made.fit_id
    profile.write_text(json.dumps({"curves": {"water_c": wind}}))
    with pytest.raises(InputError, match="none of the metrics"):
        store.fit(table, metrics=METRICS, activity="kite", anchor=profile)
    (tmp_path / "one.csv").write_text("x,suitability\n3,0.1\n18,0.9\n")
    for anchor in (tmp_path / "one.csv", [(3.0, 0.1), (18.0, 0.9)]):
        with pytest.raises(InputError, match="is a profile"):
            store.fit(table, metrics=METRICS, activity="kite", anchor=anchor)


def test_a_bundle_of_several_metrics_is_derived_again(fitted: tuple[Path, str], tmp_path: Path) -> None:
    store, fit_id = fitted
    checks.bundle(store, fit_id, tmp_path / "bundle", with_cohort=True)
    content = (tmp_path / "bundle" / "cohort.tsv").read_bytes()
    assert content.startswith(b"isuit-c2\nrider\tsite\tobserved_at\twave_m\twind_kn\toutcome\n1200\n")
    assert checks.rederive_bundle(tmp_path / "bundle").verdict == "identical"


def test_a_changed_further_metric_or_name_is_found(fitted: tuple[Path, str]) -> None:
    store, _ = fitted
    for statement, table in (
        ("UPDATE personal.outcomes SET metric_2 = metric_2 + 1 WHERE rowid = 3", "personal.outcomes"),
        ("UPDATE personal.outcomes SET metric_2 = metric_2 - 1 WHERE rowid = 3", None),
        ("UPDATE ledger.metrics SET metric = 'gust' WHERE position = 1", "ledger.metrics"),
    ):
        with open_store(store, write=True) as opened:
            opened.connection.execute(statement)
        found = isuit.open(store).verify()
        assert found.ok is (table is None)
        assert table is None or table in {disagreement.table for disagreement in found.disagreements}


def test_an_erased_rider_leaves_nothing_of_any_metric(fitted: tuple[Path, str]) -> None:
    store, fit_id = fitted
    with open_store(store) as opened:
        rider, value = rows(opened.connection, "SELECT rider, metric_2 FROM personal.outcomes LIMIT 1")[0]
    delete_riders(store, [rider])
    with open_store(store) as opened:
        assert not rows(opened.connection, "SELECT 1 FROM personal.outcomes WHERE metric_2 = ?", [value])
    assert isuit.open(store).verify().ok
    assert isuit.open(store)[fit_id].rederive().verdict == "erased"


def test_several_metrics_are_released_once_they_are_old_enough_and_are_drawn(
    fitted: tuple[Path, str], tmp_path: Path
) -> None:
    store, fit_id = fitted
    fit = isuit.open(store)[fit_id]
    assert [missing[:17] for missing in history.show(store, fit_id).releasable.missing] == ["--observed-until:"]
    with pytest.raises(PolicyRefusal, match=r"kite, wave_m \+ wind_kn: 1200 lines have no observed_at"):
        releases.export_atlas(store, tmp_path / "atlas.jsonl")
    reports.report(store, fit.fit_id, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    with open_store(store) as opened:
        riders = [rider for (rider,) in rows(opened.connection, "SELECT DISTINCT rider FROM personal.outcomes")]
    assert len(riders) == 60
    assert not [rider for rider in riders if rider in text]
    fit.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_map_tells_what_score_does_and_nothing_where_nobody_was(fitted: tuple[Path, str], tmp_path: Path) -> None:
    store, fit_id = fitted
    fit = isuit.open(store)[fit_id]
    found = surface_of(store, fit_id)
    assert found is not None
    assert found.metrics == ("wave_m", "wind_kn")
    (only,) = found.maps
    i, j = 12, 20
    scored = fit.score({"wave_m": float(only.first[i]), "wind_kn": float(only.second[j])}, 0.0)
    assert fit.record.discrimination is not None
    assert expit(-fit.record.discrimination * only.difficulty[i, j]) == pytest.approx(scored.suitability, abs=1e-6)
    reports.report(store, fit_id, tmp_path / "page.html")
    drawn = data_of((tmp_path / "page.html").read_text())
    values = unpacked(drawn["maps"][0]["difficulty"]) * drawn["unit"]
    inside = unpacked(drawn["maps"][0]["supported"]).astype(bool)
    np.testing.assert_allclose(values[inside], only.difficulty[only.supported], atol=drawn["unit"])
    # As if nobody had been in one corner: the page has no value there.
    with open_store(store) as opened:
        record = find_fit(opened.connection, fit_id)
        shown = detail_of(opened.connection, record)
    parameters = reading.parameters(record.parameters)
    assert isinstance(parameters, SurfaceParameters)
    rows_ = parameters.support.pairs[0].met
    without = replace(parameters.support.pairs[0], met=("0" * len(rows_[0]), *rows_[1:]))
    thinned = replace(parameters, support=replace(parameters.support, pairs=(without,)))
    page = reports.surface_page_data(shown, thinned)["maps"][0]
    outside = ~unpacked(page["supported"]).astype(bool)
    assert outside.sum() > 0
    assert not unpacked(page["difficulty"])[outside].any()
    assert not unpacked(page["se"])[outside].any()


@pytest.mark.parametrize(
    ("options", "condition"),
    [(["22"], 22.0), (["wind_kn=22", "wave_m=1.2"], {"wind_kn": 22.0, "wave_m": 1.2}), (["a=b=1"], {"a=b": 1.0})],
)
def test_conditions_as_options(options: list[str], condition: object) -> None:
    assert parse_condition(options) == condition


@pytest.mark.parametrize("options", [["calm"], ["wind_kn=calm"], ["22", "1"], ["a=1", "a=2"]])
def test_conditions_that_are_none(options: list[str]) -> None:
    with pytest.raises(InputError, match="--metric"):
        parse_condition(options)


def test_one_metric_of_several_columns_is_a_cohort_of_its_own(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "c.parquet")
    made = isuit.open(tmp_path / "store").fit(tmp_path / "c.parquet", metrics=["wind_kn"])
    assert made.record.cohort_hash.startswith("isuit-c1:")
    with pytest.raises(InputError, match="this fit has one metric"):
        made.score({"wind_kn": 18.0}, 0.0)
