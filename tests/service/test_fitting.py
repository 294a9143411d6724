"""`isuit fit` holds no lock while it works: what others do to the store meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from isuit.domain import FitConfig
from isuit.errors import StoreBusy, StoreError
from isuit.service import history
from isuit.service.checks import verify
from isuit.service.fitting import fit
from isuit.service.riders import delete_riders
from isuit.service.stores import open_store
from isuit.store.query import rows


def test_a_rider_who_opts_out_during_a_fit_does_not_come_back(
    tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    store = tmp_path / "store"
    fit(store, cohort_table(1), FitConfig())
    erased: list[str] = []

    def meanwhile(stage: str, share: float) -> None:
        if stage not in ("read", "record") and not erased:  # the cohort is read, and the estimator is at work
            erased.append(delete_riders(store, ["rider-0003"]).receipt_id)

    later = cohort_table(2)
    with pytest.raises(StoreBusy, match="opted out while this cohort was being fitted; run the command again"):
        fit(store, later, FitConfig(), progress=meanwhile)
    assert erased
    with open_store(store) as opened:
        assert rows(opened.connection, "SELECT 1 FROM personal.outcomes WHERE rider = 'rider-0003'") == []
    assert history.status(store).cohorts == 1
    assert fit(store, later, FitConfig()).suppressed_rows == 15  # again, as it says: without them
    assert verify(store).disagreements == []


def test_a_cohort_that_the_disk_has_no_room_for_is_not_fitted(
    tmp_path: Path, cohort_table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(StoreError, match=r"needs about \d+ MB of free disk .*nothing was fitted: free some space"):
        fit(tmp_path / "store", cohort_table(1), FitConfig())
    assert not (tmp_path / "store").exists()
