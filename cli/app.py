"""The list of commands. Heavy imports happen inside the commands, so that `--help` is immediate."""

from __future__ import annotations

import sys

import typer

from isuit.errors import IsuitError

from . import cohorts, demo, releases

app = typer.Typer(
    name="isuit",
    help="How hard conditions are, net of who faced them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def isuit() -> None:
    """How hard conditions are, net of who faced them."""


app.command("latent-demo")(demo.latent_demo)
app.command("hash")(cohorts.hash_cohort)
app.command("canonicalise")(cohorts.canonicalise)
app.command("export-atlas")(releases.export_atlas)
app.command("check-release")(releases.check_release)


def main() -> None:
    """The console script: errors become one sentence and the exit code of the contract."""
    try:
        app()
    except IsuitError as error:
        print(f"isuit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
