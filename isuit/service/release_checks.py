"""`isuit check-release`: a file of the public atlas by itself. Readers have no store, and should not wait for one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isuit.release.checking import Checked, check_file
from isuit.service.trusted import read_key

if TYPE_CHECKING:
    from isuit.published.releases import ReleaseCheck


def checked(path: Path, trusted_key: Path | None = None) -> Checked:
    """Row count, digest, schema and proof; with a trusted key the file must be in a log under this key."""
    return check_file(path, None if trusted_key is None else read_key(trusted_key))


def check_release(path: Path, trusted_key: Path | None = None) -> ReleaseCheck:
    """The same as it is published."""
    return report_of(checked(path, trusted_key))


def report_of(found: Checked) -> ReleaseCheck:
    """What was found, as it leaves the program."""
    from isuit.published.releases import ReleaseCheck

    return ReleaseCheck(ok=found.ok, **vars(found))
