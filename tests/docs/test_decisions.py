"""Decisions have one numbering, one form, and an index that tells their status."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from . import pages

FOLDER = pages.ROOT / "docs" / "adr"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
SECTIONS = ["Context", "Decision", "Options refused", "Consequences"]
FORM = re.compile(
    r"# (?P<number>\d+)\. (?P<title>[^\n]+)\n\n"
    r"- Status: (?P<status>accepted|superseded by \[(?P<by>\d+)\]\((?P<link>[^)]+)\))\n"
    r"- Date: (?P<date>\d{4}-\d\d-\d\d)\n\n## "
)


def form_of(path: Path) -> re.Match[str]:
    found = FORM.match(path.read_text())
    assert found, f"{path.name} does not begin as docs/adr/README.md asks"
    return found


def test_numbers_have_no_gaps() -> None:
    assert [path.name[:5] for path in PAGES] == [f"{number:04d}-" for number in range(1, len(PAGES) + 1)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_has_the_form(path: Path) -> None:
    found = form_of(path)
    assert int(found["number"]) == int(path.name[:4])
    date.fromisoformat(found["date"])
    parts = re.split(r"^## (.*)\n", path.read_text(), flags=re.MULTILINE)
    assert parts[1::2] == SECTIONS
    assert all(text.strip() for text in parts[2::2]), f"{path.name} has an empty section"
    assert parts[2::2][2].lstrip().startswith("- *"), f"{path.name} names no refused option"
    if found["by"]:
        assert form_of(FOLDER / found["link"])["number"] == found["by"]
        assert int(found["by"]) > int(found["number"])


def test_the_index_lists_every_page_with_its_status() -> None:
    rows = re.findall(r"^\| \d.*$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    expected = []
    for path in PAGES:
        found = form_of(path)
        expected.append(
            f"| {found['number']} | [{found['title']}]({path.name}) | {found['status']} | {found['date']} |"
        )
    assert rows == expected
