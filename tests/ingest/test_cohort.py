"""Reading: every kind of source, CSV without inference, zones, exclusion, the report, and sorting on disk."""

import stat
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cohort_tables import hash_of, table
from independent import canonical as standard_library

from isuit.domain import NO_TIME
from isuit.errors import InputError
from isuit.ingest import RefusedCohort, read_cohort

OUTCOMES = [
    ["b", "Tarifa", "2024-05-01T12:00:00Z", "18.5", 1],
    ["a", None, None, "-0.0", 0],
    ["b", "Århus", "2024-03-01T12:00:00.000001Z", "0.1", 0],
    ["a", "Tarifa", "2024-05-01T12:00:00Z", "18.5", 1],
    ["a", "Tarifa", "2024-05-01T12:00:00Z", "18.5", 1],
    ["c", "Tarifa", "2024-05-02T12:00:00Z", "7", 1],
]
HASH = standard_library.cohort_hash(OUTCOMES)


# Sources


def test_a_pandas_frame() -> None:
    frame = table(OUTCOMES).to_pandas()
    assert hash_of(frame) == HASH
    assert hash_of(frame.astype({"rider": "category", "site": "object"})) == HASH
    assert hash_of(frame.set_index("metric").reset_index()) == HASH
    assert hash_of(frame.assign(observed_at=frame["observed_at"].astype("datetime64[ns, UTC]"))) == HASH


def test_a_polars_frame() -> None:
    frame = pl.DataFrame(table(OUTCOMES))
    assert hash_of(frame) == HASH
    assert hash_of(frame.with_columns(pl.col("rider").cast(pl.Categorical))) == HASH


def test_arrow_tables_batches_and_readers() -> None:
    plain = table(OUTCOMES)
    assert hash_of(plain.to_batches()[0]) == HASH
    assert hash_of(plain.to_reader(max_chunksize=1)) == HASH
    assert hash_of(plain.slice(0, 6)) == HASH


def test_a_duckdb_relation() -> None:
    with duckdb.connect() as connection:
        connection.register("plain", table(OUTCOMES))
        assert hash_of(connection.sql("FROM plain")) == HASH
        assert hash_of(connection.sql("SELECT * REPLACE (metric::DECIMAL(9, 3) AS metric) FROM plain")) == HASH
        assert hash_of(connection.sql("SELECT * REPLACE (outcome = 1 AS outcome) FROM plain")) == HASH


def test_several_files_a_directory_and_a_glob_are_one_cohort(tmp_path: Path) -> None:
    (tmp_path / "d" / "deeper").mkdir(parents=True)
    parts = [tmp_path / "d" / "a.parquet", tmp_path / "d" / "deeper" / "b.pq"]
    pq.write_table(table(OUTCOMES).slice(0, 2), parts[0])
    pq.write_table(table(OUTCOMES).slice(2), parts[1])
    (tmp_path / "d" / "_SUCCESS").touch()
    assert hash_of(parts) == HASH
    assert hash_of([str(part) for part in reversed(parts)]) == HASH
    assert hash_of(tmp_path / "d") == HASH
    assert hash_of(str(tmp_path / "d" / "**" / "[ab].p*")) == HASH


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    pq.write_table(table(OUTCOMES), tmp_path / "cohort[1].parquet")
    assert hash_of(tmp_path / "cohort[1].parquet") == HASH


def test_files_in_which_a_column_is_all_null_agree_with_the_others(tmp_path: Path) -> None:
    pq.write_table(table(OUTCOMES).slice(0, 1), tmp_path / "a.parquet")
    rest = table(OUTCOMES[1:2]).set_column(1, "site", pa.nulls(1)).set_column(2, "observed_at", pa.nulls(1))
    pq.write_table(rest, tmp_path / "b.parquet")
    pq.write_table(table(OUTCOMES).slice(2), tmp_path / "c.parquet")
    assert hash_of(tmp_path) == HASH


def test_columns_by_other_names() -> None:
    renamed = table(OUTCOMES).rename_columns(["user_id", "spot", "at", "wind", "ok"])
    mapping = {"rider": "user_id", "site": "spot", "observed_at": "at", "metric": "wind", "outcome": "ok"}
    assert hash_of(renamed, columns=mapping) == HASH


def test_a_mapping_chooses_between_rider_and_pseudonym() -> None:
    both = table(OUTCOMES).append_column("pseudonym", pa.array(["p"] * 6))
    assert hash_of(both, columns={"rider": "rider"}) == HASH
    assert hash_of(both, columns={"rider": "pseudonym"}) != HASH


def test_an_extra_column_of_any_type_is_not_read(tmp_path: Path) -> None:
    extra = table(OUTCOMES).append_column("extra", pa.array([{"x": [1]}] * 6))
    pq.write_table(extra, tmp_path / "c.parquet")
    assert hash_of(extra) == hash_of(tmp_path / "c.parquet") == HASH


