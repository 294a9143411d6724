"""A long run of every fuzzer: `python tests/fuzz/long.py 2000` tries 2,000 inputs per reader and prints what crashed.

Each reader runs in a forked process of its own, with a limit on memory: a crash inside of a library is a crash here
too. The good files are made once, before. A second number is the first seed; words choose readers by their names.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import traceback
from pathlib import Path

from readers import Reader, all_readers

MEMORY = 8 << 30  # bytes of address space; the libraries map several without using them
SECONDS = 3600


def fuzz(reader: Reader, rounds: int, first: int, folder: Path) -> int:
    """Fuzz one reader; how many inputs crashed it. The seed under way is in `folder`, for a process that dies."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    crashes = accepted = 0
    for seed in range(first, first + rounds):
        (folder / "seed").write_text(str(seed))
        try:
            accepted += reader.round(seed, folder / "hostile")
        except Exception:
            crashes += 1
            print(f"{reader.name}, seed {seed}\n{traceback.format_exc()}")
    refused = rounds - accepted - crashes
    print(f"{reader.name}: {rounds} inputs, {accepted} read, {refused} refused, {crashes} crashes", flush=True)
    return crashes


def crashed(reader: Reader, rounds: int, first: int, folder: Path) -> bool:
    """Whether any input crashed the reader, or the process that it ran in."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = min(1, fuzz(reader, rounds, first, folder))
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        seed = (folder / "seed").read_text()
        print(f"{reader.name}: the process died of signal {os.WTERMSIG(status)} at seed {seed}", flush=True)
    return status != 0


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    words = [word for word in sys.argv[1:] if not word.isdigit()]
    rounds, first = numbers[0], numbers[1] if len(numbers) > 1 else 0
    with tempfile.TemporaryDirectory() as folder:
        readers = [
            reader
            for reader in all_readers(Path(folder) / "good")
            if not words or any(word in reader.name for word in words)
        ]
        with_crashes = sum(crashed(reader, rounds, first, Path(folder)) for reader in readers)
    print(f"{len(readers) * rounds} inputs, {len(readers)} readers, {with_crashes} readers with crashes")
    return min(with_crashes, 1)


if __name__ == "__main__":
    sys.exit(main())
