"""The command line in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from isuit.cli.app import main


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def isuit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Answer]:
    """The command line in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["isuit", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        written = capsys.readouterr()
        return Answer(int(stop.value.code or 0), written.out, written.err)

    return run
