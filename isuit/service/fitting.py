"""`isuit fit`: read, hash, gate, fit, record.

The store is locked twice and briefly: to see who opted out, and to record. In between, while the estimator works,
others can use it. If someone opts out in that time the fit is refused, because recording it would bring an erased
rider back. What a caller shows of the fit is read before the second lock is given up: a fit that was recorded must not
end as if the store were in use.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from isuit.audit.log import log_head
from isuit.audit.results import fit_id as name_of_fit
from isuit.domain import FitConfig
from isuit.erasure.pseudonyms import guess_warning
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError, StoreBusy, StoreError
from isuit.ingest import Cohort, read_cohort
from isuit.limits import Memory
from isuit.published import FitDetail, FitSummary
from isuit.reading import Form
from isuit.service.details import detail_of
from isuit.service.inputs import sites_of
from isuit.service.recording import Recorded, record_fit
from isuit.service.series import opened
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.fits import StoredFit, get_fit
from isuit.store.opening import Store, is_store
from isuit.store.query import rows
from isuit.store.sites import Coordinates

Progress = Callable[[str, float], None]
OUTCOME_BYTES, RIDER_BYTES = 40, 400  # on disk, with room to spare: measured 11 to 30 and 170
MOST_NEAR = 100  # sites without coordinates whose spelling is compared


class Fitted(FitSummary):
    """A fit that was just recorded or confirmed: its summary, and all that `isuit show` tells of it."""

    detail: FitDetail
    stored: StoredFit

    def summary(self) -> FitSummary:
        """What `isuit fit` prints."""
        return FitSummary(**{name: getattr(self, name) for name in FitSummary.model_fields})


def _silent(stage: str, share: float) -> None:
    """Progress that nobody watches."""


def fit(
    store_path: Path,
    source: Any,
    config: FitConfig,
    *,
    metrics: Sequence[str] | None = None,
    sites: Mapping[str, Coordinates] | None = None,
    nearby: bool = False,
    wait: float = DEFAULT_WAIT,
    memory: str | int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    client: Any = None,
    progress: Progress = _silent,
    **form: Unpack[Form],
) -> Fitted:
    """Fit a cohort and record the result; the same fit again is confirmed, not recorded twice.

    The source is whatever `read_cohort` reads, or a `Series` of the store. `memory` bounds what is held (`4GB`, or
    bytes). With `nearby`, sites near one another tell of one another's level. `workers` are so many processes of this
    machine that the fit is shared out to, `scheduler` the address of a Dask cluster, `client` a `distributed.Client` of
    one. No number depends on any of the three.
    """
    from isuit import estimator
    from isuit.cluster.engine import engine_of

    limits = Memory.of(memory)
    sites = sites_of(sites or {})
    opted_out, known = OptedOut(), set()
    if is_store(store_path):
        with open_store(store_path, wait=wait) as store:
            opted_out = OptedOut.of(store)
            known = set(rows(store.connection, "SELECT fit_id FROM ledger.fits"))
    guesses: list[str] = []

    def exclude(riders: pa.Array) -> pa.Array:
        guesses.extend(guess_warning(riders.to_pylist()))
        return opted_out.exclude(riders)

    with engine_of(workers, scheduler, client) as engine:
        progress("read", 0.0)
        with opened(store_path, source, metrics, wait) as (table, named, shared):
            reading = read_cohort(
                table,
                metrics=named,
                exclude=exclude,
                in_memory_rows=limits.sorted_rows,
                spill_bytes=limits.sorting,
                progress=progress,
                admit=partial(limits.require, known=False),
                **form,
            )
        with reading as cohort:
            sites, others = sites_of_cohort(cohort, sites)
            config = with_nearby(config, sites) if nearby else config
            fit_id = name_of_fit(cohort.cohort_hash, config.as_json(), estimator.ESTIMATOR_VERSION)
            guesses += others
            limits.require(cohort.report.outcomes, cohort.report.riders)
            confirmed = (fit_id,) in known
            if not confirmed:
                _require_disk(store_path, cohort.report.outcomes, cohort.report.riders)
            with estimator.riders_on(engine):
                estimate = None if confirmed else estimator.fit(cohort.observations(), config, progress)
            progress("record", 0.0)
            with open_store(store_path, write=True, wait=wait, create=True) as store:
                store.limit_memory(limits.database)
                if OptedOut.of(store).digests - opted_out.digests:
                    raise StoreBusy("a rider opted out while this cohort was being fitted; run the command again")
                recorded = record_fit(store, fit_id, cohort, config, estimate, sites, shared)
                progress("record", 1.0)
                return _fitted(store, fit_id, cohort, recorded, guesses)


def with_nearby(config: FitConfig, sites: Mapping[str, Coordinates]) -> FitConfig:
    """The configuration with the coordinates of the cohort's sites, which are a part of the fit's name."""
    if not sites:
        raise InputError("sites tell of one another by where they are; give their coordinates with --sites")
    return replace(config, nearby=tuple((site, *sites[site]) for site in sorted(sites)))


def _require_disk(store_path: Path, outcomes: int, riders: int) -> None:
    """Look before a long fit whether its rows will have room."""
    needed = outcomes * OUTCOME_BYTES + riders * RIDER_BYTES
    place = next(folder for folder in (store_path, *store_path.absolute().parents) if folder.exists())
    if needed > shutil.disk_usage(place).free:
        raise StoreError(
            f"recording this cohort needs about {needed // 10**6} MB of free disk at {store_path}; nothing was fitted: "
            "free some space or choose another place with --store."
        )


def sites_of_cohort(cohort: Cohort, sites: Mapping[str, Coordinates]) -> tuple[dict[str, Coordinates], list[str]]:
    """The sites that the cohort has, and what to say of the others: a platform has one file of all its spots.

    One that is spelled almost like a site without coordinates is named; it may be the same.
    """
    if not sites:
        return {}, []
    seen: set[str] = set()
    for batch in cohort.batches():
        seen.update(site for site in batch.column("site").unique().to_pylist() if site is not None)
    others = sorted(sites.keys() - seen)
    notes = [f"--sites has {len(others)} sites that the cohort does not have; they are left out"] if others else []
    folded = {_folded(site): site for site in others}
    for site in sorted(seen - sites.keys())[:MOST_NEAR]:
        near = folded.get(_folded(site)) or next(iter(get_close_matches(site, others, 1, 0.85)), None)
        if near:
            notes.append(f"the cohort's site {site!r} has no coordinates; --sites has {near!r}, spelled otherwise")
    return {site: place for site, place in sites.items() if site in seen}, notes


def _folded(site: str) -> str:
    return re.sub(r"[\W_]", "", site).casefold()


def _fitted(store: Store, fit_id: str, cohort: Cohort, recorded: Recorded, guesses: list[str]) -> Fitted:
    record = get_fit(store.connection, fit_id)
    assert record is not None
    detail = detail_of(store.connection, record)
    notes = [*cohort.report.notes, *guesses]
    if cohort.report.excluded_rows:
        notes.append(
            f"{cohort.report.excluded_rows} rows of riders who opted out were left out; cohort_hash is of the rows "
            "kept, and `isuit hash` of the file itself differs"
        )
    if recorded.returned:
        notes.append(
            f"the rows of {recorded.returned} riders who were erased are back under the cohort's hash; skills that "
            "earlier fits had of them are not"
        )
    shown = detail.fit
    return Fitted(
        fit_id=shown.fit_id,
        cohort_hash=shown.cohort_hash,
        recorded=recorded.new,
        activity=shown.activity,
        dimension=shown.dimension,
        kind=shown.kind,
        identification=shown.identification,
        promotion=shown.promotion,
        discrimination=shown.discrimination,
        discrimination_se=shown.discrimination_se,
        discrimination_interval=shown.discrimination_interval,
        held_out=shown.held_out,
        outcomes=detail.cohort.outcomes,
        riders=detail.cohort.riders,
        sites=detail.cohort.sites,
        skills=shown.skills,
        suppressed_rows=cohort.report.excluded_rows,
        releasable=detail.releasable,
        notes=notes,
        log_head=log_head(store.connection),
        detail=detail,
        stored=record,
    )
