"""A reader who checks a release does not wait for what makes one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from isuit.service.release_checks import check_release
assert check_release(Path(sys.argv[1])).ok
heavy = ("isuit.estimator", "isuit.release.making", "scipy", "numba", "matplotlib")
print(*(name for name in heavy if name in sys.modules))
"""


def test_the_estimator_is_not_imported(full_store: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(full_store.with_name("atlas.jsonl"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
