"""Scores for a declared skill, from the recorded parameters alone, against the curves and the delta method."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit, logit

from isuit.domain import Z95, Estimate, FitConfig, FloatArray, Observations
from isuit.errors import InputError
from isuit.estimator import fit, score, score_rows
from isuit.estimator.likelihood.latent import LatentFit
from isuit.estimator.model.basis import Spline
from isuit.estimator.model.population import Units
from isuit.estimator.model.smoothing import FIXED
from isuit.estimator.suitability import _space_of
from isuit.published import reading
from isuit.record import as_json
from isuit.record.parameters import LatentParameters, Parameters

from .cohorts import latent_fit
from .model.test_population import two_clienteles, unequal_sites

ANCHOR = ((3.0, 0.1), (18.0, 0.9), (35.0, 0.1))


@pytest.mark.parametrize("skill", [-1.0, 0.0, 1.0, 2.5])
def test_scores_are_the_curves(estimate: Estimate, skill: float) -> None:
    curve = estimate.curves[0]
    assert curve.difficulty is not None
    expected = expit(estimate.discrimination * (skill - curve.difficulty))
    # As they come back from the store, through JSON.
    parameters = reading.parameters(json.dumps(as_json(estimate.parameters)))
    for metric, suitability in zip(curve.metric[::10], expected[::10], strict=True):
        value, low, high = score(parameters, float(metric), None, skill)
        assert value == pytest.approx(suitability, abs=1e-9)
        assert low < value < high


def log_odds(found: LatentFit, phi: FloatArray, metric: float, site: int, skill: float) -> float:
    """The log odds of success for a declared skill as a function of all parameters."""
    p = found.problem.parameters(phi)
    f = float(found.space.design(np.array([metric]), np.array([site]), p.a).apply(p.shared, p.own)[0])
    units = Units.of(found.problem.likelihood.population, p.regression, p.clientele)
    return p.a * (units.mean + units.sd * skill) - f


@pytest.mark.parametrize("place", ["one", "two", "eight"])
def test_bands_are_those_of_the_delta_method(place: str, reference: Observations) -> None:
    data = {"one": reference, "two": two_clienteles(4, 10, 0.5)[0], "eight": unequal_sites(5, sites=8)[0]}[place]
    found, estimate = latent_fit(data), fit(data)
    site, name = (-1, None) if place == "one" else (1, "site-001")
    estimated = (found.problem.groups != FIXED).astype(float)
    phi, covariance = found.solution.phi, found.solution.covariance.inverse() * np.outer(estimated, estimated)
    for metric in (5.0, 18.0, 31.3):
        for skill in (-1.0, 0.0, 1.5):
            slope = np.zeros_like(phi)
            for k in range(phi.size):
                step = np.zeros_like(phi)
                step[k] = 1e-6
                here, there = (log_odds(found, phi + s * step, metric, site, skill) for s in (1, -1))
                slope[k] = (here - there) / 2e-6
            se = float(np.sqrt(slope @ covariance @ slope))
            value, low, high = score(estimate.parameters, metric, name, skill)
            assert logit(value) == pytest.approx(log_odds(found, phi, metric, site, skill), abs=1e-5)
            assert logit(high) - logit(low) == pytest.approx(2 * 1.959964 * se, rel=0.02)


def test_a_single_curve_answers_for_the_population_whatever_the_skill(reference: Observations) -> None:
    estimate = fit(reference, FitConfig(min_riders_per_bin=81))
    assert estimate.kind == "single-curve"
    curve = estimate.curves[0]
    answers = {score(estimate.parameters, float(curve.metric[40]), None, skill)[0] for skill in (-1.0, 0.0, 3.0)}
    assert len(answers) == 1
    assert answers.pop() == pytest.approx(curve.suitability[40], abs=1e-9)


def test_there_is_no_way_from_a_rider_to_a_score(estimate: Estimate) -> None:
    assert list(inspect.signature(score).parameters) == ["parameters", "metric", "site", "skill"]
    assert list(inspect.signature(score_rows).parameters) == ["parameters", "metric", "site", "skill"]
    assert "rider-0" not in json.dumps(as_json(estimate.parameters))


def one_row(parameters: Parameters, metric: float, site: int, skill: float) -> tuple[float, float, float]:
    """Suitability and its band by the formulas, written out for one row."""
    space = _space_of(parameters)
    latent = isinstance(parameters, LatentParameters)
    a = parameters.raw_discrimination if latent else 0.0
    design = space.design(np.array([metric]), np.array([site]), a)
    f = design.apply(*space.split(np.array(parameters.coefficients)))[0]
    points = np.linspace(space.spline.lower, space.spline.upper, 21)
    band, at = parameters.bands["" if site < 0 else parameters.sites[site]], np.clip(metric, points[0], points[-1])
    se = CubicSpline(points, band.se)(at)
    if not latent:
        return expit(-f), expit(-f - Z95 * se), expit(-f + Z95 * se)
    discrimination = a * parameters.population.sd
    gap = skill - (f / a - parameters.population.mean) / parameters.population.sd
    covariance = CubicSpline(points, band.with_discrimination)(at)
    variance = (
        (discrimination * se) ** 2 + (gap * parameters.discrimination_se) ** 2 - 2 * discrimination * gap * covariance
    )
    z, width = discrimination * gap, Z95 * np.sqrt(variance)
    return expit(z), expit(z - width), expit(z + width)


@pytest.mark.parametrize("config", [FitConfig(), FitConfig(anchor=ANCHOR), FitConfig(min_riders_per_bin=10_000)])
@pytest.mark.parametrize("sites", [2, 8])
def test_many_rows_score_as_each_alone(sites: int, config: FitConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isuit.estimator.suitability._ROWS_AT_ONCE", 32)
    parameters = fit(two_clienteles(4, 10, 0.5)[0] if sites == 2 else unequal_sites(5, sites=8)[0], config).parameters
    assert len(parameters.sites) == sites
    rng = np.random.default_rng(3)
    metric = np.concatenate([parameters.metric_range, rng.uniform(0.0, 45.0, 98)])
    site, skill = rng.integers(-1, sites, 100), rng.normal(size=100)
    together = np.array(score_rows(parameters, metric, site, skill)).T
    rows = list(zip(metric.tolist(), site.tolist(), skill.tolist(), strict=True))
    names = (*parameters.sites, None)
    alone = [score(parameters, x, names[code], level) for x, code, level in rows]
    assert together == pytest.approx(np.array(alone), abs=1e-13)
    assert together == pytest.approx(np.array([one_row(parameters, *row) for row in rows]), abs=1e-13)


def test_an_unknown_site_is_refused() -> None:
    estimate = fit(two_clienteles(4, 10, 0.5)[0])
    with pytest.raises(InputError):
        score(estimate.parameters, 18.0, "nowhere", 0.0)


def test_records_of_joined_anchors_score_as_they_did(reference: Observations) -> None:
    """A record without a spacing is of a fit whose anchor was joined by lines."""
    points = ANCHOR
    parameters = fit(reference, FitConfig(anchor=points)).parameters
    recorded = {key: value for key, value in as_json(parameters).items() if key != "anchor_spacing"}
    before = reading.parameters(json.dumps(recorded))
    a, coefficients = before.raw_discrimination, np.array(before.coefficients)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    for metric in (5.0, 14.0, 18.0, 40.0):
        s = np.interp(metric, *np.array(points).T)
        f0 = brentq(lambda f, s=s: expit(a * nodes - f) @ weights / weights.sum() - s, -20, 20)
        lower, upper = before.metric_range
        spline = Spline(lower, upper, before.inner_knots, before.degree, before.penalty_order)
        smooth = spline.smooth_design(np.array([metric]))[0]
        f = coefficients[0] * smooth[0] + coefficients[1] * f0 + coefficients[2:] @ smooth[1:]
        assert logit(score(before, metric, None, 0.5)[0]) == pytest.approx(a * 0.5 - f, abs=1e-9)
    assert score(before, 18.0, None, 0.5) != score(parameters, 18.0, None, 0.5)
