"""What a report holds, without a browser: facts of the fit, nothing about a person, the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isuit.errors import InputError
from isuit.pages import page
from isuit.pages.packing import unpacked
from isuit.published import FitDetail, reading
from isuit.record import Diagnostics
from isuit.service.details import detail_of
from isuit.service.history import fits
from isuit.service.outings import outings
from isuit.service.reports import page_data, report
from isuit.service.stores import open_store
from isuit.store.fits import find_fit
from isuit.store.query import rows


def test_a_report_names_the_fit_and_no_rider(full_store: Path, tmp_path: Path) -> None:
    with open_store(full_store) as store:
        riders = [rider for (rider,) in rows(store.connection, "SELECT DISTINCT rider FROM personal.commitments")]
    assert len(riders) > 20
    for record in fits(full_store):  # the third has several metrics
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


def data_of_first(store_path: Path, **changes: Any) -> tuple[FitDetail, dict[str, Any]]:
    """A fit as it is shown, and what its page draws."""
    with open_store(store_path) as store:
        record = find_fit(store.connection, fits(store_path)[0].fit_id)
        shown = detail_of(store.connection, record).model_copy(update=changes)
        where = outings(store.connection, record.cohort_hash, record.fit_id, [None, "north", "south"], (5.0, 35.0))
        return shown, page_data(shown, reading.parameters(record.parameters), where, {"north": (1.5, 2.5)})


def test_curves_are_the_recorded_ones(full_store: Path) -> None:
    shown, data = data_of_first(full_store)
    curves = data["curves"]
    assert curves["ids"] == [None, "north", "south"]
    recorded = np.array([point.difficulty for point in shown.curves]).reshape(3, -1)[:, ::2]
    errors = np.array([point.difficulty_se for point in shown.curves]).reshape(3, -1)[:, ::2]
    np.testing.assert_allclose(unpacked(curves["difficulty"]) * curves["unit"], recorded.ravel(), atol=3e-4)
    np.testing.assert_allclose(unpacked(curves["se"]) * curves["unit"], errors.ravel(), atol=3e-4)
    assert curves["x"][-1] == shown.curves[-1].metric
    assert unpacked(curves["latitude"])[1] == 1.5
    assert np.isnan(unpacked(curves["latitude"])[2])


def test_outings_count_every_outcome_once(full_store: Path) -> None:
    shown, data = data_of_first(full_store)
    counts = unpacked(data["outings"]["counts"]).reshape(3, -1)
    with open_store(full_store) as store:
        held = rows(
            store.connection, "SELECT count(*) FROM personal.outcomes WHERE cohort_hash = ?", [shown.cohort.cohort_hash]
        )
    assert 0 < counts[0].sum() == held[0][0] < shown.cohort.outcomes  # one rider was erased
    assert (counts[1] + counts[2] == counts[0]).all()
    assert set(unpacked(data["outings"]["riders"]).tolist()) <= {0, 1, 2}  # words, never numbers of riders


def sections_by_id(store_path: Path, **changes: Any) -> dict[str, Any]:
    return {section["id"]: section for section in data_of_first(store_path, **changes)[1]["sections"]}


def test_what_the_record_does_not_have_makes_no_section(full_store: Path) -> None:
    found = sections_by_id(full_store, diagnostics=Diagnostics())
    assert set(found) == {"gates", "scores", "fit", "rederive"}


def test_calibration_has_intervals_and_a_verdict(full_store: Path) -> None:
    groups = [{"predicted": 0.2, "observed": 0.3, "outcomes": 10}, {"predicted": 0.6, "observed": 0.1, "outcomes": 90}]
    recorded = reading.diagnostics(json.dumps({"calibration": groups}))
    found = sections_by_id(full_store, diagnostics=recorded)["calibration"]
    assert found["sentence"].startswith("In 1 of 2 groups")
    points = found["chart"]["series"][0]
    assert points["x"] == [0.2, 0.6]
    # Wilson's interval of 3 in 10, as R's prop.test(3, 10, correct = FALSE) prints it.
    assert [points["lower"][0], points["upper"][0]] == pytest.approx([0.1077913, 0.6032219], abs=1e-7)


def test_no_p_value_is_zero(full_store: Path) -> None:
    text = json.dumps(sections_by_id(full_store), ensure_ascii=False)
    assert "p < 0.001" in text
    assert "p = 0.0 " not in text
    assert "p = 0.000" not in text


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
