"""One program in one process, with a limit to its CPU time."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

# One thread each: threads that wait for work burn CPU time, on a busy machine many times that of the work itself.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def run(command: list[str], cpu_limit: int, folder: Path, cwd: Path, one_thread: bool = True) -> str | None:
    """Run to the end or to the limit of CPU seconds, with output in `folder`/log.txt; why it failed, or None."""
    environment = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    if one_thread:
        environment |= ONE_THREAD
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=log, stderr=log)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_limit, cpu_limit + 5))
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return _failure(process.returncode, cpu, cpu_limit, folder)


def _failure(code: int, cpu: float, cpu_limit: int, folder: Path) -> str | None:
    if code == 0:
        return None
    # A shell between us and the program turns the signal into an exit code.
    if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or cpu >= cpu_limit:
        return f"not finished after {cpu_limit} CPU s"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "killed, most likely for want of memory"
    lines = [line for line in (folder / "log.txt").read_text().splitlines() if line.strip()]
    return f"failed: {lines[-1].strip() if lines else f'exit code {code}'}"
