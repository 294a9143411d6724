"""The control of a release: what its rules cost on a healthy cohort.

    python benchmarks/release.py path/to/spots.csv

Twelve real spots in twelve cells, 60 riders each, a third of whom visit two spots, 20 outcomes per rider. Printed:
the share of the bins holding at least k riders that are released (saturated counts as released), and the RMSE of the
published difficulties against the truth, beside that of the unrounded fit of all outcomes, at the same points.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SPOTS, RIDERS, OUTCOMES, K = 12, 60, 20, 10


def spots(path: Path) -> dict[str, tuple[float, float]]:
    """The first twelve spots of the file that lie in twelve different cells."""
    chosen: dict[str, tuple[float, float]] = {}
    seen = set()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            place = (float(row["latitude"]), float(row["longitude"]))
            cell = h3.latlng_to_cell(*place, 7)
            if cell not in seen and len(chosen) < SPOTS:
                seen.add(cell)
                chosen[row["slug"]] = place
    return chosen


def cohort(names: list[str], seed: int) -> tuple[pa.Table, np.ndarray]:
    random = np.random.default_rng(seed)
    level = random.normal(0, 0.4, len(names))
    riders = len(names) * RIDERS
    skill = random.standard_normal(riders)
    home = np.arange(riders) // RIDERS
    second = (home + random.integers(1, len(names), riders)) % len(names)
    two = random.random(riders) < 1 / 3
    rider = np.repeat(np.arange(riders), OUTCOMES)
    spot = np.where(two[rider] & (random.random(rider.size) < 0.5), second[rider], home[rider])
    metric = random.uniform(3, 35, rider.size)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + level[spot]
    outcome = random.random(rider.size) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    start = datetime(2025, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=int(minute)) for minute in random.integers(0, 200_000, rider.size)]
    columns = {
        "rider": [f"rider-{number:04d}" for number in rider],
        "site": [names[number] for number in spot],
        "metric": metric,
        "outcome": outcome.astype(np.int8),
        "observed_at": pa.array(times, pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns), level


def isuit(*arguments: str) -> str:
    program = Path(sys.executable).with_name("isuit")  # of this environment, whatever the path is
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def main(path: Path, seed: int = 1) -> None:
    places = spots(path)
    names = list(places)
    table, level = cohort(names, seed)
    cell_of = {name: h3.latlng_to_cell(*place, 7) for name, place in places.items()}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        pq.write_table(table, work / "cohort.parquet")
        lines = [f"{name},{latitude},{longitude}" for name, (latitude, longitude) in places.items()]
        (work / "sites.csv").write_text("\n".join(["site,latitude,longitude", *lines]) + "\n")
        store = str(work / "store")
        files = ["--cohort", str(work / "cohort.parquet"), "--sites", str(work / "sites.csv"), "--store", store]
        fit = json.loads(isuit("fit", *files, "--json"))
        curves = json.loads(isuit("show", fit["fit_id"], "--store", store, "--json"))["curves"]
        began = datetime.now(UTC)
        isuit("export-atlas", "--store", store, "--release", "2026-01-01", "--out", str(work / "atlas.jsonl"))
        seconds = (datetime.now(UTC) - began).total_seconds()
        rows = [json.loads(line) for line in (work / "atlas.jsonl").read_text().splitlines()[:-1]]
    held = riders_per_bin(table, cell_of, rows)
    enough = {key for key, riders in held.items() if len(riders) >= K}
    released = {(row["h3"], row["metric_lower"]) for row in rows if row["status"] in ("estimated", "saturated")}
    print(f"bins that hold {K} riders: {len(enough)}; released: {len(enough & released)} "
          f"({len(enough & released) / len(enough):.1%}); released with fewer: {len(released - enough)}")  # fmt: skip
    rounded, unrounded = errors(rows, curves, names, cell_of, level)
    print(f"RMSE of {len(rounded)} published difficulties: {rms(rounded):.3f}; of the unrounded fit there: "
          f"{rms(unrounded):.3f}; difference {rms(rounded) - rms(unrounded):+.3f}")  # fmt: skip
    print(f"the release took {seconds:.1f} s")


def riders_per_bin(
    table: pa.Table, cell_of: dict[str, str], rows: list[dict[str, float]]
) -> dict[tuple[str, float], set[str]]:
    lower = sorted({row["metric_lower"] for row in rows})
    upper = max(row["metric_upper"] for row in rows)
    edges = np.array([*lower, upper])
    found: dict[tuple[str, float], set[str]] = defaultdict(set)
    columns = (table.column(name).to_pylist() for name in ("rider", "site", "metric"))
    for rider, site, metric in zip(*columns, strict=True):
        if lower[0] <= metric <= upper:
            place = min(int(np.searchsorted(edges, metric, side="right")) - 1, len(lower) - 1)
            found[cell_of[site], lower[place]].add(rider)
    return found


def errors(
    rows: list[dict[str, float]],
    curves: list[dict[str, float]],
    names: list[str],
    cell_of: dict[str, str],
    level: np.ndarray,
) -> tuple[list[float], list[float]]:
    site_of = {cell: name for name, cell in cell_of.items()}
    by_site: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for point in curves:
        by_site[str(point["site"])].append((point["metric"], point["difficulty"]))
    rounded, unrounded = [], []
    for row in rows:
        if row["status"] != "estimated":
            continue
        name = site_of[str(row["h3"])]
        truth = ((row["metric"] - 18) / 8) ** 2 - 1 + level[names.index(name)]
        metric, difficulty = zip(*by_site[name], strict=True)
        rounded.append(row["difficulty"] - truth)
        unrounded.append(float(np.interp(row["metric"], metric, difficulty)) - truth)
    return rounded, unrounded


def rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("name the file of spots: python benchmarks/release.py spots.csv [seed]")
    main(Path(sys.argv[1]), *(int(seed) for seed in sys.argv[2:3]))
