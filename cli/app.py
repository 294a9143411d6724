"""The list of commands. Heavy imports happen inside the commands, so that `--help` is immediate."""

from __future__ import annotations

import os
import sys
import time
from copy import copy
from typing import Annotated

import typer

from isuit.errors import IsuitError, unexpected

from . import answers, audit, beside, cohorts, demo, fits, proofs, releases, reports, riders
from .output import Verbose, note, tell
from .streams import exit_code, outlast

# The help is in order of the people who use it, each with the command to begin with.
SCIENTIST = "A data scientist: begin with isuit fit --cohort FILE"
AUDITOR = "An auditor: begin with isuit verify"
OFFICER = "A data-protection officer: begin with isuit delete-rider ID --dry-run"
READER = "The public atlas: begin with isuit export-atlas, and its readers with isuit check-release FILE"
STORE = "The store"
PAPER = "The paper's experiment: begin here without data of your own"

app = typer.Typer(
    name="isuit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


@app.callback()
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


app.command("fit", rich_help_panel=SCIENTIST)(fits.fit)
app.command("add", rich_help_panel=SCIENTIST)(cohorts.add)
app.command("fits", rich_help_panel=SCIENTIST)(fits.fits)
app.command("show", rich_help_panel=SCIENTIST)(fits.show)
app.command("report", rich_help_panel=SCIENTIST)(reports.report)
app.command("score", rich_help_panel=SCIENTIST)(answers.score)
app.command("rank", rich_help_panel=SCIENTIST)(beside.rank)
app.command("compare", rich_help_panel=SCIENTIST)(beside.compare)
app.command("alias", rich_help_panel=SCIENTIST)(beside.alias)
app.command("atlas", rich_help_panel=SCIENTIST)(answers.atlas)
app.command("trajectory", rich_help_panel=SCIENTIST)(answers.trajectory)
app.command("verify", rich_help_panel=AUDITOR)(audit.verify)
app.command("rederive", rich_help_panel=AUDITOR)(audit.rederive)
app.command("bundle", rich_help_panel=AUDITOR)(audit.bundle)
app.command("head", rich_help_panel=AUDITOR)(proofs.head)
app.command("prove", rich_help_panel=AUDITOR)(proofs.prove)
app.command("check-proof", rich_help_panel=AUDITOR)(proofs.check_proof)
app.command("witness", rich_help_panel=AUDITOR)(proofs.witness)
app.command("rotate-key", rich_help_panel=AUDITOR)(proofs.rotate_key)
app.command("hash", rich_help_panel=AUDITOR)(cohorts.hash_cohort)
app.command("canonicalise", rich_help_panel=AUDITOR)(cohorts.canonicalise)
app.command("delete-rider", context_settings=riders.ANY_ID, rich_help_panel=OFFICER)(riders.delete_rider)
app.command("receipt", rich_help_panel=OFFICER)(riders.receipt)
app.command("show-rider", context_settings=riders.ANY_ID, rich_help_panel=OFFICER)(riders.show_rider)
app.command("reinstate", context_settings=riders.ANY_ID, rich_help_panel=OFFICER)(riders.reinstate)
app.command("pseudonymise", rich_help_panel=OFFICER)(riders.pseudonymise)
app.command("export-atlas", rich_help_panel=READER)(releases.export_atlas)
app.command("check-release", rich_help_panel=READER)(releases.check_release)
app.command("status", rich_help_panel=STORE)(fits.status)
app.command("init", rich_help_panel=STORE)(fits.init)
app.command("latent-demo", rich_help_panel=PAPER)(demo.latent_demo)


def _asked(words: list[str]) -> typer.Typer:
    """The app with the command that is named: to build the options of all others takes longer than most commands."""
    asked = copy(app)
    named = [command for command in app.registered_commands if [command.name] == words]
    asked.registered_commands = named or app.registered_commands
    return asked


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
