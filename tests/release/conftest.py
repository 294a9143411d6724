"""Fixtures of the release tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from release_lab import Lab, Mutant


@pytest.fixture(scope="session")
def known_stores() -> dict[str, Path]:
    return {}


@pytest.fixture
def lab(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    known_stores: dict[str, Path],
) -> Lab:
    monkeypatch.chdir(tmp_path)
    return Lab(tmp_path, monkeypatch, capsys, known_stores)


@pytest.fixture
def mutant(monkeypatch: pytest.MonkeyPatch) -> Mutant:
    """Remove one rule: `mutant("isuit.release.screening.capped", lambda lines, policy: lines)`."""

    def remove(name: str, replacement: Any) -> None:
        monkeypatch.setattr(name, replacement)

    return remove
