"""CSV files as people have them: what is found is said, and a file reads to the same hash as its standard form."""

from __future__ import annotations

import bz2
import io
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from isuit.errors import InputError
from isuit.ingest import RefusedCohort, read_cohort

STANDARD = (
    "rider,site,observed_at,metric,outcome\nJörg,Kiel,2024-05-01T09:30:00Z,12.5,1\nAna,Çeşme,2024-05-13T18:00:00Z,7,0\n"
)
GERMAN = (
    "rider;site;observed_at;metric;outcome\nJörg;Kiel;01.05.2024 11:30;12,5;ja\nAna;Çeşme;13.5.2024 20:00:00;7;Nein\n"
)


def hash_of(path: Path, **reading: object) -> tuple[str, tuple[str, ...]]:
    with read_cohort(path, **reading) as cohort:  # type: ignore[arg-type]
        return cohort.cohort_hash, cohort.report.notes


@pytest.fixture
def standard(tmp_path: Path) -> str:
    path = tmp_path / "standard.csv"
    path.write_text(STANDARD)
    found, notes = hash_of(path)
    assert notes == ()
    return found


def test_a_german_export_is_the_same_cohort_and_it_is_said(tmp_path: Path, standard: str) -> None:
    path = tmp_path / "export.csv"
    path.write_text(GERMAN)
    found, notes = hash_of(path, timezone="Europe/Berlin")
    assert found == standard
    assert notes == (
        "export.csv is read as: separated by semicolon, decimal comma, dates as dd.mm.yyyy, outcomes as ja/nein",
    )


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    rows = "rider,site,metric,outcome\nJörg,Málaga,12.5,1\nZoë,Kiel,7,0\n"
    (tmp_path / "plain.csv").write_text(rows)
    (tmp_path / "other.csv").write_bytes(rows.encode(encoding))
    found, notes = hash_of(tmp_path / "other.csv")
    assert found == hash_of(tmp_path / "plain.csv")[0]
    assert notes == (() if encoding == "utf-8-sig" else (f"other.csv is read as: encoded as {encoding}",))


def test_a_file_of_two_encodings_reads_as_before(tmp_path: Path) -> None:
    """Its names are UTF-8 and another column is not: it reads today, so its hash must not change."""
    path = tmp_path / "mixed.csv"
    path.write_bytes("rider,note,metric,outcome\nJörg,".encode() + "größer".encode("cp1252") + b",1,1\nb,,2,0\n")
    (tmp_path / "plain.csv").write_text("rider,metric,outcome\nJörg,1,1\nb,2,0\n")
    assert hash_of(path) == hash_of(tmp_path / "plain.csv")


@pytest.mark.parametrize(
    ("separator", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")], ids=["semicolon", "tab", "bar"]
)
def test_separators(tmp_path: Path, standard: str, separator: str, name: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(STANDARD.replace(",", separator))
    assert hash_of(path) == (standard, (f"other.csv is read as: separated by {name}",))
    assert hash_of(path, csv={"separator": name})[0] == standard
    (tmp_path / "other.tsv").write_text(STANDARD)
    assert hash_of(tmp_path / "other.tsv")[0] == standard


@pytest.mark.parametrize(
    ("times", "iso"),
    [
        (["13/02/2024 10:00", "1/2/2024 9:00"], ["2024-02-13T10:00:00Z", "2024-02-01T09:00:00Z"]),
        (["02/13/2024 10:00", "1/2/2024 9:00"], ["2024-02-13T10:00:00Z", "2024-01-02T09:00:00Z"]),
        (["13.02.2024", "01.02.2024"], ["2024-02-13T00:00:00Z", "2024-02-01T00:00:00Z"]),
    ],
    ids=["day first", "month first", "days alone"],
)
def test_the_order_of_day_and_month_is_told_by_the_data(tmp_path: Path, times: list[str], iso: list[str]) -> None:
    for name, column in (("a", times), ("b", iso)):
        rows = "".join(f"r{number},{time},1,1\n" for number, time in enumerate(column))
        (tmp_path / f"{name}.csv").write_text(f"rider,observed_at,metric,outcome\n{rows}")
    assert hash_of(tmp_path / "a.csv", timezone="UTC")[0] == hash_of(tmp_path / "b.csv")[0]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("a;01/02/2024 10:00;1;1", "not an ISO 8601 time"),  # January or February
        ("a;2024-01-02T10:00:00Z;1,234;1", "not a number"),  # a thousand, or a little more than one
        ("a;2024-01-02T10:00:00Z;1,5;1\nb;2024-01-02T10:00:00Z;1.5;1", "not a number"),
        ("a;2024-01-02T10:00:00Z;1;vielleicht", "not 0, 1, true or false"),
        ("a;2024-01-02T10:00:00Z;1;ja\nb;2024-01-02T10:00:00Z;1;oui", "not 0, 1, true or false"),
    ],
    ids=["day or month", "thousands", "both signs", "no word", "two languages"],
)
def test_what_can_be_read_in_two_ways_is_refused(tmp_path: Path, rows: str, sentence: str) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text(f"rider;observed_at;metric;outcome\n{rows}\n")
    with pytest.raises(RefusedCohort, match=sentence):
        hash_of(path, timezone="UTC")


