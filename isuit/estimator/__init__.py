"""Marginal maximum likelihood for skill and difficulty. Numpy and scipy only: no files, no clock, no printing.

    estimate = fit(observations, FitConfig())

`fit.py` tells the order of the steps; `quadrature.py` is the likelihood, `solver.py` its maximisation, `curves.py` and
`population.py` the two sides of the model, `latent.py` what follows from a solution.
"""

from .fit import ESTIMATOR_VERSION, fit, predict_held_out
from .scoring import score

__all__ = ["ESTIMATOR_VERSION", "fit", "predict_held_out", "score"]
