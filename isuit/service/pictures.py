"""Pictures in the look of the pages: a fit's curves with their bands, and a rider's skill over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isuit import look
from isuit.domain import Z95, too_few
from isuit.errors import InputError
from isuit.files import whole
from isuit.published import FitRecord, Trajectory, TrajectoryPoint
from isuit.service.intervals import ENDS
from isuit.service.surface_maps import Surface

MOST_SITES = len(look.COMPARED)  # beyond, lines can no longer be told apart
Point = dict[str, Any]  # a row of a fit's curves
Style = dict[str, Any]


def plot_fit(fit: FitRecord, curves: pa.Table, path: Path, outcomes: int, surface: Surface | None = None) -> str | None:
    """Write the fit's curves as PNG or SVG: difficulty with its 95 % band, and the population's suitability.

    A single curve has the band of its suitability; of a few outcomes only the band is drawn, and a sentence says why.

    A fit of several metrics has them along each, and below a contour map of each pair, where there were outcomes.
    Returns which sites are drawn, where they are not all.
    """
    _require_format(path)
    _save(figure_of(fit, curves, outcomes, surface), path)
    return _left_out(_by_site(curves))


def plot_trajectory(found: Trajectory, path: Path) -> None:
    """Write a rider's skill over successive cohorts, with 95 % bands, as PNG or SVG; the rider is not named in it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _require_format(path)
    topics: dict[tuple[str, str], list[TrajectoryPoint]] = {}
    for point in found.points:
        topics.setdefault((point.activity, point.dimension), []).append(point)
    with rc_context(look.matplotlib_style()):
        figure = Figure(figsize=(8, 3.4 * len(topics)), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, ((activity, dimension), points) in zip(
            figure.subplots(len(topics), 1, squeeze=False)[:, 0], topics.items(), strict=True
        ):
            _draw_trajectory(axes, points)
            axes.set_title(_plain(f"{activity}: {look.axis(dimension)}"))
    _save(figure, path)


def _draw_trajectory(axes: Any, points: list[TrajectoryPoint]) -> None:
    """Skills one after the other, on the first fit's scale where they are linked to it; hollow where they are not."""
    for place, point in enumerate(points):
        if point.path:
            _draw_path(axes, place, point)
        linked = point.linked_mean is not None and point.linked_sd is not None
        mean, sd = (point.linked_mean, point.linked_sd) if linked else (point.skill_mean, point.skill_sd)
        colour = look.COMPARED[1] if point.drift else look.COMPARED[0]
        axes.errorbar(
            place, mean, Z95 * (sd or 0.0), fmt="o", color=colour, capsize=4, markersize=8,
            markerfacecolor=colour if linked else look.LIGHT.card,
        )  # fmt: skip
        if point.drift:
            axes.annotate("drift", (place, mean), xytext=(9, 6), textcoords="offset points", color=colour)
    joined = [(place, point.linked_mean) for place, point in enumerate(points) if point.linked_mean is not None]
    if len(joined) > 1:
        axes.plot(*zip(*joined, strict=True), color=look.LIGHT.soft, linewidth=1, zorder=1)
    axes.axhline(0, color=look.LIGHT.soft, linewidth=0.8, linestyle=":")
    axes.set_xlim(-0.5, len(points) - 0.5)
    axes.set_xticks(range(len(points)), [_when(point) for point in points])
    axes.set_ylabel("skill (sd)")
    if not all(point.linked_mean is not None for point in points):
        axes.set_xlabel("hollow: not comparable with the first")


def _draw_path(axes: Any, place: int, point: TrajectoryPoint) -> None:
    """Skill day by day with its band, within the cohort's place, carried to the scale that its last day stands on."""
    assert point.path is not None
    days = np.array([day.day.toordinal() for day in point.path], float)
    at = place + 0.45 * ((days - days[0]) / max(float(np.ptp(days)), 1.0) - 1.0)
    mean, sd = (np.array([getattr(day, name) for day in point.path]) for name in ("skill_mean", "skill_sd"))
    if point.linked_mean is not None:
        mean = mean - point.skill_mean + point.linked_mean
    axes.fill_between(at, mean - Z95 * sd, mean + Z95 * sd, color=look.COMPARED[0], alpha=0.15, linewidth=0)
    axes.plot(at, mean, color=look.COMPARED[0], linewidth=1.5)


def _when(point: TrajectoryPoint) -> str:
    if point.observed_from is None or point.observed_until is None:
        return point.cohort_hash[9:17]
    return f"{point.observed_from:%Y-%m-%d}\nto {point.observed_until:%Y-%m-%d}"


def _require_format(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"the ending of {path.name} names no format; use .png or .svg")


def _save(figure: Any, path: Path) -> None:
    """No date and no random ids: the same fit gives the same bytes."""
    from matplotlib import rc_context

    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": "isuit"}
    with whole(path) as part, rc_context(look.matplotlib_style()):
        figure.savefig(part, dpi=150, metadata=metadata)


def as_html(fit: FitRecord, curves: pa.Table, outcomes: int) -> str:
    """The picture and its caption, as a notebook shows them."""
    import html

    return f"<p>{html.escape(fit.fit_id)}</p>{_svg(figure_of(fit, curves, outcomes))}"


def _svg(figure: Any) -> str:
    """The figure as an element of a page."""
    import io

    drawing = io.StringIO()
    figure.savefig(drawing, format="svg")
    return drawing.getvalue()[drawing.getvalue().index("<svg") :]


def figure_of(fit: FitRecord, curves: pa.Table, outcomes: int, surface: Surface | None = None) -> Any:
    """The picture as a matplotlib figure, with a canvas of its own: no window system, no global state."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, whether pyplot is in use there or not."""

        def _repr_svg_(self) -> str:
            return _svg(self)

    along = _by_dimension(curves)
    with rc_context(look.matplotlib_style()):
        width, below = 8 * max(1.0, 0.75 * len(along)), 0 if surface is None else -(-len(surface.maps) // len(along))
        figure = Picture(figsize=(width, 6.4 + 4.2 * below), layout="constrained")
        FigureCanvasAgg(figure)
        upper: Any = figure
        if surface is not None:
            parts: Any = figure.subfigures(2, 1, height_ratios=(6.4, 4.2 * below))
            upper, lower = parts
            _draw_maps(lower.subplots(below, len(along), squeeze=False).ravel(), fit, surface)
        panels = upper.subplots(2, len(along), sharex="col", squeeze=False)
        for number, (dimension, part) in enumerate(along.items()):
            along_this = fit.dimension if len(along) == 1 else dimension
            _draw(panels[0, number], panels[1, number], fit, part, along_this, too_few(outcomes))
    return figure


def _draw_maps(panels: Any, fit: FitRecord, surface: Surface) -> None:
    """A contour map of each pair; grey where too few riders were."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("isuit", look.SCALE)
    for axes in panels[len(surface.maps) :]:
        axes.set_visible(False)
    for axes, found in zip(panels, surface.maps, strict=False):
        value = np.ma.masked_array(found.difficulty, ~found.supported).T
        axes.set_facecolor(look.LIGHT.shade)
        if value.count() and np.ptp(value.compressed()) > 0:
            filled = axes.contourf(found.first, found.second, value, 14, cmap=colours)
            lines = axes.contour(found.first, found.second, value, 7, colors=look.LIGHT.ink, linewidths=0.6)
            axes.clabel(lines, fontsize=8)
            axes.figure.colorbar(
                filled, ax=axes, label=look.WORDS["difficulty"] if fit.kind == "latent" else "log odds of failing"
            )
        axes.grid(visible=False)
        axes.set_xlabel(_plain(look.axis(surface.metrics[found.pair[0]])))
        axes.set_ylabel(_plain(look.axis(surface.metrics[found.pair[1]])))


def _by_dimension(curves: pa.Table) -> dict[str, pa.Table]:
    """The curves along each metric; of one metric all of them."""
    names = list(dict.fromkeys(curves.column("dimension").to_pylist())) if "dimension" in curves.column_names else []
    if len(names) < 2:
        return {"": curves}
    return {name: curves.filter(pc.equal(curves.column("dimension"), name)) for name in names}


def _draw(above: Any, below: Any, fit: FitRecord, curves: pa.Table, dimension: str, few: str | None) -> None:
    """The curves along one metric: difficulty above, suitability below; of too few outcomes, bands alone."""
    found = _by_site(curves)
    drawn = _drawn(found)
    line = "none" if few else "solid"
    shared: Style = {
        "linestyle": line,
        "color": look.LIGHT.ink if len(found) > 1 else look.LIGHT.accent,
        "linewidth": 2,
    }
    label = look.WORDS["shared" if len(found) > 1 else "single"]
    _draw_difficulty(above, found[None], label, shared)
    _draw_suitability(below, found[None], label, shared)
    for number, site in enumerate(drawn):
        style: Style = {"color": look.COMPARED[number], "linewidth": 1.6}
        style["linestyle"] = line if few else _dash(number)
        _draw_difficulty(above, found[site], _plain(site), style)
        _draw_suitability(below, found[site], _plain(site), style)
    _name_axes(above, below, fit, dimension)
    if few:
        below.text(0.5, 0.5, f"{few}:\nshaded is where it may lie", transform=below.transAxes, ha="center")
    if drawn:
        lines = below.get_legend_handles_labels()
        below.figure.legend(*lines, loc="outside lower center", ncols=4, title=_left_out(found), title_fontsize=9)


def _by_site(curves: pa.Table) -> dict[str | None, list[Point]]:
    """Points of each curve: the shared one under None, then the sites."""
    points: dict[str | None, list[Point]] = {None: []}
    for point in curves.to_pylist():
        points.setdefault(point["site"], []).append(point)
    return points


def _drawn(found: dict[str | None, list[Point]]) -> list[str]:
    """All sites, or as many as can be told apart: from the hardest to the easiest, at equal steps of the ranking."""
    sites = [site for site in found if site is not None]
    if len(sites) <= MOST_SITES:
        return sites

    def ease(site: str) -> float:
        points = found[site]
        if any(point["difficulty"] is None for point in points):
            return float(np.mean([point["suitability"] for point in points]))
        return -float(min(point["difficulty"] for point in points))

    comparable = [site for site in sites if found[site][0]["difficulty"] is not None] or sites
    ranked = sorted(comparable, key=lambda site: (ease(site), site))
    steps = np.unique(np.linspace(0, len(ranked) - 1, MOST_SITES).round().astype(int))
    return [ranked[step] for step in steps]


def _left_out(found: dict[str | None, list[Point]]) -> str | None:
    drawn, sites = len(_drawn(found)), len(found) - 1
    return f"{drawn} of {sites:,} sites, from the hardest to the easiest" if drawn < sites else None


def _dash(number: int) -> Any:
    pattern = look.DASHES[number]
    return (0, tuple(float(length) / 1.6 for length in pattern.split())) if pattern else "solid"


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
    """Suitability of the population; of a single curve with its 95 % band."""
    metric = [point["metric"] for point in points]
    (line,) = axes.plot(metric, [point["suitability"] for point in points], label=label, **style)
    lower, upper = (np.array([point[end] for point in points], float) for end in ENDS)  # NaN where there is none
    if np.isfinite(lower).any():
        axes.fill_between(metric, lower, upper, color=line.get_color(), alpha=0.15, linewidth=0)


def _name_axes(above: Any, below: Any, fit: FitRecord, dimension: str) -> None:
    above.set_title(_plain(f"{fit.activity}: {look.axis(dimension)}"))
    above.set_ylabel(look.WORDS["difficulty"])
    if fit.kind == "single-curve":
        above.text(0.5, 0.5, "single curve: no difficulty", transform=above.transAxes, ha="center")
    below.set_ylabel("P(success) of the population")
    below.set_ylim(0, 1)
    below.set_xlabel(_plain(look.axis(dimension)))


def _plain(text: str) -> str:
    """Names are text, not formulas."""
    return text.replace("$", r"\$")
