"""What a person sees in a terminal of 60, 80 and 120 columns: no id is cut below what a command takes, and no head."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from pseudo_terminal import received

from isuit.service import history

pytestmark = pytest.mark.usefixtures("quick_isuit")
WIDTHS = (60, 80, 120)


def screen(columns: int, *arguments: str | Path) -> list[str]:
    """The lines that a command sends to a terminal of so many columns, without control sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm"}
    with subprocess.Popen(
        ["isuit", *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = received(ours)
    assert process.returncode == 0, seen
    return seen.splitlines()


def too_long(lines: list[str], columns: int) -> list[str]:
    """Lines that the terminal itself must break, although they could have been broken between words."""
    return [line for line in lines if len(line) > columns and " " in line.strip()]


@pytest.mark.parametrize("columns", WIDTHS)
def test_every_fit_listed_can_be_asked_for(full_store: Path, columns: int) -> None:
    lines = screen(columns, "fits", "--store", full_store)
    assert not too_long(lines, columns)
    text = "\n".join(lines)
    assert "…" not in text
    found = re.findall(r"isuit-f1:[0-9a-f]+", text)
    assert len(found) == 3
    for shown, record in zip(found, history.fits(full_store), strict=True):
        assert history.show(full_store, shown).fit.fit_id == record.fit_id
        assert re.search(rf"\b{record.activity}\b", text)
    for shown in re.findall(r"isuit-c1:[0-9a-f]+", text):
        history.show(full_store, shown)


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_head_is_whole(full_store: Path, columns: int) -> None:
    lines = screen(columns, "status", "--store", full_store)
    head = history.status(full_store).log_head
    assert any(re.search(rf"(?<![0-9a-f]){head}(?![0-9a-f])", line) for line in lines)
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_picture_of_text_fits(full_store: Path, columns: int) -> None:
    lines = screen(columns, "show", history.fits(full_store)[0].fit_id, "--store", full_store)
    drawn = [line for line in lines if "█" in line]
    assert len(drawn) == 8
    assert max(map(len, drawn)) == min(columns, 69)


@pytest.mark.parametrize("columns", WIDTHS)
def test_counts_stay_numbers(full_store: Path, columns: int) -> None:
    text = "\n".join(screen(columns, "delete-rider", "rider-0001", "--dry-run", "--store", full_store))
    assert "…" not in text
    assert "personal.release_members" in text
    assert re.search(r"personal.outcomes\D+\d+\D+15\D", text)
