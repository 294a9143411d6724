"""Marginal maximum likelihood for skill and difficulty: arrays in, an estimate out; no store, no clock, no printing.

    estimate = fit(observations, FitConfig())

`fit.py` lists the steps in order. `model/` is what is fitted: curves along the metric and the population of skills.
`likelihood/` integrates skill out and finds the maximum. `diagnostics/` is what a fit says about itself. `gate.py` and
`validity.py` decide what is fitted at all, and `suitability.py` scores from the recorded parameters.
"""

from isuit.estimator.fit import ESTIMATOR_VERSION, fit, predict_held_out
from isuit.estimator.suitability import score

__all__ = ["ESTIMATOR_VERSION", "fit", "predict_held_out", "score"]
