"""`isuit latent-demo`: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json
from .output import print_json, progress_bar


def latent_demo(
    out: Annotated[Path, typer.Option("--out", help="The directory to write into.")],
    seed: Annotated[int, typer.Option("--seed", help="Of the cohort; 11 is the paper's.", min=0)] = 11,
    replicates: Annotated[int, typer.Option("--replicates", help="Fresh cohorts to repeat it on.", min=0)] = 0,
    riders: Annotated[int, typer.Option("--riders", help="Riders in a cohort.", min=1)] = 80,
    outcomes: Annotated[int, typer.Option("--outcomes", help="Outcomes per rider.", min=1)] = 30,
    discrimination: Annotated[float, typer.Option("--discrimination", help="The true a.", min=0)] = 2.0,
    optimum: Annotated[float, typer.Option("--optimum", help="The truly easiest wind, in knots.")] = 18.0,
    width: Annotated[float, typer.Option("--width", help="Knots by which difficulty rises by one.", min=0.01)] = 8.0,
    floor: Annotated[float, typer.Option("--floor", help="The least difficulty, in skill sds.")] = -1.0,
    cohort: Annotated[
        Path | None,
        typer.Option("--cohort", help="Also write the drawn cohort: .parquet, .arrow, .feather, .csv or .tsv."),
    ] = None,
    json: Json = False,
) -> None:
    """Reproduce the paper's experiment: stats.json, table and figure."""
    from isuit.experiment.cohort import Truth
    from isuit.experiment.report import markdown
    from isuit.experiment.run import run, write_cohort
    from isuit.published import ExperimentStats

    truth = Truth(riders, outcomes, discrimination, optimum, width, floor)
    if cohort:
        write_cohort(cohort, truth, seed)
    with progress_bar(quiet=json) as progress:
        stats = run(out, truth, seed, replicates, progress)
    if json:
        print_json(ExperimentStats(**stats))
        return
    print(markdown(stats))
    pictures = ", difficulty.svg, difficulty.png" if stats["kind"] == "latent" else ""
    print(f"Written to {out}: stats.json, results.md, results.tex{pictures}")
    if cohort:
        print(f"The cohort is {cohort}")