def test_what_is_declared_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text("rider;observed_at;metric;outcome\na;01/02/2024 10:00;1,234;geschafft\nb;02/03/2024 9:00;2;nicht\n")
    (tmp_path / "plain.csv").write_text(
        "rider,observed_at,metric,outcome\na,2024-02-01T10:00:00Z,1.234,1\nb,2024-03-02T09:00:00Z,2,0\n"
    )
    told = {"decimal": "comma", "dates": "dd/mm/yyyy", "outcomes": "geschafft/nicht"}
    assert hash_of(path, timezone="UTC", csv=told)[0] == hash_of(tmp_path / "plain.csv")[0]
    for wrong in ({"sep": ";"}, {"decimal": "x"}, {"encoding": "klingon"}, {"dates": "yy"}, {"outcomes": "ja"}):
        with pytest.raises(InputError, match="--csv"):
            hash_of(path, csv=wrong)


def test_an_error_names_the_columns_and_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text("Rider;wind;outcome\na;1;1\n")
    with pytest.raises(RefusedCohort, match="has the columns Rider, wind, outcome, separated by semicolon") as caught:
        hash_of(path)
    assert "--column rider=Rider?" in str(caught.value)
    path.write_text("annas-own-id,12.5,1\nother,3,0\n")  # no header: its first line is somebody's
    with pytest.raises(RefusedCohort) as caught:
        hash_of(path)
    assert "annas" not in str(caught.value)


def test_columns_that_are_called_almost_so_are_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text("rider,Site,ObservedAt,metric,outcome\na,Kiel,2024-01-02T10:00:00Z,1,1\n")
    with read_cohort(path) as cohort:
        assert cohort.report.sites == 0
        assert cohort.report.notes == (
            "the column 'Site' is not read; --column site=Site reads it as site",
            "the column 'ObservedAt' is not read; --column observed_at=ObservedAt reads it as observed_at",
        )


def test_missing_values_are_left_out_counted_and_others_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text("rider,metric,outcome\na,1,1\n,2,0\nb,,1\nc,,\nd,4,0\n")
    (tmp_path / "whole.csv").write_text("rider,metric,outcome\na,1,1\nd,4,0\n")
    with read_cohort(path, drop_missing=True) as cohort:
        assert cohort.cohort_hash == hash_of(tmp_path / "whole.csv")[0]
        assert (cohort.report.rows, cohort.report.outcomes, cohort.report.missing_rows) == (5, 2, 3)
        assert cohort.report.excluded_rows == 0
        assert cohort.report.notes == (
            "3 rows with missing values were left out (1 without rider, 2 without metric, 1 without outcome)",
        )
    with pytest.raises(RefusedCohort, match="missing"):
        hash_of(path)
    path.write_text("rider,metric,outcome\na,1,1\n,2,0\nb,x,1\n")
    with pytest.raises(RefusedCohort, match=r"column metric: not a number in 1 row \(row 3\)"):
        hash_of(path, drop_missing=True)
    table = pa.table({"rider": ["a", "b"], "metric": [float("nan"), 1.0], "outcome": [1, 0]})
    assert read_cohort(table, drop_missing=True).report.outcomes == 1
    with pytest.raises(InputError, match="no outcomes"):
        read_cohort(table.slice(0, 1), drop_missing=True)


