"""Suitability for a declared skill, from the parameters that a fit records; no data are needed, and no rider."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from isuit.domain import Z95, FloatArray
from isuit.errors import InputError

from .likelihood.latent import LatentFit
from .likelihood.single_curve import SingleCurve
from .model.anchor import Anchor, JoinedAnchor
from .model.basis import Spline
from .model.curves import CurveSpace

_BAND_POINTS = 21  # standard errors are smoother than the curve


def band_metric(spline: Spline) -> FloatArray:
    return np.linspace(spline.lower, spline.upper, _BAND_POINTS) if spline.degree else np.array([spline.lower])


def single_parameters(space: CurveSpace, sites: tuple[str, ...], single: SingleCurve) -> dict[str, Any]:
    """What scoring needs of a single curve; its standard errors take outcomes as independent."""
    metric = band_metric(space.spline)
    bands = {}
    for code, name in _curves(space, sites):
        design = space.design(metric, np.full(metric.size, code), 0.0)
        bands[name] = {"se": single.log_odds_se(design, code if space.places else -1).tolist()}
    return _space_json(space, sites) | {
        "kind": "single-curve",
        "coefficients": np.concatenate([single.shared, single.own.ravel()]).tolist(),
        "bands": bands,
    }


def latent_parameters(
    space: CurveSpace, sites: tuple[str, ...], latent: LatentFit, incomparable: list[str]
) -> dict[str, Any]:
    metric = band_metric(space.spline)
    bands = {}
    for code, name in _curves(space, sites):
        if name not in incomparable:
            band = latent.difficulty(metric, code)
            bands[name] = {"se": band.se.tolist(), "with_discrimination": band.with_discrimination.tolist()}
    return _space_json(space, sites) | {
        "kind": "latent",
        "raw_discrimination": latent.solution.discrimination,
        "coefficients": latent.coefficients.tolist(),
        "population": {"mean": latent.units.mean, "sd": latent.units.sd},
        "discrimination_se": latent.discrimination_se,
        "bands": bands,
    }


def _curves(space: CurveSpace, sites: tuple[str, ...]) -> list[tuple[int, str]]:
    """Code and name of each curve; the shared curve has the empty name, which no site can have."""
    return [(-1, ""), *(enumerate(sites) if space.sites else [])]


def _space_json(space: CurveSpace, sites: tuple[str, ...]) -> dict[str, Any]:
    spline, anchor = space.spline, space.anchor
    return {
        "metric_range": [spline.lower, spline.upper],
        "inner_knots": list(spline.inner_knots),
        "degree": spline.degree,
        "penalty_order": spline.penalty_order,
        "sites": list(sites) if space.sites else [],
        "site_size": space.site_size,
        "anchor": None if anchor is None else np.stack([anchor.metric, anchor.suitability], axis=1).tolist(),
        "anchor_spacing": None if anchor is None else anchor.spacing,
    }


def _anchor(parameters: dict[str, Any]) -> Anchor | None:
    """The anchor that a fit was made with; records without a spacing are of fits whose anchor was joined by lines."""
    if parameters["anchor"] is None:
        return None
    metric, suitability = np.array(parameters["anchor"]).T
    if "anchor_spacing" not in parameters:
        return JoinedAnchor(metric, suitability)
    return Anchor(metric, suitability, parameters["anchor_spacing"])


def score(parameters: dict[str, Any], metric: float, site: str | None, skill: float) -> tuple[float, float, float]:
    """Suitability at a metric and site (None: the shared curve) for a skill, and its 95 % band.

    A single curve answers for the population whatever the skill. Beyond the observed metrics the curve keeps its
    distance from the anchor, or its last value where there is none.
    """
    anchor = _anchor(parameters)
    lower, upper = parameters["metric_range"]
    spline = Spline(lower, upper, tuple(parameters["inner_knots"]), parameters["degree"], parameters["penalty_order"])
    sites: list[str] = parameters["sites"]
    space = CurveSpace(spline, len(sites), anchor, parameters["site_size"])
    name = site if site is not None and sites else ""
    if name not in parameters["bands"]:
        raise InputError("No rider links this site to the others, so it has no difficulty; score at another site.")
    code = sites.index(name) if name else -1
    latent = parameters["kind"] == "latent"
    a = parameters["raw_discrimination"] if latent else 0.0
    design = space.design(np.array([metric]), np.array([code]), a)
    f = float(design.apply(*space.split(np.array(parameters["coefficients"])))[0])
    band = parameters["bands"][name]
    at = min(max(metric, spline.lower), spline.upper)
    se = _interpolate(spline, band["se"], at)
    if not latent:
        return _with_band(-f, se)
    mean, sd = parameters["population"]["mean"], parameters["population"]["sd"]
    gap, discrimination = skill - (f / a - mean) / sd, a * sd
    variance = (
        (discrimination * se) ** 2
        + (gap * parameters["discrimination_se"]) ** 2
        - 2 * discrimination * gap * _interpolate(spline, band["with_discrimination"], at)
    )
    return _with_band(discrimination * gap, float(np.sqrt(max(variance, 0.0))))


def _interpolate(spline: Spline, values: list[float], at: float) -> float:
    metric = band_metric(spline)
    return float(values[0] if metric.size == 1 else CubicSpline(metric, values)(at))


def _with_band(log_odds: float, se: float) -> tuple[float, float, float]:
    return float(expit(log_odds)), float(expit(log_odds - Z95 * se)), float(expit(log_odds + Z95 * se))
