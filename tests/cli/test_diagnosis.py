"""What `isuit show` says about a fit, to a person and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from isuit.published import Diagnostics

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


def test_a_record_of_an_older_version_is_read_and_an_unknown_key_refused() -> None:
    old = {
        "convergence": {"gradient_norm": 1e-8, "steps": 9},
        "marginal": {"matches": True, "largest_difference": 0.01, "tolerance": 0.05, "average": "riders"},
        "exposure": {"correlation_of_mean_metric_with_skill": 0.1, "sentence": None},
    }
    assert Diagnostics.model_validate(old).exposure is not None
    with pytest.raises(ValidationError):
        Diagnostics.model_validate(old | {"worst_rider": "rider-17"})