def test_compressed_files_standard_input_and_spreadsheets(tmp_path: Path, standard: str) -> None:
    (tmp_path / "cohort.csv.bz2").write_bytes(bz2.compress(STANDARD.encode()))
    with pa.output_stream(str(tmp_path / "cohort.csv.zst"), compression="zstd") as out:
        out.write(STANDARD.encode())
    for name in ("cohort.csv.bz2", "cohort.csv.zst"):
        assert hash_of(tmp_path / name)[0] == standard
    sheet = io.BytesIO()
    pa.parquet.write_table(pa.table({"rider": ["a"], "metric": [1.0], "outcome": [1]}), sheet)
    isuit = Path(sys.executable).with_name("isuit")
    for given in (STANDARD.encode(), sheet.getvalue()):
        done = subprocess.run([isuit, "hash", "-"], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (done.stdout.decode().strip() == standard) == (given == STANDARD.encode())
    (tmp_path / "packed.csv").write_bytes(bz2.compress(STANDARD.encode()))
    with pytest.raises(RefusedCohort, match=r"is compressed and not called so: name it packed\.csv\.bz2") as refusal:
        hash_of(tmp_path / "packed.csv")
    assert "has the columns" not in str(refusal.value)
    (tmp_path / "cohort.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(RefusedCohort, match="save its sheet as CSV"):
        hash_of(tmp_path / "cohort.xlsx")


def test_bytes_that_no_encoding_has_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cohort.csv"
    path.write_bytes(b"rider,metric,outcome\n" + b"Zo\xeb,12,1\nJo\x8d,14,0\n" * 20)
    with pytest.raises(InputError, match=r"cohort\.csv"):
        read_cohort(path)


@pytest.mark.parametrize(
    ("cells", "metric", "told"),
    [
        (["1.234,5", "17", "2.000.000"], [1234.5, 17, 2e6], "decimal comma, point between thousands"),
        (['"1,234.5"', "17.25", '"1,000"'], [1234.5, 17.25, 1000], "comma between thousands"),
        (["1\u00a0234,5", "17", "3"], [1234.5, 17, 3], "decimal comma, space between thousands"),
        (["1'234.5", "17", "3"], [1234.5, 17, 3], "apostrophe between thousands"),
    ],
)
def test_thousands_where_they_can_be_told(tmp_path: Path, cells: list[str], metric: list[float], told: str) -> None:
    separator = "," if '"' in cells[0] else ";"
    rows = [separator.join(("rider", "metric", "outcome")), *(f"r{separator}{cell}{separator}1" for cell in cells)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    with read_cohort(tmp_path / "a.csv") as cohort:
        [batch] = cohort.batches()
        assert sorted(batch.column("metric").to_pylist()) == sorted(metric)
        assert told in cohort.report.notes[0]


def test_a_point_that_may_divide_thousands_is_a_decimal_point_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rider;metric;outcome\nr;1.234;1\nr;17;0\n")
    _, notes = hash_of(tmp_path / "a.csv")
    assert notes == ("a.csv is read as: separated by semicolon, decimal point, so that 1.234 is a little more than 1",)
    (tmp_path / "b.csv").write_text("rider;metric;outcome\nr;1.234,5;1\nr;1.23,5;0\n")  # no thousands in 1.23
    with pytest.raises(RefusedCohort, match="not a number"):
        read_cohort(tmp_path / "b.csv")


def test_a_few_dates_that_are_none_are_named(tmp_path: Path) -> None:
    rows = [f"a;{day:02}.05.2024;7,5;1" for day in range(1, 21)]
    rows[3], rows[7] = "a;04.05,2024;7,5;1", "a;Ende Mai;7,5;1"
    (tmp_path / "a.csv").write_text("\n".join(["rider;observed_at;metric;outcome", *rows]))
    with pytest.raises(RefusedCohort, match=r"not an ISO 8601 time .* in 2 rows \(rows 4, 8\)"):
        read_cohort(tmp_path / "a.csv", timezone="UTC")


def test_what_spreadsheets_leave_behind(tmp_path: Path, standard: str) -> None:
    """A line `sep=;`, days without times, words for nothing, an empty cell for a failure, a title, Apple's Numbers."""
    path = tmp_path / "a.csv"
    path.write_text("sep=;\r\n" + GERMAN.replace("\n", "\r\n"))
    assert hash_of(path, timezone="Europe/Berlin")[0] == standard
    path.write_text("rider,observed_at,metric,outcome\na,2024-05-01,7,1\n")
    found, notes = hash_of(path, timezone="UTC")
    assert notes == ("a.csv is read as: dates as yyyy-mm-dd, days without a time begin at midnight",)
    days = pa.table({"rider": ["a"], "observed_at": [date(2024, 5, 1)], "metric": [7], "outcome": [1]})
    with read_cohort(days, timezone="UTC") as cohort:
        assert cohort.cohort_hash == found
    path.write_text("rider,metric,outcome\nNA,7,1\na,NA,1\na,8,#NV\na,9,n/a\n")
    with pytest.raises(RefusedCohort, match="--drop-missing takes NA for missing"):
        read_cohort(path)
    with read_cohort(path, drop_missing=True) as cohort:  # a rider may be called NA
        assert (cohort.report.outcomes, cohort.report.missing_rows, cohort.report.riders) == (1, 3, 1)
    path.write_text("rider;metric;outcome\na;7;x\na;8;\nb;9;\n")
    with pytest.raises(RefusedCohort, match="x/ where an empty cell is a failure") as refused:
        read_cohort(path)
    assert "--drop-missing" not in str(refused.value)  # which would leave every failure out
    with read_cohort(path, csv={"outcomes": "x/"}) as cohort:
        [batch] = cohort.batches()
        assert batch.column("outcome").to_pylist() == [1, 0, 0]
    path.write_text("Tabelle 1\nrider,metric,outcome\na,7,1\n")
    with pytest.raises(RefusedCohort, match="if it is a title"):
        read_cohort(path)
    path.write_text("Rider;METRIC; outcome\na;7;1\n")
    with pytest.raises(RefusedCohort, match="--column rider=Rider --column metric=METRIC --column 'outcome= outcome'"):
        read_cohort(path)
    path.write_text("jane,7,1\njane,8,0\n")
    with pytest.raises(RefusedCohort, match="does not look like names of columns") as refused:
        read_cohort(path)
    assert "jane" not in str(refused.value)


def test_records_and_lazy_frames() -> None:
    records = [{"rider": "a", "metric": 7, "outcome": 1}, {"rider": "b", "metric": 8, "outcome": 0}]
    with read_cohort(records) as listed, read_cohort(pa.Table.from_pylist(records)) as table:
        assert listed.cohort_hash == table.cohort_hash
    import polars

    with pytest.raises(InputError, match="collect a lazy frame"):
        read_cohort(polars.DataFrame(records).lazy())
