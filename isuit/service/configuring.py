"""What a caller asks of a fit, as its configuration: the command line, a store and `isuit.fit` all ask here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from isuit.domain import Discrimination, Exposure, FitConfig, GateReading, SkillPrior, Split
from isuit.errors import InputError
from isuit.service import inputs

Anchor = str | Path | Iterable[tuple[float, float]]  # an expert's suitability curve: a file, or its points


def config_of(
    *,
    activity: str,
    dimension: str | None,
    metrics: Sequence[str] | None,
    anchor: Anchor | None,
    gate: GateReading,
    exposure: Exposure,
    split: Split,
    skill: SkillPrior,
    discrimination: Discrimination,
    observed_until: date | None = None,
) -> FitConfig:
    """The configuration, with the anchor read; without a dimension, the metrics' names say what is measured."""
    activity = inputs.checked_label(activity, "activity")
    dimension = inputs.checked_label(dimension or inputs.dimension_of(metrics), "dimension")
    several = metrics if metrics is not None and len(metrics) > 1 else None
    return FitConfig(
        activity=activity,
        dimension=dimension,
        gate=gate,
        anchor=None if anchor is None or several else _anchor(anchor, activity, dimension),
        anchors=() if anchor is None or not several else _anchors(anchor, activity, several),
        exposure=exposure,
        split=split,
        skill=skill,
        discrimination=discrimination,
        observed_until=observed_until,
    )


def _anchor(anchor: Anchor, activity: str, dimension: str) -> inputs.Points:
    if isinstance(anchor, (str, Path)):
        return inputs.read_anchor(Path(anchor), activity, dimension)
    return inputs.checked_points(list(anchor))


def _anchors(anchor: Anchor, activity: str, metrics: Sequence[str]) -> tuple[tuple[str, inputs.Points], ...]:
    if not isinstance(anchor, (str, Path)):
        raise InputError("the anchor of several metrics is a profile: a file with a curve for each by name")
    return inputs.read_anchors(Path(anchor), activity, metrics)
