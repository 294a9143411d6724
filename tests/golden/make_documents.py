"""Makes documents.json: what a store hands out, whole and changed, with the verdict that every verifier must give.

    python tests/golden/make_documents.py

The store has keys of its own, so the file changes whenever it is made; it is made again only where a format changes.
A case names the documents it takes and edits one of them: every occurrence of `old` becomes `new`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from conftest import make_full_store  # noqa: E402  # found through the line above

from isuit.service import checks, heads, proving, riders  # noqa: E402
from isuit.service.history import fits  # noqa: E402
from isuit.service.releases import export_atlas  # noqa: E402

BUNDLE = ("README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl", "manifest.json")


def documents(folder: Path) -> dict[str, str]:
    """Everything that a store hands out, by name."""
    store = make_full_store(folder / "store")
    [fit] = [record.fit_id for record in fits(store) if record.dimension == "wave"]
    checks.bundle(store, fit, folder / "bundle", with_cohort=True)
    found = {name: (folder / "bundle" / name).read_text() for name in BUNDLE}
    first = heads.head(store, signed=True)
    (folder / "first.key").write_text(f"{first.key}\n")
    (folder / "first").write_text(str(first.checkpoint))
    export_atlas(store, folder / "atlas.jsonl", release="2026-04-01")
    riders.delete_riders(store, ["rider-0007"], copy_to=folder / "receipt.json")
    heads.rotate_key(store)
    second = heads.head(store, signed=True)
    (folder / "second.key").write_text(f"{second.key}\n")
    (folder / "second").write_text(str(second.checkpoint))
    riders.delete_riders(store, ["rider-0008"])
    proving.prove(store, fit, folder / "proof.json", since=folder / "first")
    proving.prove(store, None, folder / "later.json", since=folder / "second")
    proving.prove(store, None, folder / "whole.json")
    witness = proving.witness(folder / "witness", trusted_key=folder / "second.key").key
    (folder / "witness.key").write_text(f"{witness}\n")
    proving.witness(folder / "witness", folder / "whole.json", out=folder / "cosigned")
    names = "first.key second.key witness.key first second cosigned atlas.jsonl receipt.json proof.json later.json"
    return found | {name: (folder / name).read_text() for name in names.split()}


def cases(found: dict[str, str]) -> list[dict[str, Any]]:
    """What is checked, and whether it holds."""

    def case(name: str, kind: str, files: Any, holds: bool, **more: Any) -> dict[str, Any]:
        return {"name": name, "kind": kind, "files": list(files), "holds": holds} | more

    def edit(file: str, old: str, new: str) -> dict[str, Any]:
        assert old in found[file], (file, old)
        return {"edit": {"file": file, "old": old, "new": new}}

    proof = json.loads(found["proof.json"])
    digit = {"0": "1"}.get(proof["inclusion"]["path"][0][0], "0")
    head = json.loads(found["manifest.json"])["log_head"]
    nonce = json.loads(found["receipt.json"])["bindings"][0]["nonce"]
    signature = found["first"].split()[-1]
    size = found["first"].split("\n")[1]
    metric = found["atlas.csv"].split("\n")[1].split(",")[1]
    made = {"key": "first.key"}
    return [
        case("a bundle", "bundle", BUNDLE, True),
        case("a bundle without its cohort", "bundle", [name for name in BUNDLE if name != "cohort.tsv"], False),
        case("a bundle's outcome", "bundle", BUNDLE, False, **edit("cohort.tsv", "\t1\n", "\t0\n")),
        case("a bundle's head", "bundle", BUNDLE, False, **edit("manifest.json", head, "0" * 64)),
        case(
            "a bundle's other fit",
            "bundle",
            BUNDLE,
            False,
            **edit("manifest.json", '"fit_id": "isuit-f1:', '"fit_id": "isuit-f1:0'),
        ),
        case("a bundle's curve in other digits", "bundle", BUNDLE, False, **edit("atlas.csv", metric, f"{metric}0")),
        case("a release", "release", ["atlas.jsonl"], True, **made),
        case("a release at its own word", "release", ["atlas.jsonl"], True),
        case("a release under another key", "release", ["atlas.jsonl"], False, key="second.key"),
        case(
            "a release's licence",
            "release",
            ["atlas.jsonl"],
            False,
            **made,
            **edit("atlas.jsonl", "CC-BY-4.0", "CC0-1.0"),
        ),
        case(
            "a release's row",
            "release",
            ["atlas.jsonl"],
            False,
            **made,
            **edit("atlas.jsonl", '"kitesurfing"', '"kiting"'),
        ),
        case(
            "a release with a name twice",
            "release",
            ["atlas.jsonl"],
            False,
            **made,
            **edit("atlas.jsonl", '"licence":', '"licence":"CC0-1.0","licence":'),
        ),
        case("a release cut short", "release", ["atlas.jsonl"], False, **made, **edit("atlas.jsonl", "}\n", "}")),
        case("a receipt", "receipt", ["receipt.json"], True, id="rider-0007", **made),
        case("a receipt at its own word", "receipt", ["receipt.json"], True, id="rider-0007"),
        case("a receipt of somebody else", "receipt", ["receipt.json"], False, id="rider-0008", **made),
        case(
            "a receipt's nonce",
            "receipt",
            ["receipt.json"],
            False,
            id="rider-0007",
            **edit("receipt.json", nonce, "00" * 32),
        ),
        case(
            "a receipt that says less is kept",
            "receipt",
            ["receipt.json"],
            False,
            id="rider-0007",
            **edit("receipt.json", '"what": "the atlas', '"what": "an atlas'),
        ),
        case(
            "a receipt of another time",
            "receipt",
            ["receipt.json"],
            False,
            id="rider-0007",
            **edit("receipt.json", '"erased_at": "20', '"erased_at": "19'),
        ),
        case("a proof", "proof", ["proof.json"], True, key="second.key"),
        case("a proof by rotation", "proof", ["proof.json"], True, **made),
        case("a proof since a checkpoint", "proof", ["proof.json"], True, kept="first", **made),
        case("a proof since a checkpoint of the key after", "proof", ["later.json"], True, kept="second", **made),
        case("a proof since another checkpoint", "proof", ["proof.json"], False, kept="second", **made),
        case("a proof under a witness's key", "proof", ["proof.json"], False, key="witness.key"),
        case(
            "a proof's path",
            "proof",
            ["proof.json"],
            False,
            **made,
            **edit("proof.json", proof["inclusion"]["path"][0], digit + proof["inclusion"]["path"][0][1:]),
        ),
        case(
            "a proof's event",
            "proof",
            ["proof.json"],
            False,
            **made,
            **edit("proof.json", "fit-recorded", "fit-removed"),
        ),
        case(
            "a proof without its rotations",
            "proof",
            ["proof.json"],
            False,
            **made,
            **edit("proof.json", "isuit-key-rotation/1", "isuit-key-rotation/2"),
        ),
        case("a checkpoint", "checkpoint", ["first"], True, **made),
        case("a checkpoint without a key", "checkpoint", ["first"], False),
        case("a checkpoint of another key", "checkpoint", ["first"], False, key="second.key"),
        case(
            "a checkpoint's size",
            "checkpoint",
            ["first"],
            False,
            **made,
            **edit("first", f"\n{size}\n", f"\n{size}0\n"),
        ),
        case(
            "a checkpoint's signature",
            "checkpoint",
            ["first"],
            False,
            **made,
            **edit("first", signature, signature[:20] + ("A" if signature[20] != "A" else "B") + signature[21:]),
        ),
        case("a checkpoint with a witness", "checkpoint", ["cosigned"], True, key="second.key", witness="witness.key"),
        case(
            "a checkpoint without its witness", "checkpoint", ["second"], False, key="second.key", witness="witness.key"
        ),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = documents(Path(folder))
    text = json.dumps({"documents": found, "cases": cases(found)}, indent=1, ensure_ascii=False)
    (HERE / "documents.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
