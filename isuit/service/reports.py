"""`isuit report FIT`: one page to look at, with everything that is known about a fit and nothing about a person.

The curves are packed (`isuit.pages.packing`), half of their points and four digits of each: a page of 5,000 sites has
some megabytes. What the record says besides is put into words by `isuit.service.report_sections`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from isuit import look
from isuit.domain import too_few
from isuit.pages import page, write_page
from isuit.pages.packing import packed
from isuit.published import FitDetail, PageWritten, reading
from isuit.record import SurfaceParameters
from isuit.record.parameters import CurveParameters, LatentCurves, VaryingParameters
from isuit.service.details import detail_of
from isuit.service.outings import outings
from isuit.service.report_sections import sections
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.service.surface_maps import surface_maps
from isuit.store.fits import find_fit
from isuit.store.sites import Coordinates, known_sites

EVERY = 2  # of the recorded points of a curve; both ends are kept, because there are 101
COARSEST = 0.0005  # skill sd: to what difficulties are rounded, unless some are so large that they need more


def report(store_path: Path, reference: str, out: Path, wait: float = DEFAULT_WAIT) -> PageWritten:
    """Write the page of a fit."""
    with open_store(store_path, wait=wait) as store:
        record = find_fit(store.connection, reference)
        shown = detail_of(store.connection, record)
        parameters = reading.parameters(record.parameters)
        if isinstance(parameters, SurfaceParameters):
            return _written(out, shown, page(_title(shown), "surface", surface_page_data(shown, parameters)))
        metrics = [point.metric for point in shown.curves]
        where = outings(
            store.connection, record.cohort_hash, record.fit_id, _order(shown), (min(metrics), max(metrics))
        )
        data = page_data(shown, parameters, where, known_sites(store.connection))
    return _written(out, shown, page(_title(shown), "fit", data))


def _title(shown: FitDetail) -> str:
    return f"{shown.fit.activity}: {shown.fit.dimension}, {shown.fit.fit_id[:17]}"


def _written(out: Path, shown: FitDetail, text: str) -> PageWritten:
    write_page(out, text)
    return PageWritten(fit_id=shown.fit.fit_id, cohort_hash=shown.fit.cohort_hash, out=str(out))


def surface_page_data(shown: FitDetail, parameters: SurfaceParameters) -> dict[str, Any]:
    """What the page of several metrics draws: the maps of all pairs, and what the record says."""
    maps = surface_maps(parameters)
    largest = max(float(np.abs(found.difficulty[found.supported]).max(initial=0.0)) for found in maps)
    widest = max(float(found.se[found.supported].max(initial=0.0)) for found in maps)
    unit = max(COARSEST, largest / 32000, widest / 65000)
    names = [look.quantity(name) for name in parameters.metrics]
    latent = shown.fit.kind == "latent"
    held = [f"{what}." for what in _held(shown, len(names))]
    return {
        "title": f"{shown.fit.activity}: {', '.join(look.axis(name) for name in parameters.metrics)}",
        "summary": _summary(shown),
        "value": look.WORDS["difficulty"] if latent else "log odds of failing",
        "axes": [look.axis(name) for name in parameters.metrics],
        "quantities": [name for name, _ in names],
        "units": [unit_ for _, unit_ in names],
        "reference": list(parameters.support.reference),
        "held": " ".join(held) or None,
        "first": _most_together(shown, parameters.metrics, [found.pair for found in maps]),
        "unit": unit,
        "maps": [
            {
                "pair": list(found.pair),
                "x": [float(value) for value in found.first],
                "y": [float(value) for value in found.second],
                # Nothing leaves the page of where nobody was, not even what the model would make of it.
                "difficulty": packed(np.where(found.supported, np.round(found.difficulty / unit), 0).ravel(), "i2"),
                "se": packed(np.where(found.supported, np.round(found.se / unit), 0).ravel(), "u2"),
                "supported": packed(found.supported.ravel().astype(np.uint8), "u1"),
            }
            for found in maps
        ],
        "sections": sections(shown),
    }


def _held(shown: FitDetail, metrics: int) -> list[str]:
    """What the maps leave out."""
    sites = ["This is the surface that all sites share"] if shown.cohort.sites > 1 else []
    return [*sites, *(["The other metrics are at their medians"] if metrics > 2 else [])]


def _most_together(shown: FitDetail, metrics: tuple[str, ...], pairs: list[tuple[int, int]]) -> int:
    """The pair to look at first: the one whose interaction moves difficulty most."""
    size = {term.metrics: 0.0 if term.is_zero else term.sd for term in shown.diagnostics.terms or ()}
    return max(range(len(pairs)), key=lambda k: size.get((metrics[pairs[k][0]], metrics[pairs[k][1]]), 0.0))


def _summary(shown: FitDetail) -> str:
    cohort = shown.cohort
    places = "" if cohort.sites < 2 else f" at {cohort.sites:,} sites"
    kind = (
        "skill and difficulty are told apart"
        if shown.fit.kind == "latent"
        else "a single curve: skill and difficulty are not told apart"
    )
    return f"{cohort.outcomes:,} outcomes of {cohort.riders:,} riders{places}; {kind}."


def page_data(
    shown: FitDetail, parameters: CurveParameters, where: dict[str, Any] | None, sites: Mapping[str, Coordinates]
) -> dict[str, Any]:
    """What the page draws: aggregates of a fit's record, by name, so that nothing else can slip in."""
    fit = shown.fit
    quantity, unit = look.quantity(fit.dimension)
    return {
        "title": f"{fit.activity}: {look.axis(fit.dimension)}",
        "axis": look.axis(fit.dimension),
        "quantity": quantity,
        "unit": unit,
        "file": f"{fit.fit_id.replace(':', '-')[:17]}",
        "latent": fit.kind == "latent",
        **_discrimination(shown, parameters),
        "summary": _summary(shown),
        "few": too_few(shown.cohort.outcomes),
        "curves": _curves(shown, parameters, sites),
        "outings": where,
        "sections": sections(shown),
    }


