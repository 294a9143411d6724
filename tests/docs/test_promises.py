"""A promise names what was tried: every test that the pages of promises name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = ("docs/disclosure.md", "docs/private-releases.md", "docs/erasure.md", "SECURITY.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_named_test_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    classes, files = set(re.findall(r"`(Test\w+)", text)), set(re.findall(r"`(tests/[\w/]+(?:\.py)?)/?`", text))
    assert classes | files
    assert not {name for name in classes if f"class {name}" not in written}
    assert not {name for name in files if not (ROOT / name).exists()}


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_a_table_of_promises_names_one(page: str) -> None:
    """Or a page that does."""
    tables = re.findall(r"^\| promise \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text(), re.MULTILINE)
    assert tables
    for row in "".join(tables).splitlines():
        assert re.search(r"`Test\w+|`tests/|#what-backs-it|#what-is-promised", row), row
