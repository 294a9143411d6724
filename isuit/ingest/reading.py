"""Reading a cohort: every source is checked and coded batch by batch, and refused with all of its defects or sorted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isuit.canonical import as_numpy, columns_of
from isuit.domain import NO_TIME
from isuit.errors import InputError
from isuit.ingest import values
from isuit.ingest.cohort import Cohort, Progress
from isuit.ingest.databases import POSTGRES, REMOTE, Query, fetched, rows_of, scheme_of
from isuit.ingest.dialects import SEPARATORS, Dialect, declared, fold, is_header, look
from isuit.ingest.folders import partitions, paths_of, with_partitions
from isuit.ingest.layout import OPTIONAL, Agreement, checked_metrics, locate, wanted
from isuit.ingest.refusals import Place, Refusals
from isuit.ingest.sorting import IN_MEMORY_ROWS, LEFT_OUT, SPILL_BYTES, Outcomes, Ranks, Sorter
from isuit.ingest.sources import WRONG_FIELDS, Source, Unreadable, is_table, open_file, open_object
from isuit.ingest.times import Defects, from_text, from_timestamps, zone_named
from isuit.reading import Reading, spelled_out

Admit = Callable[[int, int], None]
MOST_NAMED = 20  # columns that an error lists


@spelled_out(Reading)
def read_cohort(
    source: Any,
    *,
    exclude: Callable[[pa.Array], pa.Array] | None = None,
    temporary: Path | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
    spill_bytes: int = SPILL_BYTES,
    progress: Progress = lambda stage, share: None,
    admit: Admit = lambda rows, riders: None,
    **reading: Unpack[Reading],
) -> Cohort:
    """Read and validate a cohort: a path, a list of paths, a directory, a glob, an address, `-` for standard input, a
    `Query` of a database, or a table.

    `isuit.reading.Reading` says what the keywords of `reading` mean. `exclude` gets the distinct riders and says, as an
    array of booleans, whose rows are left out. A cohort with more than `in_memory_rows` rows is sorted on disk, in a
    directory of its own inside `temporary`. Refuses with every defect listed. `progress` is told the share that is
    read, where the source knows its size, then the share that is hashed. `admit` is told how many rows and riders there
    are at least, before a source is read that knows its size, and batch after batch; it refuses by raising an error.
    """
    named, mapping = checked_metrics(reading.get("metrics"), reading.get("columns"))
    refusals = Refusals()
    options = declared(reading.get("csv"))
    sorter = Sorter(temporary, in_memory_rows, spill_bytes)
    dropping = reading.get("drop_missing", False)
    reader = _Reader(refusals, named, reading.get("timezone"), sorter, progress, admit, options, dropping)
    if isinstance(source, Query):
        with rows_of(source) as stream:
            reader.read(open_object(stream, "the query"), mapping)
    elif is_table(source):
        reader.read(open_object(source), mapping)
    elif isinstance(source, (str, os.PathLike, Sequence)):
        with _files(source, temporary) as paths:
            for number, path in enumerate(paths):
                kept = partitions(path, source)
                needed = [name for name in wanted(mapping, named) if name not in kept]
                opened = open_file(path, refusals, needed, options)
                if opened:
                    numbers = [mapping.get(ours, ours) for ours in (*named, "outcome")]
                    reader.read(with_partitions(opened, kept, numbers), mapping, number, len(paths))
    else:
        lazy = " (collect a lazy frame first)" if hasattr(source, "collect") else ""
        raise InputError(f"a cohort is a path, a list of paths or a table with the Arrow interface{lazy}")
    return reader.cohort(exclude)


@contextmanager
def _files(source: Any, temporary: Path | None) -> Iterator[list[Path]]:
    """The files to read. Standard input becomes one, because a source is looked at before it is read; so does a file
    behind an address."""
    listed = [source] if isinstance(source, (str, os.PathLike)) else source
    addresses = [str(item) for item in listed if scheme_of(item)]
    if any(scheme_of(address) in POSTGRES for address in addresses):
        raise InputError("a database needs a query beside its address: give --query 'SELECT rider, metric, outcome'")
    if addresses:
        if len(listed) > 1:
            raise InputError("a file behind an address is read by itself: fetch the files and name them together")
        if scheme_of(addresses[0]) not in REMOTE:
            raise InputError(f"{scheme_of(addresses[0])}:// is not read: give a path, or {', '.join(REMOTE)}")
        with tempfile.TemporaryDirectory(dir=temporary) as folder, fetched(addresses[0], Path(folder)) as place:
            yield [place]
        return
    if source not in ("-", ["-"]):
        yield paths_of(source)
        return
    with tempfile.TemporaryDirectory(dir=temporary) as folder:  # mode 0700, and gone when the source is read
        place = Path(folder) / "standard input.csv"  # text, unless its content says Parquet or Arrow
        with place.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [place]


class _Reader:
    """Reads sources one after the other into one sorter; stops keeping, not checking, at the first defect."""

    def __init__(
        self,
        refusals: Refusals,
        metrics: tuple[str, ...],
        timezone: str | None,
        sorter: Sorter,
        progress: Progress,
        admit: Admit,
        csv: Mapping[str, str],
        drop_missing: bool,
    ) -> None:
        self._refusals, self._metrics = refusals, metrics
        self._csv, self._drop_missing = csv, drop_missing
        self._missing: Counter[str] = Counter()
        self._missing_rows = 0
        self._notes: list[str] = []
        self._zone = None if timezone is None else zone_named(timezone)
        self._sorter = sorter
        self._progress, self._admit = progress, admit
        self._agreement = Agreement(refusals, metrics)
        self._riders, self._sites = values.TextCodes(), values.TextCodes()
        self._rows = 0

    def read(self, source: Source, mapping: Mapping[str, str], number: int = 0, files: int = 1) -> None:
        found = locate(source.names, mapping, source.label, self._refusals, self._metrics)
        dialect = self._dialect(source, found)
        self._point_out(source, found, dialect)
        types = {ours: source.types(theirs) for ours, theirs in found.items()}
        readable = self._agreement.check(types, source.label, source.is_csv)
        chosen = {ours: theirs for ours, theirs in found.items() if ours in readable}
        if not chosen:
            return
        row, several = 1, files > 1
        if source.rows and not self._drop_missing:
            self._admit(self._rows + source.rows, len(self._riders))
        try:
            for batch in source.batches(list(chosen.values())):
                arrays = {ours: batch.column(theirs) for ours, theirs in chosen.items()}
                if dialect is not None:
                    arrays = {ours: dialect.converted(ours, column) for ours, column in arrays.items()}
                place = Place(source.label if several else None, row, source.wrong_rows)
                self._check(*self._without_missing(arrays, batch.num_rows, place))
                row += batch.num_rows
                self._progress("read", (number + ((row - 1) / source.rows if source.rows else 0)) / files)
        except Unreadable:
            self._refusals.add(None, f"{source.label} cannot be read beyond row {row - 1} (truncated or damaged)")
        self._refusals.add_numbers(None, WRONG_FIELDS, source.wrong_rows, Place(source.label if several else None))

    def _dialect(self, source: Source, found: Mapping[str, str]) -> Dialect | None:
        """How a CSV writes its values, said in one line where it is not the standard form; None for the standard."""
        if source.dialect is None or source.standard is None:
            return None
        dialect, midnight = look(source.sample, source.dialect, self._csv, found)
        said = dialect.described(source.standard, midnight)
        if said:
            self._notes.append(f"{source.label} is read as: {said}")
        return dialect if said else None

    def _point_out(self, source: Source, found: Mapping[str, str], dialect: Dialect | None) -> None:
        """Columns that are called almost like one of ours; and where one is missing, those that there are."""
        hints, lacking = [], False
        for ours in (name for name in columns_of(self._metrics) if name not in found):
            near = [name for name in source.names if fold(name) == fold(ours)]
            option = f"--column {shlex.quote(f'{ours}={near[0]}')}" if near else ""
            if near and ours in OPTIONAL:
                self._notes.append(f"the column {near[0]!r} is not read; {option} reads it as {ours}")
            elif ours not in OPTIONAL:
                lacking = True
                hints += [option] if len(near) == 1 else []
        if not lacking or not source.names:
            return
        if not is_header(source.names):
            self._refusals.add(None, f"the first line of {source.label} does not look like names of columns: add them")
            return
        by = source.dialect.separator if source.dialect else None
        told = f", separated by {SEPARATORS.get(by, by)}" if by else ""
        hint = f" ({' '.join(hints)}?)" if hints else ""
        if source.is_csv and len(source.names) == 1:
            hint = " (take the first line out if it is a title)"
        listed = ", ".join(source.names[:MOST_NAMED]) + (", ..." if len(source.names) > MOST_NAMED else "")
        self._refusals.add(None, f"{source.label} has the columns {listed}{told}{hint}")

    def _without_missing(
        self, arrays: Mapping[str, pa.Array], rows: int, place: Place
    ) -> tuple[Mapping[str, pa.Array], int, Place]:
        """The rows that have a rider, every metric and an outcome, if others are to be left out; they are counted."""
        self._rows += rows
        if not self._drop_missing:
            return arrays, rows, place
        missing = np.zeros(rows, bool)
        for ours, column in arrays.items():
            if ours not in OPTIONAL:
                # NaN is how pandas writes a number that is missing.
                empty = as_numpy(values.plain(column).is_null(nan_is_null=True))
                if ours != "rider":  # who may be called NA
                    empty = empty | values.absent(column)
                self._missing[ours] += int(np.count_nonzero(empty))
                missing |= empty
        self._missing_rows += int(np.count_nonzero(missing))
        kept = pa.array(~missing)
        return (
            {ours: column.filter(kept) for ours, column in arrays.items()},
            int(np.count_nonzero(~missing)),
            replace(place, kept=np.flatnonzero(~missing)),
        )

    def _check(self, arrays: Mapping[str, pa.Array], rows: int, place: Place) -> None:

        def refuse(column: str, defects: Defects) -> None:
            for defect, bad in defects:
                self._refusals.add_rows(column, defect, bad, place)

        rider = np.zeros(rows, np.int32)
        site = np.full(rows, values.NULL, np.int32)
        observed_at = np.full(rows, NO_TIME, np.int64)
        bits, outcome = [np.zeros(rows, np.uint64) for _ in self._metrics], np.zeros(rows, np.int8)
        if "rider" in arrays:
            rider, defects = self._riders.encode(values.encoded(arrays["rider"]))
            refuse("rider", [*defects, (values.MISSING, rider == values.NULL)])
        if "site" in arrays:
            site, defects = self._sites.encode(values.encoded(arrays["site"]))
            refuse("site", defects)
        if "observed_at" in arrays and not pa.types.is_null(arrays["observed_at"].type):
            times = values.plain(arrays["observed_at"])
            if pa.types.is_date(times.type):  # a day begins at midnight, in the zone that is declared
                times = times.cast(pa.timestamp("s"))
            read = from_timestamps if pa.types.is_timestamp(times.type) else from_text
            observed_at, defects = read(times, self._zone)
            refuse("observed_at", defects)
        for number, name in enumerate(self._metrics):
            if name in arrays:
                bits[number], defects = values.metrics(values.plain(arrays[name]))
                refuse(name, defects if len(self._metrics) == 1 else _with_advice(defects))
        if "outcome" in arrays:
            outcome, defects = values.outcomes(values.plain(arrays["outcome"]))
            refuse("outcome", defects)
        self._admit(self._rows - self._missing_rows, len(self._riders))
        if not self._refusals:
            self._sorter.append(Outcomes(rider, site, observed_at, tuple(bits), outcome))

    def cohort(self, exclude: Callable[[pa.Array], pa.Array] | None) -> Cohort:
        if self._refusals:
            self._sorter.close()
            raise self._refusals.error()
        if not self._rows:
            self._sorter.close()
            raise InputError("the cohort holds no outcomes: give one with at least one row")
        riders, rider_rank = _ranked(self._riders)
        sites, site_rank = _ranked(self._sites)
        if exclude:
            kept = ~as_numpy(exclude(riders).cast(pa.bool_()))
            rider_rank = np.where(kept[rider_rank], rider_rank, np.int32(LEFT_OUT))
        # No site sorts before every site, so it takes the first rank; see `Ranks`.
        self._sorter.sort(Ranks(rider_rank, np.append(site_rank + np.int32(1), np.int32(0))))
        notes = list(dict.fromkeys(self._notes))
        if self._missing_rows:
            by = ", ".join(f"{count} without {ours}" for ours, count in self._missing.items() if count)
            notes.append(f"{self._missing_rows} rows with missing values were left out ({by})")
        return Cohort(
            self._sorter, riders, sites, self._metrics, self._rows, self._progress, self._missing_rows, tuple(notes)
        )


def _with_advice(defects: Defects) -> Defects:
    """Of several metrics one is often missing where the others are not."""
    advice = f"{values.MISSING} (fit the rows that have it, or the other metrics without it)"
    return [(advice if defect == values.MISSING else defect, bad) for defect, bad in defects]


def _ranked(codes: values.TextCodes) -> tuple[pa.Array, NDArray[np.int32]]:
    """The texts sorted (by code point, which is the order of UTF-8 bytes), and the rank of every code."""
    texts = codes.texts()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), np.int32)
    rank[order] = np.arange(len(texts), dtype=np.int32)
    return pa.array([texts[code] for code in order], pa.string()), rank
