"""A fit whose discrimination varies, through the store: recorded, scored, rederived, drawn, not released."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit

import isuit
from isuit.domain import FitConfig
from isuit.errors import InputError, PolicyRefusal
from isuit.estimator import discrimination_rows
from isuit.pages import data_of
from isuit.published import reading
from isuit.record.parameters import VaryingParameters
from isuit.service import history, releases, reports
from isuit.service.recorded import RecordedFit
from isuit.service.stores import open_store
from isuit.store.fits import find_fit


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(11)
    riders, each = 80, 25
    skill, rider = rng.standard_normal(riders), np.repeat(np.arange(riders), each)
    wind, wave = rng.uniform(3, 35, rider.size), rng.uniform(0, 3, rider.size)
    steep = 0.8 * (2.6 / 0.8) ** ((wind - 3) / 32)
    hard = ((wind - 18) / 9) ** 2 - 1
    outcome = (rng.random(rider.size) < expit(steep * (skill[rider] - hard))).astype(np.int8)
    names = [f"xq{number * 7919:06x}" for number in rider]
    return pa.table({"rider": names, "metric": wind, "wave_m": wave, "outcome": outcome})


@pytest.fixture(scope="module")
def fitted(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> RecordedFit:
    store = isuit.open(tmp_path_factory.mktemp("varying") / "store")
    return store.fit(table.drop_columns(["wave_m"]), activity="kite", dimension="wind", discrimination="varying")


def parameters_of(fit: RecordedFit) -> VaryingParameters:
    with open_store(fit._store_path) as store:
        found = reading.parameters(find_fit(store.connection, fit.fit_id).parameters)
    assert isinstance(found, VaryingParameters)
    return found


def test_the_record_tells_how_much_skill_matters_where(fitted: RecordedFit) -> None:
    assert fitted.kind == "latent"
    found = fitted.diagnostics.discrimination
    assert found is not None
    assert found.varies
    (curve,) = found.curves
    assert curve.discrimination[-1] > 1.5 * curve.discrimination[0]
    assert all(low < a < high for low, a, high in zip(curve.lower, curve.discrimination, curve.upper, strict=True))
    test = fitted.diagnostics.assumptions.discrimination_by_metric  # type: ignore[union-attr]  # there are some
    assert test is not None
    assert test.p_value < 0.01
    assert "its change is estimated" in (test.sentence or "")


def test_a_constant_fit_says_what_to_ask_for(table: pa.Table) -> None:
    fit = isuit.fit(table.drop_columns(["wave_m"]))
    assert fit.diagnostics.discrimination is None
    test = fit.diagnostics.assumptions.discrimination_by_metric  # type: ignore[union-attr]  # there are some
    assert test is not None
    assert "--discrimination varying estimates it" in (test.sentence or "")


def test_a_score_is_the_discrimination_there_times_the_distance(fitted: RecordedFit) -> None:
    parameters, metric = parameters_of(fitted), np.array([6.0, 19.0, 32.0])
    scored = fitted.score_table({"metric": metric.tolist()}, 1.0)
    steep, _ = discrimination_rows(parameters, metric)
    at_one = logit(np.array(scored.column("suitability").to_pylist(), float))
    at_zero = logit(np.array(fitted.score_table({"metric": metric.tolist()}, 0.0).column("suitability").to_pylist()))
    np.testing.assert_allclose(at_one - at_zero, steep, rtol=1e-9)
    assert steep[2] > 1.3 * steep[0]
    lower = np.array(scored.column("lower").to_pylist(), float)
    assert (logit(lower) < at_one).all()


def test_it_is_rederived_and_has_a_name_of_its_own(fitted: RecordedFit, table: pa.Table) -> None:
    assert fitted.rederive().verdict == "identical"
    assert isuit.fit(table.drop_columns(["wave_m"]), activity="kite", dimension="wind").fit_id != fitted.fit_id
    assert (
        "discrimination" not in FitConfig().as_json()
    )  # fits that were made before there was a choice keep their name
    assert FitConfig(discrimination="varying").as_json()["discrimination"] == "varying"


def test_it_is_drawn_with_its_own_discrimination_and_not_released(fitted: RecordedFit, tmp_path: Path) -> None:
    store = fitted._store_path
    reports.report(store, fitted.fit_id, tmp_path / "page.html")
    data = data_of((tmp_path / "page.html").read_text())
    steep, _ = discrimination_rows(parameters_of(fitted), np.array(data["curves"]["x"]))
    np.testing.assert_allclose(data["discrimination"], steep, atol=1e-6)
    assert any(section["id"] == "discrimination" for section in data["sections"])
    assert any("one discrimination" in missing for missing in history.show(store, fitted.fit_id).releasable.missing)
    with pytest.raises(PolicyRefusal, match="varying discrimination has no public form"):
        releases.export_atlas(store, tmp_path / "atlas.jsonl")


@pytest.mark.long
def test_several_metrics_have_a_curve_each(table: pa.Table) -> None:
    both = table.rename_columns(["rider", "wind_kn", "wave_m", "outcome"])
    fit = isuit.fit(both, metrics=["wind_kn", "wave_m"], discrimination="varying")
    found = fit.diagnostics.discrimination
    assert found is not None
    by_name = {curve.metric: curve.discrimination for curve in found.curves}
    assert by_name["wind_kn"][-1] > 1.5 * by_name["wind_kn"][0]
    assert max(by_name["wave_m"]) < 1.5 * min(by_name["wave_m"])
    low, high = (fit.score({"wind_kn": 30, "wave_m": 1.5}, skill).suitability for skill in (-1.0, 1.0))
    calm = [fit.score({"wind_kn": 6, "wave_m": 1.5}, skill).suitability for skill in (-1.0, 1.0)]
    assert logit(high) - logit(low) > 1.3 * (logit(calm[1]) - logit(calm[0]))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="skill that moves is fitted with one discrimination"):
        FitConfig(discrimination="varying", skill="moving")
    with pytest.raises(InputError, match="leave the anchor out"):
        FitConfig(discrimination="varying", anchor=((3.0, 0.2), (20.0, 0.9)))
    with pytest.raises(InputError, match="discrimination is one of constant, varying"):
        FitConfig(discrimination=json.loads('"steep"'))
