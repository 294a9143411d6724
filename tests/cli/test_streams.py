"""Outputs that are closed, full or gone: no traceback, and never 1, which means that a check came out negative."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ISUIT = Path(sys.executable).with_name("isuit")


def shell(script: str, store: Path, isuit: Path = ISUIT) -> subprocess.CompletedProcess[str]:
    """A line of bash in which $isuit is the command and $store a store; standard error comes back as text."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        env={"isuit": str(isuit), "store": str(store), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


COMMANDS = ("fits", "fits --json", "status", "verify --json", "atlas --json")


def program(command: str, console: Path) -> Path:
    """What Python makes of its streams when it starts is seen with some commands, the rest without a start."""
    return ISUIT if command in ("fits", "verify --json", "--version") else console


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_sentence_and_2(command: str, full_store: Path, console: Path) -> None:
    done = shell(f'"$isuit" {command} --store "$store" > /dev/full', full_store, program(command, console))
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("isuit: ")]
    assert len(told) == 1
    assert "No space left" in told[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [*COMMANDS, "--help", "--version"])
def test_an_output_that_was_closed_is_no_output(command: str, full_store: Path, console: Path) -> None:
    place = "" if command.startswith("--") else '--store "$store"'
    done = shell(f'"$isuit" {command} {place} >&-', full_store, program(command, console))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr in ("", "3 fits\n")


def test_a_closed_standard_error_does_not_reach_the_output(full_store: Path) -> None:
    """Python prints to standard output what is meant for a standard error that is not there."""
    done = shell('"$isuit" fits --store "$store" 2>&-', full_store)
    assert done.returncode == 0
    assert done.stdout.count("\n") == 3
    assert "2 fits" not in done.stdout


def test_a_full_standard_error_changes_nothing(full_store: Path) -> None:
    assert shell('"$isuit" fits --store "$store" 2> /dev/full', full_store).returncode == 0
    assert shell('"$isuit" fits --store "$store/nothing" 2> /dev/full', full_store).returncode == 2


def test_a_reader_that_goes_away_ends_nothing(full_store: Path, console: Path) -> None:
    whole = shell('"$isuit" atlas --json --store "$store"', full_store, console).stdout
    assert len(whole) > 65_536, "more than a pipe holds"
    for reader in ("true", "head -1 > /dev/null"):
        done = shell(f'"$isuit" atlas --json --store "$store" | {reader}', full_store)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_negative_check_stays_negative_without_a_reader(store_copy: Path, console: Path) -> None:
    with duckdb.connect(str(store_copy / "store.duckdb")) as connection:
        connection.execute("UPDATE atlas.difficulty SET suitability = 0.5")
    for output, isuit in (("| true", ISUIT), (">&-", ISUIT), ("> /dev/null", console)):
        assert shell(f'"$isuit" verify --store "$store" {output}', store_copy, isuit).returncode == 1


def test_lines_come_in_their_order_where_nothing_is_buffered() -> None:
    """A container sets PYTHONUNBUFFERED: a note before the result is read before it."""
    script = (
        "import sys; from isuit.cli.streams import outlast; outlast()\n"
        "for text, stream in (('note', sys.stderr), ('result', sys.stdout), ('end', sys.stderr)):\n"
        "    print(text, file=stream)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert done.stdout.split() == ["note", "result", "end"]
