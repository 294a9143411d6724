"""`isuit rank`: the sites of a fit from the hardest to the easiest, and how sure their order is.

The probability that a site is harder than the next needs the error of their difference. Of the errors that sites share,
a fit's record tells the part that goes with the discrimination, which is taken into account; the rest is taken as
independent, although the shared curve and the riders whom both sites have make sites err together. A difference is then
told with too wide an error, and its probability nearer to one half than it is.
"""

from __future__ import annotations

from math import erf, sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.domain import Z95, FloatArray
from isuit.errors import InputError
from isuit.published import RankedSite, Ranking
from isuit.record.parameters import LatentCurves, LatentParameters, SurfaceParameters
from isuit.service.scoring import Scorer
from isuit.service.scoring_conditions import Conditions
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import atlas_rows, find_fit


def rank(store_path: Path, reference: str, metric: float | None = None, wait: float = DEFAULT_WAIT) -> Ranking:
    """Sites by difficulty at this metric, or each at its easiest condition; a single curve's by suitability."""
    with open_store(store_path, wait=wait) as store:
        record = find_fit(store.connection, reference)
        curves = atlas_rows(store.connection, record.fit_id)
    return rank_with(Scorer.from_record(record, curves), curves, metric)


def rank_with(scorer: Scorer, curves: pa.Table, metric: float | None) -> Ranking:
    """The same of a fit that is at hand."""
    if isinstance(scorer.parameters, SurfaceParameters):
        raise InputError("this fit has several metrics, and sites are ranked along one: fit one of them by itself")
    if not len(scorer.sites) or not scorer.parameters.sites:
        raise InputError("this fit has no curves of sites to rank; fit a cohort with a column site")
    if metric is not None and bool(scorer.outside(np.array([metric]))[0]) and not scorer.anchored:
        low, high = scorer.observed
        raise InputError(f"the metric is outside the observed range {low:g} to {high:g}; rank sites within it")
    named = [name for name in scorer.parameters.sites if name in scorer.parameters.bands]
    at = np.full(len(named), metric) if metric is not None else _easiest(curves, named)
    value, se = _values(scorer, named, at)
    order = np.lexsort((np.array(named), -value if not scorer.single else value))
    harder = _harder(scorer, value[order], se[order], [named[place] for place in order], at[order])
    sites = []
    for place, site in enumerate(order.tolist()):
        ends = value[site] - Z95 * se[site], value[site] + Z95 * se[site]
        sites.append(
            RankedSite(
                place=place + 1,
                site=named[site],
                metric=float(at[site]),
                difficulty=None if scorer.single else float(value[site]),
                suitability=_share(value[site]) if scorer.single else None,
                lower=_share(ends[0]) if scorer.single else float(ends[0]),
                upper=_share(ends[1]) if scorer.single else float(ends[1]),
                harder_than_next=None if place + 1 == len(named) else float(harder[place]),
            )
        )
    notes = ["this fit is a single curve: sites are ranked by suitability for the population"] if scorer.single else []
    without = sorted(set(scorer.parameters.sites) - set(named))
    return Ranking(
        fit_id=scorer.record.fit_id,
        kind=scorer.record.kind,
        metric=metric,
        sites=sites,
        without_difficulty=without,
        notes=notes,
    )


def _easiest(curves: pa.Table, named: list[str]) -> FloatArray:
    """Where each site is most suitable, among the points of its curve."""
    table = curves.select(["site", "metric", "suitability"]).filter(pc.is_valid(curves.column("site")))
    best: dict[str, tuple[float, float]] = {}
    for site, metric, suitability in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if site not in best or suitability > best[site][1]:
            best[site] = metric, suitability
    return np.array([best[name][0] for name in named])


def _values(scorer: Scorer, named: list[str], at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Difficulty and its standard error at each site; of a single curve the log odds."""
    from isuit import estimator

    assert not isinstance(scorer.parameters, SurfaceParameters)
    places = np.array([scorer.parameters.sites.index(name) for name in named], np.int64)
    if isinstance(scorer.parameters, LatentCurves):
        found = estimator.difficulty_rows(scorer.parameters, at, places)
        return found.difficulty, found.se
    scored = scorer.score(Conditions(at, pa.array(named, pa.string()), np.zeros(len(named))))
    value, lower, upper = (np.log(end / (1 - end)) for end in scored)
    return value, (upper - lower) / (2 * Z95)


def _harder(scorer: Scorer, value: FloatArray, se: FloatArray, named: list[str], at: FloatArray) -> FloatArray:
    """The probability that each site is harder than the next; `value` falls with the place, or rises if log odds."""
    from isuit import estimator

    variance = se**2
    between = variance[:-1] + variance[1:]
    # A discrimination that changes has several parameters, and one covariance does not say how they go together.
    if isinstance(scorer.parameters, LatentParameters):
        places = np.array([scorer.parameters.sites.index(name) for name in named], np.int64)
        together = estimator.with_discrimination(scorer.parameters, at, places)
        # cov(i, j) through the discrimination alone is c_i c_j / var(a); of the difference it takes twice that away.
        between = between - 2 * together[:-1] * together[1:] / scorer.parameters.discrimination_se**2
    gap = np.abs(np.diff(value))
    z = gap / np.sqrt(np.maximum(between, 1e-300))
    return np.array([0.5 + 0.5 * erf(value / sqrt(2)) for value in z.tolist()])


def _share(log_odds: float) -> float:
    return float(1 / (1 + np.exp(-log_odds)))
