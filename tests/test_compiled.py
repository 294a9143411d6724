"""Compiled loops that are kept between processes, and between versions of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOOPS = """
from typing import NamedTuple
import numpy as np
from isuit.compiled import compiled

class {name}(NamedTuple):
    values: np.ndarray

@compiled
def total(given):
    found = 0.0
    for value in given.values:
        found += value
    return found

print(total({name}(np.arange({size}.0))), len(total.stats.cache_hits))
"""


def run(folder: Path) -> list[str]:
    """In a module of its own, as the name of a class is looked up in the module that has it."""
    done = subprocess.run(
        [sys.executable, "-c", "import loops"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_another_version_kept_is_compiled_anew(tmp_path: Path) -> None:
    """Its index names a class that this version does not have."""
    (tmp_path / "loops.py").write_text(LOOPS.format(name="Pair", size=4))
    assert run(tmp_path) == ["6.0", "0"]
    assert list(tmp_path.glob("__pycache__/*.nbi"))
    (tmp_path / "loops.py").write_text(LOOPS.format(name="Couple", size=5))
    assert run(tmp_path) == ["10.0", "0"]
    assert run(tmp_path) == ["10.0", "1"], "and kept again"


def test_a_change_in_another_file_of_loops_counts(tmp_path: Path) -> None:
    """What is kept of a loop holds copies of the functions that it calls, wherever they stand."""
    changed = "from isuit import compiled\ncompiled._sources = lambda: 'another'\n"
    (tmp_path / "loops.py").write_text(LOOPS.format(name="Pair", size=4))
    assert run(tmp_path) == ["6.0", "0"]
    assert run(tmp_path) == ["6.0", "1"]
    (tmp_path / "sitecustomize.py").write_text(changed)
    assert run(tmp_path) == ["6.0", "0"]


CALLERS = """
import sys
from isuit.compiled import compiled
from {others} import twice as doubled

@compiled
def total(values):
    found = 0.0
    for value in values:
        found += doubled(value)
    return found

assert "numba" not in sys.modules
import numpy as np
print(total(np.arange(4.0)), "numba" in sys.modules, len(total.stats.cache_hits))
"""


def test_loops_call_loops_and_are_compiled_when_they_run(tmp_path: Path) -> None:
    """A loop of another module under another name; until the first call the compiler is not even imported."""
    twice = "from isuit.compiled import compiled\n\n@compiled\ndef twice(value):\n    return 2 * value\n"
    (tmp_path / "others.py").write_text(twice)
    (tmp_path / "loops.py").write_text(CALLERS.format(others="others"))
    assert run(tmp_path) == ["12.0", "True", "0"]
    assert run(tmp_path) == ["12.0", "True", "1"]
