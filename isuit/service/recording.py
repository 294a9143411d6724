"""Writing a fit down: cohort, commitments, record, curves and skills in one transaction, with their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import rfc8785

from isuit import __version__
from isuit.audit.blocks import Block, as_salts, as_texts, row_blocks, skill_blocks
from isuit.audit.commitments import CHUNK_RIDERS, ROWS_LEAF_TAG, SKILL_LEAF_TAG, BareLeaves, committed
from isuit.audit.log import append_event
from isuit.audit.results import result_digest
from isuit.domain import Estimate, FitConfig
from isuit.ingest import Cohort
from isuit.record import as_json
from isuit.store.cohorts import (
    StoredCohort,
    commitment_rows,
    find_cohort,
    insert_cohort,
    leaf_rows,
    outcome_rows,
)
from isuit.store.fits import (
    StoredFit,
    curve_rows,
    get_fit,
    insert_atlas,
    insert_fit,
    insert_skills,
    skill_table,
)
from isuit.store.holders import Shared, further_holder, list_holders, still_hold
from isuit.store.opening import Store
from isuit.store.parts import has_parts, show, writing
from isuit.store.query import rows
from isuit.store.sites import Coordinates, record_sites


class Recorded(NamedTuple):
    """What recording did: whether the fit is new, and how many erased riders' rows came back with the file."""

    new: bool
    returned: int


def record_fit(
    store: Store,
    fit_id: str,
    cohort: Cohort,
    config: FitConfig,
    estimate: Estimate | None,
    sites: Mapping[str, Coordinates],
    shared: Shared | None = None,
) -> Recorded:
    """Record what is not there yet, all of it or nothing.

    `estimate` is None for a fit that is only confirmed; `shared` is what may hold the cohort's rows already.
    """
    with store.transaction() as connection:
        if record_sites(connection, sites):
            append_event(connection, "sites-recorded", {}, tables=["atlas.sites"], key=store.key)
        known = find_cohort(connection, cohort.cohort_hash)
        returned = 0 if known is None else return_rows(connection, cohort, known)
        if estimate is None or get_fit(connection, fit_id) is not None:
            return Recorded(new=False, returned=returned)
        if known is None:
            register_cohort(connection, cohort, shared)
        _append_fit(connection, fit_id, cohort.cohort_hash, config, estimate)
    return Recorded(new=True, returned=returned)


def register_cohort(connection: duckdb.DuckDBPyConnection, cohort: Cohort, shared: Shared | None = None) -> None:
    """Outcomes, one salted leaf per rider, and the cohort's record; suppressed rows are an event of their own.

    The outcomes pass twice, to be stored and to be committed to: reading them again costs little beside either. Where
    `shared` says what holds them already, they are not stored again.
    """
    if shared is not None and still_hold(connection, shared, cohort.report.outcomes):
        list_holders(connection, cohort.cohort_hash, shared.names)
        show(connection)
        untimed = sum(batch.column("observed_at").null_count for batch in cohort.batches())
    else:
        shared, untimed = None, _store_outcomes(connection, cohort)
    blocks = row_blocks(cohort.batches())
    bare = _commit(connection, cohort.cohort_hash, ROWS_LEAF_TAG, blocks, cohort.report.riders)
    record = _cohort_record(cohort, untimed, bare.root)
    insert_cohort(connection, record)
    _log_cohort(connection, record, cohort.report.excluded_rows, listed=shared is not None)


def return_rows(connection: duckdb.DuckDBPyConnection, cohort: Cohort, known: StoredCohort) -> int:
    """Store again the rows of riders who were erased and are not opted out (any more); how many riders.

    The file has the cohort's hash, so these are the rows that were erased. Their salts are destroyed: each rider gets a
    new leaf beside the empty one, which stays with its receipt, and an event has the root over all of them. The rows
    are stored under a name of their own: cohorts that share this one's others were not given these.
    """
    subject = cohort.cohort_hash
    here = {rider for (rider,) in rows(connection, "SELECT rider FROM all_commitments WHERE subject = ?", [subject])}
    if len(here) == known.riders:
        return 0
    present = pa.array(sorted(here), pa.string())
    holder = further_holder(connection, subject)

    def gone() -> Iterator[pa.RecordBatch]:
        for batch in cohort.batches():
            yield batch.filter(pc.invert(pc.is_in(batch.column("rider").cast(pa.string()), present)))

    with writing(connection, "personal.outcomes", holder, 0) as write:
        for missing in gone():
            if len(missing):
                write(outcome_rows(holder, missing))
    show(connection)
    before = [leaf for (leaf,) in rows(connection, "SELECT leaf FROM all_leaves WHERE subject = ?", [subject])]
    new = _commit(connection, subject, ROWS_LEAF_TAG, row_blocks(gone()), 0)
    returned = len(new)
    new.add(bytes.fromhex("".join(before)))
    connection.execute("UPDATE ledger.cohorts SET commitment = ? WHERE cohort_hash = ?", [new.root, subject])
    payload = {"cohort_hash": subject, "commitment": new.root, "riders": returned}
    append_event(connection, "rows-returned", payload, rows={"ledger.cohorts": [subject], "ledger.holders": [subject]})
    return returned


