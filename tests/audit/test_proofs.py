"""Proofs of `isuit prove`: checked without the store, and false in any changed value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isuit.errors import IsuitError
from isuit.service import heads, proving
from isuit.service.history import fits


@pytest.fixture
def proof(store_copy: Path, tmp_path: Path) -> Callable[..., Path]:
    def make(reference: str | None = None, since: Path | None = None) -> Path:
        proving.prove(store_copy, reference, tmp_path / "proof.json", since=since)
        return tmp_path / "proof.json"

    return make


def kept(store: Path, folder: Path) -> tuple[Path, Path]:
    report = heads.head(store, signed=True)
    (folder / "kept-key").write_text(report.key)
    (folder / "kept").write_text(str(report.checkpoint))
    return folder / "kept-key", folder / "kept"


def test_a_fit_and_a_release_are_in_the_log(store_copy: Path, proof: Callable[..., Path], tmp_path: Path) -> None:
    key, checkpoint = kept(store_copy, tmp_path)
    fit = fits(store_copy)[0].fit_id
    found = proving.check_proof(proof(fit), key)
    assert (found.ok, found.trusted) == (True, True)
    assert found.event is not None
    assert (found.event["kind"], found.event["payload"]["fit_id"]) == ("fit-recorded", fit)
    assert (tmp_path / "proof.json").stat().st_size < 4000
    heads.rotate_key(store_copy)
    release = proving.check_proof(proof("2026-01-01", checkpoint), key, checkpoint)
    assert release.ok, release.problems
    assert release.event is not None
    assert release.event["payload"]["release"] == "2026-01-01"
    assert release.extends == found.size


def changes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every value inside a JSON document, changed a little."""
    if isinstance(value, dict):
        return [change for name, inner in value.items() for change in changes(inner, (*path, name))]
    if isinstance(value, list):
        dropped = [(path, value[:-1])] if value else []
        return dropped + [change for place, inner in enumerate(value) for change in changes(inner, (*path, place))]
    if isinstance(value, int):
        return [(path, value + 1)]
    if isinstance(value, str):
        middle = len(value) // 2
        return [(path, value[:middle] + ("a" if value[middle] != "a" else "b") + value[middle + 1 :])]
    return []


def test_every_changed_value_is_a_problem(store_copy: Path, proof: Callable[..., Path], tmp_path: Path) -> None:
    key, checkpoint = kept(store_copy, tmp_path)
    heads.rotate_key(store_copy)
    whole = json.loads(proof(fits(store_copy)[0].fit_id, checkpoint).read_text())
    tried = 0
    for path, changed in changes(whole):
        document = json.loads(json.dumps(whole))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = changed
        (tmp_path / "changed.json").write_text(json.dumps(document))
        try:
            assert not proving.check_proof(tmp_path / "changed.json", key, checkpoint).ok, path
        except IsuitError:
            assert path == ("format",)
        tried += 1
    assert tried > 10
