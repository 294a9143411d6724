"""A long run of every fuzzer: `python tests/fuzz/long.py 2000` tries 2,000 inputs per reader and prints what crashed.

Each reader runs in a process of its own, with a limit on memory: a crash inside of a library is a crash here too.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

MEMORY = 8 << 30  # bytes of address space; the libraries map several without using them
SECONDS = 3600


def one(place: int, rounds: int, first: int) -> int:
    """Fuzz one reader; how many inputs crashed it."""
    from readers import all_readers

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        reader = all_readers(Path(folder) / "good")[place]
        crashes = accepted = 0
        for seed in range(first, first + rounds):
            print(f"{reader.name}: seed {seed}", file=sys.stderr)
            try:
                accepted += reader.round(seed, Path(folder) / "hostile")
            except Exception:
                crashes += 1
                print(f"{reader.name}, seed {seed}\n{traceback.format_exc()}")
        print(
            f"{reader.name}: {rounds} inputs, {accepted} read, {rounds - accepted - crashes} refused, {crashes} crashes"
        )
    return crashes


def main() -> int:
    if len(sys.argv) > 3:
        return one(*map(int, sys.argv[1:4]))
    from readers import all_readers

    rounds = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        number = len(all_readers(Path(folder)))
    crashed = 0
    for place in range(number):
        command = [sys.executable, __file__, str(place), str(rounds), str(first)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        print(done.stdout, end="", flush=True)
        if done.returncode < 0 or not done.stdout:
            print("the process died at", *done.stderr.splitlines()[-1:], flush=True)
        crashed += done.returncode != 0
    print(f"{number * rounds} inputs, {number} readers, {crashed} readers with crashes")
    return min(crashed, 1)


if __name__ == "__main__":
    sys.exit(main())
