"""Runs erasures in child processes that are killed: at a named step, or after a number of seconds.

A program of its own, because it forks: the parent imports everything and opens nothing, so that a child starts in
milliseconds and a kill lands in the protocol and not in an import.

It reads lines of JSON {"store", "rider", "copy", "step", "seconds"}, and answers {"seconds", "killed", "steps"}:
`step` kills when that step is reached, `seconds` after that time. Without `rider`, the child only opens the store for
reading: that is recovery.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from isuit.erasure import rewrite
from isuit.service.riders import delete_riders
from isuit.service.stores import open_store


def act(order: dict[str, object], report: int) -> None:
    """The child's life."""

    def reached(step: str) -> None:
        os.write(report, f"{step}\n".encode())
        if step == order.get("step"):
            os.kill(os.getpid(), signal.SIGKILL)

    rewrite.reached = reached
    store = Path(str(order["store"]))
    if order.get("rider"):
        copy = Path(str(order["copy"])) if "copy" in order else None
        delete_riders(store, [str(order["rider"])], copy_to=copy)
    else:
        with open_store(store):
            pass


def run(order: dict[str, object]) -> dict[str, object]:
    reading, report = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            act(order, report)
        except BaseException as error:
            os.write(report, f"failed: {error!r}\n".encode())
        os._exit(0)
    os.close(report)
    if "seconds" in order:
        time.sleep(float(str(order["seconds"])))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    steps = b""
    while chunk := os.read(reading, 1 << 16):
        steps += chunk
    os.close(reading)
    return {
        "seconds": time.monotonic() - start,
        "killed": os.WIFSIGNALED(status),
        "steps": steps.decode().split("\n")[:-1],
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
