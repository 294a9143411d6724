"""The reference is the app's own, every link resolves, and every command named anywhere exists."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from isuit.cli.app import app_of

from . import pages

DOCS = pages.ROOT / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
SHORT = {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}


@pytest.fixture(scope="module")
def make_cli() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli", DOCS / "reference" / "make_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_cli"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_generated_from_the_app(make_cli: ModuleType) -> None:
    written = (DOCS / "reference" / "cli.md").read_text()
    assert written == make_cli.reference(), "run `make docs`"


def test_every_command_has_help_json_and_a_place_in_the_reference(make_cli: ModuleType) -> None:
    written = (DOCS / "reference" / "cli.md").read_text()
    for command in app_of().registered_commands:
        assert command.rich_help_panel, f"{command.name} has no panel in `isuit --help`"
        assert (command.callback.__doc__ or "").strip(), f"{command.name} has no help"
        assert f"### isuit {command.name}\n" in written
        found = make_cli.parameters(command.callback)
        assert "--json" in [option for part in found if part.is_option for option in part.options], command.name
        assert all(part.info.help for part in found), f"{command.name} has an option without help"


def anchors(path: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def every_page() -> list[Path]:
    return sorted({*pages.pages(), *(pages.ROOT / name for name in SHORT), *(pages.ROOT / "schemas").glob("*.md")})


@pytest.mark.parametrize("path", every_page(), ids=lambda path: path.relative_to(pages.ROOT).as_posix())
def test_every_link_resolves(path: Path) -> None:
    for found in LINK.finditer(path.read_text()):
        target, _, place = (found[1] or found[2]).partition("#")
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), f"{path.name}: {target}"
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{path.name} links to {target}, which is not there"
        assert pages.ROOT in there.parents, f"{path.name} links out of the repository: {target}"
        if place:
            assert place in anchors(there), f"{path.name}: {target} has no heading #{place}"


def test_every_page_can_be_reached_from_the_index() -> None:
    """Decisions from an index of their own."""
    indexes = [DOCS / "README.md", DOCS / "adr" / "README.md"]
    linked = {
        (index.parent / found[1]).resolve()
        for index in indexes
        for found in LINK.finditer(index.read_text())
        if found[1]
    }
    missing = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.resolve() not in linked]
    assert missing == ["README.md"], (
        "docs/README.md must link every page of docs/, and docs/adr/README.md every decision"
    )


def test_every_command_named_in_a_page_exists(make_cli: ModuleType) -> None:
    """Also where a page only mentions it: `isuit fit --anchor` in a sentence, or a line of usage."""
    known = {
        command.name: {
            option for part in make_cli.parameters(command.callback) if part.is_option for option in part.options
        }
        for command in app_of().registered_commands
    }
    for path in every_page():
        if path.name == "CHANGELOG.md":
            continue  # it speaks of the past too
        for mention in re.findall(r"(?:`|^ {4}|^\$ )isuit ([^`\n]*)", path.read_text(), re.MULTILINE):
            words = mention.split("#")[0].split("|")[0].split()
            if not words or words[0].startswith("-"):
                continue
            assert words[0].rstrip(",;") in known, f"{path.name}: isuit {mention}"
            for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", mention.split("#")[0].split("|")[0]):
                assert option in known[words[0]] | {"--help"}, f"{path.name}: isuit {mention}"
