"""`isuit check-release`: a file of the public atlas by itself. Readers have no store, and should not wait for one."""

from __future__ import annotations

from pathlib import Path

from isuit.published.releases import ReleaseCheck
from isuit.release.checking import check_file
from isuit.service.trusted import read_key


def check_release(path: Path, trusted_key: Path | None = None) -> ReleaseCheck:
    """Row count, digest, schema and proof; with a trusted key the file must be in a log under this key."""
    return check_file(path, None if trusted_key is None else read_key(trusted_key))
