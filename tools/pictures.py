"""Screenshots of every page, at three widths, light and dark, into docs/pictures: to be looked at.

    make pictures

A season of made-up riders at forty real beaches is drawn, fitted, reported and released; headless Chromium does the
rest.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isuit.domain import FitConfig
from isuit.service.fitting import fit
from isuit.service.releases import export_atlas
from isuit.service.reports import report

OUT = Path(__file__).parent.parent / "docs" / "pictures" / "pages"
WIDTHS = {"phone": 390, "tablet": 820, "wide": 1280}
SEEN = 1400  # pixels from the top: a page goes on, but a picture that is looked at ends
BEACHES = {
    "Tarifa": (36.01, -5.60), "Essaouira": (31.51, -9.77), "Leucate": (42.90, 3.05), "Hyères": (43.08, 6.15),
    "Lo Stagnone": (37.87, 12.44), "Porto Pollo": (41.19, 9.33), "Prasonisi": (35.88, 27.77),
    "Dakhla": (23.70, -15.93), "Sotavento": (28.05, -14.33), "Viana do Castelo": (41.70, -8.85),
    "Guincho": (38.73, -9.47), "Brouwersdam": (51.76, 3.86), "Workum": (52.97, 5.42),
    "Sankt Peter-Ording": (54.30, 8.60), "Fehmarn": (54.43, 11.20), "Rømø": (55.10, 8.50),
    "Klitmøller": (57.04, 8.48), "Hood River": (45.71, -121.50), "Cabarete": (19.76, -70.41),
    "Jericoacoara": (-2.80, -40.50), "Cumbuco": (-3.60, -38.70), "Cape Town": (-33.90, 18.40),
    "Langebaan": (-33.10, 18.03), "Le Morne": (-20.45, 57.32), "Zanzibar": (-6.20, 39.50), "El Gouna": (27.40, 33.67),
    "Dahab": (28.48, 34.50), "Soma Bay": (26.85, 33.98), "Mui Ne": (10.95, 108.30), "Boracay": (11.98, 121.90),
    "Perth": (-31.95, 115.75), "St Kilda": (-37.86, 144.97), "La Ventana": (24.05, -109.99), "Maui": (20.90, -156.40),
    "Aruba": (12.60, -70.05), "Dungeness": (50.91, 0.97), "Camber": (50.93, 0.79), "Tiree": (56.50, -6.90),
    "Achill": (53.97, -10.00), "Silvaplana": (46.45, 9.79),
}  # fmt: skip


def season(riders: int = 400, outcomes: int = 16_000) -> pa.Table:
    rng = np.random.default_rng(3)
    names = list(BEACHES)
    level, best = rng.normal(0, 0.6, len(names)), rng.normal(20, 2.5, len(names))
    skill, rider = rng.normal(0, 1, riders), rng.integers(0, riders, outcomes)
    popular = 1 / np.arange(1, len(names) + 1) ** 0.7
    homes = rng.choice(len(names), (riders, 4), p=popular / popular.sum())
    site = homes[rider, rng.integers(0, 4, outcomes)]
    wind = np.clip(rng.gamma(9, 2.1, outcomes) + 1.2 * skill[rider], 5, 42).round(1)
    difficulty = ((wind - best[site]) / 8) ** 2 - 1 + level[site]
    landed = rng.random(outcomes) < 1 / (1 + np.exp(-1.7 * (skill[rider] - difficulty)))
    start = datetime(2023, 1, 1, tzinfo=UTC)
    when = [start + timedelta(minutes=int(minutes)) for minutes in rng.integers(0, 500_000, outcomes)]
    columns = {
        "rider": [f"r{number * 7919 % 100_003:05d}-{number}" for number in rider],
        "site": [names[number] for number in site],
        "observed_at": pa.array(when, pa.timestamp("us", tz="UTC")),
        "metric": wind,
        "outcome": landed.astype(int),
    }
    return pa.table(columns)


def wind_and_wave(riders: int = 150, outcomes: int = 6_000) -> pa.Table:
    """Outings without places, whose difficulty hangs on wind and wave together."""
    rng = np.random.default_rng(4)
    skill, rider = rng.normal(0, 1, riders), rng.integers(0, riders, outcomes)
    wind = np.clip(rng.gamma(9, 2.1, outcomes), 5, 42)
    wave = np.clip(0.06 * wind + rng.gamma(3, 0.3, outcomes), 0.1, 5)
    difficulty = ((wind - 20) / 9) ** 2 + 0.5 * (wave - 1.5) + 0.03 * (wind - 20) * (wave - 1.5) - 1
    landed = rng.random(outcomes) < 1 / (1 + np.exp(-1.7 * (skill[rider] - difficulty)))
    names = [f"r{number * 7919 % 100_003:05d}-{number}" for number in rider]
    return pa.table({"rider": names, "wind_kn": wind.round(1), "wave_m": wave.round(2), "outcome": landed.astype(int)})


def pages(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Name, file and address of every page."""
    store = folder / "store"
    found = fit(store, season(), FitConfig(activity="kitesurfing", dimension="wind_kn"), sites=BEACHES)
    report(store, found.fit_id, folder / "report.html")
    yield "report", folder / "report.html", ""
    yield "report-expert", folder / "report.html", "#site=Tarifa&site=Dahab&metric=30&skill=1&by=suitability"
    for day in ("2024-07-01", "2025-01-01"):
        export_atlas(store, folder / "site", release=day, kind="site")
    yield "atlas", folder / "site" / "2025-01-01" / "atlas.html", ""
    yield "site", folder / "site" / "index.html", ""
    several = folder / "several"
    found = fit(several, wind_and_wave(), FitConfig(activity="kitesurfing"), metrics=("wind_kn", "wave_m"))
    report(several, found.fit_id, folder / "surface.html")
    yield "surface", folder / "surface.html", ""


def browser(folder: Path) -> Any:
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise SystemExit("Chromium is not here: run `make chromium`")
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"):
        options.add_argument(flag)
    return Chrome(options=options, service=ChromeService(driver))


def main() -> None:
    from PIL import Image

    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = browser(folder / "profile")
        for page, path, address in pages(folder):
            for theme in ("light", "dark"):
                scheme = {"name": "prefers-color-scheme", "value": theme}
                running.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
                for device, width in WIDTHS.items():
                    size = {"width": width, "height": SEEN, "deviceScaleFactor": 1, "mobile": width < 500}
                    running.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                    running.get("about:blank")
                    running.get(path.as_uri() + address)
                    running.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
                    out = OUT / f"{page}-{device}-{theme}.png"
                    out.write_bytes(running.get_screenshot_as_png())
                    # A quarter of the bytes, and nothing that one would see.
                    Image.open(out).convert("RGB").quantize(256).save(out, optimize=True)
                    print(out.name, out.stat().st_size)
        running.quit()


if __name__ == "__main__":
    main()
