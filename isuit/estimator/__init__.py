"""Marginal maximum likelihood for skill and difficulty: arrays in, estimates out. No store, no clock, no printing.

    estimate = fit(observations, FitConfig())

The rooms, each of which uses only those before it:

    model/        what is assumed: splines, curves by site, the population of skills, outcomes as counts
    likelihood/   how likely outcomes are under it, its maximum, and what follows from a maximum
    diagnostics/  what a fit says about itself: held-out scores, exposure, tests of its assumptions

and at the top what others call:

    fit           one cohort from outcomes to estimate; it tells the order of the steps
    weighted_fit  weighted outcomes by site, and what one rider changes: for a release
    linking       two fits on one scale: for a trajectory
    suitability   scoring from the parameters that a fit records
    surfaces      the same of several metrics
    riders_on     where riders are during a fit: in this process, or on the workers of an engine
    gate, promotion, validity   what must hold before a latent fit stands for a cohort
"""

from isuit.estimator.fit import ESTIMATOR_VERSION, fit, predict_held_out
from isuit.estimator.likelihood.errands import answer
from isuit.estimator.likelihood.errands import end as end_session
from isuit.estimator.likelihood.far import Engine, riders_on
from isuit.estimator.model.normal import NODES, WEIGHTS
from isuit.estimator.suitability import (
    NO_DIFFICULTY,
    difficulty_rows,
    discrimination_rows,
    score,
    score_rows,
    with_discrimination,
)
from isuit.estimator.support import is_supported
from isuit.estimator.surfaces import discrimination_of_conditions, score_surface
from isuit.record import SurfaceParameters

__all__ = [
    "ESTIMATOR_VERSION",
    "NODES",
    "NO_DIFFICULTY",
    "WEIGHTS",
    "Engine",
    "SurfaceParameters",
    "answer",
    "difficulty_rows",
    "discrimination_of_conditions",
    "discrimination_rows",
    "end_session",
    "fit",
    "is_supported",
    "predict_held_out",
    "riders_on",
    "score",
    "score_rows",
    "score_surface",
    "with_discrimination",
]
