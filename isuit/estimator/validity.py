"""What a cohort and a configuration must be like before anything is computed."""

from __future__ import annotations

import numpy as np

from isuit import columns
from isuit.domain import NO_TIME, FitConfig, FloatArray, Observations
from isuit.errors import InputError

from .model.anchor import anchor_of
from .model.basis import Spline

_LARGEST_METRIC = 1e100  # its square, and a curve's slope along it, stay within binary64
_SAME = 1e-3  # share of a metric's variance that the others must leave
_NO_SHAPE = 1e-6  # an anchor's suitability that varies by less than this over the data is constant


def validate(data: Observations, config: FitConfig) -> None:
    """Refuse what cannot be fitted, in one sentence that says what to do."""
    if len(data) == 0:
        raise InputError("The cohort has no outcomes; give one with at least one row.")
    for number, metric in enumerate(data.conditions):
        _validate_metric(metric, f"metric {data.metrics[number]}" if data.metrics else "metric")
    if not all(np.isin(data.outcome[part], (0, 1)).all() for part in columns.slices(len(data))):
        raise InputError("Outcomes must be 0 or 1; recode the others or remove them.")
    if data.further:
        _validate_conditions(data, config)
    else:
        _validate_anchor(data, config)
    if config.split != "rider" and (data.observed_at is None or data.observed_at.min() == NO_TIME):
        raise InputError(f"--split {config.split} needs an observed_at for every outcome; use --split rider.")


def _validate_metric(metric: FloatArray, name: str) -> None:
    lower, upper = float(metric.min()), float(metric.max())
    if not (np.isfinite(lower) and np.isfinite(upper)):  # one that is not a number is both
        raise InputError(f"The {name} has values that are not finite numbers; remove or correct them.")
    if max(-lower, upper) > _LARGEST_METRIC or 0 < upper - lower < 1 / _LARGEST_METRIC:
        raise InputError(
            f"The {name} runs from {lower:.6g} to {upper:.6g}, too large or too fine a range to compute with; "
            "remove values that cannot be or give the metric in other units."
        )


def _validate_conditions(data: Observations, config: FitConfig) -> None:
    """Refuse a metric that says nothing, or nothing beside the others."""
    if config.anchor is not None:
        raise InputError("An anchor is the curve of one metric; for several give a profile with a curve of each.")
    for name, points in config.anchors:
        if name not in data.metrics:
            raise InputError(f"There is an anchor for {name}, which is none of the metrics; leave it out or name them.")
        metric = data.conditions[data.metrics.index(name)]
        _require_shape(metric, points, f"The anchor of {name}")
    scaled = []
    for name, metric in zip(data.metrics, data.conditions, strict=True):
        lower, upper = float(metric.min()), float(metric.max())
        if lower == upper:
            raise InputError(f"The metric {name} is {lower:.6g} in every outcome, so it tells nothing; leave it out.")
        scaled.append(np.asarray((metric - lower) / (upper - lower)))
    for number, name in enumerate(data.metrics):
        others = np.column_stack([np.ones(len(data)), *(scaled[:number] + scaled[number + 1 :])])
        own = scaled[number] - scaled[number].mean()
        left = own - others @ np.linalg.lstsq(others, own, rcond=None)[0]
        if float(left @ left) < _SAME * float(own @ own):
            raise InputError(
                f"The metric {name} follows from the others ({1 - float(left @ left) / float(own @ own):.2%} of its "
                "variance), so its effect cannot be told from theirs; leave it or another one out."
            )


def _validate_anchor(data: Observations, config: FitConfig) -> None:
    if config.anchor is None:
        return
    points = np.array(config.anchor, dtype=np.float64).reshape(-1, 2)
    metric, suitability = points.T
    if len(points) < 2 or not np.isfinite(points).all() or np.any(np.diff(metric) <= 0):
        raise InputError("The anchor needs at least two points with finite values, in increasing order of the metric.")
    if np.any((suitability < 0) | (suitability > 1)):
        raise InputError("The anchor has a suitability outside 0 to 1; an expert's suitability is between them.")
    _require_shape(data.metric, config.anchor, "The anchor")


def _require_shape(metric: FloatArray, points: tuple[tuple[float, float], ...], name: str) -> None:
    lower, upper = float(metric.min()), float(metric.max())
    anchor = anchor_of(points, Spline(lower, upper, ()))
    assert anchor is not None
    parts = (anchor.suitability_at(metric[part]) for part in columns.slices(metric.size))
    given = [end for part in parts for end in (part.min(), part.max())]
    if lower < upper and max(given) - min(given) < _NO_SHAPE:
        raise InputError(
            f"{name} is the same at every observed metric, so it gives the curve no shape; leave it out or give "
            "one that varies there."
        )
