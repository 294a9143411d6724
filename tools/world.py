"""The coast lines and borders that the pages draw: `isuit/pages/world.json`, from the npm package world-atlas.

    make world

world-atlas redistributes Natural Earth's 1:50m countries, which are in the public domain, as a topology: a border that
two countries share is one arc. Here every arc is simplified (Visvalingam and Whyatt: the point whose triangle with its
neighbours is smallest goes first), rounded to a hundredth of a degree and packed as differences, so that a page pays
150 kB for a coast instead of a megabyte. Countries whose every ring vanished are kept as their first ring, so that
small islands still have a name.
"""

from __future__ import annotations

import base64
import heapq
import json
import math
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "world-atlas@2.0.2"
MEMBER = "package/countries-50m.json"
OUT = Path(__file__).parent.parent / "isuit" / "pages" / "world.json"
STEPS_PER_DEGREE = 100  # a kilometre: closer than the 1:50m lines are to the coast
SMALLEST_TRIANGLE = 1.5e-3  # square degrees, about 4 km x 4 km; a smaller one is not worth its point
Point = tuple[float, float]


def fetched() -> dict[str, Any]:
    """The topology, from the registry; npm checks the package's digest."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
            member = package.extractfile(MEMBER)
            assert member is not None
            return dict(json.load(member))


def absolute(topology: dict[str, Any]) -> list[list[Point]]:
    """The arcs in degrees."""
    (sx, sy), (tx, ty) = (topology["transform"]["scale"], topology["transform"]["translate"])
    arcs = []
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            points.append((x * sx + tx, y * sy + ty))
        arcs.append(points)
    return arcs


def simplified(points: list[Point], smallest: float = SMALLEST_TRIANGLE) -> list[Point]:
    """Without the points that hardly matter; the ends stay, because other arcs meet there."""
    before = list(range(-1, len(points) - 1))
    after = list(range(1, len(points) + 1))
    area = [math.inf] * len(points)

    def triangle(i: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = points[before[i]], points[i], points[after[i]]
        shrink = math.cos(math.radians(by))  # a degree of longitude is shorter far from the equator
        return abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)) / 2 * shrink

    for i in range(1, len(points) - 1):
        area[i] = triangle(i)
    heap = [(area[i], i) for i in range(1, len(points) - 1)]
    heapq.heapify(heap)
    gone = set()
    while heap and heap[0][0] < smallest:
        size, i = heapq.heappop(heap)
        if i in gone or size != area[i]:
            continue
        gone.add(i)
        left, right = before[i], after[i]
        after[left], before[right] = right, left
        for j in (left, right):
            if 0 < j < len(points) - 1:
                area[j] = max(size, triangle(j))
                heapq.heappush(heap, (area[j], j))
    return [point for i, point in enumerate(points) if i not in gone]


def rounded(points: list[Point]) -> list[tuple[int, int]]:
    steps = [(round(x * STEPS_PER_DEGREE), round(y * STEPS_PER_DEGREE)) for x, y in points]
    return [point for i, point in enumerate(steps) if i == 0 or point != steps[i - 1] or i == len(steps) - 1]


def packed(arcs: list[list[tuple[int, int]]]) -> str:
    """Number of points, then differences, each as a zigzag varint; all in base64."""
    out = bytearray()

    def put(number: int) -> None:
        value = number << 1 if number >= 0 else (-number << 1) - 1
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)

    for arc in arcs:
        put(len(arc))
        x = y = 0
        for px, py in arc:
            put(px - x)
            put(py - y)
            x, y = px, py
    return base64.b64encode(out).decode()


def rings_of(geometry: dict[str, Any]) -> list[list[int]]:
    arcs = geometry["arcs"] if geometry["type"] == "MultiPolygon" else [geometry["arcs"]]
    return [ring for polygon in arcs for ring in polygon]


def main() -> None:
    topology = fetched()
    arcs = [rounded(simplified(arc)) for arc in absolute(topology)]
    countries: dict[str, list[list[int]]] = {}
    for geometry in topology["objects"]["countries"]["geometries"]:
        rings = rings_of(geometry)
        # A ring of fewer than three corners is an island that is smaller than what can be drawn.
        seen = [ring for ring in rings if len(ring) > 1 or len(set(arcs[ring[0] if ring[0] >= 0 else ~ring[0]])) > 2]
        countries[geometry["properties"]["name"]] = seen or rings[:1]
    used = sorted({a if a >= 0 else ~a for rings in countries.values() for ring in rings for a in ring})
    number = {arc: i for i, arc in enumerate(used)}
    renumbered = {
        name: [[number[a] if a >= 0 else ~number[~a] for a in ring] for ring in rings]
        for name, rings in countries.items()
    }
    document = {
        "source": f"Natural Earth 1:50m (public domain), npm {PACKAGE}, simplified by tools/world.py",
        "steps_per_degree": STEPS_PER_DEGREE,
        "names": list(renumbered),
        "rings": list(renumbered.values()),
        "arcs": packed([arcs[arc] for arc in used]),
    }
    OUT.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    points = sum(len(arcs[arc]) for arc in used)
    print(f"{OUT.name}: {OUT.stat().st_size:,} bytes, {points:,} points, {len(renumbered)} countries")


if __name__ == "__main__":
    main()
