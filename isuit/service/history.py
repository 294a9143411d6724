"""What is in a store: its status, its fits, the in-house atlas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from isuit.audit.log import log_head
from isuit.errors import StoreError
from isuit.published import AtlasPoint, Created, FitDetail, FitList, FitRecord, Status
from isuit.release.policy import policy_of
from isuit.service import reading_copy
from isuit.service.details import detail_of, published
from isuit.service.intervals import atlas_with_intervals, with_intervals
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.aliases import aliases
from isuit.store.fits import atlas_rows, find_fit, fit_records
from isuit.store.opening import is_store
from isuit.store.query import first
from isuit.tables import require_format, write_table


def init(store_path: Path, policy: Mapping[str, Any] | None = None, wait: float = DEFAULT_WAIT) -> Created:
    """Make a store with its own disclosure policy."""
    if is_store(store_path):
        raise StoreError(f"there is a store at {store_path} already; its policy was fixed when it was made")
    checked = policy_of(policy or {}).model_dump()
    with open_store(store_path, write=True, wait=wait, create=True, policy=checked) as store:
        row = first(store.connection, "SELECT store_id FROM ledger.store")
        assert row is not None
        return Created(store_id=row[0], policy=store.policy, log_head=log_head(store.connection))


def status(store_path: Path, wait: float = DEFAULT_WAIT) -> Status:
    """Numbers, the policy and the head of the log."""
    query = """
        SELECT (SELECT store_id FROM ledger.store), (SELECT tool_version FROM ledger.store),
            (SELECT count(*) FROM ledger.cohorts), (SELECT count(*) FROM held_outcomes),
            (SELECT count(*) FROM ledger.fits), (SELECT count(DISTINCT rider) FROM all_commitments),
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


def fits(store_path: Path, wait: float = DEFAULT_WAIT) -> list[FitRecord]:
    """Every fit, oldest first."""
    return fit_list(store_path, wait).fits


def fit_list(store_path: Path, wait: float = DEFAULT_WAIT) -> FitList:
    """Every fit, oldest first, and the operator's names for them."""
    with open_store(store_path, wait=wait) as store:
        found = [published(record) for record in fit_records(store.connection)]
        return FitList(fits=found, aliases={name: meant.fit_id for name, meant in aliases(store.connection).items()})


def show(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> FitDetail:
    """One fit with its curves."""
    with open_store(store_path, wait=wait) as store:
        return detail_of(store.connection, find_fit(store.connection, reference))


def curves(store_path: Path, reference: str, wait: float = DEFAULT_WAIT) -> pa.Table:
    """One fit's curves as an Arrow table."""
    with open_store(store_path, wait=wait) as store:
        record = find_fit(store.connection, reference)
        return with_intervals(record, atlas_rows(store.connection, record.fit_id))


def atlas(store_path: Path, wait: float = DEFAULT_WAIT, out: Path | None = None) -> pa.Table:
    """The newest fit of every activity, dimension and site; in-house: full precision is not for publication.

    `out` gets the same as a file, in the format of its ending.
    """
    if out is not None and out.suffix == reading_copy.ENDING:
        return reading_copy.write_copy(store_path, out, wait)
    if out is not None:
        require_format(out)
    with open_store(store_path, wait=wait) as store:
        table = atlas_with_intervals(store.connection)
    if out is not None:
        write_table(table, out)
    return table


def atlas_points(table: pa.Table) -> list[AtlasPoint]:
    return [AtlasPoint(**row) for row in table.to_pylist()]


def curve_table(detail: FitDetail) -> pa.Table:
    """The curves of a shown fit as an Arrow table."""
    return pa.Table.from_pylist([point.model_dump() for point in detail.curves])
