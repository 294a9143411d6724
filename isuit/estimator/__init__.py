"""Marginal maximum likelihood for skill and difficulty. Numpy and scipy only: no store, no clock, no printing.

    estimate = fit(observations, FitConfig())

`fit.py` tells the order of the steps; `quadrature.py` is the likelihood, on the grids of `grids.py` and with the
information of `information.py`; `solver.py` is its maximisation, `curves.py` and `population.py` the two sides of the
model, `latent.py` what follows from a solution, `diagnostics.py` what a fit says about itself.
"""

from isuit.estimator.fit import ESTIMATOR_VERSION, fit, predict_held_out
from isuit.estimator.suitability import score

__all__ = ["ESTIMATOR_VERSION", "fit", "predict_held_out", "score"]
