"""A reader who checks a release does not wait for what makes one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isuit import published

PROGRAM = """
import contextlib, sys
from isuit.cli.app import main
with contextlib.suppress(SystemExit):
    main()
libraries = {name.partition(".")[0] for name in sys.modules}
print(*sorted(libraries & {"numpy", "pyarrow", "duckdb", "h3", "scipy", "numba", "rich", "yaml", "matplotlib"}))
print(*sorted(name for name in sys.modules if name.startswith("isuit.published.")))
"""


def test_nothing_is_imported_but_what_the_check_needs(full_store: Path) -> None:
    """Its start is the imports; which those are does not depend on how busy the machine is."""
    words = ["check-release", str(full_store.with_name("atlas.jsonl"))]
    command = [sys.executable, "-c", PROGRAM, *words]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith("release 2026-01-01: ")
    assert lines[2:] == ["", ""]  # no library, and no model: the file is held against the published schema


def test_every_published_name_is_found_in_its_room() -> None:
    for name in published.__all__:
        assert getattr(published, name) is not None
    with pytest.raises(AttributeError):
        published.nothing  # noqa: B018 - asking for it is the test
