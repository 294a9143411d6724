"""`isuit` as a console command that starts in milliseconds: for tests that run many and are not about starting.

`Console` starts one process that imports the libraries and loads the compiled loops, and writes a small program called
`isuit` which asks that process to fork. The child takes over the caller's directory, environment, limits and open
files, and runs the command line from its beginning, in a process of its own; the caller ends as the child does.

Whatever looks at the environment when it is imported (typer's help) is imported in the child only.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import importlib
import io
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The program that stands for `isuit`. Its own interpreter loads nothing, so it starts in some ten milliseconds.
ASKING = """#!{python} -IS
import array, os, resource, signal, socket, sys
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
files = [number for number in (0, 1, 2) if is_open(number)]
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
limits = [(name, resource.getrlimit(getattr(resource, name))) for name in ("RLIMIT_AS", "RLIMIT_FSIZE")]
environment = dict(os.environ)
request = repr((files, sys.argv[1:], os.getcwd(), environment, limits)).encode()
passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
asked.sendmsg([len(request).to_bytes(8, "big")], passed)
asked.sendall(request)
status = int(asked.makefile().read())
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""

LIBRARIES = (
    *("duckdb", "pyarrow.csv", "pyarrow.parquet", "rich.console", "rich.progress", "rich.table", "isuit.cli.app"),
    *("isuit.service.checks", "isuit.service.fitting", "isuit.service.releases", "isuit.service.riders"),
)


class Console:
    """The path of the quick `isuit`, for as long as this is open."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "isuit"
        with tempfile.NamedTemporaryFile(prefix="isuit-") as name:
            self._address = f"{name.name}.socket"  # below /tmp: the address of a socket may not be long
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.path.write_text(ASKING.format(python=sys.executable, address=self._address))
        self.path.chmod(0o755)

    def close(self) -> None:
        self._process.communicate()
        Path(self._address).unlink()


def _serve(address: str) -> None:
    """Fork for everybody who asks, until standard input ends."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        _load()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
        print("ready", flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            asking = listening.accept()[0]
            if os.fork() == 0:
                try:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listening.close()
                    _answer(asking)
                finally:
                    os._exit(0)
            asking.close()


def _load() -> None:
    """Import what commands import, and load the compiled loops by fitting something small."""
    for name in LIBRARIES:
        importlib.import_module(name)
    from isuit.domain import FitConfig
    from isuit.estimator import fit
    from isuit.experiment.cohort import Truth, draw

    fit(draw(Truth(riders=40, outcomes=20), 1)[0], FitConfig())


def _answer(asking: socket.socket) -> None:
    """Run one command in a child, and tell its exit status."""
    length, files, _, _ = socket.recv_fds(asking, 8, 3)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        request += asking.recv(1 << 16)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            asking.close()
            code = _run(files, *ast.literal_eval(request.decode()))
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asking.sendall(str(status).encode())


def _run(
    given: list[int],
    files: list[int],
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    limits: list[tuple[str, tuple[int, int]]],
) -> int:
    """What a fresh interpreter finds, and the command line in it."""
    given = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in given]  # out of the way of the first three
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.close(number)
    for number, file in zip(files, given, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    random.seed()
    for name, limit in limits:
        resource.setrlimit(getattr(resource, name), limit)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        stream = _stream(number, mode) if number in files else None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["isuit", *arguments]
    from isuit.cli.app import main

    code: Any = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    return int(code)


def _stream(number: int, mode: str) -> Any:
    terminal = os.isatty(number)
    binary: Any = open(number, f"{mode}b", closefd=False)  # noqa: SIM115 - open as long as the process
    errors = "backslashreplace" if number == 2 else "strict"
    return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, line_buffering=terminal or number == 2)


if __name__ == "__main__":
    _serve(sys.argv[1])
