"""A rider's skill over cohorts whose populations differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isuit
from isuit.domain import FitConfig
from isuit.errors import NotFound
from isuit.service.fitting import fit
from isuit.service.trajectory import trajectory


def season(
    seed: int, skills: dict[str, float], year: int, low: float = 3.0, high: float = 35.0, outcomes: int = 40
) -> pa.Table:
    """Outcomes of riders with these skills, on one absolute scale."""
    random = np.random.default_rng(seed)
    riders = np.repeat(list(skills), outcomes)
    skill = np.repeat(list(skills.values()), outcomes)
    metric = random.uniform(low, high, riders.size)
    chance = 1 / (1 + np.exp(-2 * (skill - ((metric - 18) / 8) ** 2 + 1)))
    times = np.datetime64(f"{year}-06-01", "us") + random.integers(0, 10**12, riders.size)
    return pa.table(
        {
            "rider": riders,
            "metric": metric,
            "outcome": (random.random(riders.size) < chance).astype(np.int8),
            "observed_at": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def population(seed: int, tag: str, size: int, mean: float = 0.0) -> dict[str, float]:
    drawn = np.random.default_rng(seed).normal(mean, 1.0, size)
    return {f"{tag}{number}": float(skill) for number, skill in enumerate(drawn)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second season has stronger riders: the same skill is a lower number there. One rider really improves."""
    path = tmp_path_factory.mktemp("seasons") / "store"
    shared, first, second = population(1, "s", 40), population(2, "a", 40), population(3, "b", 60, mean=1.5)
    config = FitConfig(activity="kite", dimension="wind")
    fit(path, season(11, {**shared, **first, "steady": 0.5, "learner": -1.0}, 2024), config)
    fit(path, season(12, {**shared, **second, "steady": 0.5, "learner": 1.5}, 2025), config)
    fit(path, season(13, {**population(4, "c", 60), "steady": 0.5}, 2026), config)
    return path


def test_another_population_is_not_drift(store: Path) -> None:
    first, second, third = trajectory(store, "steady").points
    assert second.skill_mean < first.skill_mean - 0.3  # the same rider among stronger ones
    assert second.linked_mean == pytest.approx(first.skill_mean, abs=2 * np.hypot(first.skill_sd, second.skill_sd))
    assert not second.drift
    assert first.observed_from is not None
    assert first.observed_from.year == 2024
    assert third.linked_mean is None
    assert "cannot be compared" in (third.note or "")


def test_a_rider_who_improves_is_flagged(store: Path) -> None:
    first, second = trajectory(store, "learner").points
    assert second.drift
    assert second.linked_mean is not None
    assert second.linked_mean - first.skill_mean == pytest.approx(2.5 / 1.0, abs=1.2)


def test_few_who_did_not_change_are_flagged(store: Path) -> None:
    flagged = sum(trajectory(store, f"s{number}").points[1].drift for number in range(0, 40, 2))
    assert flagged <= 4  # 5 % of 20 is 1


def test_a_rider_is_no_link_for_their_own_skill(tmp_path: Path) -> None:
    """Both seasons have `me` and four others: with the one asked about they would be enough to link the two."""
    common = population(21, "s", 4) | {"me": 0.0}
    for year, tag in ((2024, "a"), (2025, "b")):
        fit(tmp_path / "store", season(year, common | population(year, tag, 40), year), FitConfig())
    points = trajectory(tmp_path / "store", "me").points
    assert all(point.usable for point in points)
    assert "share 4 other riders" in (points[1].note or "")
    assert points[1].linked_mean is None


def test_ranges_that_do_not_meet_cannot_be_compared(tmp_path: Path) -> None:
    riders = population(5, "s", 60)
    config = FitConfig()
    fit(tmp_path / "store", season(14, riders, 2024, high=17), config)
    fit(tmp_path / "store", season(15, riders, 2025, low=19), config)
    points = trajectory(tmp_path / "store", "s1").points
    assert "too little of the metric's range" in (points[1].note or "")


def test_a_rider_nobody_knows(store: Path) -> None:
    with pytest.raises(NotFound) as caught:
        trajectory(store, "nobody-at-all")
    assert "nobody-at-all" not in str(caught.value)


def test_the_order_is_that_of_time_not_of_recording(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    riders = population(6, "s", 50)
    fit(tmp_path / "store", season(17, riders, 2025), FitConfig())
    fit(tmp_path / "store", season(16, riders, 2023), FitConfig())
    years = [point.observed_from.year for point in trajectory(tmp_path / "store", "s1").points if point.observed_from]
    assert years == [2023, 2025]


def test_the_original_id_finds_what_its_token_stands_for(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    store = isuit.open(tmp_path / "store")
    pq.write_table(cohort_table(1), tmp_path / "cohort.parquet")
    store.pseudonymise(tmp_path / "cohort.parquet", tmp_path / "tokens.parquet")
    store.fit(tmp_path / "tokens.parquet")
    (token,) = {row["token"] for row in store.show_rider("rider-0001").rows["personal.pseudonyms"]}
    assert trajectory(store.path, "rider-0001") == trajectory(store.path, token)
