"""What is a checkpoint, and what only looks like one."""

from __future__ import annotations

import base64

import pytest

from isuit.audit.checkpoints import MOST_EVENTS, Checkpoint
from isuit.audit.notes import BadNote

ROOT = bytes(range(32))


def text(size: object = 7, root: bytes = ROOT, origin: str = "isuit/a", more: str = "") -> str:
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n{more}"


def test_it_is_read_as_it_was_written() -> None:
    assert Checkpoint.read(text()) == Checkpoint("isuit/a", 7, ROOT)
    assert Checkpoint.read(text()).text() == text()
    assert Checkpoint.read(text(more="a line that another log adds\n")) == Checkpoint("isuit/a", 7, ROOT)
    assert Checkpoint.of("isuit/a", [ROOT, ROOT]).size == 2


def test_as_many_events_as_a_double_counts_exactly() -> None:
    """So that a program that knows no other numbers, as JavaScript, comes to the same."""
    assert MOST_EVENTS == 2**53
    assert Checkpoint.read(text(2**53)).size == 2**53
    for size in (2**53 + 1, 10**16, "07", "-1", "1.0", "", "1 "):
        with pytest.raises(BadNote):
            Checkpoint.read(text(size))


def test_what_is_none() -> None:
    for wrong in (text(root=ROOT[1:]), text(root=ROOT + b"x"), text(root=b""), text(origin=""), text()[:-1], "a\n1\n"):
        with pytest.raises(BadNote):
            Checkpoint.read(wrong)
