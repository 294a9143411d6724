"""A fit of moving skill in a store: its paths are shown, vouched for, rederived and erased, and nothing leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from isuit.domain import FitConfig
from isuit.service import checks, riders
from isuit.service.fitting import fit
from isuit.service.stores import open_store
from isuit.service.trajectory import trajectory
from tests.estimator.cohorts import moving_cohort

pytestmark = pytest.mark.long
RIDER = "rider-00003"


def table() -> pa.Table:
    data, _ = moving_cohort(riders=30, days=20, walk=2.0)
    assert data.observed_at is not None
    return pa.table(
        {
            "rider": [data.riders[r] for r in data.rider.tolist()],
            "metric": data.metric,
            "outcome": data.outcome,
            "observed_at": pa.array(data.observed_at, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moving") / "store"
    fit(path, table(), FitConfig(activity="surf", dimension="wind", skill="moving", split="time"))
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "store")
    return tmp_path / "store"


def test_a_trajectory_has_the_days_of_the_cohort(store: Path) -> None:
    (point,) = trajectory(store, RIDER).points
    assert point.path is not None
    assert len(point.path) == 20
    assert point.path[-1].skill_mean == point.skill_mean
    assert [day.day for day in point.path] == sorted(day.day for day in point.path)
    assert not point.drift
    if point.moved:
        assert point.note is not None
        assert "within this cohort" in point.note


def test_a_path_that_was_changed_is_noticed(store: Path) -> None:
    assert checks.verify(store).ok
    with open_store(store, write=True) as opened:
        opened.connection.execute(f"UPDATE personal.skills SET path = replace(path, '1', '2') WHERE rider = '{RIDER}'")
    found = checks.verify(store)
    assert not found.ok


def test_it_is_rederived_to_the_bit(store: Path) -> None:
    (point,) = trajectory(store, RIDER).points
    report = checks.rederive(store, point.fit_id)
    assert report.verdict == "identical"


def test_erasure_takes_the_path(store: Path) -> None:
    riders.delete_riders(store, [RIDER])
    with open_store(store) as opened:
        (left,) = opened.connection.execute("SELECT count(*) FROM personal.skills WHERE rider = ?", [RIDER]).fetchall()
    assert left == (0,)
    assert checks.verify(store).ok


def test_no_curve_tells_of_days(store: Path) -> None:
    with open_store(store) as opened:
        columns = opened.connection.execute("DESCRIBE atlas.difficulty").fetchall()
    assert not {name for name, *_ in columns} & {"path", "day", "observed_at"}
    assert np.isfinite(trajectory(store, RIDER).points[0].skill_sd)
