"""The Python interface, and the example in the docs that shows it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isuit
from isuit.errors import StoreError

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "notebook.py"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = runpy.run_path(str(EXAMPLE))
    said = capsys.readouterr().out
    assert "<latent fit isuit-f1:" in said
    assert "False identical True" in said
    assert (found["folder"] / "difficulty.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in found["fit"]._repr_html_()


def test_frames_of_any_library_are_the_same_cohort(tmp_path: Path, cohort_table: Callable[..., pa.Table]) -> None:
    table = cohort_table(51)
    store = isuit.open(tmp_path / "store")
    hashes = {
        store.fit(frame).record.cohort_hash for frame in (table, pd.DataFrame(table.to_pydict()), pl.from_arrow(table))
    }
    assert len(hashes) == 1
    assert len(store.fits()) == 1
    fit = store[hashes.pop()]
    assert pl.DataFrame(fit.curves).columns == [
        "site",
        "dimension",
        "metric",
        "difficulty",
        "difficulty_se",
        "suitability",
        "suitability_lower",
        "suitability_upper",
    ]
    assert fit.curves.to_pandas().shape[0] == store.atlas().num_rows
    assert store.trajectory("rider-0001").num_rows == 1
    assert store.verify(store.status().log_head).ok


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        isuit.open(tmp_path / "none").status()
    assert not (tmp_path / "none").exists()