def test_a_dictionary_with_unused_bad_values_is_fine() -> None:
    riders = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array([" bad", "good", None]))
    cohort = pa.table({"rider": riders, "metric": [1.0, 2.0], "outcome": [0, 1]})
    with read_cohort(cohort, exclude=lambda riders: pc.equal(riders, "other")) as read:
        assert read.report.riders == 1
        assert read.observations().riders == ("good",)


# CSV


def read_csv(tmp_path: Path, text: str, **options: str) -> pa.Table:
    (tmp_path / "c.csv").write_bytes(text.encode())
    with read_cohort(tmp_path / "c.csv", **options) as cohort:
        return pa.Table.from_batches(cohort.batches())


def test_ids_in_a_csv_stay_text(tmp_path: Path) -> None:
    ids = ["007", "7", "1e5", "null", "NA", "NaN", "None", "true", "2024-05-01", "-", "1.0", "#N/A"]
    read = read_csv(tmp_path, "rider,site,metric,outcome\n" + "".join(f"{text},{text},1,1\n" for text in ids))
    assert read["rider"].to_pylist() == read["site"].to_pylist() == sorted(ids)


def test_an_empty_field_is_null(tmp_path: Path) -> None:
    read = read_csv(tmp_path, 'rider,site,observed_at,metric,outcome\nr,,,1,1\nr,"","",1,1\n')
    assert read["site"].to_pylist() == read["observed_at"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        "0.1",
        "1e-7",
        "2.2250738585072011e-308",
        "9007199254740993",
        "+3",
        ".5",
        "5.",
        "1E5",
        "1.7976931348623158e308",
        "-0.0",
        "4.9e-324",
        "0.500000000000000166533453693773481063544750213623046875",
        "123456789012345678901234567890",
    ],
)
def test_metrics_in_a_csv_are_the_nearest_binary64(tmp_path: Path, text: str) -> None:
    read = read_csv(tmp_path, f"rider,metric,outcome\nr,{text},1\n")
    assert read["metric"].to_pylist() == [float(text)]


def test_spellings_of_outcomes_in_a_csv(tmp_path: Path) -> None:
    ones, zeros = ["1", "1.0", "true", "True", "TRUE", "1e0"], ["0", "0.0", "false", "False", "FALSE", "-0"]
    read = read_csv(tmp_path, "rider,metric,outcome\n" + "".join(f"r,1,{text}\n" for text in ones + zeros))
    assert read["outcome"].to_pylist() == [0] * 6 + [1] * 6


