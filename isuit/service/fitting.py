"""`isuit fit`: read, hash, gate, fit, record.

The store is locked twice and briefly: to see who opted out, and to record. In between, while the estimator works,
others can use it. If someone opts out in that time the fit is refused, because recording it would bring an erased
rider back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from isuit.audit.log import log_head
from isuit.audit.results import fit_id as name_of_fit
from isuit.domain import FitConfig, discrimination_interval
from isuit.erasure.pseudonyms import guess_warning
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError, StoreBusy
from isuit.ingest import Cohort, read_cohort
from isuit.published import FitSummary, HeldOut, Identification, Promotion, Releasable
from isuit.service.recording import record_fit
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.cohorts import CohortRecord, find_cohort
from isuit.store.fits import FitRecord, get_fit
from isuit.store.opening import Store, is_store
from isuit.store.query import rows
from isuit.store.sites import Coordinates, known_sites

Progress = Callable[[str, float], None]


def _silent(stage: str, share: float) -> None:
    """Progress that nobody watches."""


def fit(
    store_path: Path,
    source: Any,
    config: FitConfig,
    *,
    columns: Mapping[str, str] | None = None,
    timezone: str | None = None,
    sites: Mapping[str, Coordinates] | None = None,
    wait: float = DEFAULT_WAIT,
    progress: Progress = _silent,
) -> FitSummary:
    """Fit a cohort and record the result; the same fit again is confirmed, not recorded twice."""
    from isuit import estimator

    opted_out, known = OptedOut(), set()
    if is_store(store_path):
        with open_store(store_path, wait=wait) as store:
            opted_out = OptedOut.of(store)
            known = set(rows(store.connection, "SELECT fit_id FROM ledger.fits"))
    guesses: list[str] = []

    def exclude(riders: pa.Array) -> pa.Array:
        guesses.extend(guess_warning(riders.to_pylist()))
        return opted_out.exclude(riders)

    progress("read", 0.0)
    with read_cohort(source, columns=columns, timezone=timezone, exclude=exclude, progress=progress) as cohort:
        fit_id = name_of_fit(cohort.cohort_hash, config.as_json(), estimator.ESTIMATOR_VERSION)
        _refuse_unknown_sites(cohort, sites or {})
        confirmed = (fit_id,) in known
        estimate = None if confirmed else estimator.fit(cohort.observations(), config, progress)
        progress("record", 0.0)
        with open_store(store_path, write=True, wait=wait, create=True) as store:
            if OptedOut.of(store).digests - opted_out.digests:
                raise StoreBusy("a rider opted out while this cohort was being fitted; run the command again")
            recorded = record_fit(store, fit_id, cohort, config, estimate, sites or {})
            progress("record", 1.0)
            return _summary(store, fit_id, cohort, recorded, guesses)


def _refuse_unknown_sites(cohort: Cohort, sites: Mapping[str, Coordinates]) -> None:
    """A site that the cohort does not have is a spelling that differs: its coordinates would be missing elsewhere."""
    if not sites:
        return
    seen: set[str | None] = set()
    for batch in cohort.batches():
        seen.update(batch.column("site").unique().to_pylist())
    unknown = sorted(sites.keys() - seen)
    if unknown:
        raise InputError(
            f"--sites has {len(unknown)} sites that the cohort does not have, first {unknown[0]!r}; "
            "correct their names or remove them"
        )


def _summary(store: Store, fit_id: str, cohort: Cohort, recorded: bool, guesses: list[str]) -> FitSummary:
    record = get_fit(store.connection, fit_id)
    registered = find_cohort(store.connection, cohort.cohort_hash)
    assert record is not None
    assert registered is not None
    notes = list(guesses)
    if cohort.report.excluded_rows:
        notes.append(
            f"{cohort.report.excluded_rows} rows of riders who opted out were left out; cohort_hash is of the rows "
            "kept, and `isuit hash` of the file itself differs"
        )
    return FitSummary(
        fit_id=record.fit_id,
        cohort_hash=record.cohort_hash,
        recorded=recorded,
        activity=record.activity,
        dimension=record.dimension,
        kind=record.kind,
        identification=Identification(**record.json("identification")),
        promotion=Promotion(**record.json("promotion")) if record.promotion else None,
        discrimination=record.discrimination,
        discrimination_se=record.discrimination_se,
        discrimination_interval=discrimination_interval(record.discrimination, record.discrimination_se),
        held_out=HeldOut(**record.json("held_out")) if record.held_out else None,
        outcomes=registered.outcomes,
        riders=registered.riders,
        sites=registered.sites,
        skills=record.skills,
        suppressed_rows=cohort.report.excluded_rows,
        releasable=releasable(store, record, registered),
        notes=notes,
        log_head=log_head(store.connection),
    )


def releasable(store: Store, record: FitRecord, cohort: CohortRecord) -> Releasable:
    """Whether the fit's cohort can enter a public release (DESIGN section 6), and which option is missing if not."""
    missing = []
    if record.kind != "latent":
        missing.append("a latent fit: a single curve is never released")
    if cohort.untimed and not record.json("configuration")["observed_until"]:
        missing.append(f"--observed-until: {cohort.untimed} outcomes have no observed_at")
    if cohort.sites:
        used = {
            site
            for (site,) in rows(
                store.connection,
                "SELECT DISTINCT site FROM personal.outcomes WHERE cohort_hash = ? AND site IS NOT NULL",
                [cohort.cohort_hash],
            )
        }
        without = used - known_sites(store.connection).keys()
        if without:
            missing.append(f"--sites: {len(without)} of {cohort.sites} sites have no coordinates")
    return Releasable(ok=not missing, missing=missing)
