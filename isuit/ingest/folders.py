"""Which files a cohort is: paths, directories and globs, and the values that names of directories hold."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from isuit.errors import InputError
from isuit.ingest.sources import Source
from isuit.tables import format_of

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # how a missing value is written in a directory's name


def paths_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that a path, a list of them, a directory or a glob stands for, in the order of their names."""
    if not isinstance(source, (str, os.PathLike)):
        listed = [path for item in source for path in paths_of(item)]
        if not listed:
            raise InputError("no cohort file was given: name one, a directory or a glob")
        if len({path.resolve() for path in listed}) < len(listed):
            raise InputError("a file was given twice: name each cohort file once")
        return listed
    path = Path(source)
    if path.is_dir():
        return _directory(path)
    if path.exists():
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(source), recursive=True) if not os.path.isdir(match))
    if not matches:
        raise InputError(f"there is no file {source}: check the path")
    return matches


def _directory(folder: Path) -> list[Path]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith((".", "_"))]
    if not files:
        raise InputError(f"the directory {folder} holds no files: name a file, a directory or a glob")
    others = sum(format_of(path) is None for path in files)
    if others:
        which = "1 file that is" if others == 1 else f"{others} files that are"
        raise InputError(f"{folder} also holds {which} no Parquet, CSV or Arrow by name: give a glob instead")
    return files


def partitions(path: Path, given: Any) -> dict[str, str | None]:
    """The values that names of directories hold (`site=Tarifa/`), below the directory or in the glob that was given.

    A file that is named itself has none: its hash is that of its content, wherever it lies.
    """
    below: tuple[str, ...] = ()
    for place in [given] if isinstance(given, (str, os.PathLike)) else given:
        start = Path(place)
        if not start.exists():  # a glob
            fixed = takewhile(lambda part: not glob.has_magic(part), start.parts)
            start = Path(*fixed)
        if start.is_dir() and path.is_relative_to(start):
            below = path.relative_to(start).parts[:-1]
    found: dict[str, str | None] = {}
    for part in below:
        name, equals, value = part.partition("=")
        if name and equals:
            found[unquote(name)] = None if value == NO_PARTITION else unquote(value)
    return found


def with_partitions(source: Source, values: Mapping[str, str | None], numbers: Sequence[str]) -> Source:
    """The source with these values as columns of text, or of numbers where `numbers` belong; its own come first."""
    added = {name: value for name, value in values.items() if name not in source.names}
    if not added:
        return source
    types = {name: pa.string() for name in added}
    cells: dict[str, Any] = dict(added)
    for name in () if source.is_csv else numbers:
        with suppress(ValueError, TypeError):
            if name in added:
                cells[name], types[name] = float(added[name] or ""), pa.float64()

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = [name for name in columns if name not in added]
        # A row is counted by a column of its own: the partition may have all that are asked for.
        for batch in source.stream(own or source.names[:1]):
            arrays = [
                pa.repeat(pa.scalar(cells[name], types[name]), batch.num_rows) if name in added else batch.column(name)
                for name in columns
            ]
            yield pa.record_batch(arrays, names=list(columns))

    return replace(
        source,
        names=[*source.names, *added],
        types=lambda name: types[name] if name in types else source.types(name),
        stream=batches,
    )
