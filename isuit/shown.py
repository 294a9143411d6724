"""Values as a notebook shows them: tables and records as small HTML, texts as they are. No library is needed for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

MOST_ROWS = 20  # of a table; the rest is counted
MOST_LISTED = 12  # entries of a list


class Text(str):
    """Text of several lines that a prompt shows as such."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class Table:
    """An Arrow table that shows itself; everything else is the Arrow table's own: `to_pandas()`, `column(name)`, ...

    It has the Arrow interface, so pandas, polars and DuckDB take it as it is.
    """

    def __init__(self, arrow: Any, caption: str = "") -> None:
        self.arrow, self.caption = arrow, caption

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "arrow":
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __getitem__(self, column: str | int) -> Any:
        return self.arrow[column]

    def __eq__(self, other: object) -> bool:
        return bool(self.arrow == (other.arrow if isinstance(other, Table) else other))

    __hash__ = None  # type: ignore[assignment]  # like an Arrow table

    def __repr__(self) -> str:
        names = ", ".join(self.arrow.column_names)
        return f"<{self.caption or 'table'}: {len(self)} rows of {names}>"

    def _repr_html_(self) -> str:
        rows = [list(row.values()) for row in self.arrow.slice(0, MOST_ROWS).to_pylist()]
        more = len(self) - len(rows)
        return rows_as_html(self.arrow.column_names, rows, self.caption, f"{more} more rows" if more > 0 else "")


def rows_as_html(names: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", below: str = "") -> str:
    """A table with a head."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (
        f"<p>{escape(below)}</p>" if below else ""
    )


def record_as_html(title: str, values: Mapping[str, Any]) -> str:
    """A record as a table of names and values; records inside of it as tables inside of it."""
    body = "".join(
        f"<tr><th>{escape(str(name).replace('_', ' '))}</th><td>{cell(value)}</td></tr>"
        for name, value in values.items()
        if value is not None
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def cell(value: Any) -> str:
    """One value as HTML."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return record_as_html("", value).replace("<caption></caption>", "")
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], Mapping):
            return rows_as_html(list(value[0]), [list(row.values()) for row in value[:MOST_LISTED]])
        more = f", and {len(value) - MOST_LISTED} more" if len(value) > MOST_LISTED else ""
        return ", ".join(cell(part) for part in value[:MOST_LISTED]) + more
    return escape(str(value))
