"""docs/contract.md says what the program does: keys, exit codes, and what comments cite."""

from __future__ import annotations

import json
import re

import pytest

from isuit import errors

from . import pages

PAGE = (pages.ROOT / "docs" / "contract.md").read_text()
KEYS = re.findall(r"^\| `isuit [^|]*` \| `([a-z-]+)` \| (.*) \|$", PAGE, re.MULTILINE)
CODE = [path for folder in ("isuit", "cli", "schemas") for path in sorted((pages.ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize(("schema", "keys"), KEYS, ids=[schema for schema, _ in KEYS])
def test_the_keys_are_those_of_the_schemas(schema: str, keys: str) -> None:
    required = json.loads((pages.ROOT / "schemas" / f"{schema}.schema.json").read_text())["required"]
    assert set(re.findall(r"`([a-z_]+)`", keys)) <= set(required)


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.IsuitError)
    }
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == codes | {0}


def test_every_kind_of_event_is_described() -> None:
    described = (pages.ROOT / "docs" / "audit.md").read_text()
    written = {kind for path in CODE for kind in re.findall(r'append_event\(\s*\w+,\s*"([a-z-]+)"', path.read_text())}
    assert len(written) >= 8
    assert [kind for kind in sorted(written) if f"`{kind}`" not in described] == []


def test_files_that_a_page_names_are_there() -> None:
    for page in [
        *sorted((pages.ROOT / "docs").rglob("*.md")),
        pages.ROOT / "README.md",
        pages.ROOT / "CONTRIBUTING.md",
    ]:
        named = re.findall(
            r"(?<![\w/])(?:isuit|cli|schemas|tests|benchmarks)/[\w/]+\.(?:py|json|md|R)\b", page.read_text()
        )
        assert [name for name in named if not (pages.ROOT / name).exists()] == [], page.name


def test_comments_cite_pages_and_sections_that_are_there() -> None:
    cited = 0
    for path in CODE:
        text = path.read_text()
        assert not re.search(r"\bDESIGN( section|:)", text), f"{path.name} cites a page that is not in the repository"
        for page, section in re.findall(r"(docs/[\w/.-]+\.md)(?:, section (\d+))?", text):
            there = pages.ROOT / page
            assert there.exists(), f"{path.name} cites {page}"
            assert not section or f"\n## {section}. " in there.read_text(), f"{path.name} cites section {section}"
            cited += 1
    assert cited >= 6
