"""A fit's curves for a person to read: every point of a few, and of many sites how the hardest and easiest compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from isuit.errors import InputError

if TYPE_CHECKING:
    from isuit.published import CurvePoint

FEW_SITES = 6  # up to so many sites, all their points are printed
AT_EACH_END = 5  # of a ranking


def print_sketch(curves: Sequence[CurvePoint], outcomes: int) -> None:
    """The shared curve, or the only one, as a picture of text; of a few outcomes a sentence instead."""
    from isuit.domain import too_few

    from .sketch import sketch

    if why := too_few(outcomes):
        print(f"{why}; `isuit score` tells any condition with its interval.")
        return
    shared = [point for point in curves if point.site is None] or list(curves)
    several = len({point.dimension for point in shared}) > 1
    for dimension, points in groupby(shared, key=lambda point: point.dimension):
        along = list(points)
        if several:
            print(f"along {dimension}, with the other metrics at their medians:")
        metric = [point.metric for point in along]
        if all(point.difficulty is not None for point in along):
            print(sketch(metric, [point.difficulty or 0.0 for point in along], "difficulty", "skill sd"))
        else:
            print(sketch(metric, [point.suitability for point in along], "suitability", _sureness(along)))


def _sureness(along: Sequence[CurvePoint]) -> str:
    """The unit of a single curve, and what blocks of text cannot show: how wide its interval is."""
    widths = [
        point.suitability_upper - point.suitability_lower
        for point in along
        if point.suitability_lower is not None and point.suitability_upper is not None
    ]
    return f"probability; its 95 % interval is up to {max(widths):.2f} wide" if widths else "probability"


def print_curves(fit_id: str, curves: Sequence[CurvePoint], sites: Sequence[str], everything: bool) -> None:
    """The points of these sites, or of all; else of the shared curve, and of the sites if they are few.

    Many sites are ranked instead.
    """
    names = _sites(curves)
    if sites:
        _print_points(point for point in curves if point.site in sites)
    elif everything or len(names) <= FEW_SITES:
        _print_points(curves)
    else:
        _print_points(point for point in curves if point.site is None)
        print_ranking(fit_id, curves)


def require_sites(curves: Sequence[CurvePoint], sites: Iterable[str]) -> None:
    """Refuse a site that the fit has not."""
    names = _sites(curves)
    if not names.issuperset(sites):
        raise InputError(f"this fit has no site of that name; --all lists the {len(names)} it has")


def print_ranking(fit_id: str, curves: Sequence[CurvePoint]) -> None:
    """The hardest and the easiest sites, if there are more than a few, and how to see others."""
    names = _sites(curves)
    if len(names) <= FEW_SITES:
        return
    ranked = sorted(_best_conditions(curves), reverse=True)
    latent = any(point.difficulty is not None for point in curves)
    what = "difficulty (skill sd) at its easiest condition" if latent else "suitability at its best condition"
    print(f"{len(names)} sites, from the hardest to the easiest; each with its {what}:")
    between = len(ranked) - 2 * AT_EACH_END
    for best in ranked if between <= 0 else ranked[:AT_EACH_END]:
        _print_best(best)
    if between > 0:
        print(f"  ... {between} sites between ...")
        for best in ranked[-AT_EACH_END:]:
            _print_best(best)
    if len(ranked) < len(names):
        print(f"{len(names) - len(ranked)} sites have no difficulty, because no rider links them to the others.")
    print(f"Any site's curve: isuit show {fit_id[:21]} --site NAME (repeatable); all of them: --all or --json.")


class _Best(NamedTuple):
    """A site at its best condition; sites sort by how hard they are, then by name."""

    hardness: float
    site: str
    point: CurvePoint


def _best_conditions(curves: Sequence[CurvePoint]) -> list[_Best]:
    """Each site where it is easiest; in a latent fit, only those that have a difficulty."""
    latent = any(point.difficulty is not None for point in curves)
    found = []
    for site, points in groupby(curves, key=lambda point: point.site):
        known = [point for point in points if point.difficulty is not None or not latent]
        if site is not None and known:
            easiest = min(known, key=_hardness)
            found.append(_Best(_hardness(easiest), site, easiest))
    return found


def _hardness(point: CurvePoint) -> float:
    return -point.suitability if point.difficulty is None else point.difficulty


def _print_best(best: _Best) -> None:
    point = best.point
    level = f"{point.suitability:.3f}" if point.difficulty is None else f"{point.difficulty:+.2f}"
    print(f"  {best.site:<20} {level:>7} {_band(point):<8} at {point.metric:.4g}")


def _print_points(curves: Iterable[CurvePoint]) -> None:
    listed = list(curves)
    several = len({point.dimension for point in listed}) > 1
    for point in listed:
        level = "-" if point.difficulty is None else f"{point.difficulty:+.2f}"
        along = f"{point.dimension:<20} " if several else ""
        where = f"{point.site or 'all':<20} {along}{point.metric:10.4g}"
        print(f"{where} {level:>7} {_band(point):<8} {point.suitability:6.3f}{_interval(point)}")


def _band(point: CurvePoint) -> str:
    from isuit.domain import Z95

    return "" if point.difficulty_se is None else f"± {Z95 * point.difficulty_se:.2f}"


def _interval(point: CurvePoint) -> str:
    """Of a single curve; a latent one has the band of its difficulty."""
    if point.suitability_lower is None or point.suitability_upper is None:
        return ""
    return f" ({point.suitability_lower:.3f} to {point.suitability_upper:.3f})"


def _sites(curves: Sequence[CurvePoint]) -> set[str]:
    return {point.site for point in curves if point.site is not None}
