"""Making fits and looking at them: init, fit, fits, show, status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from isuit.reading import Form

from .curves import print_curves, print_ranking, print_sketch, require_sites
from .options import DEFAULT_STORE, DEFAULT_WAIT, FORM, Fit, Json, Metrics, Query, Store, Wait, reads
from .output import note, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from isuit.published import FitRecord, FitSummary, Releasable


def init(
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="JSON or YAML with the disclosure policy: k, lag_days, resolution, private."),
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Make a store with its own disclosure policy; other commands make one with the defaults."""
    from isuit.service.history import init as make
    from isuit.service.inputs import read_policy

    created = make(store, read_policy(policy) if policy else None, wait)
    if json:
        print_json(created)
        return
    print(f"store {created.store_id} in {store}")
    print("policy: " + ", ".join(f"{name} {value}" for name, value in created.policy.items()))
    print(f"log head {created.log_head}")


@reads(FORM)
def fit(
    cohort: Annotated[
        list[str] | None,
        typer.Option("--cohort", help="A Parquet, CSV or Arrow file, a directory, a glob, an address. Repeatable."),
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", help="A series of the store instead (isuit add): the union of its parts.")
    ] = None,
    query: Query = None,
    activity: Annotated[str, typer.Option("--activity", help="What the riders do.")] = "unspecified",
    dimension: Annotated[
        str | None,
        typer.Option("--dimension", help="What the metric measures.  [default: metric, or the names of several]"),
    ] = None,
    metric: Metrics = None,
    anchor: Annotated[
        Path | None,
        typer.Option(
            "--anchor",
            help="An expert's suitability curve: points, or a profile; of several metrics a profile.",
        ),
    ] = None,
    sites: Annotated[
        Path | None, typer.Option("--sites", help="CSV, Parquet or Arrow with site, latitude and longitude.")
    ] = None,
    nearby: Annotated[
        bool, typer.Option("--nearby", help="Let sites near one another tell of one another's level; needs --sites.")
    ] = False,
    gate: Annotated[
        Literal["strict", "core"], typer.Option("--gate", help="How the identification gate is read.")
    ] = "core",
    exposure: Annotated[
        Literal["independent", "correlated"],
        typer.Option("--exposure", help="Whether riders choose conditions by their skill."),
    ] = "independent",
    split: Annotated[
        Literal["rider", "time", "occasion"], typer.Option("--split", help="How outcomes are held out.")
    ] = "rider",
    skill: Annotated[
        Literal["normal", "estimated", "moving"],
        typer.Option(
            "--skill",
            help="Skill is normal among riders, distributed as the outcomes tell, or normal and moves with time.",
        ),
    ] = "normal",
    discrimination: Annotated[
        Literal["constant", "varying"],
        typer.Option("--discrimination", help="Skill matters as much in every condition, or more in some."),
    ] = "constant",
    observed_until: Annotated[
        datetime | None,
        typer.Option(
            "--observed-until", formats=["%Y-%m-%d"], help="The last day of observation, without observed_at."
        ),
    ] = None,
    *,
    reading: Form,
    memory: Annotated[
        str | None, typer.Option("--memory", help="Hold at most so much in memory, such as 4GB; the rest is on disk.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Share the fit out to so many processes; needs isuit[dask].")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Share it out to a Dask cluster, such as tcp://host:8786.")
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Canonicalise, hash, gate and fit a cohort, and record the result."""
    from isuit.errors import InputError
    from isuit.service.configuring import config_of
    from isuit.service.fitting import fit as run
    from isuit.service.inputs import cohort_source, read_sites
    from isuit.service.series import Series

    if (cohort is None) == (series is None):
        raise InputError("give a cohort with --cohort, or a series of the store with --series")
    source = Series(series) if series is not None else cohort_source(cohort or [], query)
    config = config_of(
        activity=activity,
        dimension=dimension,
        metrics=metric,
        anchor=anchor,
        gate=gate,
        exposure=exposure,
        split=split,
        skill=skill,
        discrimination=discrimination,
        observed_until=observed_until.date() if observed_until else None,
    )
    with progress_bar(quiet=json) as progress:
        fitted = run(
            store,
            source,
            config,
            metrics=metric,
            sites=read_sites(sites) if sites else None,
            nearby=nearby,
            wait=wait,
            memory=memory,
            workers=workers,
            scheduler=scheduler,
            progress=progress,
            **reading,
        )
    for sentence in fitted.notes:
        note(f"note: {sentence}")
    if json:
        print_json(fitted.summary())
        return
    _print_summary(fitted)
    print_sketch(fitted.detail.curves, fitted.detail.cohort.outcomes)
    print_ranking(fitted.fit_id, fitted.detail.curves)


def _print_summary(summary: FitSummary) -> None:
    from isuit.service.summaries import summary_lines

    how = " (recorded)" if summary.recorded else " (confirmed: it was recorded before)"
    print("\n".join(summary_lines(summary, summary.outcomes, summary.riders, summary.sites, how)))
    _print_releasable(summary.releasable)
    print(f"log head  {summary.log_head}")


def _print_releasable(releasable: Releasable) -> None:
    if releasable.ok:
        print("release   this cohort can enter a public release")
    else:
        print("release   this cohort cannot enter a public release; missing: " + "; ".join(releasable.missing))


def _one_line(record: FitRecord, aliases: Sequence[str] = ()) -> str:
    a = "-" if record.discrimination is None else f"{record.discrimination:.3f}"
    return (
        f"{record.fit_id[:21]}  {record.cohort_hash[:21]}  {record.recorded_at:%Y-%m-%d %H:%M}  {record.kind:<12}  "
        f"a {a:>6}  {record.activity}, {record.dimension}" + "".join(f"  {alias}" for alias in aliases)
    )


def fits(store: Store = DEFAULT_STORE, wait: Wait = DEFAULT_WAIT, json: Json = False) -> None:
    """List every fit, oldest first."""
    from isuit.service.history import fit_list

    every = fit_list(store, wait)
    if json:
        print_json(every)
        return
    found = every.fits
    named: dict[str, list[str]] = {}
    for alias, fit_id in every.aliases.items():
        named.setdefault(fit_id, []).append(alias)
    columns = ["fit", "cohort", "recorded", "kind", "discrimination", "activity", "dimension"]
    columns += ["alias"] if named else []
    rows = [
        (
            record.fit_id[:21],
            record.cohort_hash[:21],
            f"{record.recorded_at:%Y-%m-%d %H:%M}",
            record.kind,
            "-" if record.discrimination is None else f"{record.discrimination:.3f}",
            record.activity,
            record.dimension,
            *([", ".join(named.get(record.fit_id, []))] if named else []),
        )
        for record in found
    ]
    if found:
        print_table(columns, rows, (_one_line(record, named.get(record.fit_id, [])) for record in found))
    note(f"{len(found)} fits")


def show(
    fit: Fit,
    site: Annotated[
        list[str] | None, typer.Option("--site", help="Print the curve of this site only. Repeatable.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print the curves of all sites, however many they are; --json always does.")
    ] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the curves into this PNG or SVG.")] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Show one fit: its record, what it says about itself, its curves with bands, a picture.

    Of more than six sites, the five hardest and the five easiest are told, each at its easiest condition.
    """
    from isuit.errors import InputError
    from isuit.service.history import curve_table
    from isuit.service.history import show as detail
    from isuit.service.summaries import interval

    from .diagnosis import print_diagnostics

    if site and everything:
        raise InputError("give --site or --all, not both")
    shown = detail(store, fit, wait)
    require_sites(shown.curves, site or [])
    if plot:
        from isuit.service.pictures import plot_fit
        from isuit.service.surface_maps import surface_of

        drawn = plot_fit(shown.fit, curve_table(shown), plot, shown.cohort.outcomes, surface_of(store, fit, wait))
        note(f"wrote {plot}{f': {drawn}' if drawn else ''}")
    if json:
        print_json(shown)
        return
    print(_one_line(shown.fit, shown.aliases))
    print(f"fit      {shown.fit.fit_id}\ncohort   {shown.fit.cohort_hash}")
    span = (
        f"{shown.cohort.observed_from} to {shown.cohort.observed_until}" if shown.cohort.observed_from else "no times"
    )
    print(
        f"         {shown.cohort.outcomes} outcomes, {shown.cohort.riders} riders, {shown.cohort.sites} sites, {span}"
    )
    if shown.fit.discrimination is not None:
        print(f"a        {shown.fit.discrimination:.3f}{interval(shown.fit.discrimination_interval)}")
    for shortfall in shown.fit.identification.shortfalls:
        print(f"gate     {shortfall}")
    for shortfall in shown.fit.promotion.shortfalls if shown.fit.promotion is not None else []:
        print(f"skill    {shortfall}")
    _print_releasable(shown.releasable)
    print_diagnostics(shown)
    print_sketch(shown.curves, shown.cohort.outcomes)
    print_curves(shown.fit.fit_id, shown.curves, site or [], everything)


def status(store: Store = DEFAULT_STORE, wait: Wait = DEFAULT_WAIT, json: Json = False) -> None:
    """What is in the store, its policy and the head of its log."""
    from isuit.service.history import status as current

    found = current(store, wait)
    if json:
        print_json(found)
        return
    rows = [(name.replace("_", " "), str(value)) for name, value in found.as_json().items()]
    print_table(("", "this store"), rows, (f"{name:<13} {value}" for name, value in rows))
