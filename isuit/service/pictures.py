"""Pictures of a fit: its curves with their bands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isuit.domain import Z95
from isuit.errors import InputError
from isuit.published import FitRecord

MOST_SITES = 8  # beyond, lines can no longer be told apart


def plot_fit(fit: FitRecord, curves: pa.Table, path: Path) -> None:
    """Write the fit's curves as PNG or SVG: difficulty with its 95 % band, and the population's suitability."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"the ending of {path.name} names no format; use .png or .svg")
    from matplotlib import rc_context

    figure = figure_of(fit, curves)
    try:
        # No date and no random ids: the same fit gives the same bytes.
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": "isuit"}
        with rc_context({"svg.hashsalt": "isuit"}):
            figure.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path.name} cannot be written ({error.strerror}); name another place") from None


def as_html(fit: FitRecord, curves: pa.Table) -> str:
    """The picture and its caption, as a notebook shows them."""
    import html
    import io

    drawing = io.StringIO()
    figure_of(fit, curves).savefig(drawing, format="svg")
    svg = drawing.getvalue()
    return f"<p>{html.escape(fit.fit_id)}</p>{svg[svg.index('<svg') :]}"


def figure_of(fit: FitRecord, curves: pa.Table) -> Any:
    """The picture as a matplotlib figure, with a canvas of its own: no window system, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    sites = [site for site in dict.fromkeys(curves.column("site").to_pylist()) if site is not None]
    upper, lower = figure.subplots(2, 1, sharex=True)
    for site in [None, *sites[:MOST_SITES]]:
        rows = [row for row in curves.to_pylist() if row["site"] == site]
        metric = np.array([row["metric"] for row in rows])
        label = "all sites" if site is None and sites else _plain(site or "")
        style = {"color": "black", "linewidth": 2} if site is None else {"linewidth": 1}
        if rows and rows[0]["difficulty"] is not None:
            difficulty = np.array([row["difficulty"] for row in rows])
            se = np.array([row["difficulty_se"] for row in rows])
            (line,) = upper.plot(metric, difficulty, label=label, **style)
            upper.fill_between(
                metric, difficulty - Z95 * se, difficulty + Z95 * se, color=line.get_color(), alpha=0.15, linewidth=0
            )
        lower.plot(metric, [row["suitability"] for row in rows], label=label, **style)
    upper.set_ylabel("difficulty (skill sd)")
    if fit.kind == "single-curve":
        upper.text(0.5, 0.5, "single curve: no difficulty", transform=upper.transAxes, ha="center")
    lower.set_ylabel("suitability of the population")
    lower.set_ylim(0, 1)
    lower.set_xlabel(_plain(fit.dimension))
    upper.set_title(_plain(f"{fit.activity}, {fit.dimension} ({fit.kind})"))
    if sites:
        lower.legend(fontsize="small")
    return figure


def _plain(text: str) -> str:
    """Names are text, not formulas."""
    return text.replace("$", r"\$")
