"""Golden documents: what a store handed out once, whole and changed, has the same verdict for ever and everywhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bundles import load_verifier

from isuit.audit.bundle import read_bundle
from isuit.errors import IsuitError
from isuit.release.checking import check_file
from isuit.service.proving import check_proof
from isuit.service.trusted import read_key

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "documents.json"
DOCUMENTS, CASES = (json.loads(GOLDEN.read_text())[name] for name in ("documents", "cases"))
verifier = load_verifier()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder with the documents of a case, edited as it says."""
    for name, text in DOCUMENTS.items():
        case = request.node.callspec.params["case"]
        edit = case.get("edit", {"file": None})
        if name in case["files"] or name in case.values():
            (tmp_path / name).write_text(text.replace(edit["old"], edit["new"]) if edit["file"] == name else text)
    return tmp_path


def with_cases(kinds: str) -> pytest.MarkDecorator:
    chosen = [case for case in CASES if case["kind"] in kinds.split()]
    return pytest.mark.parametrize("case", chosen, ids=[case["name"] for case in chosen])


@with_cases("bundle release receipt proof checkpoint")
def test_the_verifier_in_python(case: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place if case["kind"] == "bundle" else place / case["files"][0]
    options = [
        part for name in ("key", "kept", "witness") if name in case for part in (f"--{name}", place / case[name])
    ]
    identity = ["--id", case["id"]] if "id" in case else []
    arguments = ["verify.py", case["kind"], str(path), *map(str, options), *identity]
    monkeypatch.setattr(verifier.sys, "argv", arguments)
    try:
        verifier.main()
        refused = None
    except SystemExit as end:
        refused = str(end.code)
    assert (refused is None) == case["holds"], refused
    assert refused is None or refused.startswith("wrong: ")


def test_the_verifier_in_javascript() -> None:
    command = ["node", str(HERE / "documents.cjs"), str(GOLDEN)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [(case["name"], answer["holds"]) for case, answer in zip(CASES, answers, strict=True)] == [
        (case["name"], case["holds"]) for case in CASES
    ]
    assert not [answer for answer in answers if "cannot be read" in answer["sentence"]]


@with_cases("bundle release proof")
def test_isuit_itself(case: dict[str, Any], place: Path) -> None:
    key, kept = (place / case[name] if name in case else None for name in ("key", "kept"))
    path = place / case["files"][0]
    try:
        if case["kind"] == "bundle":
            holds = bool(read_bundle(place))
        elif case["kind"] == "release":
            holds = check_file(path, None if key is None else read_key(key)).ok
        else:
            holds = check_proof(path, key, kept).ok
    except IsuitError:
        holds = False
    assert holds == case["holds"]


def test_every_kind_has_one_that_holds_and_one_that_does_not() -> None:
    kinds = {"bundle", "release", "receipt", "proof", "checkpoint"}
    assert {(case["kind"], case["holds"]) for case in CASES} == {
        (kind, holds) for kind in kinds for holds in (True, False)
    }
