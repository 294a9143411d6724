"""Self-contained HTML pages: data, drawing and charting library in one file that asks the network for nothing.

    html = page("Kitesurfing, wind", "fit", {"curves": [...]})

A page is `page.html` with the style, Plotly, the data as JSON and one script (`fit.js` or `atlas.js`) that draws them.
The page's own content security policy forbids every request, so a browser enforces what this sentence promises. The
same data give the same bytes.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal

from isuit.documents import from_json
from isuit.errors import InputError
from isuit.files import write_whole

Script = Literal["fit", "atlas"]


def page(title: str, script: Script, data: dict[str, Any]) -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs

    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=_asset("page.css"),
        plotly=get_plotlyjs(),
        data=_as_json(data),
        script=_asset("shared.js") + _asset(f"{script}.js"),
    )


def write_page(path: Path, text: str) -> None:
    """The page as a file; refuses a name that a browser would not open as a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the page is HTML, and {path.name} does not end so; name a file that ends in .html")
    write_whole(path, [text.encode()])


def data_of(text: str) -> dict[str, Any]:
    """The data that a page draws; ValueError where there are none."""
    begin, end = '<script type="application/json" id="data">', "</script>"
    _, found, rest = text.rpartition(begin)  # the last one: before it is only code
    if not found or end not in rest:
        raise ValueError("not a page of isuit")
    data = from_json(rest[: rest.index(end)], "the page")
    if not isinstance(data, dict):
        raise ValueError("not a page of isuit")
    return data


def _as_json(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: no text in it can end the element or open a comment."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
