"""kill -9 at any moment: `python tests/fuzz/kills.py [NUMBER [SEED]]` kills 300 commands and looks at what is left.

A store with a fit, tokens and a release is copied for each. A child begins a command on the copy and is killed after
a random part of the time that the command takes. Whatever was there must be there afterwards, to the row; what the
command makes is there wholly or not at all; `isuit verify` agrees; and every third time the command is run again and
must come to its end.

Everything runs in forked children of a process that opens no database: a child starts in milliseconds, so that the kill
meets the command and not its imports.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from isuit import estimator
from isuit.audit.bundle import read_bundle
from isuit.domain import FitConfig
from isuit.errors import NotFound
from isuit.experiment.cohort import Truth, draw
from isuit.release.checking import check_file
from isuit.service import checks, fitting, heads, history, proving, pseudonymising, releases, riders, series
from isuit.store.query import rows

sys.path.insert(0, str(Path(__file__).parents[1]))

from conftest import make_cohort  # found through the line above

RIDER = "rider-0007"
WIND = FitConfig(activity="kitesurfing", dimension="wind")
GUST = FitConfig(activity="kitesurfing", dimension="gust")


def _fit(place: Path) -> None:
    fitting.fit(place / "store", pq.read_table(place / "other.parquet"), GUST)


def _delete(place: Path) -> None:
    """Again after a kill: finished by whoever opened the store, or still to be done."""
    copy = place / "copy.json"
    if copy.exists():
        try:
            riders.complete_copy(place / "store", copy)
        except NotFound:
            copy.unlink()
        else:
            return
    riders.delete_riders(place / "store", [RIDER], copy_to=copy)


def _export(place: Path) -> None:
    releases.export_atlas(place / "store", place / "atlas.jsonl", release="2026-04-01")


def _pseudonymise(place: Path) -> None:
    pseudonymising.pseudonymise(place / "store", [str(place / "other.parquet")], place / "tokens.parquet")


def _bundle(place: Path) -> None:
    shutil.rmtree(place / "bundle", ignore_errors=True)  # one that was whole before the kill is made again
    [fit] = [record.fit_id for record in history.fits(place / "store") if record.dimension == "wind"]
    checks.bundle(place / "store", fit, place / "bundle", with_cohort=True)


def _add(place: Path) -> None:
    series.add(place / "store", "daily", pq.read_table(place / "other.parquet"))


def _fit_series(place: Path) -> None:
    """The union of two parts, whose rows it shares."""
    fitting.fit(place / "store", series.Series("shared"), GUST)


def _prove(place: Path) -> None:
    fit = history.fits(place / "store")[0].fit_id
    proving.prove(place / "store", fit, place / "proof.json", since=place / "checkpoint")


COMMANDS: dict[str, Callable[[Path], None]] = {
    "fit": _fit,
    "delete-rider": _delete,
    "export-atlas": _export,
    "pseudonymise": _pseudonymise,
    "bundle": _bundle,
    "add": _add,
    "fit-series": _fit_series,
    "prove": _prove,
}


def make_base(place: Path) -> None:
    """A store with a fit, tokens and a release, and what the commands are given."""
    place.mkdir()
    fitting.fit(place / "store", make_cohort(1, riders=24, outcomes=15), WIND)
    pq.write_table(make_cohort(3, riders=2, outcomes=3, tag="guest"), place / "guests.parquet")
    pseudonymising.pseudonymise(place / "store", [str(place / "guests.parquet")], place / "guest-tokens.parquet")
    releases.export_atlas(place / "store", place / "before.jsonl", release="2026-01-01")
    pq.write_table(make_cohort(2, riders=20, outcomes=12, tag="other"), place / "other.parquet")
    sailors = make_cohort(4, riders=20, outcomes=12, tag="sailor")
    for part in (sailors.slice(0, 130), sailors.slice(100)):
        series.add(place / "store", "shared", part)
    (place / "checkpoint").write_text(str(heads.head(place / "store", signed=True).checkpoint))


def tables(store: Path) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    connection = duckdb.connect(str(store / "store.duckdb"), read_only=True)
    try:
        named = rows(connection, "SELECT schema_name || '.' || table_name FROM duckdb_tables() ORDER BY ALL")
        return {name: sorted(map(repr, rows(connection, f"SELECT * FROM {name}"))) for (name,) in named}
    finally:
        connection.close()


def shortfalls(command: str, place: Path, before: dict[str, list[str]], *, rerun: bool) -> list[str]:
    """What was lost or is torn after a kill and, with `rerun`, after the command was run again."""
    wrong = []
    for again in (False, True)[: 1 + rerun]:
        if again:
            COMMANDS[command](place)
        when = "run again" if again else "killed"
        report = checks.verify(place / "store")  # finishes what was begun, as every command does
        wrong += [f"{when}: {entry.table}: {entry.sentence}" for entry in report.disagreements]
        after = tables(place / "store")
        for name, held in before.items():
            gone = Counter(held) - Counter(after[name])
            if command == "delete-rider":
                gone = Counter({row: number for row, number in gone.items() if RIDER not in row})
            if gone:
                wrong.append(f"{when}: {gone.total()} rows of {name} are lost")
        wrong += [f"{when}: {sentence}" for sentence in torn(command, place, again)]
        if command == "delete-rider":
            left = sum(RIDER in row for held in after.values() for row in held)
            whole = sum(RIDER in row for held in before.values() for row in held)
            if left not in ((0,) if again else (0, whole)):
                wrong.append(f"{when}: {left} of {whole} rows about the rider are left")
    return wrong


def torn(command: str, place: Path, finished: bool) -> list[str]:
    """Files that are there and not whole, or not there although the command came to its end."""
    made = {"export-atlas": "atlas.jsonl", "pseudonymise": "tokens.parquet", "bundle": "bundle", "prove": "proof.json"}
    path = place / (made.get(command) or ("copy.json" if command == "delete-rider" else "store"))
    if not path.exists():
        return [f"{path.name} is missing"] if finished else []
    try:
        if command == "export-atlas" and not check_file(path).ok:
            return [f"{path.name} is torn"]
        if command == "pseudonymise":
            pq.read_table(path)
        if command == "bundle":
            read_bundle(path)
        if command == "prove" and not proving.check_proof(path, None, place / "checkpoint").ok:
            return [f"{path.name} is torn"]
        if command == "delete-rider":
            copy = json.loads(path.read_text())
            if not copy["bindings"] or (finished and (copy["receipt"] is None or copy["proof"] is None)):
                return ["the nonce or the receipt is lost"]
    except Exception as error:  # whatever it is, the file is not whole
        return [f"{path.name} is torn ({type(error).__name__})"]
    return []


def load() -> None:
    """The compiled loops, by a fit that opens no database."""
    estimator.fit(draw(Truth(riders=40, outcomes=20), 1)[0], FitConfig())


def in_child(work: Callable[[], Any], seconds: float | None = None) -> tuple[Any, bool, float]:
    """What a forked child came to, whether it was killed, and how long it took."""
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        answer: Any
        try:
            answer = {"found": work()}
        except BaseException as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    content = b""
    while chunk := os.read(reading, 1 << 16):
        content += chunk
    os.close(reading)
    _, status = os.waitpid(child, 0)
    took = time.monotonic() - start
    if os.WIFSIGNALED(status):
        return None, True, took
    answer = json.loads(content)
    if "failed" in answer:
        raise RuntimeError(answer["failed"])
    return answer["found"], False, took


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else number)
    load()
    killed: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        in_child(lambda: make_base(base))
        before, _, _ = in_child(lambda: tables(base / "store"))
        typical = {}
        for command, run in COMMANDS.items():
            place = Path(shutil.copytree(base, Path(folder) / "timed"))
            _, _, typical[command] = in_child(partial(run, place))
            shutil.rmtree(place)
        turn = 0
        while killed.total() < number:
            command = list(COMMANDS)[turn % len(COMMANDS)]
            turn += 1
            place = Path(shutil.copytree(base, Path(folder) / "killed"))
            run = COMMANDS[command]
            wait = chance.random() * 1.1 * typical[command]
            _, died, took = in_child(partial(run, place), wait)
            (killed if died else ended)[command] += 1
            typical[command] = typical[command] if died else 0.7 * typical[command] + 0.3 * min(took, typical[command])
            rerun = turn // len(COMMANDS) % 3 == 0
            found, _, _ = in_child(partial(shortfalls, command, place, before, rerun=rerun))
            wrong += [f"{command} after {wait:.3f} s: {sentence}" for sentence in found]
            shutil.rmtree(place)
            if turn % 30 == 0:
                print(f"{killed.total()} killed, {ended.total()} had ended, {len(wrong)} shortfalls", flush=True)
    for command in COMMANDS:
        print(f"{command:<14}{killed[command]:>5} killed {ended[command]:>4} had ended")
    print(f"{killed.total()} kills, {len(wrong)} shortfalls", *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
