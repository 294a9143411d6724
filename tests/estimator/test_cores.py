"""A whole fit on one, two and eight cores: not a bit differs, with sites and without."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from isuit.domain import FitConfig, Observations
from isuit.estimator import fit
from isuit.estimator.likelihood import grids

from .cohorts import observations


def drawn(sites: int) -> Observations:
    generator = np.random.default_rng(11)
    rider = np.repeat(np.arange(150), 24)
    metric = generator.uniform(3, 35, rider.size)
    site = generator.integers(0, sites, rider.size) if sites else None
    difficulty = ((metric - 18) / 8) ** 2 - 1 + (0 if site is None else 0.4 * site)
    skill = generator.standard_normal(150)
    outcome = generator.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    return observations(rider, metric, outcome, site)


@pytest.mark.parametrize("sites", [0, 3])
def test_the_number_of_cores_changes_no_bit(sites: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "LANE_ENTRIES", 200)
    pools: list[int] = []
    genuine = grids.ThreadPoolExecutor

    def pool(cores: int) -> object:
        pools.append(cores)
        return genuine(cores)

    monkeypatch.setattr(grids, "ThreadPoolExecutor", pool)
    found = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(grids, "CORES", cores)
        found.append(pickle.dumps(fit(drawn(sites), FitConfig())))
    assert set(pools) == {2, 8}, "riders this few are worked on in lanes all the same"
    assert found[0] == found[1] == found[2]
