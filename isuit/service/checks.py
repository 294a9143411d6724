"""What an auditor runs: verify, rederive, bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from isuit import __version__, canonical
from isuit.audit.bundle import read_bundle, write_bundle
from isuit.audit.checkpoints import Checkpoint
from isuit.audit.directory import strange_files, strange_parts
from isuit.audit.extension import strange_extension
from isuit.audit.keys import origin_of, strange_keys
from isuit.audit.log import append_event, log_head, read_log
from isuit.audit.rederivation import Rederivation, check_stored, compare, recorded_config
from isuit.audit.results import TOLERANCE
from isuit.audit.subjects import check_cohort, erased_leaves
from isuit.audit.verification import Verification
from isuit.audit.verification import verify as verify_tables
from isuit.errors import EstimationError, InputError
from isuit.ingest import Cohort, read_cohort
from isuit.ingest.canonical_file import read_canonical
from isuit.published import BundleReport, Disagreement, RederiveReport, VerifyReport
from isuit.reading import Form
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.service.trusted import read_key, read_note
from isuit.store.cohorts import find_cohort, stored_outcomes
from isuit.store.fits import StoredFit, atlas_rows, find_fit, skill_rows
from isuit.store.opening import Store

Progress = Callable[[str, float], None]


def verify(
    store_path: Path,
    known_head: str | None = None,
    wait: float = DEFAULT_WAIT,
    progress: Progress | None = None,
    *,
    trusted_key: Path | None = None,
    checkpoint: Path | None = None,
) -> VerifyReport:
    """Hold every table against the log, the catalogue against the migrations, the files against what a store has.

    With a checkpoint that was kept, also hold the log against what was signed, by a trusted key or the log's own.
    """
    trusted = None if trusted_key is None else read_key(trusted_key)
    kept = None if checkpoint is None else read_note(checkpoint)
    with open_store(store_path, wait=wait, inspect=True) as store:
        found = verify_tables(store.connection, store.key, known_head, progress)
        with found.checking("directory"):
            for name, sentence in strange_files(store.paths):
                found.disagree(name, sentence)
        with found.checking("ledger.parts"):
            for name, sentence in strange_parts(store.connection, store.paths):
                found.disagree(name, sentence)
        with found.checking("signing-key"):
            for name, sentence in strange_keys(store.connection, store.paths):
                found.disagree(name, sentence)
        with found.checking("ledger.log"):
            if trusted is not None or kept is not None:
                events, origin = read_log(store.connection), origin_of(store.connection)
                for sentence in strange_extension(events, origin, kept, trusted):
                    found.disagree("ledger.log", sentence)
        size = None if kept is None else Checkpoint.read(kept.text).size
        return report_of(found, known_head, size)


def report_of(found: Verification, known_head: str | None, checkpoint: int | None = None) -> VerifyReport:
    """What verification found, as it leaves the program."""
    return VerifyReport(
        ok=bool(found),
        log_head=found.log_head,
        log_length=found.log_length,
        known_head=known_head,
        checkpoint=checkpoint,
        cohorts=found.cohorts,
        complete_cohorts=found.complete_cohorts,
        fits=found.fits,
        erased_leaves=found.erased_leaves,
        disagreements=[Disagreement(table=table, sentence=sentence) for table, sentence in found.disagreements],
    )


@dataclass(frozen=True)
class Material:
    """What a re-derivation starts from: the record, what was recorded, and the outcomes at hand."""

    record: StoredFit
    atlas: pa.Table
    skills: pa.Table | None
    outcomes: pa.Table | None = None  # from the store; None when the auditor brings a file
    erased: bool = False
    notes: tuple[str, ...] = ()
    other_rows: bool = False  # the stored outcomes are not the ones that were committed to
    disagreements: tuple[str, ...] = ()  # what the store holds of the fit and the log does not


def rederive(
    store_path: Path,
    reference: str,
    source: Any = None,
    *,
    wait: float = DEFAULT_WAIT,
    progress: Progress | None = None,
    **form: Unpack[Form],
) -> RederiveReport:
    """Fit again, from the stored cohort or the auditor's own file, and compare."""
    with open_store(store_path, wait=wait) as store:
        record = find_fit(store.connection, reference)
        _require_version(record)
        material = Material(
            record,
            atlas_rows(store.connection, record.fit_id),
            skill_rows(store.connection, record.fit_id, paths=True),
            disagreements=tuple(check_stored(store.connection, record)),
        )
        if source is None:
            material = _with_stored_outcomes(store, material)
    # The lock is free while the estimator works: nothing of the store is needed any more.
    if source is not None:
        return _from_file(material, source, form, progress)
    if material.outcomes is None or not material.outcomes.num_rows:
        return _report(material, _without_refit(material, "every outcome of this cohort was erased"))
    with read_cohort(material.outcomes, metrics=_metrics(material.record)) as cohort:
        return _refit(material, cohort, progress)


def rederive_bundle(
    directory: Path,
    source: Any = None,
    *,
    progress: Progress | None = None,
    **form: Unpack[Form],
) -> RederiveReport:
    """The same from a bundle, without a store."""
    bundle = read_bundle(directory)
    _require_version(bundle.record)
    if source is None and bundle.cohort is None:
        raise InputError("this bundle holds no cohort; give your own copy with --cohort")
    material = Material(bundle.record, bundle.atlas, None, notes=(f"the bundle's log ends at {bundle.log_head}",))
    if source is None:
        assert bundle.cohort is not None
        source, _ = read_canonical(bundle.cohort)
    return _from_file(material, source, form, progress)


