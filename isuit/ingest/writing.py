"""The canonical form as a file: it appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from isuit.errors import InputError
from isuit.ingest.cohort import Cohort
from isuit.ingest.sources import paths_of


def refuse_to_overwrite(files: list[str], out: Path) -> None:
    """A cohort's own file is never the target."""
    if out.exists() and any(path.samefile(out) for path in paths_of(files)):
        raise InputError(f"{out} is a file of the cohort itself: write the canonical form elsewhere")


def write_canonical(cohort: Cohort, out: Path) -> None:
    """Write beside the target and move it there when it is complete.

    Devices, pipes and symbolic links are written through: /dev/stdout is a link, and must not become a file.
    """
    try:
        if out.is_symlink() or (out.exists() and not out.is_file()):
            with out.open("wb") as stream:
                stream.writelines(cohort.canonical_bytes())
            return
        handle, name = tempfile.mkstemp(prefix=".isuit-", dir=out.parent)  # mode 0600: it names riders
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(cohort.canonical_bytes())
            os.replace(name, out)
        except BaseException:
            os.unlink(name)
            raise
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {out}: {(error.strerror or 'unknown reason').lower()}") from None
