"""Bad input, one test per defect: exit code 2, one sentence with column, count and rows, nothing written."""

import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isuit.cli.app import main

from isuit.errors import InputError
from isuit.ingest import RefusedCohort, read_cohort
from isuit.ingest.refusals import Refusal

RIDER = "mallory-4711"  # in every bad cohort, in no message
Refused = Callable[..., str]


def columns(rows: int = 4, **changes: Any) -> dict[str, Any]:
    """A good cohort with some columns changed; None takes a column away."""
    good: dict[str, Any] = {
        "rider": [RIDER] * rows,
        "site": ["Tarifa"] * rows,
        "metric": [1.5] * rows,
        "outcome": [1] * rows,
    }
    return {name: values for name, values in (good | changes).items() if values is not None}


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs `isuit canonicalise` on what it is given, and returns the one sentence of the refusal."""

    def run(cohort: Any, *options: str, name: str = "cohort.csv") -> str:
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(cohort, Path):
            path = cohort
        elif isinstance(cohort, str):
            path.write_text(cohort, encoding="utf-8")
        elif isinstance(cohort, bytes):
            path.write_bytes(cohort)
        else:
            path = path.with_suffix(".parquet")
            pq.write_table(cohort if isinstance(cohort, pa.Table) else pa.table(cohort), path)
        target = tmp_path / "out" / "canonical.tsv"
        target.parent.mkdir(exist_ok=True)
        monkeypatch.setattr(sys, "argv", ["isuit", "canonicalise", str(path), "--out", str(target), *options])
        with pytest.raises(SystemExit) as exit_:
            main()
        printed = capsys.readouterr()
        assert exit_.value.code == 2
        assert printed.out == ""
        assert printed.err.startswith("isuit: ")
        assert printed.err.count("\n") == 1
        assert "Traceback" not in printed.err
        assert RIDER not in printed.err
        assert list(target.parent.iterdir()) == [], "nothing is written, not even beside the target"
        return printed.err.strip()

    return run


def naive(*texts: str, unit: str = "us") -> pa.Array:
    return pa.array([datetime.fromisoformat(text) for text in texts], pa.timestamp(unit))


HEADER = "rider,site,metric,outcome\n"
GOOD_ROW = f"{RIDER},Tarifa,1.5,1\n"


# Columns


def test_no_rider_column(refused: Refused) -> None:
    assert "column rider: cohort.parquet has no such column" in refused(columns(rider=None))


def test_no_metric_column(refused: Refused) -> None:
    assert "column metric: cohort.parquet has no such column" in refused(columns(metric=None))


def test_no_outcome_column(refused: Refused) -> None:
    assert "column outcome: cohort.parquet has no such column" in refused(columns(outcome=None))


def test_every_missing_column_is_listed(refused: Refused) -> None:
    message = refused(pa.table({"speed": [1.0]}))
    assert all(f"column {name}: " in message for name in ("rider", "metric", "outcome"))


def test_rider_and_pseudonym(refused: Refused) -> None:
    assert "column rider: cohort.parquet has rider and pseudonym" in refused(columns() | {"pseudonym": ["p"] * 4})


def test_duplicate_column_in_parquet(refused: Refused) -> None:
    good = pa.table(columns())
    assert "column metric: cohort.parquet has 2 columns of that name" in refused(
        good.append_column("metric", good["metric"])
    )


def test_duplicate_column_in_csv(refused: Refused) -> None:
    assert "column outcome: cohort.csv has 2 columns" in refused(f"rider,outcome,metric,outcome\n{RIDER},1,1.5,1\n")


def test_csv_without_a_header(refused: Refused) -> None:
    assert "column rider: cohort.csv has no such column" in refused(GOOD_ROW * 2)


def test_mapped_column_is_absent(refused: Refused) -> None:
    assert "no column 'user_id'" in refused(columns(), "--column", "rider=user_id")


def test_mapping_of_an_unknown_name(refused: Refused) -> None:
    assert "no column is called 'speed'" in refused(columns(), "--column", "speed=metric")


def test_mapping_without_an_equals_sign(refused: Refused) -> None:
    assert "is not a mapping" in refused(columns(), "--column", "rider")


def test_two_names_mapped_to_one_column(refused: Refused) -> None:
    assert "mapped twice" in refused(columns(), "--column", "rider=x", "--column", "site=x")


def test_one_name_mapped_twice(refused: Refused) -> None:
    assert "mapped twice" in refused(columns(), "--column", "rider=x", "--column", "rider=y")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("rider", pa.array([1.0, 2.0, 3.0, 4.0])),
        ("rider", pa.array([True] * 4)),
        ("rider", pa.array([b"a"] * 4)),
        ("rider", pa.array([["a"]] * 4, pa.list_(pa.field("element", pa.string())))),
        ("site", pa.array([1.5] * 4)),
        ("metric", pa.array(["1.5"] * 4)),
        ("metric", pa.array([True] * 4)),
        ("metric", pa.array([{"x": 1.0}] * 4)),
        ("outcome", pa.array(["1"] * 4)),
        ("outcome", pa.array([date(2024, 1, 1)] * 4)),
        ("observed_at", pa.array([1, 2, 3, 4])),
        ("observed_at", pa.array([1.0] * 4, pa.float64())),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.type),
)
def test_column_of_a_wrong_type(refused: Refused, column: str, values: pa.Array) -> None:
    message = refused(columns(**{column: values}))
    held = "text" if pa.types.is_string(values.type) else values.type
    assert f"column {column}: cohort.parquet holds {held} where" in message


def test_date_without_a_time(refused: Refused) -> None:
    """It begins at midnight, and where that is nobody knows."""
    message = refused(columns(observed_at=pa.array([date(2024, 5, 1)] * 4)))
    assert "column observed_at: a time without a zone (declare it with --timezone) in 4 rows" in message


# Riders and sites


def test_null_rider(refused: Refused) -> None:
    assert "column rider: missing in 2 rows (rows 2, 4)" in refused(columns(rider=[RIDER, None, RIDER, None]))


def test_missing_rider_in_csv(refused: Refused) -> None:
    assert "column rider: missing in 1 row (row 2)" in refused(HEADER + GOOD_ROW + ",Tarifa,1.5,1\n")


def test_null_inside_a_dictionary(refused: Refused) -> None:
    riders = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0]), pa.array([RIDER, None]))
    cohort = pa.table(columns(rider=riders))
    with pytest.raises(RefusedCohort, match=r"column rider: missing in 1 row \(row 2\)"):
        read_cohort(cohort)


def test_empty_rider(refused: Refused) -> None:
    assert "column rider: empty text in 1 row (row 3)" in refused(columns(rider=[RIDER, RIDER, "", RIDER]))


def test_empty_site(refused: Refused) -> None:
    assert "column site: empty text in 1 row (row 1)" in refused(columns(site=["", "x", "x", "x"]))


@pytest.mark.parametrize("text", [" a", "a ", "a\u00a0", "\u3000a", "a\u2028", "\u2003"])
def test_rider_with_white_space_around_it(refused: Refused, text: str) -> None:
    message = refused(columns(rider=[RIDER, text, RIDER, text]))
    assert "column rider: text with leading or trailing white space in 2 rows (rows 2, 4)" in message


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "\x00", "a\x7f", "a\x85b", "a\r"])
def test_rider_with_a_control_character(refused: Refused, text: str) -> None:
    message = refused(columns(rider=[text, RIDER, RIDER, RIDER]))
    assert "column rider: text with a control character in 1 row (row 1)" in message


def test_line_break_in_a_quoted_csv_field(refused: Refused) -> None:
    message = refused(HEADER + GOOD_ROW + '"a\nb",Tarifa,1.5,1\n')
    assert "column rider: text with a control character in 1 row (row 2)" in message


@pytest.mark.parametrize("text", ["A\u030a", "\u212b", "e\u0301", "\u1100\u1161"])
def test_site_that_is_not_nfc(refused: Refused, text: str) -> None:
    message = refused(columns(site=["x", "x", text, "x"]))
    assert "column site: text that is not in Unicode normal form C (NFC) in 1 row (row 3)" in message


def test_rider_that_is_not_utf8_in_csv(refused: Refused) -> None:
    """Beside text that is: a file that is nowhere UTF-8 is read as Windows-1252 (test_dialects.py)."""
    message = refused((HEADER + GOOD_ROW).encode() + b"caf\xe9,x,1.5,1\n" + "Jörg,x,1,1\n".encode())
    assert "column rider: text that is not UTF-8 in 1 row (row 2)" in message


def test_rider_that_is_not_utf8_in_parquet(refused: Refused) -> None:
    raw = pa.array([RIDER.encode(), b"\xff", b"\xed\xa0\x80", RIDER.encode()])
    text = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    message = refused(pa.table(columns(rider=text)))
    assert "column rider: text that is not UTF-8 in 2 rows (rows 2, 3)" in message


# Metrics


def test_null_metric(refused: Refused) -> None:
    assert "column metric: missing in 1 row (row 2)" in refused(columns(metric=[1.0, None, 2.0, 3.0]))


def test_metric_column_of_nulls(refused: Refused) -> None:
    assert "column metric: missing in 4 rows (rows 1, 2, 3, 4)" in refused(columns(metric=pa.nulls(4)))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_metric_that_is_not_finite(refused: Refused, number: float) -> None:
    message = refused(columns(metric=[1.0, number, number, 3.0]))
    assert "column metric: not a finite number in 2 rows (rows 2, 3)" in message


def test_integer_metric_that_no_binary64_holds(refused: Refused) -> None:
    message = refused(columns(metric=pa.array([1, 2**53 + 1, 2**53, -(2**63)])))
    assert "column metric: an integer that no binary64 holds in 1 row (row 2)" in message


@pytest.mark.parametrize("text", ["abc", "1,5", "0x10", " 1.5", "1.5 ", "1_000", "1e", ".", "--1", "1.5€", "１"])
def test_metric_that_is_no_number_in_csv(refused: Refused, text: str) -> None:
    message = refused(HEADER + GOOD_ROW + f'{RIDER},Tarifa,"{text}",1\n')
    assert "column metric: not a number in 1 row (row 2)" in message


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_metric_that_is_not_finite_in_csv(refused: Refused, text: str) -> None:
    message = refused(HEADER + f"{RIDER},Tarifa,{text},1\n")
    assert "column metric: not a finite number in 1 row (row 1)" in message


def test_missing_metric_in_csv(refused: Refused) -> None:
    assert "column metric: missing in 1 row (row 1)" in refused(HEADER + f"{RIDER},Tarifa,,1\n")


# Outcomes


def test_null_outcome(refused: Refused) -> None:
    assert "column outcome: missing in 1 row (row 4)" in refused(columns(outcome=[1, 0, 1, None]))


@pytest.mark.parametrize("value", [2, -1, 0.5, float("nan"), float("inf"), Decimal("0.5")])
def test_outcome_that_is_neither_0_nor_1(refused: Refused, value: Any) -> None:
    message = refused(columns(outcome=[type(value)(1), value, type(value)(0), value]))
    assert "column outcome: not 0, 1, true or false in 2 rows (rows 2, 4)" in message


@pytest.mark.parametrize("text", ["2", "yes", "T", "0.5", "nan", " 1", "10"])
def test_outcome_that_is_neither_0_nor_1_in_csv(refused: Refused, text: str) -> None:
    message = refused(HEADER + GOOD_ROW + f"{RIDER},Tarifa,1.5,{text}\n")
    assert "column outcome: not 0, 1, true or false in 1 row (row 2)" in message


# Times


def test_naive_time_without_a_zone(refused: Refused) -> None:
    message = refused(columns(rows=2, observed_at=naive("2024-05-01T12:00:00", "2024-05-02T12:00:00")))
    assert "column observed_at: a time without a zone (declare it with --timezone) in 2 rows (rows 1, 2)" in message


def test_naive_time_without_a_zone_in_csv(refused: Refused) -> None:
    text = "rider,metric,outcome,observed_at\nr,1,1,2024-05-01T12:00:00Z\nr,1,1,2024-05-01T12:00:00\n"
    assert "column observed_at: a time without a zone (declare it with --timezone) in 1 row (row 2)" in refused(text)


def test_zone_that_does_not_exist(refused: Refused) -> None:
    assert "no time zone is named 'Mars/Olympus'" in refused(columns(), "--timezone", "Mars/Olympus")


@pytest.mark.parametrize("name", ["../../etc/passwd", "Europe", "", "/etc/localtime"])
def test_zone_that_is_no_name(name: str) -> None:
    with pytest.raises(InputError, match="no time zone"):
        read_cohort(pa.table(columns()), timezone=name)


def test_local_time_that_occurs_twice(refused: Refused) -> None:
    times = naive("2024-10-27T01:59:59", "2024-10-27T02:00:00", "2024-10-27T02:59:59", "2024-10-27T03:00:00")
    message = refused(columns(observed_at=times), "--timezone", "Europe/Rome")
    assert "column observed_at: a local time that occurs twice, when clocks go back in 2 rows (rows 2, 3)" in message


def test_local_time_that_does_not_exist(refused: Refused) -> None:
    times = naive("2024-03-31T01:59:59", "2024-03-31T02:00:00", "2024-03-31T02:59:59", "2024-03-31T03:00:00")
    message = refused(columns(observed_at=times), "--timezone", "Europe/Rome")
    assert (
        "column observed_at: a local time that does not exist, when clocks go forward in 2 rows (rows 2, 3)" in message
    )


def test_time_finer_than_microseconds(refused: Refused) -> None:
    times = pa.array([1_000, 1_001, -1, -1_000], pa.timestamp("ns", tz="UTC"))
    message = refused(columns(observed_at=times))
    assert "column observed_at: a time finer than microseconds in 2 rows (rows 2, 3)" in message


def test_time_finer_than_microseconds_in_csv(refused: Refused) -> None:
    text = "rider,metric,outcome,observed_at\nr,1,1,2024-05-01T12:00:00.1234567Z\nr,1,1,2024-05-01T12:00:00.1234560Z\n"
    assert "column observed_at: a time finer than microseconds in 1 row (row 1)" in refused(text)


@pytest.mark.parametrize("seconds", [253_402_300_800, -62_135_596_801, 2**62])
def test_time_outside_the_years_1_to_9999(refused: Refused, seconds: int) -> None:
    times = pa.array([0, seconds, None, 253_402_300_799], pa.int64()).cast(pa.timestamp("s", tz="UTC"))
    with pytest.raises(RefusedCohort, match=r"a time outside the years 0001 to 9999 in 1 row \(row 2\)"):
        read_cohort(pa.table(columns(observed_at=times)))


def test_offset_that_leads_outside_the_years_1_to_9999(refused: Refused) -> None:
    text = "rider,metric,outcome,observed_at\nr,1,1,0001-01-01T00:00:00+01:00\nr,1,1,9999-12-31T23:59:59-00:01\n"
    assert "a time outside the years 0001 to 9999 in 2 rows (rows 1, 2)" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01",
        "01/05/2024 12:00",
        "2024-02-30T12:00:00Z",
        "2023-02-29T12:00:00Z",
        "2024-13-01T12:00:00Z",
        "2024-00-01T12:00:00Z",
        "2024-05-00T12:00:00Z",
        "0000-05-01T12:00:00Z",
        "2024-05-01T24:00:00Z",
        "2024-05-01T12:60:00Z",
        "2024-05-01T12:00:60Z",
        "2024-05-01T12:00:00+24:00",
        "2024-05-01T12:00:00+01:60",
        "2024-05-01T12:00:00 CET",
        "1714564800",
        "yesterday",
        " 2024-05-01T12:00:00Z",
        "2024-05-01T12:00:00.Z",
    ],
)
def test_text_that_is_no_time(refused: Refused, text: str) -> None:
    message = refused(
        f"rider,metric,outcome,observed_at\nr,1,1,2024-05-01T12:00:00Z\nr,1,1,{text}\n", "--timezone", "UTC"
    )
    assert "column observed_at: not an ISO 8601 time such as 2024-05-01T09:30:00Z in 1 row (row 2)" in message


# Files


def test_no_such_file(refused: Refused, tmp_path: Path) -> None:
    assert "there is no file" in refused(tmp_path / "absent.parquet")


def test_glob_without_matches(refused: Refused, tmp_path: Path) -> None:
    assert "there is no file" in refused(tmp_path / "*.parquet")


def test_directory_without_files(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "holds no files" in refused(tmp_path / "empty")


def test_directory_with_other_files(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table(columns()), tmp_path / "d" / "a.parquet")
    (tmp_path / "d" / "b.json").write_text("{}")
    assert "also holds 1 file that is no Parquet, CSV or Arrow by name" in refused(tmp_path / "d")


def test_empty_file(refused: Refused) -> None:
    assert "cohort.csv is empty" in refused(b"")


def test_truncated_parquet(refused: Refused, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns(rows=1000)), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    assert "cannot be read (truncated, damaged" in refused(content[:-100], name="cohort.parquet")


def test_damaged_parquet_page(refused: Refused, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns(rows=50_000, metric=[i / 7 for i in range(50_000)])), tmp_path / "whole.parquet")
    content = bytearray((tmp_path / "whole.parquet").read_bytes())
    content[2_000:60_000] = bytes(58_000)
    assert "cohort.parquet cannot be read" in refused(bytes(content), name="cohort.parquet")


def test_truncated_arrow_file(refused: Refused, tmp_path: Path) -> None:
    with pa.ipc.new_file(tmp_path / "whole.arrow", pa.table(columns()).schema) as file:
        file.write_table(pa.table(columns()))
    content = (tmp_path / "whole.arrow").read_bytes()
    assert "cannot be read (truncated, damaged" in refused(content[:-20], name="cohort.arrow")


def test_truncated_arrow_stream(refused: Refused, tmp_path: Path) -> None:
    with pa.ipc.new_stream(tmp_path / "whole.arrow", pa.table(columns()).schema) as stream:
        stream.write_table(pa.table(columns(rows=500)))
        stream.write_table(pa.table(columns(rows=500)))
    content = (tmp_path / "whole.arrow").read_bytes()
    assert "cohort.arrow cannot be read beyond row 500" in refused(content[:-2_000], name="cohort.arrow")


def test_truncated_gzip(refused: Refused) -> None:
    import gzip

    rows = "".join(f"{RIDER}-{i},Tarifa,{i / 7},1\n" for i in range(1_000))
    content = gzip.compress((HEADER + rows).encode())
    assert "cohort.csv.gz cannot be read" in refused(content[:-500], name="cohort.csv.gz")


def test_file_of_another_format(refused: Refused) -> None:
    assert "cohort.xlsx is a spreadsheet, which is not read: save its sheet as CSV" in refused(
        b"PK\x03\x04 not ours", name="cohort.xlsx"
    )


def test_csv_called_parquet(refused: Refused) -> None:
    assert "cohort.parquet is no Parquet" in refused(HEADER + GOOD_ROW, name="cohort.parquet")


def test_file_that_may_not_be_read(refused: Refused, tmp_path: Path) -> None:
    import os

    path = tmp_path / "locked.csv"
    path.write_text(HEADER + GOOD_ROW)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "locked.csv cannot be read" in refused(path)


def test_csv_row_with_too_few_fields(refused: Refused) -> None:
    message = refused(HEADER + GOOD_ROW + f"{RIDER},Tarifa\n" + GOOD_ROW + f"{RIDER},Tarifa,1,1,1\n" + ",Tarifa,1,1\n")
    assert "a row with too many or too few fields in 2 rows (rows 2, 4)" in message
    assert "column rider: missing in 1 row (row 5)" in message


def test_parquet_without_rows(refused: Refused) -> None:
    assert "holds no outcomes" in refused(pa.table(columns()).slice(0, 0))


def test_csv_without_rows(refused: Refused) -> None:
    assert "holds no outcomes" in refused(HEADER)


def test_file_given_twice(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns()), path)
    with pytest.raises(InputError, match="given twice"):
        read_cohort([path, tmp_path / "." / "a.parquet"])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"site": None}, "column site: b.parquet lacks it, unlike the files before it"),
        ({"site": None}, {}, "column site: b.parquet has it, unlike the files before it"),
        ({}, {"rider": [1, 2, 3, 4]}, "column rider: b.parquet holds integers, the files before it text"),
        (
            {"observed_at": naive(*["2024-05-01T12:00:00"] * 4)},
            {"observed_at": pa.array([0] * 4, pa.timestamp("us", tz="UTC"))},
            "column observed_at: b.parquet holds times with a zone, the files before it times without a zone",
        ),
    ],
    ids=["without site", "with site", "integers and text", "zones"],
)
def test_files_that_disagree(refused: Refused, tmp_path: Path, first: dict, second: dict, message: str) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table(columns(**first)), tmp_path / "d" / "a.parquet")
    pq.write_table(pa.table(columns(**second)), tmp_path / "d" / "b.parquet")
    assert message in refused(tmp_path / "d", "--timezone", "UTC")


def test_target_is_the_cohort_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cohort.csv"
    path.write_text(HEADER + GOOD_ROW)
    monkeypatch.setattr(sys, "argv", ["isuit", "canonicalise", str(path), "--out", str(path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert path.read_text() == HEADER + GOOD_ROW


# Several defects at once, and where they are


def test_every_defect_is_listed_with_its_rows(refused: Refused) -> None:
    message = refused(
        columns(
            rider=[RIDER, None, " x", RIDER],
            site=["", "x", "x", "x"],
            metric=[None, float("inf"), 1.0, 2.0],
            outcome=[1, 2, None, 0],
        )
    )
    for part in (
        "column rider: text with leading or trailing white space in 1 row (row 3)",
        "column rider: missing in 1 row (row 2)",
        "column site: empty text in 1 row (row 1)",
        "column metric: missing in 1 row (row 1)",
        "column metric: not a finite number in 1 row (row 2)",
        "column outcome: missing in 1 row (row 3)",
        "column outcome: not 0, 1, true or false in 1 row (row 2)",
    ):
        assert part in message


def test_a_missing_column_does_not_hide_a_bad_value(refused: Refused) -> None:
    message = refused(columns(outcome=None, metric=[1.0, None, 1.0, 1.0]))
    assert "column outcome: cohort.parquet has no such column" in message
    assert "column metric: missing in 1 row (row 2)" in message


def test_rows_beyond_the_first_batch_and_the_first_file(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    bad = [1.0] * 20_000
    bad[15_000] = float("nan")
    pq.write_table(pa.table(columns(rows=20_000)), tmp_path / "d" / "a.parquet")
    pq.write_table(pa.table(columns(rows=20_000, metric=bad)), tmp_path / "d" / "b.parquet", row_group_size=700)
    message = refused(tmp_path / "d")
    assert "column metric: not a finite number in 1 row (row 15001 of b.parquet)" in message


def test_only_the_first_rows_are_listed(refused: Refused) -> None:
    message = refused(columns(rows=1_000, metric=[None] * 1_000))
    assert "column metric: missing in 1000 rows (rows 1, 2, 3, 4, 5, ...)" in message


def test_defects_as_values_in_python() -> None:
    with pytest.raises(RefusedCohort) as refusal:
        read_cohort(pa.table(columns(rider=[RIDER, None, RIDER, None])))
    (found,) = refusal.value.refusals
    assert (found.column, found.defect, found.count, found.rows) == ("rider", "missing", 2, ("2", "4"))


def test_object_that_is_no_table() -> None:
    for source in (42, object(), pa.array([1, 2])):
        with pytest.raises(InputError):
            read_cohort(source)


def test_a_sentence_can_be_written_whatever_it_quotes() -> None:
    """A name of a column or a file may hold half a character."""
    sentence = str(RefusedCohort((Refusal(None, "c.tsv has the columns rider, ou\udcceome"),)))
    assert r"ou\udcceome" in sentence
    sentence.encode()
    assert str(InputError("\ud800")) == r"\ud800"
