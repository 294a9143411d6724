"""Fits and sites beside each other: rank, compare, alias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DEFAULT_STORE, DEFAULT_WAIT, Fit, Json, Store, Wait
from .output import note, print_json, print_table

if TYPE_CHECKING:
    from isuit.published import ComparedPoint, Comparison, RankedSite

MOST_SITES = 10  # whose differences are told; --json has all


def rank(
    fit: Fit,
    metric: Annotated[
        float | None,
        typer.Option("--metric", help="The condition.  [default: each site at its easiest]", show_default=False),
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Rank sites from the hardest to the easiest, with bands and the probability that each is harder than the next."""
    from isuit.service.ranking import rank as ranked

    found = ranked(store, fit, metric, wait)
    for sentence in found.notes:
        note(f"note: {sentence}")
    if json:
        print_json(found)
        return
    level = "difficulty" if found.kind == "latent" else "suitability"
    columns = ("place", "site", level, "95 %", "at", "harder than the next")
    rows = [_ranked(site) for site in found.sites]
    plain = (f"{row[0]:>4}  {row[1]:<24} {row[2]:>6}  {row[3]:<16} at {row[4]:<8} {row[5]:>5}".rstrip() for row in rows)
    print_table(columns, rows, plain)
    if found.without_difficulty:
        note(f"{len(found.without_difficulty)} sites have no difficulty, because no rider links them to the others.")


def _ranked(site: RankedSite) -> tuple[str, str, str, str, str, str]:
    difficulty = site.difficulty is not None
    value = site.difficulty if site.difficulty is not None else site.suitability
    ends = (f"{end:+.2f}" if difficulty else f"{end:.3f}" for end in (site.lower, site.upper))
    return (
        str(site.place),
        site.site,
        f"{value:+.2f}" if difficulty else f"{value:.3f}",
        " to ".join(ends),
        f"{site.metric:.4g}",
        "" if site.harder_than_next is None else f"{site.harder_than_next:.0%}",
    )


def compare(
    first: Annotated[str, typer.Argument(metavar="FIT", help="A fit, as for show.", show_default=False)],
    second: Annotated[
        str, typer.Argument(metavar="FIT", help="Another of the same dimension; differences are this minus the first.")
    ],
    linked: Annotated[
        bool, typer.Option("--linked", help="Carry the second to the first's scale by the riders of both.")
    ] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Compare two fits: what was asked for otherwise, their diagnostics, and where their curves differ."""
    from isuit.service.comparison import compare as compared

    found = compared(store, first, second, linked=linked, wait=wait)
    if json:
        print_json(found)
        return
    for name, side in (("first", found.first), ("second", found.second)):
        print(f"{name:<8} {side.fit_id[:21]}  {side.cohort_hash[:21]}  {side.recorded_at:%Y-%m-%d %H:%M}  {side.kind}")
    cohorts = "the same cohort" if found.same_cohort else "two cohorts"
    print(f"{cohorts}, {found.shared_riders} riders with a skill in both")
    for change in found.configuration:
        print(f"changed  {change.name}: {_value(change.first)} -> {_value(change.second)}")
    print(f"{'':<30}{'first':>12}{'second':>12}")
    for number in found.diagnostics:
        print(f"{number.name:<30}{_value(number.first):>12}{_value(number.second):>12}")
    _print_differences(found)
    for sentence in found.notes:
        note(f"note: {sentence}")


def _print_differences(found: Comparison) -> None:
    print(
        f"{found.compares} differs at {found.differing} of {len(found.points)} points"
        + ("" if found.largest_difference is None else f"; the largest difference is {found.largest_difference:+.3f}")
    )
    shared = [point for point in found.points if point.site is None]
    print(f"{'':<20}{'metric':>10}{'first':>9}{'second':>9}{'difference':>12}   95 %")
    for point in shared[::2]:
        _print_point("all sites", point)
    by_site: dict[str, Any] = {}
    for point in found.points:
        if point.site is not None and abs(point.difference) > abs(by_site.get(point.site, point).difference) - 1e-300:
            by_site[point.site] = point
    furthest = sorted(by_site.values(), key=lambda point: -abs(point.difference))
    for point in furthest[:MOST_SITES]:
        _print_point(str(point.site), point)
    if len(furthest) > MOST_SITES:
        print(f"... and {len(furthest) - MOST_SITES} sites that differ less, each told where it differs most.")
    for names, which in ((found.only_first, "first"), (found.only_second, "second")):
        if names:
            print(f"only the {which} fit has {len(names)} sites, which are not compared")


def _print_point(name: str, point: ComparedPoint) -> None:
    band = "" if point.lower is None else f"   {point.lower:+.3f} to {point.upper:+.3f}"
    told = " *" if point.lower is not None and not point.lower <= 0 <= (point.upper or 0.0) else ""
    print(
        f"{name:<20}{point.metric:>10.4g}{point.first:>9.3f}{point.second:>9.3f}{point.difference:>+12.3f}{band}{told}"
    )


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return "-" if value is None else str(value)


def alias(
    name: Annotated[
        str | None, typer.Argument(metavar="ALIAS", help="The name, such as kite-2026.", show_default=False)
    ] = None,
    fit: Annotated[
        str | None,
        typer.Argument(metavar="FIT", help="The fit that it shall mean, as for show.", show_default=False),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Let the name mean nothing any more.")] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Give a fit a name that every command takes; the log keeps what it meant and when. Without names, list them."""
    from isuit.errors import InputError
    from isuit.service import aliasing

    if name is None:
        found = aliasing.listed(store, wait)
    elif remove:
        if fit is not None:
            raise InputError("--remove takes the alias alone")
        found = aliasing.remove_alias(store, name, wait)
    elif fit is None:
        raise InputError("give the fit that the alias shall mean, or --remove")
    else:
        found = aliasing.set_alias(store, name, fit, wait)
    if json:
        print_json(found)
        return
    for each in found.aliases:
        print(f"{each.alias:<24} {each.fit_id}  since {each.set_at:%Y-%m-%d %H:%M}")
    if name is not None:
        print(f"log head {found.log_head}")
