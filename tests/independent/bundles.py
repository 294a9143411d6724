"""Bundles that somebody changed, at random: `python tests/independent/bundles.py [NUMBER [SEED]]`, 1,000 times.

Half of the changes come with a manifest made anew, so that the checks behind it are met, and some with every head of
the log computed again. isuit and both verifiers that are not isuit's must agree on each.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import rfc8785

from isuit.audit.bundle import read_bundle
from isuit.audit.digests import tagged
from isuit.audit.log import EVENT_TAG, GENESIS
from isuit.errors import IsuitError

FILES = ("fit.json", "atlas.csv", "log.jsonl", "manifest.json", "cohort.tsv", "README.md")
SCRIPT = Path(__file__).parents[2] / "verifier" / "verify.js"
AT_ONCE = 50  # bundles that node gets in one call: it takes longer to start than to check one


def load_verifier() -> ModuleType:
    path = Path(__file__).parents[2] / "verifier" / "verify.py"
    spec = importlib.util.spec_from_file_location("verify", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_bundles(store: Path, folder: Path) -> list[Path]:
    """Bundles of every kind: with rows and without, of one metric and of several, with sites."""
    from isuit.service.checks import bundle
    from isuit.service.history import fits

    found = []
    for record in fits(store):
        whole = record.dimension == "wave"
        found.append(folder / f"bundle-{len(found)}")
        bundle(store, record.fit_id, found[-1], with_cohort=whole)
    return found


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
    kind = chance.choice(["byte", "value", "line", "cut", "removed", "nothing", "spelling", "relinked"])
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
    elif kind == "spelling":
        path.write_bytes(_spelled_otherwise(content, chance))
    elif kind == "relinked":
        name = "log.jsonl"
        kind = f"relinked ({_relink(directory, chance)})"
    if chance.random() < 0.5 and name != "manifest.json":
        _manifest_anew(directory)
        return f"{kind} in {name}, manifest anew"
    return f"{kind} in {name}"


def _spelled_otherwise(content: bytes, chance: random.Random) -> bytes:
    """What reads alike to some programs: blanks, another end of line, zeros behind a point, a field in quotes."""
    old, new = chance.choice(
        [(b", ", b",  "), (b"\n", b"\r\n"), (b".0,", b".00,"), (b'": ', b'" : '), (b"-0", b"- "), (b",", b',""')]
    )
    places = [place for place in range(len(content)) if content.startswith(old, place)]
    if not places:
        return content
    place = chance.choice(places)
    return content[:place] + new + content[place + len(old) :]


def _relink(directory: Path, chance: random.Random) -> str:
    """Change an event, or nothing, and compute every head and the manifest's anew: a chain that holds; says what."""
    events = [json.loads(line) for line in (directory / "log.jsonl").read_bytes().splitlines()]
    place = chance.randrange(len(events))
    change = chance.choice(["payload", "kind", "number", "more", "gone", "twice", "time", "nothing"])
    event = events[place]
    if change == "payload":
        event["payload"] = _value(chance, event["payload"])
    elif change == "kind":
        event["kind"] = chance.choice(["fit-recorded", "other"])
    elif change == "number":
        event["sequence"] += chance.choice([-1, 1])
    elif change == "more":
        event["note"] = "x"
    elif change == "gone":
        events.remove(event)
    elif change == "twice":
        events.insert(place, dict(event))
    elif change == "time":
        event["at"] = chance.choice(
            ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00Z", "2026-02-30T00:00:00.000000Z"]
        )
    head = GENESIS
    for event in events:
        entry = {name: event[name] for name in ("at", "kind", "payload", "sequence")} | {"previous": head}
        event["previous"], head = head, tagged(EVENT_TAG, rfc8785.dumps(entry))
        event["head"] = head
    (directory / "log.jsonl").write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))
    manifest = json.loads((directory / "manifest.json").read_bytes())
    (directory / "manifest.json").write_text(json.dumps(manifest | {"log_head": head}))
    _manifest_anew(directory)
    return change


def _manifest_anew(directory: Path) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    manifest["files"] = {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest()
        for name in manifest["files"]
        if (directory / name).exists()
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))


def verdicts(bundles: list[Path], scratch: Path, number: int, seed: int) -> Iterator[tuple[str, set[bool]]]:
    """What was done, and the verdicts of isuit, of the verifier in Python and of that in JavaScript."""
    chance, verifier = random.Random(seed), load_verifier()
    while number > 0:
        done, places = [], [scratch / f"tampered-{turn}" for turn in range(min(number, AT_ONCE))]
        for place in places:
            shutil.copytree(chance.choice(bundles), place)
            done.append(tamper(place, chance))
        for what, place, theirs in zip(done, places, in_javascript("bundle", *places), strict=True):
            ours = _holds(read_bundle, place)
            others = _holds(verifier.check_bundle, place, *verifier.UNREADABLE)
            yield f"{what}: isuit {ours}, Python {others}, JavaScript {theirs}", {ours, others, theirs}
            shutil.rmtree(place)
        number -= len(places)


def _holds(check: Callable[[Path], object], place: Path, *refusals: type[Exception]) -> bool:
    try:
        check(place)
    except (IsuitError, *refusals):
        return False
    return True


def in_javascript(kind: str, *paths: Path) -> list[bool]:
    """Whether each holds, by one run of node."""
    command = ["node", str(SCRIPT), kind, "--each", *map(str, paths)]
    answers = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    assert len(answers) == len(paths)
    return [not answer.startswith("wrong: ") for answer in answers]


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import make_full_store

    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else number
    seen: Counter[bool] = Counter()
    disagreements = 0
    with tempfile.TemporaryDirectory() as folder:
        bundles = make_bundles(make_full_store(Path(folder) / "store"), Path(folder))
        for what, found in verdicts(bundles, Path(folder), number, seed=seed):
            seen[all(found)] += 1
            if len(found) > 1:
                disagreements += 1
                print(f"disagreement: {what}")
    print(
        f"{number} bundles: {seen[False]} refused, {seen[True]} whole, {disagreements} disagreements of three verifiers"
    )
    return int(disagreements > 0)


if __name__ == "__main__":
    sys.exit(main())
