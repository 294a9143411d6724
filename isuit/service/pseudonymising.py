"""`isuit pseudonymise`: a cohort file with random tokens instead of IDs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from isuit import canonical
from isuit.audit.log import append_event, log_head
from isuit.erasure.pseudonyms import PSEUDONYMS, remember, tokens_for
from isuit.erasure.suppression import OptedOut
from isuit.errors import InputError
from isuit.ingest import Cohort, read_cohort, refuse_to_overwrite
from isuit.published import Pseudonymised
from isuit.service.stores import DEFAULT_WAIT, open_store
from isuit.store.opening import Store


def pseudonymise(
    store_path: Path,
    files: list[str],
    out: Path,
    *,
    columns: Mapping[str, str] | None = None,
    timezone: str | None = None,
    wait: float = DEFAULT_WAIT,
) -> Pseudonymised:
    """Write the cohort with tokens; the map stays in the store, and whoever opted out stays out.

    Only the five fields of an outcome are written: any other column could name the person again. The rows are in the
    canonical order of the tokens, because the order of the IDs would tell their rank.
    """
    refuse_to_overwrite(files, out)
    write = _writer(out)
    with open_store(store_path, write=True, wait=wait, create=True) as store:
        opted_out = OptedOut.of(store)
        with read_cohort(files, columns=columns, timezone=timezone, exclude=opted_out.exclude) as cohort:
            tokens, new = tokens_for(store.connection, _riders(cohort))
            stream = pa.RecordBatchReader.from_batches(canonical.SCHEMA, _replaced(cohort, tokens))
            left_out = cohort.report.excluded_rows
            with read_cohort(stream) as tokenised:
                with _beside(out) as part:
                    write(tokenised, part)
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


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A file in the target's directory that takes its name when the block ends well."""
    try:
        handle, name = tempfile.mkstemp(prefix=".isuit-", suffix=out.suffix, dir=out.parent)
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}); choose another place.") from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


Write = Callable[[Cohort, Path], None]


def _writer(out: Path) -> Write:
    writers: dict[str, Write] = {".parquet": _parquet, ".csv": _csv, ".arrow": _arrow}
    writer = writers.get(out.suffix.lower())
    if writer is None:
        raise InputError(f"the ending of {out.name} names no format; use {', '.join(writers)}.")
    return writer


def _parquet(cohort: Cohort, path: Path) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, canonical.SCHEMA) as file:
        _each(cohort, file.write_batch)


def _arrow(cohort: Cohort, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, canonical.SCHEMA) as file:
        _each(cohort, file.write_batch)


def _csv(cohort: Cohort, path: Path) -> None:
    import pyarrow.csv as pcsv

    text = canonical.SCHEMA.set(2, pa.field("observed_at", pa.string()))

    def write(batch: pa.RecordBatch) -> None:
        # Arrow's own CSV writes a space between date and time; ISO 8601 has a T.
        times = pc.strftime(batch.column("observed_at"), format="%Y-%m-%dT%H:%M:%SZ")
        file.write_batch(pa.record_batch(batch.set_column(2, text.field(2), times).columns, schema=text))

    with pcsv.CSVWriter(str(path), text) as file:
        _each(cohort, write)


def _each(cohort: Cohort, write: Callable[[pa.RecordBatch], Any]) -> None:
    for batch in cohort.batches():
        write(batch)
