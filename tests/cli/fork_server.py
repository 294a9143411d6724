"""Runs `isuit` in forked children of one process that has imported everything: a start costs milliseconds.

Reads one JSON object per line ({args, cwd, fsize, uid}), answers with the child's pid, and after `wait` with its exit
status, standard output and standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import isuit.cli.app

import isuit.estimator
import isuit.service.checks
import isuit.service.fitting
import isuit.service.history
import isuit.service.inputs
from isuit.domain import FitConfig
from isuit.experiment.cohort import Truth, draw


def child(request: dict, output: Path) -> None:
    for number, name in ((1, "out"), (2, "err")):
        descriptor = os.open(output / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, number)
    os.chdir(request["cwd"])
    if request.get("fsize"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["fsize"], resource.RLIM_INFINITY))
    if request.get("uid"):
        os.setgroups([])
        os.setgid(request["uid"])
        os.setuid(request["uid"])
    sys.argv = ["isuit", *request["args"]]
    isuit.cli.app.main()


def serve(folder: Path) -> None:
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
            continue
        output = folder / str(number)
        output.mkdir()
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                child(request, output)
            except SystemExit as stop:
                code = int(stop.code or 0)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(json.dumps([pid, str(output)]), flush=True)


# Loads the compiled loops, so that no child has to.
isuit.estimator.fit(draw(Truth(riders=20, outcomes=12), 1)[0], FitConfig())
serve(Path(sys.argv[1]))
