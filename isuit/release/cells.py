"""Step 2: space. A cell is the H3 cell of the site's coordinates, indexed directly at the release's resolution.

Never by way of a parent: H3's children overlap their parent's edge, so the parent of a fine cell can be another cell
than the one the coordinates lie in.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import h3

from isuit.release.eligibility import GLOBAL
from isuit.store.sites import Coordinates

Ring = list[tuple[float, float]]  # longitude and latitude, closed, counter-clockwise
_WKB_POLYGON, _WKB_MULTIPOLYGON = 3, 6


def cell_of(site: str | None, sites: Mapping[str, Coordinates], resolution: int) -> str | None:
    """The cell of a site; `global` for the cohort without sites (None); None for a site without coordinates."""
    if site is None:
        return GLOBAL
    if site not in sites:
        return None
    return str(h3.latlng_to_cell(*sites[site], resolution))


def centre(cell: str) -> tuple[float, float] | tuple[None, None]:
    """Latitude and longitude of the cell's centre, never those of a site; 1e-6 degrees are a tenth of a metre."""
    if cell == GLOBAL:
        return None, None
    latitude, longitude = h3.cell_to_latlng(cell)
    return round(latitude, 6) + 0.0, round(longitude, 6) + 0.0


@dataclass(frozen=True)
class Shape:
    """The outline of a cell: one polygon, or two where the antimeridian cuts it (RFC 7946, section 3.1.9)."""

    rings: tuple[Ring, ...]
    around_pole: bool = False  # then it is a strip over all longitudes

    def geojson(self) -> dict[str, object]:
        polygons = [[[list(point) for point in ring]] for ring in self.rings]
        if len(polygons) == 1:
            return {"type": "Polygon", "coordinates": polygons[0]}
        return {"type": "MultiPolygon", "coordinates": polygons}

    def wkb(self) -> bytes:
        polygons = [_wkb_polygon(ring) for ring in self.rings]
        if len(polygons) == 1:
            return polygons[0]
        return struct.pack("<BII", 1, _WKB_MULTIPOLYGON, len(polygons)) + b"".join(polygons)

    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        points = [point for ring in self.rings for point in ring]
        longitudes, latitudes = zip(*points, strict=True)
        return min(longitudes), min(latitudes), max(longitudes), max(latitudes)


def _wkb_polygon(ring: Ring) -> bytes:
    points = b"".join(struct.pack("<dd", *point) for point in ring)
    return struct.pack("<BIII", 1, _WKB_POLYGON, 1, len(ring)) + points


def shape(cell: str) -> Shape | None:
    """The hexagon (twelve cells of a resolution are pentagons); None for the global cell."""
    if cell == GLOBAL:
        return None
    ring = [(round(longitude, 6), round(latitude, 6)) for latitude, longitude in h3.cell_to_boundary(cell)]
    for pole in (90.0, -90.0):
        if h3.latlng_to_cell(pole, 0.0, h3.get_resolution(cell)) == cell:
            return Shape((_closed(_around_pole(ring, pole)),), around_pole=True)
    longitudes = [longitude for longitude, _ in ring]
    if max(longitudes) - min(longitudes) <= 180:
        return Shape((_closed(ring),))
    east = [(longitude if longitude > 0 else longitude + 360, latitude) for longitude, latitude in ring]
    western_half = [(longitude - 360, latitude) for longitude, latitude in _clipped(east, keep_above=True)]
    return Shape((_closed(_clipped(east, keep_above=False)), _closed(western_half)))


def _around_pole(ring: Ring, pole: float) -> Ring:
    """A cell that holds a pole, as a strip over all longitudes: its boundary, then along the pole and back."""
    ordered = sorted(ring)
    (first, low), (last, high) = ordered[0], ordered[-1]
    share = (180 - last) / (first + 360 - last)
    seam = round(high + share * (low - high), 6)
    strip = [(-180.0, seam), *ordered, (180.0, seam), (180.0, pole), (-180.0, pole)]
    return strip if pole > 0 else strip[::-1]


def _clipped(ring: Ring, keep_above: bool) -> Ring:
    """The part of a ring on one side of longitude 180 (Sutherland and Hodgman, for one edge)."""
    kept: Ring = []
    for (x0, y0), (x1, y1) in zip(ring, [*ring[1:], ring[0]], strict=True):
        inside, next_inside = (x0 > 180) == keep_above, (x1 > 180) == keep_above
        if inside:
            kept.append((x0, y0))
        if inside != next_inside:
            kept.append((180.0, round(y0 + (180 - x0) / (x1 - x0) * (y1 - y0), 6)))
    return kept


def _closed(ring: Ring) -> Ring:
    return [*ring, ring[0]]
