"""The canonical form as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isuit.errors import InputError
from isuit.files import PRIVATE, write_whole
from isuit.ingest.cohort import Cohort
from isuit.ingest.databases import scheme_of
from isuit.ingest.folders import paths_of


def refuse_to_overwrite(source: Any, out: Path) -> None:
    """A cohort's own file is never the target. Standard input, an address, a query and a table have none."""
    listed = [source] if isinstance(source, (str, Path)) else source
    if not out.exists() or not isinstance(listed, Sequence):
        return
    files = [item for item in listed if item != "-" and scheme_of(item) is None]
    if files and any(path.samefile(out) for path in paths_of(files)):
        raise InputError(f"{out} is a file of the cohort itself: write the canonical form elsewhere")


def write_canonical(cohort: Cohort, out: Path) -> None:
    """Write the canonical bytes; the file is private, because it names riders."""
    write_whole(out, cohort.canonical_bytes(), PRIVATE)
