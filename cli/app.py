"""The list of commands. Heavy imports happen inside the commands, so that `--help` is immediate."""

from __future__ import annotations

import sys

import typer

from isuit.errors import IsuitError

from . import audit, cohorts, demo, fits, releases, riders

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
app.command("init")(fits.init)
app.command("fit")(fits.fit)
app.command("fits")(fits.fits)
app.command("show")(fits.show)
app.command("score")(fits.score)
app.command("atlas")(fits.atlas)
app.command("trajectory")(fits.trajectory)
app.command("status")(fits.status)
app.command("verify")(audit.verify)
app.command("rederive")(audit.rederive)
app.command("bundle")(audit.bundle)
app.command("export-atlas")(releases.export_atlas)
app.command("check-release")(releases.check_release)
app.command("delete-rider", context_settings=riders.ANY_ID)(riders.delete_rider)
app.command("show-rider", context_settings=riders.ANY_ID)(riders.show_rider)
app.command("reinstate", context_settings=riders.ANY_ID)(riders.reinstate)
app.command("pseudonymise")(riders.pseudonymise)


def main() -> None:
    """The console script: errors become one sentence and the exit code of the contract."""
    try:
        app()
    except IsuitError as error:
        print(f"isuit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
