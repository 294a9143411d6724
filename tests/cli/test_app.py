"""`isuit` itself: the help a person meets first, versions, start-up, colours."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ISUIT = Path(sys.executable).with_name("isuit")
HEAVY = ("numpy", "scipy", "duckdb", "pyarrow", "pydantic", "matplotlib", "h3", "yaml")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "GITHUB_ACTIONS")}
    return subprocess.run(
        [ISUIT, *arguments], env=plain | {"COLUMNS": "120"} | environment, capture_output=True, text=True, check=False
    )


def test_without_arguments_everyone_sees_their_first_command() -> None:
    shown = run()
    told = " ".join((shown.stdout + shown.stderr).split())
    for first in ("isuit fit --cohort", "isuit verify", "isuit delete-rider ID", "isuit export-atlas"):
        assert first in told
    assert "\x1b" not in shown.stdout + shown.stderr


def test_the_version_names_what_results_depend_on() -> None:
    shown = run("--version")
    assert shown.returncode == 0
    assert shown.stdout.splitlines() == [f"{name} {version(name)}" for name in ("isuit", "duckdb", "numpy", "scipy")]


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['isuit', '--help']\n"
        "from isuit.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_color_is_respected_even_where_colour_is_forced() -> None:
    assert "\x1b[" in run("--help", FORCE_COLOR="1", TERM="xterm-256color").stdout
    coloured = run("--help", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color").stdout
    assert not [code for code in ("\x1b[31", "\x1b[32", "\x1b[33", "\x1b[34", "\x1b[35", "\x1b[36") if code in coloured]


def test_an_error_is_one_sentence(tmp_path: Path) -> None:
    failed = run("status", "--store", str(tmp_path / "nothing"))
    assert failed.returncode != 0
    assert failed.stderr.count("\n") == 1
    assert "Traceback" not in failed.stderr


def test_completion_can_be_installed() -> None:
    # A shell is found by looking at the processes above, of which a test has none for certain.
    shown = run("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "isuit" in shown.stdout


def test_a_person_gets_a_table_and_a_pipe_gets_lines(full_store: Path) -> None:
    piped = run("fits", "--store", str(full_store)).stdout
    assert piped.count("\n") == 3
    assert "│" not in piped
    told, untouched = os.openpty()
    with subprocess.Popen(
        [ISUIT, "fits", "--store", str(full_store)], stdout=untouched, stderr=subprocess.DEVNULL,
        env=os.environ | {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "xterm"},
    ) as shown:  # fmt: skip
        assert shown.wait() == 0
    os.close(untouched)
    table = os.read(told, 100_000).decode()
    os.close(told)
    assert "│" in table
    assert "discrimination" in table


def test_python_m_isuit_and_h() -> None:
    """The command line where its script is not on the path; `-h` too, but not where it may be an ID."""
    for arguments in (["-h"], ["fit", "-h"], ["show-rider", "--help"]):
        done = subprocess.run([sys.executable, "-m", "isuit", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Usage: " in done.stdout
        assert "isuit" in done.stdout
