"""Options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
