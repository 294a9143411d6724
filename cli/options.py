"""Options that several commands share, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Store = Annotated[
    Path,
    typer.Option("--store", envvar="ISUIT_STORE", help="The store's directory.", show_default=True),
]
DEFAULT_STORE = Path("isuit-store")
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for a store in use.", min=0)]
DEFAULT_WAIT = 10.0
Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="Map a column: name=theirs, for example rider=user_id. Repeatable."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="A column that is a condition; several make one cohort of several metrics. Repeatable."
    ),
]
Fit = Annotated[
    str,
    typer.Argument(
        metavar="FIT", help="A fit id or a cohort hash, or at least 8 digits of one; or an alias.", show_default=False
    ),
]
FitOrRelease = Annotated[
    str | None,
    typer.Argument(
        metavar="[FIT]",
        help="A fit id, a cohort hash, or 8 digits of one; or a release's date.",
        show_default=False,
    ),
]
Csv = Annotated[
    list[str] | None,
    typer.Option(
        "--csv",
        metavar="NAME=VALUE",
        help="Declare how a CSV is written, instead of letting it be found: separator, decimal, encoding, dates "
        "(dd.mm.yyyy, ...), outcomes (ja/nein). Repeatable.",
    ),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave rows without a rider, a metric or an outcome out, counted.")
]
Query = Annotated[
    str | None,
    typer.Option("--query", help="SQL that selects the columns, where the cohort is a postgresql:// address."),
]
Timezone = Annotated[
    str | None, typer.Option("--timezone", help="The zone of timestamps that carry none, such as UTC.")
]
Files = Annotated[
    list[str], typer.Argument(help="Parquet, CSV or Arrow files, a directory or a quoted glob: one cohort in all.")
]

# How a cohort is read: isuit.reading has the keywords that these become.
FORM: dict[str, tuple[Any, Any]] = {
    "column": (Column, None),
    "timezone": (Timezone, None),
    "csv": (Csv, None),
    "drop_missing": (DropMissing, False),
}
READING: dict[str, tuple[Any, Any]] = {"metric": (Metrics, None), **FORM}


def reads(options: dict[str, tuple[Any, Any]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command these options in the place of its parameter `reading`, and that the keywords they become."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        kinds = get_type_hints(command, include_extras=True)
        parameters: list[Parameter] = []
        for one in inspect.signature(command).parameters.values():
            if one.name == "reading":
                parameters += [
                    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                    for name, (kind, default) in options.items()
                ]
            else:
                parameters.append(one.replace(annotation=kinds[one.name]))

        @wraps(command)
        def run(**given: Any) -> None:
            from isuit.service.inputs import parse_csv, parse_mapping

            metric = given.get("metric")
            told = {name: given.pop(name) for name in options}
            reading = {
                "columns": parse_mapping(told["column"], metric),
                "timezone": told["timezone"],
                "csv": parse_csv(told["csv"]),
                "drop_missing": told["drop_missing"],
            } | ({"metrics": metric} if "metric" in told else {})
            command(**given, reading=reading)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorated
