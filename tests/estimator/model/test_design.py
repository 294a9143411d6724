"""Designs: what a compiled loop computes and what numpy does are the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.estimator.model.basis import Spline
from isuit.estimator.model.curves import CurveSpace


@pytest.mark.parametrize("sites", [0, 3, 60])
def test_a_curve_has_the_same_bits_with_and_without_a_compiled_loop(sites: int) -> None:
    """A score of one condition must not differ from the fit's own curve, whoever computes it."""
    rng = np.random.default_rng(sites)
    space = CurveSpace(Spline(2.0, 30.0, tuple(np.linspace(0.1, 0.9, 9)), 3, 3), sites, None, None)
    metric, site = rng.uniform(2, 30, 500), rng.integers(-1, sites, 500) if sites else np.full(500, -1)
    design = space.design(metric, site, 0.0)
    shared, own = rng.normal(size=design.shared_size), rng.normal(size=(design.places, design.width))
    assert design.evaluate(shared, own).tobytes() == design.apply(shared, own).tobytes()
