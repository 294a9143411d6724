"""What is in a store: its status, its fits, the in-house atlas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from isuit.audit.log import log_head
from isuit.domain import discrimination_interval
from isuit.errors import StoreError
from isuit.published import AtlasPoint, CohortRecord, Created, CurvePoint, FitDetail, FitRecord, Status
from isuit.service.fitting import releasable
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.cohorts import find_cohort
from isuit.store.fits import FitRecord as StoredFit
from isuit.store.fits import atlas_rows, current_atlas, find_fit, fit_records
from isuit.store.opening import is_store
from isuit.store.query import first

JSON_COLUMNS = ("configuration", "identification", "promotion", "held_out")


def init(store_path: Path, policy: Mapping[str, Any] | None = None, wait: float = DEFAULT_WAIT) -> Created:
    """Make a store with its own disclosure policy."""
    if is_store(store_path):
        raise StoreError(f"there is a store at {store_path} already; its policy was fixed when it was made")
    with open_store(store_path, write=True, wait=wait, create=True, policy=policy) as store:
        row = first(store.connection, "SELECT store_id FROM ledger.store")
        assert row is not None
        return Created(store_id=row[0], policy=store.policy, log_head=log_head(store.connection))


def status(store_path: Path, wait: float = DEFAULT_WAIT) -> Status:
    """Numbers, the policy and the head of the log."""
    query = """
        SELECT (SELECT store_id FROM ledger.store), (SELECT tool_version FROM ledger.store),
            (SELECT count(*) FROM ledger.cohorts), (SELECT count(*) FROM personal.outcomes),
            (SELECT count(*) FROM ledger.fits), (SELECT count(DISTINCT rider) FROM personal.commitments),
            (SELECT count(*) FROM atlas.sites), (SELECT count(*) FROM personal.suppressed),
            (SELECT count(*) FROM ledger.receipts), (SELECT count(*) FROM ledger.releases),
            (SELECT count(*) FROM ledger.log)
    """
    with open_store(store_path, wait=wait) as store:
        row = first(store.connection, query)
        assert row is not None
        store_id, version, cohorts, outcomes, fits, riders, sites, suppressed, receipts, releases, events = row
        return Status(
            store_id=store_id,
            cohorts=cohorts,
            outcomes=outcomes,
            fits=fits,
            riders=riders,
            sites=sites,
            suppressed=suppressed,
            receipts=receipts,
            releases=releases,
            policy=store.policy,
            tool_version=version,
            log_length=events,
            log_head=log_head(store.connection),
        )


def published(record: StoredFit) -> FitRecord:
    """A fit's record as it leaves the store."""
    values = asdict(record)
    values.update({column: record.json(column) for column in JSON_COLUMNS})
    values["discrimination_interval"] = discrimination_interval(record.discrimination, record.discrimination_se)
    return FitRecord(**{name: values[name] for name in FitRecord.model_fields})


def fits(store_path: Path, wait: float = DEFAULT_WAIT) -> list[FitRecord]:
    """Every fit, oldest first."""
    with open_store(store_path, wait=wait) as store:
        return [published(record) for record in fit_records(store.connection)]


def show(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> FitDetail:
    """One fit with its curves."""
    with open_store(store_path, wait=wait) as store:
        record = find_fit(store.connection, reference)
        cohort = find_cohort(store.connection, record.cohort_hash)
        assert cohort is not None
        return FitDetail(
            fit=published(record),
            cohort=CohortRecord(**asdict(cohort)),
            releasable=releasable(store, record, cohort),
            diagnostics=record.json("diagnostics"),
            curves=[CurvePoint(**row) for row in atlas_rows(store.connection, record.fit_id).to_pylist()],
        )


def curves(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> pa.Table:
    """One fit's curves as an Arrow table."""
    with open_store(store_path, wait=wait) as store:
        return atlas_rows(store.connection, find_fit(store.connection, reference).fit_id)


def atlas(store_path: Path, wait: float = DEFAULT_WAIT) -> pa.Table:
    """The newest fit of every activity, dimension and site; in-house: full precision is not for publication."""
    with open_store(store_path, wait=wait) as store:
        return current_atlas(store.connection)


def atlas_points(table: pa.Table) -> list[AtlasPoint]:
    return [AtlasPoint(**row) for row in table.to_pylist()]


def curve_table(detail: FitDetail) -> pa.Table:
    """The curves of a shown fit as an Arrow table."""
    return pa.Table.from_pylist([point.model_dump() for point in detail.curves])
