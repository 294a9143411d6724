"""What a report holds, without a browser: facts of the fit, nothing about a person, the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isuit.errors import InputError
from isuit.pages import page
from isuit.published import reading
from isuit.record import Diagnostics
from isuit.service.history import fits, show
from isuit.service.reports import page_data, report
from isuit.service.stores import open_store
from isuit.store.query import rows


def test_a_report_names_the_fit_and_no_rider(full_store: Path, tmp_path: Path) -> None:
    with open_store(full_store) as store:
        riders = [rider for (rider,) in rows(store.connection, "SELECT DISTINCT rider FROM personal.commitments")]
    assert len(riders) > 20
    for record in fits(full_store):
        out = tmp_path / "report.html"
        report(full_store, record.fit_id, out)
        text = out.read_text()
        assert record.fit_id in text
        assert record.cohort_hash in text
        assert f"isuit rederive {record.fit_id}" in text
        assert not [rider for rider in riders if rider in text]
        first = out.read_bytes()
        report(full_store, record.cohort_hash, out)
        assert out.read_bytes() == first


def test_curves_are_the_recorded_ones(full_store: Path) -> None:
    shown = show(full_store, fits(full_store)[0].fit_id)
    curves = page_data(shown)["curves"]
    assert [curve["site"] for curve in curves] == [None, "north", "south"]
    assert sum(len(curve["metric"]) for curve in curves) == len(shown.curves)


def test_calibration_is_shown_where_the_record_has_it(full_store: Path) -> None:
    shown = show(full_store, fits(full_store)[0].fit_id)
    assert page_data(shown.model_copy(update={"diagnostics": Diagnostics()}))["calibration"] is None
    groups = [{"predicted": 0.2, "observed": 0.3, "outcomes": 9}, {"predicted": 0.6, "observed": 0.5, "outcomes": 8}]
    recorded = reading.diagnostics(json.dumps({"calibration": groups}))
    calibrated = page_data(shown.model_copy(update={"diagnostics": recorded}))["calibration"]
    assert calibrated == {"predicted": [0.2, 0.6], "observed": [0.3, 0.5], "outcomes": [9, 8]}


def test_no_text_can_leave_the_data() -> None:
    made = page("</title><script>", "fit", {"site": "</script><!--"})
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in made
    assert "\\u003c/script>\\u003c!--" in made


def test_a_page_goes_into_an_html_file(full_store: Path, tmp_path: Path) -> None:
    fit_id = fits(full_store)[0].fit_id
    with pytest.raises(InputError, match=r"\.html"):
        report(full_store, fit_id, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="cannot be written"):
        report(full_store, fit_id, tmp_path / "nowhere" / "report.html")
