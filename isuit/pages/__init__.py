"""Self-contained HTML pages: data, drawing, coast lines and style in one file that asks the network for nothing.

    html = page("Kitesurfing, wind", "fit", {"curves": ...})

A page is `page.html` with the look of `isuit.look`, the style sheet, the world's coast, the data as JSON, and the
scripts: `kit.js` (elements, formats, the address), `chart.js`, `map.js`, `explorer.js` (map, ranking, comparison),
`sections.js` (what a record knows) and one that is the page's own (`fit.js`, `surface.js` or `atlas.js`). The page's
content security policy forbids every request, so a browser enforces what this sentence promises. The same data give
the same bytes. docs/adr/0024-pages-draw-themselves.md says why there is no charting library in it.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal

from isuit import look
from isuit.documents import from_json
from isuit.errors import InputError
from isuit.files import write_whole

Script = Literal["fit", "atlas", "surface"]
KIT = ("kit.js", "chart.js", "map.js", "explorer.js", "sections.js")


def page(title: str, script: Script, data: dict[str, Any]) -> str:
    """The whole page as text."""
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=look.style_sheet() + _asset("page.css"),
        look=_as_json(look.for_script()),
        world=_asset("world.json").strip(),
        data=_as_json(data),
        script="".join(_asset(name) for name in (*KIT, f"{script}.js")),
    )


def listing(title: str, lead: str, columns: list[str], rows: list[str], foot: str) -> str:
    """A page without a script: a table. Rows and foot are markup that the caller has escaped."""
    heads = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    return Template(_asset("listing.html")).substitute(
        title=html.escape(title),
        lead=html.escape(lead),
        style=look.style_sheet() + _asset("page.css"),
        heads=heads,
        rows="\n".join(rows),
        foot=foot,
    )


def write_page(path: Path, text: str) -> None:
    """The page as a file; refuses a name that a browser would not open as a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the page is HTML, and {path.name} does not end so; name a file that ends in .html")
    write_whole(path, [text.encode()])


def data_of(text: str) -> dict[str, Any]:
    """The data that a page draws; ValueError where there are none."""
    begin, end = '<script type="application/json" id="data">', "</script>"
    _, found, rest = text.partition(begin)
    if not found or end not in rest or begin in rest:  # of two, a browser draws the first
        raise ValueError("not a page of isuit")
    data = from_json(rest[: rest.index(end)], "the page")
    if not isinstance(data, dict):
        raise ValueError("not a page of isuit")
    return data


def _as_json(data: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: no text in it can end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
