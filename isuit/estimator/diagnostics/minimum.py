"""Where difficulty is least, with an interval; undefined where the data do not show a minimum."""

from __future__ import annotations

import numpy as np

from isuit.domain import NO_SITE, Z95, FloatArray
from isuit.record.diagnostics import Minimum

from ..likelihood.latent import LatentFit
from ..model.basis import Spline

_FINE = 501


_UNDEFINED = Minimum(location=None, lower=None, upper=None)  # monotone or flat: its interval has no end


def least_difficulty(fit: LatentFit, site: int = NO_SITE) -> Minimum:
    """The least difficulty, and all metrics around it at which a slope of zero cannot be rejected (Fieller)."""
    spline = fit.space.spline
    assert isinstance(spline, Spline)  # of several metrics the least is a point of a surface
    metric = np.linspace(spline.lower, spline.upper, _FINE)
    f = fit.log_odds(metric, site) / fit.relative(metric)
    best = int(f.argmin())
    if best in (0, _FINE - 1) or spline.degree < 2:
        return _UNDEFINED
    slope = fit.slope_band(metric, site)
    flat = np.abs(slope.value) <= Z95 * slope.se
    below = np.flatnonzero(~flat[: best + 1] & (slope.value[: best + 1] < 0))
    above = np.flatnonzero(~flat[best:] & (slope.value[best:] > 0))
    if not below.size or not above.size:
        return _UNDEFINED
    lower, upper = float(metric[below[-1]]), float(metric[best + above[0]])
    return Minimum(location=_parabola(metric, f, best), lower=lower, upper=upper)


def _parabola(metric: FloatArray, f: FloatArray, best: int) -> float:
    """The vertex of the parabola through the least value and its neighbours: finer than the grid."""
    before, here, after = f[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.0 if bend <= 0 else 0.5 * (before - after) / bend
    return float(metric[best] + shift * (metric[1] - metric[0]))
