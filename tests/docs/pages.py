"""Reads the examples out of a Markdown page and runs them; `python tests/docs/pages.py PAGE...` rewrites their output.

The convention, for whoever writes a page:

- A block ```` ```console ```` holds commands after `$ ` (continued after `> `), each followed by what it prints:
  standard output, and standard error before or after it or left out. Without lines after it, its output is not
  checked. `...` stands for anything, within a line
  or as lines of its own.
- A command must exit with 0, or with N where it ends in `  # exit N`.
- A block ```` ```csv sites.csv ```` (any language, then a file name) is a file that the reader saves.
- All blocks of a page run in one directory, which begins empty, or as the page named in `<!-- after: PAGE -->` left it.
- A block ```` ```console not-run ```` is not run; `test_examples.py` lists each with its reason.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<info>\S.*)?$")

VARYING = re.compile(r"\b((?:log head|receipt|store) +)[0-9a-f]{32,64}\b")  # times and random numbers are in these


@dataclass(frozen=True)
class Saved:
    """A file that the reader saves."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command and what the page says it prints; `start` and `end` are the lines of that output in the page."""

    text: str
    expected: tuple[str, ...]
    start: int
    end: int
    run: bool = True

    @property
    def exit_code(self) -> int:
        found = re.search(r"# exit (\d+)$", self.text)
        return int(found[1]) if found else 0


def pages() -> list[Path]:
    """Every page a reader may follow."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(path for path in found if path.exists())


def after(path: Path) -> Path | None:
    """The page that this one continues."""
    found = re.search(r"<!-- after: (\S+) -->", path.read_text())
    return (path.parent / found[1]).resolve() if found else None


def steps(path: Path) -> Iterator[Saved | Command]:
    """Files and commands, in order."""
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if not opening:
            continue
        end = lines.index("```", number)
        info = (opening["info"] or "").split()
        if info[:1] == ["console"]:
            yield from _commands(lines, number, end, "not-run" not in info)
        elif len(info) == 2:
            yield Saved(info[1], "\n".join(lines[number:end]) + "\n")
        number = end + 1


def _commands(lines: list[str], number: int, end: int, run: bool) -> Iterator[Command]:
    while number < end:
        if not lines[number].startswith("$ "):
            raise ValueError(f"line {number + 1}: a console block begins with a command after `$ `")
        text = lines[number][2:]
        number += 1
        while number < end and lines[number].startswith("> "):
            text += "\n" + lines[number][2:]
            number += 1
        start = number
        while number < end and not lines[number].startswith("$ "):
            number += 1
        yield Command(text, tuple(lines[start:number]), start, number, run)


@dataclass(frozen=True)
class Printed:
    """What a command did."""

    exit_code: int
    out: list[str]
    error: list[str]

    @property
    def seen(self) -> list[str]:
        """As a person sees it: notes come first."""
        return self.error + self.out

    def agrees_with(self, expected: tuple[str, ...]) -> bool:
        return any(agrees(expected, lines) for lines in (self.out, self.seen, self.out + self.error))


def execute(command: Command, folder: Path, programs: Path | None = None) -> Printed:
    """Run a command; what stands in `programs` comes before the programs beside this interpreter."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ISUIT_", "COV_", "PYTEST_"))
    }
    here = Path(sys.executable).parent
    environment |= {
        "PATH": os.pathsep.join([*([str(programs)] if programs else []), str(here), environment["PATH"]]),
        "OPENBLAS_NUM_THREADS": "1",  # small matrices: threads would only cost
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    done = subprocess.run(
        ["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    out, error = ([line.rstrip() for line in text.splitlines()] for text in (done.stdout, done.stderr))
    return Printed(done.returncode, out, error)


def agrees(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the page tells what is printed; `...` stands for anything, alone on a line for any number of lines."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*".join(re.escape(part.rstrip()) for part in re.split(r"\.\.\.", line.rstrip())) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def prepare(step: Saved, folder: Path) -> None:
    (folder / step.name).parent.mkdir(parents=True, exist_ok=True)
    (folder / step.name).write_text(step.text)


def rewrite(path: Path, folder: Path) -> None:
    """Run a page and put what was printed where the page's text no longer agrees."""
    lines = path.read_text().splitlines()
    shift = 0
    for step in steps(path):
        if isinstance(step, Saved):
            prepare(step, folder)
        elif step.run:
            before = os.times().children_user
            done = execute(step, folder)
            spent = os.times().children_user - before
            agreed = done.agrees_with(step.expected) if step.expected else True
            print(f"{'ok ' if agreed else 'NEW'} exit {done.exit_code} {spent:4.1f} s {step.text.splitlines()[0]}")
            if done.exit_code != step.exit_code:
                print("\n".join(done.seen))
            if not agreed:
                seen = [VARYING.sub(r"\1...", line) for line in done.seen]
                lines[step.start + shift : step.end + shift] = seen
                shift += len(seen) - (step.end - step.start)
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    import shutil
    import tempfile

    kept: dict[Path, Path] = {}
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        kept[page] = Path(tempfile.mkdtemp()) / "page"
        before = after(page)
        if before:
            shutil.copytree(kept[before], kept[page])
        else:
            kept[page].mkdir()
        print(f"{name} in {kept[page]}")
        rewrite(page, kept[page])
