"""With few sites their levels are all but free; what they share is then their mean, with a band of ordinary width."""

import numpy as np
from scipy.special import expit

from isuit.domain import Observations
from isuit.estimator import fit
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.curves import CurveSpace


def test_the_shared_curve_of_two_sites_is_their_mean() -> None:
    generator = np.random.default_rng(2)
    rider = np.repeat(np.arange(60), 30)
    metric, site = generator.uniform(3, 35, rider.size), generator.integers(0, 2, rider.size)
    success = expit(2 * (generator.standard_normal(60)[rider] - ((metric - 18) / 8) ** 2 + 1 - 0.8 * site))
    outcome = (generator.random(rider.size) < success).astype(np.int64)
    names = tuple(f"r{r:02d}" for r in range(60))
    shared, first, second = fit(Observations(names, rider, metric, outcome, ("a", "b"), site)).curves
    assert shared.difficulty is not None
    assert shared.difficulty_se is not None
    assert first.difficulty is not None
    assert first.difficulty_se is not None
    assert second.difficulty is not None
    np.testing.assert_allclose(shared.difficulty, (first.difficulty + second.difficulty) / 2, atol=1e-8)
    assert np.all(shared.difficulty_se < 1.5 * first.difficulty_se)


def test_sites_with_few_outcomes_have_few_functions() -> None:
    spline = spline_for(np.linspace(0.0, 1.0, 500))
    sizes = [CurveSpace.for_outcomes(outcomes, spline, 10).site_size for outcomes in (100, 1_000, 10_000)]
    assert sizes == [1, spline.free, None]
