"""Pictures of a fit: its curves with their bands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isuit.domain import Z95
from isuit.errors import InputError
from isuit.files import whole
from isuit.published import FitRecord

MOST_SITES = 8  # beyond, lines can no longer be told apart
Point = dict[str, Any]  # a row of a fit's curves
Style = dict[str, Any]


def plot_fit(fit: FitRecord, curves: pa.Table, path: Path) -> None:
    """Write the fit's curves as PNG or SVG: difficulty with its 95 % band, and the population's suitability."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"the ending of {path.name} names no format; use .png or .svg")
    from matplotlib import rc_context

    figure = figure_of(fit, curves)
    # No date and no random ids: the same fit gives the same bytes.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": "isuit"}
    with whole(path) as part, rc_context({"svg.hashsalt": "isuit"}):
        figure.savefig(part, dpi=150, metadata=metadata)


def as_html(fit: FitRecord, curves: pa.Table) -> str:
    """The picture and its caption, as a notebook shows them."""
    import html

    return f"<p>{html.escape(fit.fit_id)}</p>{_svg(figure_of(fit, curves))}"


def _svg(figure: Any) -> str:
    """The figure as an element of a page."""
    import io

    drawing = io.StringIO()
    figure.savefig(drawing, format="svg")
    return drawing.getvalue()[drawing.getvalue().index("<svg") :]


def figure_of(fit: FitRecord, curves: pa.Table) -> Any:
    """The picture as a matplotlib figure, with a canvas of its own: no window system, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, whether pyplot is in use there or not."""

        def _repr_svg_(self) -> str:
            return _svg(self)

    figure = Picture(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True)
    by_site = _by_site(curves)
    several = len(by_site) > 1
    for site, points in by_site.items():
        label = "all sites" if site is None and several else _plain(site or "")
        style: Style = {"color": "black", "linewidth": 2} if site is None else {"linewidth": 1}
        _draw_difficulty(above, points, label, style)
        _draw_suitability(below, points, label, style)
    _name_axes(above, below, fit)
    if several:
        below.legend(fontsize="small")
    return figure


def _by_site(curves: pa.Table) -> dict[str | None, list[Point]]:
    """Points of each curve: the shared one first, then as many sites as can be told apart."""
    points: dict[str | None, list[Point]] = {None: []}
    for point in curves.to_pylist():
        points.setdefault(point["site"], []).append(point)
    return dict(list(points.items())[: 1 + MOST_SITES])


def _draw_difficulty(axes: Any, points: list[Point], label: str, style: Style) -> None:
    """Difficulty with its 95 % band; nothing for a single curve, or a site that cannot be compared."""
    if not points or points[0]["difficulty"] is None:
        return
    metric, difficulty, se = (
        np.array([point[name] for point in points]) for name in ("metric", "difficulty", "difficulty_se")
    )
    (line,) = axes.plot(metric, difficulty, label=label, **style)
    half = Z95 * se
    axes.fill_between(metric, difficulty - half, difficulty + half, color=line.get_color(), alpha=0.15, linewidth=0)


def _draw_suitability(axes: Any, points: list[Point], label: str, style: Style) -> None:
    metric = [point["metric"] for point in points]
    axes.plot(metric, [point["suitability"] for point in points], label=label, **style)


def _name_axes(above: Any, below: Any, fit: FitRecord) -> None:
    above.set_title(_plain(f"{fit.activity}, {fit.dimension} ({fit.kind})"))
    above.set_ylabel("difficulty (skill sd)")
    if fit.kind == "single-curve":
        above.text(0.5, 0.5, "single curve: no difficulty", transform=above.transAxes, ha="center")
    below.set_ylabel("suitability of the population")
    below.set_ylim(0, 1)
    below.set_xlabel(_plain(fit.dimension))


def _plain(text: str) -> str:
    """Names are text, not formulas."""
    return text.replace("$", r"\$")
