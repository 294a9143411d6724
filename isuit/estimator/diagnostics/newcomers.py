"""Scores for those whom a fit has never seen: riders without outcomes, and sites without outcomes.

Each keeps back a fifth of the riders or sites with all their outcomes, fits the rest anew, and predicts what was kept
back by the rule that the record states. The single curve of the same rest is the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from isuit import columns
from isuit.domain import NO_SITE, FloatArray, IntArray, Observations
from isuit.errors import EstimationError
from isuit.record.predictions import Scores, ScoresOfAll

from ..likelihood.bands import suitability_of
from ..likelihood.latent import LatentFit
from ..likelihood.single_curve import SingleCurve
from ..model.curves import CurveSpace
from . import forecasts, heldout

LEAST_SITES = 5
RIDER_RULE = (
    "A new rider is predicted by the curve of the site with skill integrated out over the population's mixture; where "
    "the rider goes does not enter, also with correlated exposure."
)
SITE_RULE = (
    "A new site is predicted by the curve that all sites share, at the posterior of a rider known from elsewhere."
)
NEARBY_RULE = (
    "A new site is predicted by the curve that all sites share, at the level that sites nearby tell and at the "
    "posterior of a rider known from elsewhere; how alike sites are is that of the whole fit."
)


@dataclass(frozen=True)
class Refit:
    """A fit of the outcomes that were not kept back."""

    space: CurveSpace
    single: SingleCurve
    latent: LatentFit

    def of_single(self, test: Observations, site: IntArray) -> FloatArray:
        """What the single curve predicts of these rows."""

        def suitability(part: slice) -> FloatArray:
            return self.single.suitability(self.space.design(test.condition[part], site[part], 0.0))

        return np.concatenate([np.zeros(0), *map(suitability, columns.slices(len(test), columns.DESIGN_ROWS))])


# Takes a mask of rows and a name for the progress; fits these rows, with only the riders who have any among them.
Refitter = Callable[[NDArray[np.bool_], str], Refit]


def newcomers(data: Observations, refit: Refitter, held_out: Scores | None) -> ScoresOfAll:
    """Scores for new riders and new sites beside those of known riders; where there are none, None, and the reason in
    `left_out`."""
    found: dict[str, Scores | None] = {}
    left_out: dict[str, str] = {}
    for name, score in (("new_riders", _new_riders), ("new_sites", _new_sites)):
        try:
            found[name] = score(data, refit)
        except _Untold as reason:
            found[name], left_out[name] = None, str(reason)
        except (EstimationError, LinAlgError) as error:
            # A part of the cohort can be harder to fit than the whole. That says nothing against the fit itself.
            found[name], left_out[name] = None, f"the refit without them failed: {error}"
    return ScoresOfAll(held_out=held_out, **found, left_out=left_out)


def nobody(reason: str, held_out: Scores | None) -> ScoresOfAll:
    """What stands in the record of a fit that has no skill to predict newcomers with."""
    left_out = {"new_riders": reason, "new_sites": reason}
    return ScoresOfAll(held_out=held_out, new_riders=None, new_sites=None, left_out=left_out)


class _Untold(Exception):
    """There is no score, for the reason that the message gives."""


def _new_riders(data: Observations, refit: Refitter) -> Scores:
    kept_back = heldout.of_new_riders(data)
    test, fitted = data.rows(kept_back), _fitted(data, kept_back, refit, "new riders")
    site = places(test, fitted.space)
    predicted = forecasts.Forecasts.of(
        test, marginals(fitted.latent, test.condition, site), fitted.of_single(test, site)
    )
    return replace(forecasts.of_forecasts(predicted), rule=RIDER_RULE)


def _new_sites(data: Observations, refit: Refitter) -> Scores:
    if data.site is None or len(data.sites) < LEAST_SITES:
        raise _Untold(f"the cohort has fewer than {LEAST_SITES} sites")
    kept_back = heldout.of_new_sites(data)
    known = columns.counted(data.rider, len(data.riders), ~kept_back) > 0
    scored = kept_back & known[data.rider]
    if not scored.any():
        raise _Untold("no rider at the sites kept back was seen elsewhere")
    fitted = _fitted(data, kept_back, refit, "new sites")
    test, rider = data.rows(scored), (np.cumsum(known) - 1)[data.rider[scored]]
    shared, nearby = np.full(len(test), NO_SITE), fitted.latent.problem.nearby is not None
    # Without outcomes a site's level is what its neighbours tell.
    site = places(test, fitted.space) if nearby else shared
    predicted = forecasts.Forecasts.of(
        test, fitted.latent.predict(rider, test.condition, site), fitted.of_single(test, shared)
    )
    sites = int(np.unique(data.site[scored]).size)
    return replace(forecasts.of_forecasts(predicted), rule=NEARBY_RULE if nearby else SITE_RULE, sites=sites)


def _fitted(data: Observations, kept_back: NDArray[np.bool_], refit: Refitter, stage: str) -> Refit:
    outcomes = len(data) - int(np.count_nonzero(kept_back))
    if outcomes in (0, len(data)):
        raise _Untold("the cohort is too small to keep any back")
    if int(np.count_nonzero(data.outcome)) - int(np.count_nonzero(data.outcome[kept_back])) in (0, outcomes):
        raise _Untold("all outcomes of the others are equal")
    fitted = refit(~kept_back, stage)
    if fitted.latent.solution.no_skill:
        raise _Untold("without them, skill explains nothing")
    return fitted


def places(test: Observations, space: CurveSpace) -> IntArray:
    return np.full(len(test), NO_SITE) if test.site is None or not space.sites else test.site.astype(np.int64)


def marginals(latent: LatentFit, metric: FloatArray, site: IntArray) -> FloatArray:
    """The skill-integrated curve at each row's metric and site."""
    p = latent.parameters

    def log_odds(part: slice) -> FloatArray:
        return latent.space.design(metric[part], site[part], p.a).apply(p.shared, p.own)

    parts = map(log_odds, columns.slices(len(metric), columns.DESIGN_ROWS))
    relative = None if latent.space.slopes is None else latent.relative(metric)
    return suitability_of(latent, np.concatenate([np.zeros(0), *parts]), relative)
