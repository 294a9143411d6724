"""One table of formats by ending: what one command reads or writes, every other one does too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isuit.cli.app import main

from isuit.errors import InputError
from isuit.ingest import read_cohort
from isuit.service.history import fits
from isuit.service.inputs import read_sites
from isuit.tables import ENDINGS, format_of, read_table, write_table

EVERY = sorted(ENDINGS)
PLAIN = pa.table({"site": ["007", "north"], "metric": [1.5, 2.0], "latitude": [60.0, 45.5], "longitude": [10.0, -3.25]})


@pytest.mark.parametrize("ending", EVERY)
def test_what_is_written_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"TABLE{ending.upper()}"
    write_table(PLAIN, path)
    assert read_table(path, text_columns=["site"]).equals(PLAIN)
    assert read_sites(path) == {"007": (60.0, 10.0), "north": (45.5, -3.25)}


def test_compressed_text_is_compressed(tmp_path: Path) -> None:
    write_table(PLAIN, tmp_path / "table.csv.gz")
    assert (tmp_path / "table.csv.gz").read_bytes().startswith(b"\x1f\x8b")


def test_parquet_and_arrow_are_known_by_their_content(tmp_path: Path) -> None:
    for ending in (".parquet", ".arrow"):
        write_table(PLAIN, tmp_path / f"table{ending}")
        (tmp_path / f"table{ending}").rename(tmp_path / "table.csv")
        assert read_table(tmp_path / "table.csv").equals(PLAIN)


def test_what_names_no_format(tmp_path: Path) -> None:
    assert format_of(Path("table.xlsx")) is None
    with pytest.raises(InputError, match=r"table\.xlsx names no format; use \.parquet, \.pq"):
        write_table(PLAIN, tmp_path / "table.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"ARROW1\0\0 and no more", b"\xff\xfe\x00"])
def test_what_cannot_be_read_is_one_sentence_without_its_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_table(tmp_path / "table.csv", text_columns=["site"])
    assert str(refused.value) == "table.csv cannot be read as CSV, Parquet or Arrow; check its path and form"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr("sys.argv", ["isuit", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_every_command_reads_and_writes_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cohort_table: Callable[..., pa.Table]
) -> None:
    """A cohort goes through pseudonymise in every format; its scores and the atlas are written in every format."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(cohort_table(1, riders=20, outcomes=15), tmp_path / "cohort.parquet")
    assert run(monkeypatch, "fit", "--cohort", "cohort.parquet") == 0
    [fit] = [record.fit_id for record in fits(tmp_path / "isuit-store")]
    hashes = set()
    for ending in EVERY:
        assert run(monkeypatch, "pseudonymise", "cohort.parquet", "--out", f"tokens{ending}") == 0
        assert (tmp_path / f"tokens{ending}").stat().st_mode & 0o777 == 0o600
        with read_cohort(str(tmp_path / f"tokens{ending}")) as cohort:
            hashes.add(cohort.cohort_hash)
        write_table(pa.table({"metric": [12.0, 18.0]}), tmp_path / f"conditions{ending}")
        scores = tmp_path / f"scores{ending}"
        given = ("--conditions", f"conditions{ending}", "--skill", "expert", "--out", scores)
        assert run(monkeypatch, "score", fit, *given) == 0
        assert read_table(scores).column("metric").to_pylist() == [12.0, 18.0]
        assert run(monkeypatch, "atlas", "--out", f"atlas{ending}") == 0
        assert read_table(tmp_path / f"atlas{ending}").num_rows == 101
    assert len(hashes) == 1
