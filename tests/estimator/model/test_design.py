"""Designs: what a compiled loop computes and what numpy does are the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from isuit.estimator.model.basis import Spline
from isuit.estimator.model.curves import CurveSpace
from isuit.estimator.model.surface import surface_for


@pytest.mark.parametrize("sites", [0, 3, 60])
def test_a_curve_has_the_same_bits_with_and_without_a_compiled_loop(sites: int) -> None:
    """A score of one condition must not differ from the fit's own curve, whoever computes it."""
    rng = np.random.default_rng(sites)
    space = CurveSpace(Spline(2.0, 30.0, tuple(np.linspace(0.1, 0.9, 9)), 3, 3), sites, None, None)
    metric, site = rng.uniform(2, 30, 500), rng.integers(-1, sites, 500) if sites else np.full(500, -1)
    design = space.design(metric, site, 0.0)
    shared, own = rng.normal(size=design.shared_size), rng.normal(size=(design.places, design.width))
    assert design.evaluate(shared, own).tobytes() == design.apply(shared, own).tobytes()


@pytest.mark.parametrize("sites", [0, 3, 60])
def test_rows_of_a_surface_are_added_up_by_boxes(sites: int) -> None:
    """Against dense rows: some boxes have many rows, some one, and some rows are at no site."""
    rng = np.random.default_rng(sites)
    conditions = tuple(rng.gamma(2.0, size=400) for _ in range(3))
    space = CurveSpace(surface_for(("a", "b", "c"), conditions), sites, None, None)
    site = rng.integers(-1, sites, 400) if sites else np.full(400, -1)
    design, weight = space.design(np.column_stack(conditions), site, 1.0), rng.uniform(0, 2, 400)
    shared, across, own = design.gram(weight)
    columns = design.columns()[:, : design.shared_size]
    np.testing.assert_allclose(shared, columns.T @ (weight[:, None] * columns), rtol=1e-9, atol=1e-9)
    for place in range(design.places):
        here = site == place
        both = design.columns(place)[here]
        mine = both[:, design.shared_size :]
        np.testing.assert_allclose(across[place], mine.T @ (weight[here, None] * columns[here]), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(own[place], mine.T @ (weight[here, None] * mine), rtol=1e-9, atol=1e-9)
