"""`isuit pseudonymise`: a cohort file with random tokens instead of IDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from isuit import canonical
from isuit.audit.log import append_event, log_head
from isuit.erasure.pseudonyms import PSEUDONYMS, remember, tokens_for
from isuit.erasure.suppression import OptedOut
from isuit.files import PRIVATE, whole
from isuit.ingest import Cohort, read_cohort, refuse_to_overwrite
from isuit.published import Pseudonymised
from isuit.reading import Reading
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.opening import Store
from isuit.tables import SEPARATORS, format_of, require_format, write_into


def pseudonymise(
    store_path: Path,
    files: Any,
    out: Path,
    *,
    wait: float = DEFAULT_WAIT,
    **reading: Unpack[Reading],
) -> Pseudonymised:
    """Write the cohort with tokens; the map stays in the store, and whoever opted out stays out.

    Only the fields of an outcome are written: any other column could name the person again. The rows are in the
    canonical order of the tokens, because the order of the IDs would tell their rank.
    """
    refuse_to_overwrite(files, out)
    require_format(out)
    with open_store(store_path, write=True, wait=wait, create=True) as store:
        opted_out = OptedOut.of(store)
        with read_cohort(files, exclude=opted_out.exclude, **reading) as cohort:
            tokens, new = tokens_for(store.connection, _riders(cohort))
            schema = canonical.schema_of(cohort.metrics)
            stream = pa.RecordBatchReader.from_batches(schema, _replaced(cohort, tokens))
            left_out = cohort.report.excluded_rows
            with read_cohort(stream, metrics=cohort.metrics) as tokenised:
                with whole(out, PRIVATE) as part:
                    _write(tokenised, part, out)
                    # The map first: a file whose tokens nobody can resolve would hold people who cannot be erased.
                    if new or left_out:
                        _record(store, tokens, new, left_out)
                return Pseudonymised(
                    cohort_hash=tokenised.cohort_hash,
                    outcomes=tokenised.report.outcomes,
                    riders=tokenised.report.riders,
                    new_tokens=len(new),
                    suppressed_rows=left_out,
                    notes=[f"{left_out} rows of riders who opted out were left out"] if left_out else [],
                    log_head=log_head(store.connection),
                )


def _riders(cohort: Cohort) -> list[str]:
    return sorted({rider for batch in cohort.batches() for rider in batch.column("rider").unique().to_pylist()})


def _record(store: Store, tokens: Mapping[str, str], new: list[str], left_out: int) -> None:
    with store.transaction() as connection:
        remember(connection, tokens, new)
        payload = {"riders": len(new), "suppressed_rows": left_out}
        append_event(connection, "pseudonyms-assigned", payload, tables=[PSEUDONYMS], key=store.key)


def _replaced(cohort: Cohort, tokens: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    for batch in cohort.batches():
        riders = batch.column("rider").dictionary_encode()
        chosen = pa.array([tokens[rider] for rider in riders.dictionary.to_pylist()], pa.string())
        yield batch.set_column(0, "rider", chosen.take(riders.indices))


def _text_times(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Times as ISO 8601: Arrow's own CSV writes a space between date and time instead of a T."""
    for batch in batches:
        times = pc.strftime(batch.column("observed_at"), format="%Y-%m-%dT%H:%M:%SZ")
        yield batch.set_column(2, "observed_at", times)


def _write(cohort: Cohort, part: Path, out: Path) -> None:
    """The cohort to `part`, in the format that the ending of `out` names."""
    schema = canonical.schema_of(cohort.metrics)
    if format_of(out) in SEPARATORS:
        schema = schema.set(2, pa.field("observed_at", pa.string()))
        write_into(part, schema, _text_times(cohort.batches()), out)
    else:
        write_into(part, schema, cohort.batches(), out)
