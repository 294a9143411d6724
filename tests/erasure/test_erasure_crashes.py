"""kill -9 anywhere: the rider is wholly there or wholly gone, nobody else changed, and once gone no byte is left."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cohort_stores import MARKED, contents, files_with, held, shared_store, small_parts, small_store, storage_defects

from isuit.erasure.receipt import binding
from isuit.errors import NotFound
from isuit.service.checks import verify
from isuit.service.riders import complete_copy
from isuit.service.stores import open_store

STEPS = [
    *("deciding", "decided", "settled", "copied", "committed", "written", "synced", "retired", "swapped"),
    *("overwriting", "overwritten", "destroyed", "swept"),
]
GONE_AFTER = STEPS.index("decided")  # the transaction has committed
# With rows in parts there are three more.
PART_STEPS = [*STEPS[:3], "part written", *STEPS[3:9], "part overwritten", "parts removed", *STEPS[9:]]


class Driver:
    def __init__(self) -> None:
        program = Path(__file__).with_name("crash_driver.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, store: Path, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"store": str(store), **order}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert not [step for step in answer["steps"] if step.startswith("failed")], answer
        return answer

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written uncompressed, so that a search of the bytes means something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
        return small_store(tmp_path_factory.mktemp("crashes") / "store")


@pytest.fixture(scope="module")
def others(original: Path) -> dict[str, Any]:
    return contents(original, without=[MARKED])


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with most rows in parts: 11 of outcomes, 3 of skills and 6 of commitments for each cohort.

    A third cohort shares the outcomes of both.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")
        small_parts(patch)
        return shared_store(tmp_path_factory.mktemp("crashes") / "parted")


@pytest.fixture(scope="module")
def others_parted(parted: Path) -> dict[str, Any]:
    return contents(parted, without=[MARKED])


@pytest.fixture(autouse=True)
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISUIT_FORCE_COMPRESSION", "uncompressed")


def check(store: Path, original: Path, others: dict[str, Any], thorough: bool = True) -> bool:
    """Open the store as any command would, and look; whether the rider is gone."""
    with open_store(store):
        pass
    assert contents(store, without=[MARKED]) == others
    gone = held(store, MARKED) == 0
    if gone:
        assert files_with(store, MARKED.encode(), MARKED.encode()[:8]) == []
        assert not thorough or storage_defects(store) == []
    else:
        assert held(store, MARKED) == held(original, MARKED)
    names = {"LOCK", "key", "signing-key", "store.duckdb", "tmp"}
    assert {file.name for file in store.iterdir()} - {"parts"} == names
    assert list((store / "tmp").iterdir()) == []
    assert not thorough or verify(store).disagreements == []
    return gone


def test_the_steps_are_these(driver: Driver, original: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(original, tmp_path / "store"))
    assert list(dict.fromkeys(driver.run(store, rider=MARKED)["steps"])) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(driver: Driver, original: Path, others: dict[str, Any], tmp_path: Path, step: str) -> None:
    store = Path(shutil.copytree(original, tmp_path / "store"))
    assert driver.run(store, rider=MARKED, step=step)["killed"]
    assert check(store, original, others) == (STEPS.index(step) >= GONE_AFTER)


@pytest.mark.parametrize("step", STEPS[GONE_AFTER + 1 :])
def test_killed_again_while_recovering(
    driver: Driver, original: Path, others: dict[str, Any], tmp_path: Path, step: str
) -> None:
    """Recovery from a kill right after the decision passes every later step."""
    store = Path(shutil.copytree(original, tmp_path / "store"))
    assert driver.run(store, rider=MARKED, step="decided")["killed"]
    assert driver.run(store, step=step)["killed"]
    driver.run(store, step=step)  # from late steps on there is nothing left to be killed in
    assert check(store, original, others)


def test_the_steps_with_parts_are_these(driver: Driver, parted: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(parted, tmp_path / "store"))
    assert list(dict.fromkeys(driver.run(store, rider=MARKED)["steps"])) == PART_STEPS


@pytest.mark.parametrize("step", PART_STEPS)
def test_killed_at_a_step_with_parts(
    driver: Driver, parted: Path, others_parted: dict[str, Any], tmp_path: Path, step: str
) -> None:
    store = Path(shutil.copytree(parted, tmp_path / "store"))
    assert driver.run(store, rider=MARKED, step=step)["killed"]
    assert check(store, parted, others_parted) == (PART_STEPS.index(step) >= GONE_AFTER)


@pytest.mark.parametrize("step", [step for step in PART_STEPS if step not in STEPS])
def test_killed_again_while_recovering_with_parts(
    driver: Driver, parted: Path, others_parted: dict[str, Any], tmp_path: Path, step: str
) -> None:
    store = Path(shutil.copytree(parted, tmp_path / "store"))
    assert driver.run(store, rider=MARKED, step="decided")["killed"]
    assert driver.run(store, step=step)["killed"]
    driver.run(store, step=step)
    assert check(store, parted, others_parted)


@pytest.mark.long
@pytest.mark.parametrize("how", ["original", "parted"])
def test_killed_at_random_moments_and_again_while_recovering(
    driver: Driver, tmp_path: Path, request: pytest.FixtureRequest, how: str
) -> None:
    original: Path = request.getfixturevalue(how)
    others = contents(original, without=[MARKED])
    whole = min(
        driver.run(Path(shutil.copytree(original, tmp_path / f"timing-{i}")), rider=MARKED)["seconds"] for i in range(2)
    )
    chance = random.Random(20)
    outcomes = []
    for moment in range(10):
        store = Path(shutil.copytree(original, tmp_path / f"{moment}"))
        first = driver.run(store, rider=MARKED, seconds=whole * (moment + chance.random()) / 10)  # early to late
        driver.run(store, seconds=whole * chance.random())
        outcomes.append((first["killed"], check(store, original, others, thorough=moment % 5 == 4)))
        shutil.rmtree(store)
    assert sum(killed for killed, _ in outcomes) >= 3  # on a busy machine many end before they are hit
    assert {gone for _, gone in outcomes} == {True, False}


@pytest.mark.parametrize("step", ["deciding", "decided", "swept"])
def test_the_nonce_of_a_receipt_survives_kill_9(driver: Driver, original: Path, tmp_path: Path, step: str) -> None:
    """Between the decision and the file: whoever was erased can still show that it was them."""
    store, copy = tmp_path / "store", tmp_path / "copy.json"
    shutil.copytree(original, store)
    assert driver.run(store, rider=MARKED, copy=str(copy), step=step)["killed"]
    [entry] = json.loads(copy.read_text())["bindings"]
    if step == "deciding":
        with pytest.raises(NotFound, match="nothing was erased"):
            complete_copy(store, copy)
        return
    done = complete_copy(store, copy)
    assert done.receipt is not None
    assert [entry["nonce"]] == [bound.nonce for bound in done.bindings]
    assert binding(entry["nonce"], MARKED) in done.receipt.bindings
