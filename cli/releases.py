"""`isuit export-atlas` and `isuit check-release`: the public atlas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DEFAULT_STORE, DEFAULT_WAIT, Json, Store, Wait
from .output import note, print_json, progress_bar
from .proofs import TrustedKey

if TYPE_CHECKING:
    from isuit.published.releases import Standing

FORMATS = ("jsonl", "csv", "geoparquet", "geojson", "html", "site")


def export_atlas(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The file to write, or the folder of a site; by default atlas-<release>.<extension>, or atlas-site.",
        ),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="Date of the release; by default the quarter's first day.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="jsonl, csv, geoparquet, geojson, html or site.")] = "jsonl",
    k: Annotated[int | None, typer.Option("--k", help="At least this many riders; can only tighten.")] = None,
    lag_days: Annotated[
        int | None, typer.Option("--lag-days", help="Days before outcomes are released; can only tighten.")
    ] = None,
    resolution: Annotated[
        int | None, typer.Option("--resolution", help="H3 resolution of the cells; can only tighten (smaller).")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--beside", help="Another store of yours: refused if it has released a cohort that this one has."),
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--units",
            help="The metric's units (UDUNITS), such as knot; of several dimensions wind_kn=knot. Repeatable.",
        ),
    ] = None,
    standard_name: Annotated[
        list[str] | None,
        typer.Option(
            "--standard-name", help="The metric's CF standard name, such as wind_speed; as --units. Repeatable."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", help="The release's licence, such as CC-BY-4.0.  [default: that of the release before]"
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say here alone why cells are missing, and what attackers achieve."),
    ] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Write the public atlas: curves that at least k riders stand behind, under the store's disclosure policy."""
    from isuit.errors import InputError
    from isuit.service import releases
    from isuit.service.declaring import Declarations

    if format_ not in FORMATS:
        raise InputError(f"--format is one of {', '.join(FORMATS)}; choose one of them.")
    with progress_bar(quiet=json) as progress:
        exported = releases.export_atlas(
            store,
            out,
            release=release,
            kind=format_,  # type: ignore[arg-type]  # checked above
            options={"k": k, "lag_days": lag_days, "resolution": resolution},
            beside=beside or (),
            declared=Declarations.parse(units or [], standard_name or [], licence),
            wait=wait,
            progress=progress,
        )
    if explain:
        for line in exported.explanation or ["no cell is missing"]:
            note(line)
        for line in _table(exported.standing):
            note(line)
    report = exported.report.model_copy(update={"standing": exported.standing} if explain else {})
    if json:
        print_json(report)
        return
    print(f"release  {report.release}: {report.rows} rows in {report.cells} cells, {report.file}")
    if report.carried:
        print(f"         {report.carried} rows as in the release before: too few riders changed")
    for sentence in report.notes:
        print(f"         {sentence}")
    print(f"digest   {report.digest}")
    print(f"log head {report.log_head}")


def _use(row: Standing) -> str:
    """What readers get: error, the lowest and highest coverage of any band, share that is released."""
    if row.rmse is None or row.coverage is None or row.released is None:
        return f"{'-':>6} {'-':>11} {'-':>9}"
    low, high = row.coverage
    return f"{row.rmse:6.2f} {low:6.0%} - {high:.0%} {row.released:8.0%}"


def _table(standing: list[Standing]) -> list[str]:
    """What attackers achieve against cells as large as this store's: of a coin, 0.50."""
    found = ["what attackers achieve (0.50 is a coin), by riders of a cell; docs/disclosure.md says who they are:"]
    found.append(
        "mode       riders  cells  others known  an expert  one outcome  departure   RMSE     covered  released"
    )
    for row in standing:
        riders, cells = (" any" if number is None else str(number) for number in (row.riders, row.cells))
        found.append(
            f"{row.mode:9} {riders:>7} {cells:>6} {row.known_ordinary:13.2f} {row.known_expert:10.2f} "
            f"{row.one_outcome:12.2f} {row.departure:10.2f} {_use(row)}"
        )
    return [*found, *dict.fromkeys(row.source for row in standing)]


def check_release(
    file: Annotated[Path, typer.Argument(help="A file that export-atlas wrote.")],
    trusted_key: TrustedKey = None,
    json: Json = False,
) -> None:
    """Verify a release's row count, digest, schema and proof; needs no store."""
    from isuit.errors import CheckFailed
    from isuit.service.release_checks import checked, report_of

    found = checked(file, trusted_key)
    if json:
        print_json(report_of(found))
    elif found.ok:
        print(f"release {found.release}: {found.rows} rows, digest {found.digest}")
        if found.origin is not None:
            print(f"in the log of {found.origin}, by {'the trusted key' if found.trusted else 'its own word'}")
    if not found.ok:
        raise CheckFailed("the release is not whole: " + "; ".join(found.problems))
