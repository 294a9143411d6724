"""Bundles that somebody changed, at random: `python tests/independent/bundles.py [NUMBER]` tries 1,000.

Half of the changes come with a manifest made anew, so that the checks behind it are met. isuit and the verifier that is
not isuit's must agree on each.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from isuit.audit.bundle import read_bundle
from isuit.errors import IsuitError

FILES = ("fit.json", "atlas.csv", "log.jsonl", "manifest.json", "cohort.tsv", "README.md")


def load_verifier() -> ModuleType:
    path = Path(__file__).parents[2] / "verifier" / "verify.py"
    spec = importlib.util.spec_from_file_location("verify", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _value(chance: random.Random, value: Any) -> Any:
    """Another value of the same type, somewhere inside."""
    if isinstance(value, dict) and value:
        name = chance.choice(sorted(value))
        return {**value, name: _value(chance, value[name])}
    if isinstance(value, list) and value:
        place = chance.randrange(len(value))
        return [*value[:place], _value(chance, value[place]), *value[place + 1 :]]
    if isinstance(value, (int, float)):
        return not value if isinstance(value, bool) else value + chance.choice([-1, 1, 10])
    if isinstance(value, str) and value:
        place = chance.randrange(len(value))
        return value[:place] + chance.choice("0123456789abcdef") + value[place + 1 :]
    return value


def tamper(directory: Path, chance: random.Random) -> str:
    """Change one thing of a bundle; says what."""
    name = chance.choice([name for name in FILES if (directory / name).exists()])
    path, content = directory / name, (directory / name).read_bytes()
    kind = chance.choice(["byte", "value", "line", "cut", "removed", "nothing"])
    if kind == "byte":
        place = chance.randrange(len(content))
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << chance.randrange(7)]) + content[place + 1 :])
    elif kind == "value" and name in ("fit.json", "manifest.json"):
        path.write_text(json.dumps(_value(chance, json.loads(content))))
    elif kind in ("value", "line"):
        lines = content.decode().splitlines(keepends=True)
        place = chance.randrange(len(lines))
        if kind == "value" and name == "log.jsonl":
            lines[place] = json.dumps(_value(chance, json.loads(lines[place]))) + "\n"
        else:
            lines[place] = chance.choice(["", lines[place] * 2])
        path.write_text("".join(lines))
    elif kind == "cut":
        path.write_bytes(content[: chance.randrange(len(content))])
    elif kind == "removed":
        path.unlink()
    if chance.random() < 0.5 and name != "manifest.json":
        _manifest_anew(directory)
        return f"{kind} in {name}, manifest anew"
    return f"{kind} in {name}"


def _manifest_anew(directory: Path) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    manifest["files"] = {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest()
        for name in manifest["files"]
        if (directory / name).exists()
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))


def verdicts(bundle: Path, scratch: Path, number: int, seed: int) -> Iterator[tuple[str, bool, bool]]:
    """What was done, and whether isuit and the other verifier took the bundle for whole."""
    chance, verifier = random.Random(seed), load_verifier()
    for _ in range(number):
        place = scratch / "tampered"
        shutil.copytree(bundle, place)
        what = tamper(place, chance)
        ours = theirs = True
        try:
            read_bundle(place)
        except IsuitError:
            ours = False
        try:
            verifier.check_bundle(place)
        except (verifier.Wrong, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            theirs = False
        yield what, ours, theirs
        shutil.rmtree(place)


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import make_full_store

    from isuit.service.checks import bundle
    from isuit.service.history import fits

    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seen: Counter[tuple[bool, bool]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        store = make_full_store(Path(folder) / "store")
        [fit] = [record for record in fits(store) if record.dimension == "wave"]
        bundle(store, fit.fit_id, Path(folder) / "bundle", with_cohort=True)
        for what, ours, theirs in verdicts(Path(folder) / "bundle", Path(folder), number, seed=number):
            seen[ours, theirs] += 1
            if ours != theirs:
                print(f"disagreement: {what}: isuit says {ours}, the verifier {theirs}")
    print(f"{number} bundles: {seen[False, False]} refused by both, {seen[True, True]} whole by both")
    return int(seen[True, False] + seen[False, True] > 0)


if __name__ == "__main__":
    sys.exit(main())
