"""Headless Chromium with an empty profile that asks the network for nothing; skipped where there is none."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

MISSING = "needs chromium and chromedriver: `make browser` installs them on Debian"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars", "--window-size=1200,1500",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(MISSING)
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options=options, service=ChromeService(driver))
    running.set_page_load_timeout(120)
    yield running
    running.quit()


class Seen:
    """A page in the browser, and what a person would do with it."""

    def __init__(self, browser: Any, page: Path | str, address: str = "") -> None:
        self.browser = browser
        self.url = page if isinstance(page, str) else page.as_uri()
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get("about:blank")  # else a new hash would not load the page again
        browser.get(self.url + address)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.browser.execute_script(text, *arguments)

    def text(self, selector: str) -> str:
        return str(self.script("return document.querySelector(arguments[0]).textContent", selector))

    def click(self, selector: str) -> None:
        found = self.browser.find_element("css selector", selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()

    def slide(self, control: str, value: float) -> None:
        """What a hand on a slider does: the value, then the event."""
        self.script(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            control,
            value,
        )

    def type(self, text: str) -> None:
        field = self.browser.find_element("id", "search")
        field.clear()
        field.send_keys(text)

    def lines(self, chart: str) -> dict[str, dict[str, list[float]]]:
        """The lines of a chart by name, as they are drawn."""
        found = self.script("return shown.charts[arguments[0]].shown.series", chart)
        return {line["name"]: line for line in found}

    def ranking(self) -> list[str]:
        return list(
            self.script("return [...document.querySelectorAll('#ranking .place')].map((place) => place.dataset.id)")
        )

    @property
    def address(self) -> str:
        return str(self.script("return decodeURIComponent(location.hash)"))

    def requests(self) -> set[str]:
        """Everything that was asked of a network or a disk since the page was opened, but for the page itself."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
        own = self.url.split("#")[0]
        return {url for url in asked if not url.startswith(("data:", "blob:", "about:")) and url.split("#")[0] != own}

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]

    def downloaded(self, folder: Path, button: str) -> list[dict[str, str]]:
        """The rows of the CSV file that a button gives."""
        allow = {"behavior": "allow", "downloadPath": str(folder)}
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
        self.click(button)
        for _ in range(100):
            found = list(folder.glob("*.csv"))
            if found:
                with found[0].open(newline="") as file:
                    rows = list(csv.DictReader(file))
                found[0].unlink()
                return rows
            time.sleep(0.05)
        raise AssertionError("nothing was downloaded")

    def violations(self) -> list[str]:
        """What axe finds wrong for people who see, hear or move differently."""
        from axe_core_python import base

        source = Path(base.__file__).parent.joinpath("axe.min.js").read_text(encoding="utf-8")
        self.script(source)
        found = self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run(document).then((result) => done(result.violations))"
        )
        return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]

    def emulate(self, width: int, dark: bool) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Seen]]:
    """Opens a page; the window is as it was when the test ends."""
    yield lambda page, address="": Seen(browser, page, address)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [], "media": ""})


def first_picture(browser: Any, page: Path) -> float:
    """Seconds of CPU of the page's main thread until everything is drawn."""
    browser.execute_cdp_cmd("Performance.disable", {})
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.get("about:blank")

    def spent() -> float:
        metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float({metric["name"]: metric["value"] for metric in metrics}["TaskDuration"])

    before = spent()
    browser.get(page.as_uri())
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    after = spent()
    return after - before if after > before else after