def _store_outcomes(connection: duckdb.DuckDBPyConnection, cohort: Cohort) -> int:
    """Store every outcome; how many have no time."""
    untimed = 0
    with writing(connection, "personal.outcomes", cohort.cohort_hash, cohort.report.outcomes) as write:
        for batch in cohort.batches():
            write(outcome_rows(cohort.cohort_hash, batch))
            untimed += batch.column("observed_at").null_count
    return untimed


def _commit(
    connection: duckdb.DuckDBPyConnection, subject: str, tag: str, blocks: Iterable[Block], count: int
) -> BareLeaves:
    """A salted leaf over each rider's content, stored some riders at a time; the bare leaves, stored in order."""
    bare = BareLeaves()
    with writing(connection, "personal.commitments", subject, count) as write:
        for some in committed(tag, blocks):
            write(commitment_rows(subject, some.riders, as_salts(some.salts), as_texts(some.leaves)))
            bare.add(some.leaves)
    with writing(connection, "ledger.leaves", subject, count) as write:
        for leaves in bare.in_order():
            write(leaf_rows(subject, leaves))
    return bare


def _cohort_record(cohort: Cohort, untimed: int, commitment: str) -> StoredCohort:
    report = cohort.report
    return StoredCohort(
        cohort_hash=cohort.cohort_hash,
        outcomes=report.outcomes,
        riders=report.riders,
        sites=report.sites,
        observed_from=_naive(report.observed_from),
        observed_until=_naive(report.observed_until),
        untimed=untimed,
        commitment=commitment,
        registered_at=_now(),
        metrics=cohort.metrics,
    )


def _log_cohort(connection: duckdb.DuckDBPyConnection, record: StoredCohort, suppressed: int, *, listed: bool) -> None:
    payload = {
        "cohort_hash": record.cohort_hash,
        "commitment": record.commitment,
        "outcomes": record.outcomes,
        "riders": record.riders,
    }
    written = {"ledger.cohorts": [record.cohort_hash]}
    if len(record.metrics) > 1:
        written["ledger.metrics"] = [record.cohort_hash]
    if listed:
        written["ledger.holders"] = [record.cohort_hash]
    append_event(
        connection, "cohort-registered", payload, rows=written, tables=_listing(connection, record.cohort_hash)
    )
    if suppressed:
        append_event(connection, "rows-suppressed", {"cohort_hash": record.cohort_hash, "rows": suppressed})


def _append_fit(
    connection: duckdb.DuckDBPyConnection, fit_id: str, cohort_hash: str, config: FitConfig, estimate: Estimate
) -> None:
    commitment = _commit_skills(connection, fit_id, estimate)
    record = record_of(fit_id, cohort_hash, config, estimate, commitment)
    insert_atlas(connection, fit_id, config.activity, config.dimension, curve_rows(estimate))
    insert_fit(connection, record)
    payload = {
        "fit_id": fit_id,
        "cohort_hash": cohort_hash,
        "result_digest": record.result_digest,
        "commitment": record.commitment,
        "skills": record.skills,
    }
    written = {"ledger.fits": [fit_id], "atlas.difficulty": [fit_id]}
    append_event(connection, "fit-recorded", payload, rows=written, tables=_listing(connection, fit_id))


def _listing(connection: duckdb.DuckDBPyConnection, subject: str) -> list[str]:
    """The table that lists files, if the subject has rows in any."""
    return ["ledger.parts"] if has_parts(connection, subject) else []


def record_of(
    fit_id: str, cohort_hash: str, config: FitConfig, estimate: Estimate, commitment: BareLeaves | None
) -> StoredFit:
    """A fit's record as it is written down; `commitment` is over its skills."""
    digest = result_digest(estimate.kind, estimate.discrimination, estimate.discrimination_se, curve_rows(estimate))
    return StoredFit(
        fit_id=fit_id,
        cohort_hash=cohort_hash,
        activity=config.activity,
        dimension=config.dimension,
        configuration=canonical_json(config.as_json()),
        estimator_version=estimate.estimator_version,
        tool_version=__version__,
        kind=estimate.kind,
        discrimination=estimate.discrimination,
        discrimination_se=estimate.discrimination_se,
        log_likelihood=estimate.log_likelihood,
        identification=canonical_json(asdict(estimate.identification)),
        promotion=None if estimate.promotion is None else canonical_json(asdict(estimate.promotion)),
        held_out=canonical_json(asdict(estimate.held_out)) if estimate.held_out else None,
        parameters=canonical_json(as_json(estimate.parameters)),
        diagnostics=canonical_json(as_json(estimate.diagnostics)),
        skills=len(estimate.skills.riders) if estimate.skills else 0,
        commitment=commitment.root if commitment else None,
        result_digest=digest,
        recorded_at=_now(),
    )


def _commit_skills(connection: duckdb.DuckDBPyConnection, fit_id: str, estimate: Estimate) -> BareLeaves | None:
    skills = estimate.skills
    if skills is None or not skills.riders:
        return None
    table = skill_table(skills)
    insert_skills(connection, fit_id, table)
    blocks = skill_blocks(table.to_batches(CHUNK_RIDERS))
    return _commit(connection, fit_id, SKILL_LEAF_TAG, blocks, table.num_rows)


def canonical_json(value: Any) -> str:
    return rfc8785.dumps(value).decode()


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _naive(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None)
