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
from isuit.pages import page, write_page
from isuit.pages.packing import packed
from isuit.published import FitDetail, PageWritten, reading
from isuit.record import Parameters
from isuit.record.parameters import LatentParameters
from isuit.service.details import detail_of
from isuit.service.outings import outings
from isuit.service.report_sections import sections
from isuit.service.stores import DEFAULT_WAIT, open_store
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
        metrics = [point.metric for point in shown.curves]
        where = outings(
            store.connection, record.cohort_hash, record.fit_id, _order(shown), (min(metrics), max(metrics))
        )
        data = page_data(shown, parameters, where, known_sites(store.connection))
    title = f"{shown.fit.activity}: {shown.fit.dimension}, {shown.fit.fit_id[:17]}"
    write_page(out, page(title, "fit", data))
    return PageWritten(fit_id=shown.fit.fit_id, cohort_hash=shown.fit.cohort_hash, out=str(out))


def page_data(
    shown: FitDetail, parameters: Parameters, where: dict[str, Any] | None, sites: Mapping[str, Coordinates]
) -> dict[str, Any]:
    """What the page draws: aggregates of a fit's record, by name, so that nothing else can slip in."""
    fit, cohort = shown.fit, shown.cohort
    places = "" if cohort.sites < 2 else f" at {cohort.sites:,} sites"
    kind = (
        "skill and difficulty are told apart"
        if fit.kind == "latent"
        else "a single curve: skill and difficulty are not told apart"
    )
    quantity, unit = look.quantity(fit.dimension)
    return {
        "title": f"{fit.activity}: {look.axis(fit.dimension)}",
        "axis": look.axis(fit.dimension),
        "quantity": quantity,
        "unit": unit,
        "file": f"{fit.fit_id.replace(':', '-')[:17]}",
        "latent": fit.kind == "latent",
        "discrimination": fit.discrimination,
        "discrimination_se": fit.discrimination_se,
        "summary": f"{cohort.outcomes:,} outcomes of {cohort.riders:,} riders{places}; {kind}.",
        "curves": _curves(shown, parameters, sites),
        "outings": where,
        "sections": sections(shown),
    }


def _order(shown: FitDetail) -> list[str | None]:
    """The places of the page: the shared curve first, then the sites by name, as the store has them."""
    return [site for site, _ in groupby(shown.curves, key=lambda point: point.site)]


def _curves(shown: FitDetail, parameters: Parameters, sites: Mapping[str, Coordinates]) -> dict[str, Any]:
    """Every curve at the same metrics; of a single curve the log odds of failing, which then has the same formulas."""
    ids = _order(shown)
    points = len(shown.curves) // len(ids)
    column = {
        name: np.array([getattr(point, name) for point in shown.curves], float).reshape(len(ids), points)
        for name in ("metric", "difficulty", "difficulty_se", "suitability")
    }
    kept = slice(None, None, EVERY if points % 2 else None)
    metric = column["metric"][0, kept]
    if isinstance(parameters, LatentParameters):
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
    if isinstance(parameters, LatentParameters):
        covariance = np.nan_to_num(_along(parameters, ids, metric, "with_discrimination"))
        covariance_unit = max(float(np.abs(covariance).max()) / 32000, 1e-12)
        found["covariance_unit"] = covariance_unit
        found["covariance"] = packed(np.round(covariance / covariance_unit).ravel(), "i2")
    if any(site in sites for site in ids if site is not None):
        nowhere = (np.nan, np.nan)
        where = np.array([sites.get(site, nowhere) if site is not None else nowhere for site in ids])
        found["latitude"], found["longitude"] = (packed(where[:, 0], "f4"), packed(where[:, 1], "f4"))
    return found


def _along(parameters: Parameters, ids: list[str | None], metric: Any, name: str) -> Any:
    """What the recorded bands have, which stand at fewer metrics than the curves; a site without a band has none."""
    rows = []
    for site in ids:
        band = parameters.bands.get(site or "") or parameters.bands.get("")
        values = [np.nan] if band is None or (site and site not in parameters.bands) else getattr(band, name) or [0.0]
        rows.append(np.interp(metric, np.linspace(*parameters.metric_range, len(values)), values))
    return np.array(rows)
