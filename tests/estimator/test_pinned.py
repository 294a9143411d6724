"""Numbers of a fit of one metric, as they were before there were several metrics or a discrimination that varies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isuit.domain import FitConfig, Observations
from isuit.estimator import fit

RIDERS, EACH = 60, 12


def cohort() -> Observations:
    rng = np.random.default_rng(2026)
    rider = np.repeat(np.arange(RIDERS, dtype=np.int32), EACH)
    metric = np.round(rng.uniform(3, 35, rider.size), 1)
    skill = rng.standard_normal(RIDERS)
    chance = expit(1.8 * (skill[rider] - ((metric - 18) / 8) ** 2 + 1))
    outcome = (rng.random(rider.size) < chance).astype(np.int8)
    return Observations(tuple(f"r{number:03d}" for number in range(RIDERS)), rider, metric, outcome)


def test_one_metric_and_one_discrimination_give_the_numbers_that_they_gave() -> None:
    """To the digits that `rederive` compares; a change here is a new version of the estimator."""
    found = fit(cohort(), FitConfig())
    curve = found.curves[0]
    assert found.skills is not None
    assert curve.difficulty is not None
    assert curve.difficulty_se is not None
    numbers = [
        found.log_likelihood,
        found.discrimination,
        found.discrimination_se,
        *curve.difficulty[[10, 50, 90]],
        *curve.difficulty_se[[10, 50, 90]],
        found.skills.mean[7],
        found.skills.sd[7],
    ]
    assert numbers == pytest.approx(
        [
            -296.22051317308296,
            1.9764332018077646,
            0.2751965411211431,
            *(1.2192449971515178, -1.1118643532780528, 1.8932300614453546),
            *(0.23411978349114165, 0.1983207042847717, 0.28856341660627494),
            0.9049776861082579,
            0.483381023156681,
        ],
        rel=1e-8,
    )


def test_a_discrimination_that_varies_has_an_answer_for_few_riders_and_few_values() -> None:
    """Ten riders are told to give no reason for it; of a metric with four values each has one; units do not matter."""
    data = cohort()
    ten = data.rows(data.rider < 10)
    ten = Observations(data.riders[:10], ten.rider, ten.metric, ten.outcome)
    few = fit(ten, FitConfig(discrimination="varying")).diagnostics.discrimination
    assert few is not None
    assert "no reason" in (few.sentence or "")
    values = Observations(data.riders, data.rider, np.round(data.metric / 11), data.outcome)
    told = fit(values, FitConfig(discrimination="varying", min_bins_per_rider=2)).diagnostics.discrimination
    again = Observations(data.riders, data.rider, 1000 * values.metric, data.outcome)
    larger = fit(again, FitConfig(discrimination="varying", min_bins_per_rider=2)).diagnostics.discrimination
    assert told is not None
    assert larger is not None
    assert larger.curves[0].discrimination == pytest.approx(told.curves[0].discrimination, rel=1e-6)