def test_a_csv_as_spreadsheets_write_it(tmp_path: Path) -> None:
    text = '\ufeffrider,note,metric,outcome\r\n"a, b","two\r\nlines",1.5,1\r\n\r\n"say ""hi""",x,2,0\r\n'
    assert read_csv(tmp_path, text)["rider"].to_pylist() == ["a, b", 'say "hi"']


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00+00:00"),
        ("2024-05-01 12:00Z", "2024-05-01T12:00:00+00:00"),
        ("2024-05-01T12:00:00.5+02:00", "2024-05-01T10:00:00.500000+00:00"),
        ("2024-05-01T12:00:00-0330", "2024-05-01T15:30:00+00:00"),
        ("2024-05-01T12:00:00+02", "2024-05-01T10:00:00+00:00"),
        ("2024-05-01T12:00:00.123456000Z", "2024-05-01T12:00:00.123456+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00+00:00"),
    ],
)
def test_times_in_a_csv(tmp_path: Path, text: str, instant: str) -> None:
    read = read_csv(tmp_path, f"rider,metric,outcome,observed_at\nr,1,1,{text}\n")
    assert read["observed_at"].cast(pa.int64()).to_pylist() == [
        (datetime.fromisoformat(instant) - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    ]


# Zones


def test_naive_and_aware_times_in_one_text_column(tmp_path: Path) -> None:
    text = "rider,metric,outcome,observed_at\na,1,1,2024-07-01T12:00:00\nb,1,1,2024-07-01T12:00:00Z\n"
    read = read_csv(tmp_path, text, timezone="Europe/Rome")
    assert [time.hour for time in read["observed_at"].to_pylist()] == [10, 12]


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"])
def test_every_half_hour_of_a_year_around_the_changes_of_clocks(zone: str) -> None:
    """Against `zoneinfo` asked time by time, also for which times are refused."""
    local = np.arange("2024-01-01T00:15", "2025-01-01T00:15", 30, dtype="datetime64[m]").astype("datetime64[us]")
    offsets = [[time.replace(tzinfo=ZoneInfo(zone), fold=f).utcoffset() for f in (0, 1)] for time in local.tolist()]
    once = np.array([before == after for before, after in offsets])
    columns = {"rider": "r", "metric": 1.0, "outcome": 1}
    frame = pd.DataFrame({"observed_at": local}).assign(**columns)
    with read_cohort(frame[once], timezone=zone) as cohort:
        micros = np.sort([before // datetime.resolution for before, _ in offsets])
        found = cohort.observations().observed_at
    expected = local.astype(np.int64) - np.array([before // datetime.resolution for before, _ in offsets])
    assert micros.size == local.size
    assert np.array_equal(found, np.sort(expected[once]))
    if not once.all():
        with pytest.raises(RefusedCohort) as refusal:
            read_cohort(frame, timezone=zone)
        assert sum(found.count for found in refusal.value.refusals) == np.count_nonzero(~once)


def test_a_zone_does_not_move_times_that_have_one() -> None:
    assert hash_of(table(OUTCOMES), timezone="Asia/Tokyo") == HASH


# Numbers


def test_integers_and_decimals() -> None:
    columns = {"rider": ["r", "r"], "outcome": [1, 0]}
    expected = hash_of(pa.table(columns | {"metric": [3.0, -4.0]}))
    for kind in (pa.int8(), pa.int64(), pa.decimal128(9, 2), pa.decimal256(40, 3), pa.float16()):
        assert hash_of(pa.table(columns | {"metric": pa.array([3, -4], pa.int8()).cast(kind)})) == expected, kind


def test_a_decimal_is_the_nearest_binary64() -> None:
    decimals = pa.array([Decimal("0.1"), Decimal("123456789.987654321")], pa.decimal128(38, 10))
    with read_cohort(pa.table({"rider": ["a", "b"], "metric": decimals, "outcome": [1, 1]})) as cohort:
        assert cohort.observations().metric.tolist() == [0.1, 123456789.987654321]


def test_integers_as_riders_are_their_decimal_text() -> None:
    columns = {"metric": [1.0] * 3, "outcome": [1] * 3}
    texts = pa.table(columns | {"rider": ["10", "9", "-1"]})
    for kind in (pa.int64(), pa.int8(), pa.int32()):
        assert hash_of(pa.table(columns | {"rider": pa.array([10, 9, -1], kind)})) == hash_of(texts)


# Exclusion


@pytest.mark.parametrize("in_memory_rows", [100, 0])
def test_excluded_riders_leave_before_hashing(in_memory_rows: int) -> None:
    asked: list[list[str]] = []

    def opted_out(riders: pa.Array) -> pa.Array:
        asked.append(riders.to_pylist())
        return pc.is_in(riders, pa.array(["b", "nobody"]))

    kept = [outcome for outcome in OUTCOMES if outcome[0] != "b"]
    with read_cohort(table(OUTCOMES), exclude=opted_out, in_memory_rows=in_memory_rows) as cohort:
        assert cohort.cohort_hash == standard_library.cohort_hash(kept)
        report = cohort.report
        observations = cohort.observations()
    assert sorted(asked[0]) == ["a", "b", "c"]
    assert (report.rows, report.outcomes, report.excluded_rows, report.riders, report.sites) == (6, 4, 2, 2, 1)
    assert observations.riders == ("a", "c")
    assert observations.sites == ("Tarifa",)


def test_a_cohort_of_excluded_riders_only_is_refused() -> None:
    with pytest.raises(InputError, match="opted out"):
        read_cohort(table(OUTCOMES), exclude=lambda riders: pa.array([True] * len(riders)))


# What a cohort gives


@pytest.mark.parametrize("in_memory_rows", [100, 0])
def test_the_report(in_memory_rows: int) -> None:
    with read_cohort(table(OUTCOMES), in_memory_rows=in_memory_rows) as cohort:
        assert cohort.report.as_json() == {
            "rows": 6,
            "outcomes": 6,
            "riders": 3,
            "sites": 2,
            "observed_from": "2024-03-01T12:00:00.000001Z",
            "observed_until": "2024-05-02T12:00:00.000000Z",
            "duplicates": 1,
            "excluded_rows": 0,
            "missing_rows": 0,
            "notes": [],
        }


def test_duplicates_are_counted_across_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isuit.ingest.cohort.HASH_ROWS", 1)
    with read_cohort(table(OUTCOMES * 3)) as cohort:
        assert cohort.report.duplicates == 18 - 5


def test_batches_are_in_canonical_order_with_the_schema() -> None:
    from isuit.canonical import SCHEMA, line_bytes, lines

    with read_cohort(table(OUTCOMES)) as cohort:
        batches = list(cohort.batches(rows=4))
        assert list(cohort.batches(rows=4)) == batches, "as often as asked"
    assert [batch.num_rows for batch in batches] == [4, 2]
    assert all(batch.schema == SCHEMA for batch in batches)
    content = b"".join(bytes(line_bytes(lines(batch))[0]) for batch in batches)
    assert content == b"".join(sorted(standard_library.line(outcome) for outcome in OUTCOMES))


@pytest.mark.parametrize("in_memory_rows", [100, 0])
def test_observations(in_memory_rows: int) -> None:
    with read_cohort(table(OUTCOMES), in_memory_rows=in_memory_rows) as cohort:
        observations = cohort.observations()
    assert observations.riders == ("a", "b", "c")
    assert observations.rider.tolist() == [0, 0, 0, 1, 1, 2]
    assert observations.sites == ("Tarifa", "Århus")
    assert observations.site is not None
    assert observations.site.tolist() == [-1, 0, 0, 0, 1, 0]
    assert observations.metric.tolist() == [0.0, 18.5, 18.5, 18.5, 0.1, 7.0]
    assert not np.signbit(observations.metric[0])
    assert observations.outcome.tolist() == [0, 1, 1, 1, 0, 1]
    assert observations.observed_at is not None
    assert observations.observed_at[0] == NO_TIME
    assert observations.observed_at[5] == 1_714_651_200_000_000
    narrow = [observations.rider.dtype, observations.site.dtype, observations.outcome.dtype]
    assert narrow == [np.int32, np.int32, np.int8]


def test_observations_without_sites_and_times() -> None:
    with read_cohort(pa.table({"rider": ["r"], "metric": [1.0], "outcome": [1]})) as cohort:
        observations = cohort.observations()
    assert (observations.sites, observations.site, observations.observed_at) == ((), None, None)


# Cohorts larger than memory


def test_sorting_on_disk_uses_a_private_directory_that_is_removed(tmp_path: Path) -> None:
    with read_cohort(table(OUTCOMES), temporary=tmp_path, in_memory_rows=0) as cohort:
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        first, second = cohort.batches(rows=2), cohort.batches(rows=3)
        assert next(first).num_rows + next(second).num_rows == 5, "two readers at once"
        first.close()
        second.close()
    assert list(tmp_path.iterdir()) == []


def test_the_directory_is_removed_also_when_the_cohort_is_refused(tmp_path: Path) -> None:
    bad = pa.concat_tables([table(OUTCOMES), table([["r", None, None, "nan", 1]])])
    with pytest.raises(RefusedCohort):
        read_cohort(bad.to_reader(max_chunksize=2), temporary=tmp_path, in_memory_rows=0)
    with pytest.raises(InputError, match="opted out"):
        read_cohort(
            table(OUTCOMES),
            temporary=tmp_path,
            in_memory_rows=0,
            exclude=lambda riders: pa.array([True] * len(riders)),
        )
    with pytest.raises(ZeroDivisionError):
        read_cohort(table(OUTCOMES), temporary=tmp_path, in_memory_rows=0, exclude=lambda riders: 1 / 0)
    assert list(tmp_path.iterdir()) == []


def test_a_cohort_that_nobody_closed_is_cleaned_up(tmp_path: Path) -> None:
    cohort = read_cohort(table(OUTCOMES), temporary=tmp_path, in_memory_rows=0)
    del cohort
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="temporary directory"):
        read_cohort(table(OUTCOMES), temporary=tmp_path / "absent", in_memory_rows=0)


@pytest.mark.parametrize("held", [0, 60, 1 << 20])
@pytest.mark.parametrize("several", [False, True])
def test_sorted_outcomes_wait_in_a_file_without_a_name(
    held: int, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isuit.ingest.sorting.RANGE_ROWS", 2)
    source, metrics = table(OUTCOMES * 3), None
    if several:
        source = source.rename_columns([{"metric": "wind"}.get(name, name) for name in source.column_names])
        source, metrics = source.append_column("swell", source.column("wind")), ["swell", "wind"]
    with read_cohort(source, metrics=metrics) as expected:
        batches, observations = list(expected.batches(4)), expected.observations()
    monkeypatch.setattr("isuit.ingest.sorting.HELD_BYTES", held)
    with read_cohort(source, metrics=metrics, temporary=tmp_path) as cohort:
        assert list(tmp_path.iterdir()) == []
        assert cohort.cohort_hash == expected.cohort_hash
        assert cohort.report == expected.report
        one, other = cohort.batches(4), cohort.batches(4)
        assert [next(one), next(other), *one] == [batches[0], batches[0], *batches[1:]], "two readers at once"
        again = cohort.observations()
        assert again.riders == observations.riders
        assert [column.tobytes() for column in again.conditions] == [c.tobytes() for c in observations.conditions]
    if held < 1 << 20:
        with pytest.raises(InputError, match="TMPDIR"):
            read_cohort(source, metrics=metrics, temporary=tmp_path / "absent")
