"""A store inside a real Jupyter kernel, with and without ipywidgets: DuckDB treats its progress bar differently."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

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
    status, shown = run(CELL)
    assert (status, shown[-1]) == ("ok", "1 True [(False,)]")
    # A fit that compiles takes long enough for isuit's own bar, which is one line of HTML; DuckDB draws none.
    assert all("<progress" in line or "IPython.core.display.HTML" in line for line in shown[:-1])


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "notebook.py"


@pytest.mark.long
@pytest.mark.parametrize("widgets", [WITHOUT, WITH], ids=["without", "with"])
def test_the_example_is_a_notebook_that_runs(tmp_path: Path, widgets: str) -> None:
    """Cell by cell, as an editor or jupytext cuts the file, by the client that CI systems run notebooks with."""
    cells = re.split(r"^# %%.*\n", EXAMPLE.read_text(), flags=re.MULTILINE)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (widgets, *cells)])
    # What a cell shows is what its last line is worth: a fit, a table, a store.
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    said = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "<latent fit isuit-f1:" in said
    assert "False identical True" in said
    shown = [output.data for output in outputs if output.output_type == "execute_result"]
    assert sum("<table" in data.get("text/html", "") for data in shown) >= 3, "scores, store and diagnostics"
    assert any("image/svg+xml" in data for data in shown), "the picture"


BAR = """
import time
from isuit.service.bars import notebook_progress
with notebook_progress() as progress:
    for share in (0.2, 0.6, 1.0):
        time.sleep(0.6)
        progress("fit <b>", share)
"""


@pytest.mark.parametrize("widgets", [WITHOUT, WITH], ids=["without", "with"])
def test_long_work_has_a_bar(run: Callable[[str], tuple[str, list[str]]], widgets: str) -> None:
    assert run(widgets) == ("ok", [])
    status, shown = run(BAR)
    assert status == "ok"
    assert 'value="0.600"' in shown[0]
    assert "fit &lt;b&gt;" in shown[0]
    assert run("print('one line, no bar')") == ("ok", ["one line, no bar"])
