"""A DuckDB file for BI tools: the curves and nobody, and it can be replaced while a tool has it open."""

from __future__ import annotations

from pathlib import Path

import duckdb

import isuit
from isuit.service import history


def test_a_tool_reads_it_while_the_store_is_in_use(store_copy: Path, tmp_path: Path) -> None:
    out = tmp_path / "atlas.duckdb"
    store = isuit.open(store_copy)
    written = history.atlas(store_copy, out=out)
    with duckdb.connect(str(out), read_only=True) as tool:
        tables = {name for (name,) in tool.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert tables == {"atlas", "curves", "sites", "fits", "aliases"}
        assert tool.execute("SELECT count(*) FROM atlas").fetchall() == [(written.num_rows,)]
        assert tool.execute("SELECT count(*) FROM fits").fetchall() == [(3,)]
        # The store is written, and the copy made anew, while the tool has the old one open.
        store.alias("kite-2026", store.fits()[0])
        history.atlas(store_copy, out=out)
        assert tool.execute("SELECT count(*) FROM aliases").fetchall() == [(0,)]
    with duckdb.connect(str(out), read_only=True) as tool:
        assert tool.execute("SELECT alias FROM aliases").fetchall() == [("kite-2026",)]
        # No value of any column is a rider's ID or speaks of one.
        columns = tool.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
        assert not {name for _, name in columns} & {"rider", "skill_mean", "salt", "leaf", "token", "outcome"}
    riders = {rider for fit in store.fits() for rider in fit.skills.column("rider").to_pylist()}
    content = out.read_bytes()
    assert riders
    assert not [rider for rider in riders if rider.encode() in content]
    assert out.stat().st_mode & 0o077 == 0
