"""The single curve reaches its maximum whatever the metric's tails are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isuit.estimator.likelihood.single_curve import fit_single_curve
from isuit.estimator.model.basis import spline_for
from isuit.estimator.model.counts import count
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.smoothing import precisions


# With a bound on the step in place of a line search the first two did not converge; the third has no finite basis when
# the penalty's eigenvalues are taken from the penalty and not from its root.
@pytest.mark.parametrize(("degrees", "seed", "bent"), [(2, 12, True), (1, 2, False), (1, 4, False), (1, 5, True)])
def test_metrics_far_out_do_not_keep_the_single_curve_from_its_maximum(degrees: int, seed: int, bent: bool) -> None:
    generator = np.random.default_rng(seed)
    rider = np.repeat(np.arange(80), 30)
    skill = generator.standard_normal(80)
    metric = generator.standard_t(degrees, rider.size)
    difficulty = metric**2 - 1 if bent else metric
    outcome = (generator.random(rider.size) < expit(1.5 * (skill[rider] - difficulty))).astype(np.int64)
    spline = spline_for(metric)
    counts = count(rider, metric, outcome, spline, 80, None)
    space = CurveSpace(spline, 0)
    design, groups = space.design(counts.item_metric, counts.item_site, 0.0), space.flat_groups()
    assert np.isfinite(design.columns()).all()
    found = fit_single_curve(design, groups, counts.item_trials, counts.item_successes)
    p = found.suitability(design)
    floor = np.where(groups < 0, 1e-3, 0.0)
    floor[0] = 1e-6
    gradient = design.pull_back(counts.item_trials * p - counts.item_successes)[0]
    gradient -= (precisions(found.rho, groups) + floor) * found.shared
    assert np.sqrt(gradient @ found.factor.solve(gradient)) < 1e-8
