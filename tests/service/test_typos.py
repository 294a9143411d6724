"""A typo from Python is refused before anything is recorded; a store that an earlier version let it into is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import isuit
from isuit.domain import FitConfig
from isuit.errors import InputError
from isuit.service import checks, history
from isuit.service.fitting import fit
from isuit.service.reports import report

TYPOS: list[dict[str, Any]] = [
    {"gate": "Core"},
    {"gate": None},
    {"exposure": "bar"},
    {"exposure": ["independent"]},
    {"split": "riders"},
    {"activity": ""},
    {"activity": " kite"},
    {"dimension": "wind\n"},
    {"dimension": "\ud800"},
    {"dimension": 7},
    {"anchor": ((3.0, 0.1), (2.0, 0.4))},
    {"anchor": ((3.0, 0.1), (5.0, 1.4))},
    {"anchor": ((3.0, 0.1), (5.0, float("nan")))},
    {"anchor": ((3.0, "0.1"), (5.0, 0.4))},
    {"anchor": "curve.csv"},
    {"gate_bins": 1},
    {"gate_bins": 10**12},
    {"gate_bins": 8.0},
    {"min_bins_per_rider": 0},
    {"min_riders_per_bin": True},
    {"observed_until": "2025-01-01"},
    {"observed_until": datetime(2025, 1, 1)},
]


@pytest.mark.parametrize("typo", TYPOS)
def test_no_configuration_can_hold_a_typo(typo: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(typo))):
        FitConfig(**typo)


def test_nothing_is_recorded(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    store = isuit.open(tmp_path / "store")
    table = cohort_table(71, sites=("north",))
    wrong: list[dict[str, Any]] = [
        {"gate": "Core"},
        {"exposure": "bar"},
        {"split": "riders"},
        {"sites": {"north": (1000.0, 0.0)}},
        {"sites": {"north": (float("nan"), 0.0)}},
        {"sites": {"north": ("here", "there")}},
        {"sites": {7: (10.0, 10.0)}},
        {"observed_until": datetime(2025, 1, 1)},
    ]
    for typo in wrong:
        with pytest.raises(InputError):
            store.fit(table, **typo)
    assert not (tmp_path / "store").exists()
    with pytest.raises(InputError, match="policy"):
        history.init(tmp_path / "store", {"k": "ten"})
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "typo",
    [{"gate": "Core"}, {"exposure": "bar"}, {"observed_until": datetime(2025, 1, 1)}],
)
def test_a_store_that_holds_one_is_read(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch, typo: dict[str, Any]
) -> None:
    path = tmp_path / "store"
    with monkeypatch.context() as earlier:
        earlier.setattr(FitConfig, "__post_init__", lambda self: None)  # as versions up to this one were
        config = FitConfig(**typo)
        fit(path, cohort_table(72, riders=40, outcomes=20), config)
    found = history.fits(path)
    assert len(found) == 1
    if "gate" in typo:
        assert found[0].identification.reading == "Core"
    assert history.show(path, found[0].fit_id).curves
    assert checks.verify(path).ok
    assert checks.rederive(path, found[0].fit_id).verdict == "identical"
    report(path, found[0].fit_id, tmp_path / "page.html")
    fit(path, cohort_table(72, riders=40, outcomes=20), FitConfig(observed_until=date(2025, 1, 1)))
    assert len(history.fits(path)) == 2


def test_a_word_for_the_split_too(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    """Earlier estimators took any word but two for `occasion`; this one does not, so the word is put in by hand."""
    path = tmp_path / "store"
    made = fit(path, cohort_table(72, riders=40, outcomes=20), FitConfig(split="occasion")).fit_id
    with duckdb.connect(str(path / "store.duckdb")) as connection:
        for column in ("configuration", "held_out"):
            connection.execute(f"UPDATE ledger.fits SET {column} = replace({column}, 'occasion', 'sitting')")
    held_out = history.fits(path)[0].held_out
    assert held_out is not None
    assert held_out.split == "sitting"
    assert history.show(path, made).curves
    told = checks.rederive(path, made)
    assert told.disagreements == ["what ledger.fits holds of this fit is not what was logged"]
    assert told.largest_difference == 0
