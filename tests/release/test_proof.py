"""A release's file proves that the log has it, rows and metadata alike, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from isuit.published import Format
from isuit.release.names import EXTENSIONS
from isuit.release.proof import unproved
from isuit.service import heads
from isuit.service.release_checks import check_release
from isuit.service.releases import export_atlas

RELEASE = date(2026, 1, 1)


@pytest.fixture
def key(full_store: Path, tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(heads.head(full_store).key)
    return tmp_path / "key"


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The same file with other metadata."""
    *rows, last = path.read_text().splitlines()
    metadata = json.loads(last)
    change(metadata)
    other = path.with_name("changed.jsonl")
    other.write_text("\n".join([*rows, json.dumps(metadata)]) + "\n")
    return other


def test_every_format_proves_itself_and_again_by_the_same_bytes(store_copy: Path, key: Path, tmp_path: Path) -> None:
    for kind in set(get_args(Format)) - {"site"}:  # a site is a folder of the others
        path = tmp_path / f"atlas.{EXTENSIONS[kind]}"
        export_atlas(store_copy, path, release=RELEASE, kind=kind)
        found = check_release(path, key)
        assert (found.problems, found.trusted) == ([], True), kind
        assert found.origin == heads.head(store_copy).origin
    again = tmp_path / "again.jsonl"
    export_atlas(store_copy, again, release=RELEASE)
    assert again.read_bytes() == (tmp_path / "atlas.jsonl").read_bytes()


def test_metadata_are_covered_and_a_proof_is_of_its_release_and_key(full_store: Path, key: Path) -> None:
    path = full_store.with_name("atlas.jsonl")
    assert check_release(path, key).ok
    licence = changed(path, lambda metadata: metadata.update(licence="none"))
    assert check_release(licence).problems == ["the metadata are not those that the log speaks of"]
    bare = changed(path, lambda metadata: metadata.pop("proof"))
    assert check_release(bare).ok  # a file without a proof says no more than before
    assert check_release(bare, key).problems == ["the file has no proof that a log holds it"]
    renamed = changed(path, lambda metadata: metadata.update(release="2026-02-01"))
    assert "its proof is about something else than this release" in check_release(renamed).problems
    cut = changed(path, lambda metadata: metadata["proof"]["inclusion"]["path"].pop())
    assert check_release(cut).problems == ["its proof: the event is not in the log that was signed"]
    none = changed(path, lambda metadata: metadata["proof"].update(inclusion=None))
    assert check_release(none).problems == ["its proof is about something else than this release"]
    key.write_text("isuit/other+5d4b9c6e+AQ==")
    with pytest.raises(Exception, match="trusted key cannot be used"):
        check_release(path, key)


def test_another_stores_key_does_not_do(full_store: Path, store_copy: Path, key: Path) -> None:
    key.write_text(heads.rotate_key(store_copy).key)
    [problem] = check_release(full_store.with_name("atlas.jsonl"), key).problems
    assert "not signed by the trusted key" in problem


def test_the_rows_are_those_of_the_log_and_a_broken_proof_says_nothing_more(full_store: Path) -> None:
    metadata = json.loads(full_store.with_name("atlas.jsonl").read_text().splitlines()[-1])
    assert list(unproved(metadata, metadata["digest"], None)) == []
    assert list(unproved(metadata, "0" * 64, None)) == ["the rows are not those that the log speaks of"]
    metadata["proof"]["inclusion"]["path"].pop()
    told = list(unproved(metadata | {"release": "2026-02-01"}, "0" * 64, None))
    assert told == ["its proof: the event is not in the log that was signed"]
