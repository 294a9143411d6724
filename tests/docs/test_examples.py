"""Every example of README.md and docs/ is run, and prints what the page says it prints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from . import pages
from .pages import Command, Saved

# Blocks that are not run, by page and first command, with the reason.
NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {
        "make demo": "makes a virtual environment; the command behind it, `isuit latent-demo`, is run further down",
        "make test": "runs this very test",
    },
    "docs/how-to/schedule-releases.md": {
        "isuit export-atlas --out public/atlas.jsonl --wait 600": "its release is that of the quarter in which it runs",
    },
}

EXAMPLES = [path for path in pages.pages() if any(isinstance(step, Command) for step in pages.steps(path))]


def name(path: Path) -> str:
    return path.relative_to(pages.ROOT).as_posix()


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory, console: Path) -> Callable[[Path], Path]:
    """Follows a page to its end and gives the directory it leaves; each page once."""
    kept: dict[Path, Path] = {}

    def follow(path: Path) -> Path:
        if path not in kept:
            folder = tmp_path_factory.mktemp("page") / "work"
            before = pages.after(path)
            if before:
                shutil.copytree(follow(before), folder)
            else:
                folder.mkdir()
            for step in pages.steps(path):
                if isinstance(step, Saved):
                    pages.prepare(step, folder)
                elif step.run:
                    check(path, step, folder, console.parent)
            kept[path] = folder
        return kept[path]

    return follow


def check(path: Path, command: Command, folder: Path, programs: Path) -> None:
    done = pages.execute(command, folder, programs)
    place = f"{name(path)}, line {command.start}: {command.text}"
    told = "\n".join(done.seen)
    assert done.exit_code == command.exit_code, f"{place}\nexit {done.exit_code}\n{told}"
    if command.expected:
        page = "\n".join(command.expected)
        assert done.agrees_with(command.expected), f"{place}\nthe page says\n{page}\nit printed\n{told}"


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_a_reader_sees_what_the_page_shows(path: Path, followed: Callable[[Path], Path]) -> None:
    followed(path)


def test_what_is_not_run_has_a_reason() -> None:
    found = {
        name(path): [step.text for step in pages.steps(path) if isinstance(step, Command) and not step.run]
        for path in EXAMPLES
    }
    assert {page: set(commands) for page, commands in found.items() if commands} == {
        page: set(reasons) for page, reasons in NOT_RUN.items()
    }


def test_the_comparison_can_fail() -> None:
    assert pages.agrees(("a ... c", "...", "end"), ["a b c", "1", "2", "end"])
    assert pages.agrees(("...", "end"), ["end"])
    assert not pages.agrees(("a ... c",), ["a b d"])
    assert not pages.agrees(("a",), ["a", "b"])
    assert not pages.agrees(("a.c",), ["abc"])
