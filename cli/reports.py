"""`isuit report`: a fit as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_STORE, DEFAULT_WAIT, Fit, Json, Store, Wait
from .output import note, print_json


def report(
    fit: Fit,
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")],
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Write one self-contained page: difficulty with bands by site, a skill slider, gate, and how to re-derive it."""
    from isuit.service.reports import report as write

    written = write(store, fit, out, wait)
    if json:
        print_json(written)
        return
    print(f"wrote {out}: open it in a browser; it asks the network for nothing")
    note("note: in-house, with full precision; `isuit export-atlas` makes what can be published")
