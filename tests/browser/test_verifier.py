"""verifier/verify.html: what a store handed out is checked in a browser, which asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isuit.service import heads
from isuit.service.releases import export_atlas

from .conftest import Seen

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "verifier" / "verify.html"
DOCUMENTS = json.loads((ROOT / "tests" / "golden" / "documents.json").read_text())["documents"]
BUNDLE = ("README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl", "manifest.json")


def checked(seen: Seen, files: list[Path], **fields: str) -> tuple[bool, str]:
    """Chooses the files, fills in the fields and asks; the answer."""
    seen.browser.find_element("id", "files").send_keys("\n".join(map(str, files)))
    for name, text in fields.items():
        seen.script("document.getElementById(arguments[0]).value = arguments[1]", name, text)
    seen.click("button")
    found = seen.browser.execute_async_script(
        "const done = arguments[arguments.length - 1], answer = document.getElementById('answer');"
        "const told = () => done([answer.dataset.holds, answer.textContent]);"
        "const wait = () => (answer.textContent ? told() : setTimeout(wait, 20));"
        "wait()"
    )
    return found[0] == "true", found[1]


def written(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_text(DOCUMENTS[name])
    return [folder / name for name in names]


def test_a_receipt_is_its_owners(opened: Callable[..., Seen], tmp_path: Path) -> None:
    files = written(tmp_path, "receipt.json")
    key = DOCUMENTS["first.key"]
    seen = opened(PAGE)
    holds, sentence = checked(seen, files, id="rider-0007", key=key)
    assert holds
    assert sentence.startswith("It holds: the erasure of this ID is event ")
    assert "own word" in checked(opened(PAGE), files, id="rider-0007")[1]
    assert checked(opened(PAGE), files, id="rider-0008", key=key) == (False, "wrong: this receipt is not about this ID")
    seen = opened(PAGE)
    checked(seen, files, id="rider-0007")
    assert {Path(address).name for address in seen.requests()} == {"verify.js"}
    assert seen.complaints() == []
    assert seen.violations() == []


def test_a_bundle_a_proof_and_a_checkpoint(opened: Callable[..., Seen], tmp_path: Path) -> None:
    assert checked(opened(PAGE), written(tmp_path, *BUNDLE))[0]
    assert checked(opened(PAGE), written(tmp_path, *BUNDLE)[:-2])[0] is False
    fields = {"key": DOCUMENTS["first.key"], "kept": DOCUMENTS["first"]}
    holds, sentence = checked(opened(PAGE), written(tmp_path, "proof.json"), **fields)
    assert holds
    assert "fit-recorded" in sentence
    keys = {"key": DOCUMENTS["second.key"], "witness": DOCUMENTS["witness.key"]}
    assert checked(opened(PAGE), written(tmp_path, "cosigned"), **keys)[0]
    assert not checked(opened(PAGE), written(tmp_path, "second"), **keys)[0]


def test_the_atlas_as_a_page_and_as_lines(opened: Callable[..., Seen], store_copy: Path, tmp_path: Path) -> None:
    page, lines = tmp_path / "atlas.html", tmp_path / "atlas.jsonl"
    export_atlas(store_copy, page, release="2026-01-01", kind="html")
    export_atlas(store_copy, lines, release="2026-01-01")
    key = heads.head(store_copy).key
    said = [checked(opened(PAGE), [path], key=key) for path in (page, lines)]
    assert said[0] == said[1]
    assert said[0][0]
    changed = tmp_path / "changed.html"
    changed.write_text(page.read_text().replace('"licence":null', '"licence":"CC0-1.0"'))
    assert checked(opened(PAGE), [changed], key=key)[1].startswith("wrong: the metadata")
    twice = '<script type="application/json" id="data">{}</script>'
    changed.write_text(page.read_text().replace("</head>", f"{twice}</head>"))
    assert checked(opened(PAGE), [changed], key=key) == (False, "wrong: this is no page of a release")
