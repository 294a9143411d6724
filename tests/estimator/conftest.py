"""The reference cohort and its fit, made once."""

from __future__ import annotations

import pytest

from isuit.domain import Estimate, FitConfig, FloatArray, Observations
from isuit.estimator import fit
from isuit.estimator.likelihood.latent import LatentFit
from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw

from .cohorts import latent_fit


@pytest.fixture(scope="session")
def reference() -> Observations:
    return draw(Truth(), REFERENCE_SEED)[0]


@pytest.fixture(scope="session")
def true_skill() -> FloatArray:
    return draw(Truth(), REFERENCE_SEED)[1]


@pytest.fixture(scope="session")
def estimate(reference: Observations) -> Estimate:
    return fit(reference, FitConfig())


@pytest.fixture(scope="session")
def reference_fit(reference: Observations) -> LatentFit:
    return latent_fit(reference)
