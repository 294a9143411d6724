"""Pictures of a fit: its curves with their bands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from isuit.errors import InputError
from isuit.published import FitRecord

MOST_SITES = 8  # beyond, lines can no longer be told apart


def plot_fit(fit: FitRecord, curves: pa.Table, path: Path) -> None:
    """Write the fit's curves as PNG or SVG: difficulty with its 95 % band, and the population's suitability."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"the ending of {path.name} names no format; use .png or .svg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    draw_fit(fit, curves, figure)
    try:
        # No date and no random ids: the same fit gives the same bytes.
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": "isuit"}
        figure.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path.name} cannot be written ({error.strerror}); name another place") from None


def draw_fit(fit: FitRecord, curves: pa.Table, figure: object) -> None:
    """Draw into a matplotlib figure."""
    sites = [site for site in dict.fromkeys(curves.column("site").to_pylist()) if site is not None]
    upper, lower = figure.subplots(2, 1, sharex=True)  # type: ignore[attr-defined]
    for site in [None, *sites[:MOST_SITES]]:
        rows = [row for row in curves.to_pylist() if row["site"] == site]
        metric = np.array([row["metric"] for row in rows])
        label = "all sites" if site is None and sites else site
        style = {"color": "black", "linewidth": 2} if site is None else {"linewidth": 1}
        if rows and rows[0]["difficulty"] is not None:
            difficulty = np.array([row["difficulty"] for row in rows])
            se = np.array([row["difficulty_se"] for row in rows])
            (line,) = upper.plot(metric, difficulty, label=label, **style)
            upper.fill_between(
                metric, difficulty - 1.96 * se, difficulty + 1.96 * se, color=line.get_color(), alpha=0.15, linewidth=0
            )
        lower.plot(metric, [row["suitability"] for row in rows], label=label, **style)
    upper.set_ylabel("difficulty (skill sd)")
    if fit.kind == "single-curve":
        upper.text(0.5, 0.5, "single curve: no difficulty", transform=upper.transAxes, ha="center")
    lower.set_ylabel("suitability of the population")
    lower.set_ylim(0, 1)
    lower.set_xlabel(fit.dimension)
    upper.set_title(f"{fit.activity}, {fit.dimension} ({fit.kind})")
    if sites:
        lower.legend(fontsize="small")
