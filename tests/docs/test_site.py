"""`make site`: the documentation as static files, every link of which leads somewhere, and that fetch nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import pages


@pytest.mark.long
def test_the_site_is_whole_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, check=False, capture_output=True, text=True, cwd=pages.ROOT, env=quiet)
    assert built.returncode == 0, built.stdout + built.stderr
    found = sorted(tmp_path.rglob("*.html"))
    assert len(found) > 50
    for page in found:
        assert not re.findall(r'(?:src|rel="stylesheet" href)="(?:https?:)?//[^"]+"', page.read_text()), page.name
    assert "discrimination" in (tmp_path / "search" / "search_index.json").read_text()
    assert list(tmp_path.rglob("*.schema.json*")), "what pages link to beside docs/ is copied"