def _discrimination(shown: FitDetail, parameters: CurveParameters) -> dict[str, Any]:
    """One number and its error; or, where it changes along the metric, one at each point of the curves."""
    if not isinstance(parameters, VaryingParameters):
        return {"discrimination": shown.fit.discrimination, "discrimination_se": shown.fit.discrimination_se}
    from isuit.estimator import discrimination_rows

    points = len(shown.curves) // len(_order(shown))
    metric = np.array([point.metric for point in shown.curves[:points]], float)
    value, se = discrimination_rows(parameters, metric[:: EVERY if points % 2 else None])
    return {
        "discrimination": [round(a, 6) for a in value.tolist()],
        "discrimination_se": [round(a, 6) for a in se.tolist()],
    }


def _order(shown: FitDetail) -> list[str | None]:
    """The places of the page: the shared curve first, then the sites by name, as the store has them."""
    return [site for site, _ in groupby(shown.curves, key=lambda point: point.site)]


def _curves(shown: FitDetail, parameters: CurveParameters, sites: Mapping[str, Coordinates]) -> dict[str, Any]:
    """Every curve at the same metrics; of a single curve the log odds of failing, which then has the same formulas."""
    ids = _order(shown)
    points = len(shown.curves) // len(ids)
    column = {
        name: np.array([getattr(point, name) for point in shown.curves], float).reshape(len(ids), points)
        for name in ("metric", "difficulty", "difficulty_se", "suitability")
    }
    kept = slice(None, None, EVERY if points % 2 else None)
    metric = column["metric"][0, kept]
    if isinstance(parameters, LatentCurves):
        difficulty, se = column["difficulty"][:, kept], column["difficulty_se"][:, kept]
    else:
        suitability = np.clip(column["suitability"][:, kept], 1e-9, 1 - 1e-9)
        difficulty, se = (np.log1p(-suitability) - np.log(suitability), _along(parameters, ids, metric, "se"))
    known = np.isfinite(difficulty).all(axis=1) & np.isfinite(se).all(axis=1)
    difficulty, se = np.nan_to_num(difficulty), np.nan_to_num(se)
    unit = max(COARSEST, float(np.abs(difficulty).max()) / 32000, float(se.max()) / 65000)
    found: dict[str, Any] = {
        "ids": ids,
        "x": [float(value) for value in metric],
        "unit": unit,
        "difficulty": packed(np.round(difficulty / unit).ravel(), "i2"),
        "se": packed(np.round(se / unit).ravel(), "u2"),
        "state": packed(np.where(known, 0, 2), "u1"),
        "population": [round(float(value), 5) for value in column["suitability"][0, kept]],
    }
    if isinstance(parameters, LatentCurves):
        covariance = np.nan_to_num(_along(parameters, ids, metric, "with_discrimination"))
        covariance_unit = max(float(np.abs(covariance).max()) / 32000, 1e-12)
        found["covariance_unit"] = covariance_unit
        found["covariance"] = packed(np.round(covariance / covariance_unit).ravel(), "i2")
    if any(site in sites for site in ids if site is not None):
        nowhere = (np.nan, np.nan)
        where = np.array([sites.get(site, nowhere) if site is not None else nowhere for site in ids])
        found["latitude"], found["longitude"] = (packed(where[:, 0], "f4"), packed(where[:, 1], "f4"))
    return found


def _along(parameters: CurveParameters, ids: list[str | None], metric: Any, name: str) -> Any:
    """What the recorded bands have, which stand at fewer metrics than the curves; a site without a band has none."""
    rows = []
    for site in ids:
        band = parameters.bands.get(site or "") or parameters.bands.get("")
        values = [np.nan] if band is None or (site and site not in parameters.bands) else getattr(band, name) or [0.0]
        rows.append(np.interp(metric, np.linspace(*parameters.metric_range, len(values)), values))
    return np.array(rows)
