"""One fit as it leaves the store: its record, its cohort, its curves, and whether it can enter a release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import duckdb
import pyarrow as pa

from isuit.domain import discrimination_interval
from isuit.published import CohortRecord, CurvePoint, FitDetail, FitRecord, Releasable, reading
from isuit.release.eligibility import Topic, folded
from isuit.release.policy import policy_of
from isuit.service.intervals import with_intervals
from isuit.store.aliases import aliases
from isuit.store.cohorts import StoredCohort, find_cohort
from isuit.store.fits import StoredFit, atlas_rows
from isuit.store.query import rows
from isuit.store.sites import known_sites


def detail_of(connection: duckdb.DuckDBPyConnection, record: StoredFit) -> FitDetail:
    """All that `isuit show` tells of a fit."""
    cohort = find_cohort(connection, record.cohort_hash)
    assert cohort is not None
    diagnostics = reading.diagnostics(record.diagnostics)
    return FitDetail(
        fit=published(record),
        cohort=CohortRecord(**asdict(cohort) | {"metrics": list(cohort.metrics)}),
        releasable=releasable(connection, record, cohort),
        aliases=[name for name, meant in aliases(connection).items() if meant.fit_id == record.fit_id],
        aic=aic(record.log_likelihood, diagnostics.effective_degrees_of_freedom),
        diagnostics=diagnostics,
        curves=list(_points(with_intervals(record, atlas_rows(connection, record.fit_id)))),
    )


def aic(log_likelihood: float, degrees_of_freedom: float | None) -> float | None:
    """Akaike's criterion with the effective degrees of freedom; None where a fit does not record them."""
    return None if degrees_of_freedom is None else -2 * log_likelihood + 2 * degrees_of_freedom


def _points(curves: pa.Table) -> Iterator[CurvePoint]:
    """The points of all curves, made some at a time: thousands of sites have half a million of them.

    The table's columns have their types already, so they are not validated again, and all points share one set of the
    names of their fields: each would have its own otherwise, which takes more memory than all the rest.
    """
    names = set(CurvePoint.model_fields)
    for batch in curves.select(list(CurvePoint.model_fields)).to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield CurvePoint.model_construct(names, **row)


def published(record: StoredFit) -> FitRecord:
    """A fit's record as it leaves the store."""
    values = asdict(record) | {
        "configuration": record.json("configuration"),
        "identification": reading.identification(record.identification),
        "promotion": reading.promotion(record.promotion),
        "held_out": reading.held_out(record.held_out),
        "discrimination_interval": discrimination_interval(record.discrimination, record.discrimination_se),
    }
    return FitRecord(**{name: values[name] for name in FitRecord.model_fields})


def releasable(connection: duckdb.DuckDBPyConnection, record: StoredFit, cohort: StoredCohort) -> Releasable:
    """Whether the cohort can enter a public release, and what is missing if not (docs/contract.md, section 8)."""
    missing = []
    if record.varies:
        missing.append("one discrimination: a fit in which it varies has no public form")
    [(policy,)] = rows(connection, "SELECT policy FROM ledger.store")
    rules = policy_of(json.loads(policy))
    if rules.private is not None and len(cohort.metrics) > 1:
        missing.append("one metric: a private release is of one, so fit each by itself")
    elif rules.private is not None:
        topics = {folded(Topic(topic.activity, topic.dimension)) for topic in rules.private.topics}
        if folded(Topic(record.activity, record.dimension)) not in topics:
            missing.append("a topic that the private policy declares: activity and dimension are none of those")
    elif record.kind != "latent":
        missing.append("a latent fit: a single curve is never released")
    least = rules.k
    if rules.private is None and cohort.riders < least:
        missing.append(f"{least} riders: it has {cohort.riders}, too few without other cohorts of the same topic")
    if cohort.untimed and not record.json("configuration")["observed_until"]:
        missing.append(f"--observed-until: {cohort.untimed} outcomes have no observed_at")
    if cohort.sites:
        used = {
            site
            for (site,) in rows(
                connection,
                "SELECT DISTINCT site FROM all_outcomes WHERE cohort_hash = ? AND site IS NOT NULL",
                [cohort.cohort_hash],
            )
        }
        without = used - known_sites(connection).keys()
        if without:
            missing.append(f"--sites: {len(without)} of {cohort.sites} sites have no coordinates")
    return Releasable(ok=not missing, missing=missing)
