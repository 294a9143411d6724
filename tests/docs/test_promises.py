"""A promise names what was tried: every test that the pages of promises name is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("page", ["docs/disclosure.md", "docs/erasure.md"])
def test_every_part_of_a_page_names_one(page: str) -> None:
    """Or says what is not promised, or reaches no further than it says."""
    _, *parts = re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)
    assert len(parts) > 4
    bare = [part.splitlines()[0] for part in parts if not re.search(r"`Test\w+|`tests/", part)]
    assert not bare


def test_every_rule_of_a_release_names_one() -> None:
    rules = (ROOT / "docs/disclosure.md").read_text().split("| rule | attack | test |")[1].split("\n\n")[0]
    rows = [line.split(" | ") for line in rules.splitlines()[2:]]
    assert len(rows) > 30
    assert not [row[0] for row in rows if not re.search(r"`Test\w+`|`tests/", row[2])]


def test_words_of_the_help_that_promise_are_the_help_s() -> None:
    """Of the table that says what backs them: a promise that the help no longer makes, or makes in other words."""
    from isuit.cli.app import app_of
    from typer.main import get_command

    page = (ROOT / "docs/disclosure.md").read_text().split("| command | words | test |")[1]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()[2:] if line.startswith("|")]
    assert len(rows) > 8
    commands: Any = get_command(app_of())
    for command, words, _ in rows:
        found = commands.commands[command.strip("`")]
        said = " ".join([found.help, *(getattr(option, "help", None) or "" for option in found.params)])
        assert words in " ".join(said.split()), words
