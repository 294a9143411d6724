"""How sure a single curve is, point by point: the interval that `isuit score` gives, beside the recorded curve.

A latent fit records the standard error of its difficulty. A single curve has no difficulty, so its points would stand
there bare, and those of five outcomes would look as sure as those of five thousand.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit.domain import FloatArray
from isuit.record import SurfaceParameters
from isuit.service.scoring import Scorer
from isuit.service.scoring_conditions import Conditions
from isuit.store.fits import StoredFit, current_atlas, get_fit

ENDS = ("suitability_lower", "suitability_upper")


def with_intervals(record: StoredFit, curves: pa.Table) -> pa.Table:
    """The curves with the ends of the 95 % interval of suitability; null in a latent fit, or without a band."""
    return _appended(curves, _ends(record, curves) if record.kind == "single-curve" else _unknown(curves))


def atlas_with_intervals(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The newest curves of all topics, with the same two columns."""
    atlas = current_atlas(connection)
    ends = _unknown(atlas)
    for fit_id in pc.unique(atlas.filter(pc.equal(atlas.column("kind"), "single-curve")).column("fit_id")).to_pylist():
        rows = pc.equal(atlas.column("fit_id"), fit_id).combine_chunks()
        record = get_fit(connection, fit_id)
        assert record is not None
        ends[:, rows.to_numpy(zero_copy_only=False)] = _ends(record, atlas.filter(rows))
    return _appended(atlas, ends)


def _ends(record: StoredFit, curves: pa.Table) -> FloatArray:
    """The lower and the upper end at every point of a single curve, NaN where it has no band."""
    scorer = Scorer.from_record(record, curves)
    conditions = Conditions(_metric(scorer, curves), curves.column("site").combine_chunks(), np.zeros(curves.num_rows))
    known = scorer.reasons(conditions).is_null()
    rows = np.asarray(known.to_numpy(zero_copy_only=False))
    scored = scorer.score(Conditions(conditions.metric[rows], conditions.site.filter(known), conditions.skill[rows]))
    ends = _unknown(curves)
    ends[:, rows] = scored.lower, scored.upper
    return ends


def _unknown(curves: pa.Table) -> FloatArray:
    return np.full((len(ENDS), curves.num_rows), np.nan)


def _metric(scorer: Scorer, curves: pa.Table) -> FloatArray:
    """Where each point stands; of several metrics all others are at their medians, as along the curves."""
    metric = curves.column("metric").to_numpy()
    if not isinstance(scorer.parameters, SurfaceParameters):
        return np.asarray(metric)
    conditions = np.tile(scorer.parameters.support.reference, (metric.size, 1))
    along = [scorer.metrics.index(name) for name in curves.column("dimension").to_pylist()]
    conditions[np.arange(metric.size), along] = metric
    return conditions


def _appended(curves: pa.Table, ends: FloatArray) -> pa.Table:
    for name, values in zip(ENDS, ends, strict=True):
        curves = curves.append_column(name, pa.array(values, mask=np.isnan(values)))
    return curves
