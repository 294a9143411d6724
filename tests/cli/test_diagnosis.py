"""What `isuit show` says about a fit, to a person and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isuit.published import reading
from isuit.record import as_json
from isuit.service.stores import open_store
from isuit.store.query import rows

if TYPE_CHECKING:
    from conftest import Answer

SCHEMA = Path(__file__).parents[2] / "schemas" / "show.schema.json"
SITES = ("east", "north", "reef", "south", "west")


@pytest.fixture
def fitted(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> Callable[..., tuple[str, dict]]:
    def fit(*options: str, **table: object) -> tuple[str, dict]:
        """What a person reads, and the diagnostics of the JSON."""
        pq.write_table(cohort_table(7, riders=60, outcomes=30, **table), tmp_path / "cohort.parquet")
        fit_id = isuit("fit", "--cohort", tmp_path / "cohort.parquet", *options, "--json").json["fit_id"]
        shown = isuit("show", fit_id, "--json").json
        jsonschema.validate(shown, json.loads(SCHEMA.read_text()))
        answer = isuit("show", fit_id)
        assert answer.code == 0, answer.err
        return answer.out, shown["diagnostics"]

    return fit


def test_everything_that_is_known_is_printed(fitted: Callable[..., tuple[str, dict]]) -> None:
    text, found = fitted("--split", "occasion", sites=SITES)
    assert found["scores"]["left_out"] == {}
    for kind in ("held_out", "new_riders", "new_sites"):
        scored = found["scores"][kind]
        assert f"{scored['outcomes']} outcomes of {scored['riders']} riders" in text
        assert f"{scored['brier']:.4f}" in text
        assert f"skill {scored['brier_skill']:+.4f}" in text
        assert f"gain {scored['log_score_gain']:+.4f}" in text
        for interval in scored["intervals"].values():
            lower, upper = interval["brier_skill"]
            assert lower < scored["brier_skill"] < upper
            assert f"{lower:+.4f} to {upper:+.4f}" in text
            assert f"({interval['clusters']})" in text
        for parts in scored["parts"].values():
            assert f"{parts['resolution']:.4f}" in text
    for expected in (
        "Outcomes exist only for those who went out",
        "outside core 0.0% of riders, 0.0% of outcomes",
        "effective degrees of freedom",
        "of the variance of skill",
        "mean metric with their skill",
        "surprise of the last outcome",
        "split by occasion",
        "calibration",
        "item fit",
    ):
        assert expected in text
    assert max(map(len, text.splitlines())) <= 130


def test_what_there_is_no_score_for_has_its_reason(fitted: Callable[..., tuple[str, dict]]) -> None:
    text, found = fitted(timed=False)
    assert found["scores"]["new_sites"] is None
    assert found["scores"]["held_out"]["intervals"]["day_and_site"] is None
    assert "new sites    not scored: the cohort has fewer than 5 sites" in text
    assert "day and site" not in text
    assert "are a limit" in text


def test_a_single_curve_has_less_to_say(isuit: Callable[..., Answer], tmp_path: Path) -> None:
    rows = {"rider": [f"r{k % 50:02d}" for k in range(500)], "metric": [float(k % 23) for k in range(500)]}
    outcome = np.random.default_rng(0).integers(0, 2, 500)
    pq.write_table(pa.table(rows | {"outcome": outcome}), tmp_path / "c.parquet")
    fit_id = isuit("fit", "--cohort", "c.parquet", "--json").json["fit_id"]
    found = isuit("show", fit_id, "--json").json
    assert found["fit"]["kind"] == "single-curve"
    assert found["diagnostics"]["exposure"] is None
    text = isuit("show", fit_id).out
    assert "not scored: the fit is the single curve" in text
    assert found["fit"]["promotion"]["shortfalls"][0] in text


def test_a_record_of_an_older_version_is_read() -> None:
    old = {
        "convergence": {"gradient_norm": 1e-8, "steps": 9},
        "marginal": {"matches": True, "largest_difference": 0.01, "tolerance": 0.05, "average": "riders"},
        "exposure": {"correlation_of_mean_metric_with_skill": 0.1, "sentence": None},
    }
    found = reading.diagnostics(json.dumps(old))
    assert found.exposure is not None
    assert found.exposure.past_outcomes is None
    assert as_json(found) == old


def _with_new_keys(value: Any) -> Any:
    """The same JSON with one more key in every object that has named fields, as a newer version may write it."""
    if isinstance(value, list):
        return [_with_new_keys(part) for part in value]
    if not isinstance(value, dict):
        return value
    named = {name: _with_new_keys(part) for name, part in value.items()}
    maps = set(value) <= {"", "east", "west"} or set(value) <= {"new_riders", "new_sites"}
    return named if maps else named | {"new_key": "rider-0007"}


def test_what_a_newer_version_adds_to_a_record_is_left_out(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    """Every command that reads a record answers as before, and the new keys do not leave the store."""
    pq.write_table(cohort_table(7, riders=40, outcomes=25, sites=("east", "west")), tmp_path / "cohort.parquet")
    fit_id = isuit("fit", "--cohort", "cohort.parquet", "--json").json["fit_id"]
    reads = (
        ("show", fit_id), ("show", fit_id, "--json"), ("fits", "--json"), ("report", fit_id, "--out", "r.html"),
        ("score", fit_id, "--metric", "18", "--skill", "expert", "--site", "east", "--json"),
    )  # fmt: skip
    before = [isuit(*command) for command in reads]
    with open_store(tmp_path / "isuit-store", write=True) as store:
        for column in ("parameters", "diagnostics", "identification", "promotion", "held_out"):
            [(text,)] = rows(store.connection, f"SELECT {column} FROM ledger.fits")
            newer = json.dumps(_with_new_keys(json.loads(text)))
            assert newer.count("new_key") >= 1
            store.connection.execute(f"UPDATE ledger.fits SET {column} = ?", [newer])
    assert [isuit(*command) for command in reads] == before
    assert {answer.code for answer in before} == {0}


def test_a_record_that_is_none_is_refused_in_one_sentence(
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    pq.write_table(cohort_table(7, riders=40, outcomes=25), tmp_path / "cohort.parquet")
    fit_id = isuit("fit", "--cohort", "cohort.parquet", "--json").json["fit_id"]
    with open_store(tmp_path / "isuit-store", write=True) as store:
        store.connection.execute("UPDATE ledger.fits SET diagnostics = '[\"rider-0007\"]'")
    answer = isuit("show", fit_id)
    assert answer.code == 2
    assert answer.err == "isuit: the record of this fit cannot be read; run `isuit verify` to see what is wrong\n"
