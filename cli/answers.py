"""What fits answer: the suitability of conditions, the difficulty of places, the skill of a rider over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_STORE, DEFAULT_WAIT, Fit, Json, Store, Wait
from .output import note, print_json


def score(
    fit: Fit,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="The condition: a number, or of several metrics NAME=VALUE of each."),
    ] = None,
    skill: Annotated[
        str | None, typer.Option("--skill", help="beginner, intermediate, expert, or a number in skill sds.")
    ] = None,
    site: Annotated[str | None, typer.Option("--site", help="A site of the fit; without it, the shared curve.")] = None,
    conditions: Annotated[
        Path | None, typer.Option("--conditions", help="A file with metric and, optionally, site and skill.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the conditions go with their scores.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a file with a condition that cannot be scored.")
    ] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Suitability for a declared skill, with its 95 % band: of one condition, or of a file of them."""
    from isuit.errors import InputError
    from isuit.service import scoring
    from isuit.service.scoring_conditions import parse_condition

    if conditions is not None:
        if out is None or metric:
            raise InputError("--conditions needs --out for the scores, and no --metric")
        scored = scoring.score_file(store, fit, conditions, out, skill, wait, strict)
        for reason, count in scored.not_scored.items():
            note(f"note: {count} of {scored.rows} conditions have no score: {reason}")
        if json:
            print_json(scored)
        else:
            note(f"scored {scored.rows - sum(scored.not_scored.values())} conditions into {out}")
        return
    if not metric:
        raise InputError("give a condition with --metric, or a file of them with --conditions and --out")
    report = scoring.score(store, fit, parse_condition(metric), skill, site, wait)
    if json:
        print_json(report)
        return
    band = "" if report.lower is None or report.upper is None else f" (95 %: {report.lower:.3f} to {report.upper:.3f})"
    print(f"{report.suitability:.3f}{band}")
    for sentence in report.notes:
        note(f"note: {sentence}")


def atlas(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write all points as .parquet, .arrow, .csv or .tsv, or a .duckdb for BI tools; in-house."
        ),
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """The current difficulty over activities, dimensions and sites: the newest fit of each. In-house, not a release."""
    from isuit.published import Atlas
    from isuit.service.history import atlas as current
    from isuit.service.history import atlas_points

    table = current(store, wait, out)
    if out:
        note(f"wrote {table.num_rows} points to {out}; in-house: `isuit export-atlas` makes what can be published")
    if json:
        print_json(Atlas(points=atlas_points(table)))
        return
    seen: dict[tuple[str, str, str | None], list[float | None]] = {}
    for point in atlas_points(table):
        seen.setdefault((point.activity, point.dimension, point.site), []).append(point.difficulty)
    for (activity, dimension, site), values in seen.items():
        known = [value for value in values if value is not None]
        level = f"{min(known):+.2f} to {max(known):+.2f}" if known else "no difficulty"
        print(f"{activity}, {dimension}, {site or 'all sites'}: {level}")


def trajectory(
    rider: Annotated[
        str, typer.Argument(metavar="RIDER", help="The rider's ID, as in the cohorts.", show_default=False)
    ],
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the skills into this PNG or SVG.")] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """A rider's skill over successive cohorts, linked to one scale, and day by day where a fit follows it."""
    from isuit.domain import Z95
    from isuit.service.trajectory import trajectory as followed

    found = followed(store, rider, wait)
    if plot:
        from isuit.service.pictures import plot_trajectory

        plot_trajectory(found, plot)
        note(f"wrote {plot}; it is about a person: in-house")
    if json:
        print_json(found)
        return
    for point in found.points:
        span = (
            f"{point.observed_from:%Y-%m-%d} to {point.observed_until:%Y-%m-%d}" if point.observed_from else "no times"
        )
        linked = "-" if point.linked_mean is None else f"{point.linked_mean:+.2f} ± {Z95 * (point.linked_sd or 0):.2f}"
        flags = "  DRIFT" * point.drift + "  MOVED" * point.moved
        flags += "" if point.usable else "  (too few outcomes to use)"
        print(
            f"{point.activity}, {point.dimension}  {span}  "
            f"skill {point.skill_mean:+.2f} ± {Z95 * point.skill_sd:.2f}  "
            f"linked {linked}{flags}"
        )
        if point.note:
            print(f"    {point.note}")
        for day in point.path or []:
            print(f"    {day.day:%Y-%m-%d}  {day.skill_mean:+.2f} ± {Z95 * day.skill_sd:.2f}")
