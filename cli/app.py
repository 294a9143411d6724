"""The list of commands. A command's module is imported when it is asked for, and heavy things inside the commands, so
that `--help` is immediate."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, NamedTuple

import typer

from isuit.errors import IsuitError, unexpected

from .output import Verbose, note, tell
from .streams import exit_code, outlast

# The help is in order of the people who use it, each with the command to begin with.
SCIENTIST = "A data scientist: begin with isuit fit --cohort FILE"
AUDITOR = "An auditor: begin with isuit verify"
OFFICER = "A data-protection officer: begin with isuit delete-rider ID --dry-run"
READER = "The public atlas: begin with isuit export-atlas, and its readers with isuit check-release FILE"
STORE = "The store"
PAPER = "The paper's experiment: begin here without data of your own"


def _print_versions(wanted: bool) -> None:
    if not wanted:
        return
    # Read from the packages' metadata: importing them would take a second.
    from importlib.metadata import version

    from isuit import __version__

    print(f"isuit {__version__}")
    for library in ("duckdb", "numpy", "scipy"):
        print(f"{library} {version(library)}")
    raise typer.Exit


def isuit(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the versions of isuit, duckdb, numpy and scipy.", callback=_print_versions,
            is_eager=True,
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Tell on stderr when each stage begins; never a value or an ID.")
    ] = False,
) -> None:  # fmt: skip
    """How hard conditions are, net of who faced them: auditable, and a person can be erased."""
    Verbose.since = time.monotonic() if verbose else None


class Command(NamedTuple):
    """A command, its place in the help, and its function, whose module is imported when it is asked for."""

    name: str
    panel: str
    module: str
    function: str
    any_id: bool = False  # takes an ID, which may look like an option


COMMANDS = (
    Command("fit", SCIENTIST, "fits", "fit"),
    Command("add", SCIENTIST, "cohorts", "add"),
    Command("series", SCIENTIST, "cohorts", "series_list"),
    Command("fits", SCIENTIST, "fits", "fits"),
    Command("show", SCIENTIST, "fits", "show"),
    Command("report", SCIENTIST, "reports", "report"),
    Command("score", SCIENTIST, "answers", "score"),
    Command("rank", SCIENTIST, "beside", "rank"),
    Command("compare", SCIENTIST, "beside", "compare"),
    Command("alias", SCIENTIST, "beside", "alias"),
    Command("atlas", SCIENTIST, "answers", "atlas"),
    Command("trajectory", SCIENTIST, "answers", "trajectory"),
    Command("verify", AUDITOR, "audit", "verify"),
    Command("rederive", AUDITOR, "audit", "rederive"),
    Command("bundle", AUDITOR, "audit", "bundle"),
    Command("head", AUDITOR, "proofs", "head"),
    Command("prove", AUDITOR, "proofs", "prove"),
    Command("check-proof", AUDITOR, "proofs", "check_proof"),
    Command("witness", AUDITOR, "proofs", "witness"),
    Command("rotate-key", AUDITOR, "proofs", "rotate_key"),
    Command("hash", AUDITOR, "cohorts", "hash_cohort"),
    Command("canonicalise", AUDITOR, "cohorts", "canonicalise"),
    Command("delete-rider", OFFICER, "riders", "delete_rider", any_id=True),
    Command("receipt", OFFICER, "riders", "receipt"),
    Command("show-rider", OFFICER, "riders", "show_rider", any_id=True),
    Command("reinstate", OFFICER, "riders", "reinstate", any_id=True),
    Command("pseudonymise", OFFICER, "riders", "pseudonymise"),
    Command("export-atlas", READER, "releases", "export_atlas"),
    Command("check-release", READER, "releases", "check_release"),
    Command("status", STORE, "fits", "status"),
    Command("init", STORE, "fits", "init"),
    Command("latent-demo", PAPER, "demo", "latent_demo"),
)


def _module(name: str) -> ModuleType:  # noqa: PLR0911  # one for each module
    """A module of commands. Each import is written out, so that whoever looks for what imports what finds it."""
    match name:
        case "answers":
            from . import answers

            return answers
        case "audit":
            from . import audit

            return audit
        case "beside":
            from . import beside

            return beside
        case "cohorts":
            from . import cohorts

            return cohorts
        case "demo":
            from . import demo

            return demo
        case "fits":
            from . import fits

            return fits
        case "proofs":
            from . import proofs

            return proofs
        case "releases":
            from . import releases

            return releases
        case "reports":
            from . import reports

            return reports
        case _:
            from . import riders

            return riders


def app_of(commands: Sequence[Command] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="isuit",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(isuit)
    for command in commands:
        module = _module(command.module)
        settings = module.ANY_ID if command.any_id else None
        app.command(command.name, context_settings=settings, rich_help_panel=command.panel)(
            getattr(module, command.function)
        )
    return app


def _asked(words: Sequence[str]) -> typer.Typer:
    """With the command that is named alone: to import the others and build their options takes longer than most do."""
    named = [command for command in COMMANDS if [command.name] == words]
    return app_of(named or COMMANDS)


def main() -> None:
    """The console script: errors become one sentence and the exit code of the contract."""
    # Looking for plugins of pydantic, which nothing here has, reads the metadata of every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    output = outlast()
    code = 0
    try:
        _asked(sys.argv[1:2])()
    except SystemExit as end:
        code = int(end.code or 0)
    except IsuitError as error:
        note(f"isuit: {error}")
        code = error.exit_code
    except Exception as error:
        # Nobody's input should get here. A traceback would show values, and a value may be a rider's ID.
        note(f"isuit: {unexpected(error)}")
        code = IsuitError.exit_code
    tell(f"exit code {code}")
    sys.exit(exit_code(code, output))
