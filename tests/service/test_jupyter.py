"""A store inside a real Jupyter kernel, with and without ipywidgets: DuckDB treats its progress bar differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

# A kernel warns on its own account, about its transport and about what pytest turns into errors.
pytestmark = pytest.mark.filterwarnings("default")
WITHOUT = "import sys; sys.modules['ipywidgets'] = None  # as if it were not installed"
WITH = "import ipywidgets"
CELL = """
import isuit, pyarrow as pa
from isuit.service.history import init
from pathlib import Path
init(Path("store"))
riders = [f"r{i % 20}" for i in range(200)]
store = isuit.open("store")
metric, outcome = [i * 7 % 31 / 3 for i in range(200)], [i % 3 % 2 for i in range(200)]
store.fit(pa.table({"rider": riders, "metric": metric, "outcome": outcome}))
from isuit.service.stores import open_store
with open_store(Path("store")) as opened:
    bar = opened.connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
print(len(store.fits()), store.verify().ok, bar)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str], tuple[str, list[str]]]]:
    """Runs a cell in a kernel of its own; gives the status and everything the cell showed."""
    manager = KernelManager()
    manager.start_kernel(cwd=str(tmp_path))
    client: BlockingKernelClient = manager.client()
    client.start_channels()

    def execute(cell: str) -> tuple[str, list[str]]:
        shown: list[str] = []

        def note(message: dict) -> None:
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                shown.append(content["text"].strip())
            elif message["msg_type"] == "error":
                shown.append(f"{content['ename']}: {content['evalue']}")
            elif message["msg_type"] in ("display_data", "execute_result"):
                shown.append(str(content["data"]))

        reply = client.execute_interactive(cell, output_hook=note, timeout=300)
        return reply["content"]["status"], shown

    try:
        client.wait_for_ready(timeout=120)
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("widgets", [WITHOUT, WITH], ids=["without", "with"])
def test_every_call_works_and_no_bar_is_drawn(run: Callable[[str], tuple[str, list[str]]], widgets: str) -> None:
    assert run(widgets) == ("ok", [])
    assert run(CELL) == ("ok", ["1 True [(False,)]"])
