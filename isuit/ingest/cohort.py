"""A validated cohort: its hash, a report of what was read, and its outcomes in canonical order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isuit import canonical
from isuit.canonical import as_arrow
from isuit.columns import SLICE_ROWS, Column
from isuit.domain import NO_SITE, NO_TIME, Names, Observations
from isuit.errors import InputError
from isuit.ingest.sorting import Outcomes, Sorter

Progress = Callable[[str, float], None]
HASH_ROWS = 1 << 16  # per formatted slice: what a processor's cache holds is formatted fastest


@dataclass(frozen=True)
class Report:
    """What was read. `rows` is as in the source, `outcomes` without the rows that were left out."""

    rows: int
    outcomes: int
    riders: int
    sites: int
    observed_from: datetime | None
    observed_until: datetime | None
    duplicates: int  # outcomes that repeat another one in every field; they count, as they do in the hash
    excluded_rows: int
    missing_rows: int = 0  # left out because they lack a rider, a metric or an outcome
    notes: tuple[str, ...] = ()  # how a file was read, and what looks like a column and was not

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "observed_from": _iso(self.observed_from),
            "observed_until": _iso(self.observed_until),
            "notes": list(self.notes),
        }


class Cohort:
    """A cohort that was read; a context manager, because a large one holds temporary files.

    >>> with read_cohort("cohort.parquet") as cohort:  # doctest: +SKIP
    ...     cohort.cohort_hash
    'isuit-c1:...'
    """

    def __init__(
        self,
        sorter: Sorter,
        riders: pa.Array,
        sites: pa.Array,
        metrics: tuple[str, ...],
        rows: int,
        progress: Progress,
        missing_rows: int = 0,
        notes: tuple[str, ...] = (),
    ) -> None:
        self._sorter, self.metrics = sorter, metrics
        self._riders, self._sites = riders, sites  # sorted; a site's code is its place here plus one
        self._seen_riders, self._seen_sites = np.zeros(len(riders), bool), np.zeros(len(sites) + 1, bool)
        self.cohort_hash, self.report = self._hashed(rows, progress, missing_rows, notes)

    def __enter__(self) -> Cohort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._sorter.close()

    def batches(self, rows: int = 1 << 17) -> Iterator[pa.RecordBatch]:
        """The outcomes in canonical order, with `canonical.schema_of` its metrics."""
        for outcomes in self._sorter.slices(rows):
            yield self._batch(outcomes)

    def canonical_bytes(self) -> Iterator[bytes | memoryview]:
        """The bytes whose SHA-256 is the hash, in chunks."""
        return canonical.chunks(self.report.outcomes, self.batches(HASH_ROWS), self.metrics)

    def observations(self) -> Observations:
        """What an estimator reads, with codes into the sorted labels that occur. Long columns are on disk, nameless."""
        folder = self._sorter.temporary
        rider, site = Column(np.int32, folder), Column(np.int32, folder)
        outcome, observed_at = Column(np.int8, folder), Column(np.int64, folder)
        metrics = [Column(np.float64, folder) for _ in self.metrics]
        rider_number, riders = _numbered(self._seen_riders, self._riders)
        site_number, sites = _numbered(self._seen_sites[1:], self._sites)
        site_number = np.append(np.int32(NO_SITE), site_number)
        for outcomes in self._sorter.slices(SLICE_ROWS):
            rider.append(rider_number[outcomes.rider])
            for column, bits in zip(metrics, outcomes.metrics, strict=True):
                column.append(bits.view(np.float64))
            outcome.append(outcomes.outcome)
            if len(sites):
                site.append(site_number[outcomes.site])
            if self.report.observed_from:
                observed_at.append(outcomes.observed_at)
        return Observations(
            riders=Names(riders),
            rider=rider.array(),
            metric=metrics[0].array(),
            metrics=self.metrics if len(self.metrics) > 1 else (),
            further=tuple(column.array() for column in metrics[1:]),
            outcome=outcome.array(),
            sites=tuple(sites.to_pylist()),
            site=site.array() if len(sites) else None,
            observed_at=observed_at.array() if self.report.observed_from else None,
        )

    def _batch(self, outcomes: Outcomes) -> pa.RecordBatch:
        return pa.record_batch(
            [
                self._riders.take(as_arrow(outcomes.rider, pa.int32())),
                self._sites.take(as_arrow(outcomes.site - np.int32(1), pa.int32(), outcomes.site == 0)),
                as_arrow(outcomes.observed_at, pa.timestamp("us", tz="UTC"), outcomes.observed_at == NO_TIME),
                *(as_arrow(bits, pa.float64()) for bits in outcomes.metrics),
                as_arrow(outcomes.outcome, pa.int8()),
            ],
            schema=canonical.schema_of(self.metrics),
        )

    def _hashed(self, rows: int, progress: Progress, missing_rows: int, notes: tuple[str, ...]) -> tuple[str, Report]:
        """The hash and the report, in one pass over the sorted outcomes."""
        count = self._sorter.count()
        if not count:
            self.close()
            raise InputError(
                "every outcome belongs to a rider who opted out: there is nothing to read"
                if rows > missing_rows
                else "the cohort holds no outcomes: give one with at least one row"
            )
        digest = hashlib.sha256(canonical.header(count, self.metrics))
        riders, sites = self._seen_riders, self._seen_sites
        first, last = np.iinfo(np.int64).max, NO_TIME
        duplicates, before, done = 0, None, 0
        for outcomes in self._sorter.slices(HASH_ROWS):
            digest.update(canonical.line_bytes(canonical.lines(self._batch(outcomes)))[0])
            riders[outcomes.rider] = True
            sites[outcomes.site] = True
            known = outcomes.observed_at[outcomes.observed_at != NO_TIME]
            if known.size:
                first, last = min(first, int(known.min())), max(last, int(known.max()))
            same = np.logical_and.reduce([column[1:] == column[:-1] for column in outcomes.columns])
            duplicates += int(np.count_nonzero(same))
            duplicates += before == [column[0] for column in outcomes.columns]
            before = [column[-1] for column in outcomes.columns]
            done += outcomes.rows
            progress("hash", done / count)
        report = Report(
            rows=rows,
            outcomes=count,
            riders=int(np.count_nonzero(riders)),
            sites=int(np.count_nonzero(sites[1:])),
            observed_from=_instant(first) if last != NO_TIME else None,
            observed_until=_instant(last) if last != NO_TIME else None,
            duplicates=duplicates,
            excluded_rows=rows - count - missing_rows,
            missing_rows=missing_rows,
            notes=notes,
        )
        return f"{canonical.format_of(self.metrics)}:{digest.hexdigest()}", report


def _numbered(seen: NDArray[np.bool_], labels: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """The number of each label among those that occur, and these."""
    number = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return number, labels if seen.all() else labels.filter(pa.array(seen))


def _instant(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _iso(time: datetime | None) -> str | None:
    """As in the canonical form, where every time has six decimals."""
    return None if time is None else time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
