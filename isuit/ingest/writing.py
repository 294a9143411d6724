"""The canonical form as a file."""

from __future__ import annotations

from pathlib import Path

from isuit.errors import InputError
from isuit.files import PRIVATE, write_whole
from isuit.ingest.cohort import Cohort
from isuit.ingest.sources import paths_of


def refuse_to_overwrite(files: list[str], out: Path) -> None:
    """A cohort's own file is never the target."""
    if out.exists() and any(path.samefile(out) for path in paths_of(files)):
        raise InputError(f"{out} is a file of the cohort itself: write the canonical form elsewhere")


def write_canonical(cohort: Cohort, out: Path) -> None:
    """Write the canonical bytes; the file is private, because it names riders."""
    write_whole(out, cohort.canonical_bytes(), PRIVATE)
