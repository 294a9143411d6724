"""The verifier that is not isuit's: RFC 8032's vectors, and the same verdicts as isuit on what isuit writes."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import SCRIPT, load_verifier, make_bundles, verdicts

from isuit.audit.merkle import consistency_path, leaf_hash, root
from isuit.service import heads, proving, riders
from isuit.service.history import fits
from isuit.service.releases import export_atlas

PATH = Path(__file__).parents[2] / "verifier" / "verify.py"
verifier = load_verifier()
# RFC 8032, section 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe246"
        "55141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc"
        "027beceea1ec40a",
    ),
]


def test_it_is_one_short_file_of_the_standard_library() -> None:
    source = PATH.read_text()
    assert len(source.splitlines()) <= 400
    imported = {
        alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported <= sys.stdlib_module_names
    modules = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"datetime", "pathlib"}


def test_the_other_is_one_file_that_needs_nothing() -> None:
    needed = re.findall(r"require\((.*?)\)|^\s*import ", SCRIPT.read_text(), re.MULTILINE)
    assert set(needed) == {'"node:fs"', '"node:path"'}  # of the command line alone


def test_both_hash_and_verify_alike() -> None:
    """FIPS 180-4 at every length around a block's, and RFC 8032's vectors."""
    messages = [bytes([7]) * length for length in (0, 1, 55, 56, 63, 64, 65, 111, 112, 119, 120, 127, 128, 129, 1000)]
    script = (
        f"const verify = require({json.dumps(str(SCRIPT))});"
        "const bytes = (text) => Uint8Array.from(Buffer.from(text, 'hex'));"
        "const digests = (m) => [verify.sha256(bytes(m)), verify.sha512(bytes(m))].map(verify.hex);"
        "const holds = (vector) => verify.signatureHolds(...vector.map(bytes));"
        "const [messages, vectors] = JSON.parse(process.argv[1]);"
        "console.log(JSON.stringify([messages.map(digests), vectors.map(holds)]))"
    )
    wrong = [(key, f"{message}00", signature) for key, message, signature in VECTORS]
    other = [
        (key, message, signature[:-2] + "10") for key, message, signature in VECTORS
    ]  # not below the group's order
    given = json.dumps([[message.hex() for message in messages], [*VECTORS, *wrong, *other]])
    answer = subprocess.run(["node", "-e", script, given], capture_output=True, text=True, check=True).stdout
    digests, holds = json.loads(answer)
    assert digests == [[hashlib.sha256(m).hexdigest(), hashlib.sha512(m).hexdigest()] for m in messages]
    assert holds == [True] * 3 + [False] * 6


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_signatures_are_those_of_rfc_8032(public: str, message: str, signature: str) -> None:
    key, text, given = (bytes.fromhex(part) for part in (public, message, signature))
    assert verifier.signature_holds(key, text, given)
    assert not verifier.signature_holds(key, text + b"x", given)
    assert not verifier.signature_holds(key, text, given[:5] + bytes([given[5] ^ 1]) + given[6:])
    assert not verifier.signature_holds(
        key, text, given[:32] + (int.from_bytes(given[32:], "little") + verifier.Q).to_bytes(32, "little")
    )


def test_consistency_of_every_pair_of_small_trees() -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(12)]
    for size in range(1, 13):
        for old in range(1, size + 1):
            path = consistency_path(leaves[:size], old)
            verifier.require_consistent(old, root(leaves[:old]), size, root(leaves[:size]), path)
            with pytest.raises(verifier.Wrong):
                verifier.require_consistent(old, root(leaves[1 : old + 1]), size, root(leaves[:size]), path)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What the verifier in Python says; that in JavaScript must come to the same end."""
    words = [str(argument) for argument in arguments]
    answers = [
        subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        for command in ([sys.executable, "-I", str(PATH)], ["node", str(SCRIPT)])
    ]
    assert answers[0].returncode == answers[1].returncode, answers
    return answers[0]


def test_it_takes_what_isuit_writes_and_nothing_else(store_copy: Path, tmp_path: Path) -> None:
    report = heads.head(store_copy, signed=True)
    key, kept, signed = tmp_path / "key", tmp_path / "kept", tmp_path / "signed"
    key.write_text(report.key)
    kept.write_text(str(report.checkpoint))
    export_atlas(store_copy, tmp_path / "atlas.jsonl", release="2026-01-01")
    riders.delete_riders(store_copy, ["rider-0007"], copy_to=tmp_path / "copy.json")
    heads.rotate_key(store_copy)
    proving.prove(store_copy, fits(store_copy)[0].fit_id, tmp_path / "proof.json", since=kept)
    witness = proving.witness(tmp_path / "witness", trusted_key=key).key
    (tmp_path / "witness.key").write_text(witness)
    proving.prove(store_copy, None, tmp_path / "whole.json")
    proving.witness(tmp_path / "witness", tmp_path / "whole.json", out=signed)
    new = tmp_path / "new"
    new.write_text(heads.head(store_copy).key)
    assert run("release", tmp_path / "atlas.jsonl", "--key", key).returncode == 0
    assert run("receipt", tmp_path / "copy.json", "--id", "rider-0007", "--key", key).returncode == 0
    assert "not about this ID" in run("receipt", tmp_path / "copy.json", "--id", "rider-0008").stderr
    assert run("proof", tmp_path / "proof.json", "--key", key, "--kept", kept).returncode == 0
    assert run("checkpoint", signed, "--key", new, "--witness", tmp_path / "witness.key").returncode == 0
    assert "not signed" in run("checkpoint", signed, "--key", key).stderr
    text = (tmp_path / "atlas.jsonl").read_text()
    (tmp_path / "changed.jsonl").write_text(text.replace('"licence":null', '"licence":"CC0"'))
    assert "metadata are not those" in run("release", tmp_path / "changed.jsonl").stderr


@pytest.mark.long
def test_they_agree_with_isuit_on_tampered_bundles(full_store: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(full_store, tmp_path / "store"))
    seen = set()
    for what, found in verdicts(make_bundles(store, tmp_path), tmp_path, 60, seed=3):
        assert len(found) == 1, what
        seen |= found
    assert seen == {True, False}
