"""Averages over the standard normal distribution: `f(NODES) @ WEIGHTS` is the mean of f, by Gauss and Hermite."""

from __future__ import annotations

import numpy as np

NODES, _weights = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = _weights / _weights.sum()