def _metrics(record: StoredFit) -> tuple[str, ...] | None:
    """The names of the metrics of a fit of several, from its record."""
    parameters = record.json("parameters")
    return tuple(parameters["metrics"]) if isinstance(parameters, dict) and "metrics" in parameters else None


def _require_version(record: StoredFit) -> None:
    from isuit import estimator

    if record.estimator_version != estimator.ESTIMATOR_VERSION:
        raise InputError(
            f"this fit was made by estimator {record.estimator_version} and this is {estimator.ESTIMATOR_VERSION}; "
            f"install isuit {record.tool_version} to re-derive it"
        )


def _with_stored_outcomes(store: Store, material: Material) -> Material:
    """The remaining rows, checked against their commitments when some are gone."""
    cohort = find_cohort(store.connection, material.record.cohort_hash)
    assert cohort is not None
    found = Verification()
    with found.checking("personal.outcomes"):
        erased = erased_leaves(store.connection).get(cohort.cohort_hash, [])
        check_cohort(store.connection, cohort, erased, found)
    gone = 0 if found.complete_cohorts else found.erased_leaves  # whoever came back is not gone
    batches = list(stored_outcomes(store.connection, cohort.cohort_hash))
    return replace(
        material,
        outcomes=pa.Table.from_batches(batches, canonical.schema_of(cohort.metrics)) if batches else None,
        erased=gone > 0,
        other_rows=bool(found.disagreements),
        notes=(f"{gone} of {cohort.riders} riders were erased",) if gone else (),
    )


def _from_file(material: Material, source: Any, form: Form, progress: Progress | None) -> RederiveReport:
    with read_cohort(source, metrics=_metrics(material.record), **form) as cohort:
        if cohort.cohort_hash != material.record.cohort_hash:
            raise InputError(
                f"the file's hash is {cohort.cohort_hash} and the fit's cohort is {material.record.cohort_hash}; "
                "this is another cohort"
            )
        return _refit(material, cohort, progress)


def _refit(material: Material, cohort: Cohort, progress: Progress | None) -> RederiveReport:
    from isuit import estimator

    record = material.record
    if material.other_rows or (not material.erased and cohort.cohort_hash != record.cohort_hash):
        note = "the stored rows are not the ones that were committed to; `isuit verify` lists what disagrees"
        named = [*material.disagreements, "personal.outcomes: the stored rows are not the ones that were committed to"]
        return _report(material, Rederivation("diverged", disagreements=named, notes=[note]))
    try:
        estimate = estimator.fit(cohort.observations(), recorded_config(record), progress)
    except EstimationError:
        if not material.erased:
            raise
        return _report(material, _without_refit(material, "what is left is too little for a fit"))
    named = list(material.disagreements)
    result = compare(record, material.atlas, material.skills, estimate, erased=material.erased, disagreements=named)
    return _report(material, result)


def _without_refit(material: Material, note: str) -> Rederivation:
    """Where erasure left too few rows to fit again, the log still vouches for what is stored."""
    named = list(material.disagreements)
    return Rederivation("diverged" if named else "erased", disagreements=named, notes=[note])


def _report(material: Material, result: Rederivation) -> RederiveReport:
    from isuit import estimator

    return RederiveReport(
        fit_id=material.record.fit_id,
        cohort_hash=material.record.cohort_hash,
        verdict=result.verdict,
        largest_difference=result.largest,
        differences={part: result.difference(part) for part in result.differences},
        curve_difference=result.difference("curves"),
        discrimination_difference=result.difference("discrimination"),
        skill_difference=result.difference("skills"),
        tolerance=TOLERANCE,
        skills_compared=result.skills_compared,
        recorded_version=material.record.estimator_version,
        estimator_version=estimator.ESTIMATOR_VERSION,
        disagreements=result.disagreements,
        notes=[*material.notes, *result.notes],
    )


def bundle(
    store_path: Path, reference: str, out: Path, *, with_cohort: bool = False, wait: float = DEFAULT_WAIT
) -> BundleReport:
    """Write a fit's bundle. One with rows is logged, so that an erasure can say how many copies left the store."""
    with open_store(store_path, write=with_cohort, wait=wait) as store:
        record = find_fit(store.connection, reference)
        atlas = atlas_rows(store.connection, record.fit_id)
        about = {
            "fit_id": record.fit_id,
            "cohort_hash": record.cohort_hash,
            "tool_version": __version__,
            "made_on": datetime.now(UTC).date().isoformat(),
        }
        if not with_cohort:
            files = write_bundle(out, record, atlas, read_log(store.connection), None, about)
        else:
            batches = list(stored_outcomes(store.connection, record.cohort_hash))
            metrics = canonical.metrics_of(batches[0].schema) if batches else canonical.ONE_METRIC
            content = list(canonical.chunks(sum(len(batch) for batch in batches), batches, metrics))
            if canonical.hash_of(content, metrics) != record.cohort_hash:
                raise InputError("rows of this cohort were erased, so it no longer has its hash; bundle without it")
            with store.transaction() as connection:
                payload = {"fit_id": record.fit_id, "cohort_hash": record.cohort_hash, "with_rows": True}
                append_event(connection, "bundle-made", payload)
                files = write_bundle(out, record, atlas, read_log(connection), content, about)
        return BundleReport(
            fit_id=record.fit_id, files=files, with_cohort=with_cohort, log_head=log_head(store.connection)
        )
