"""The hash depends on the values and on nothing else: generated cohorts, against two independent implementations."""

import json
import os
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cohort_tables import NAMES, csv_text, hash_of, table
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import canonical as standard_library
from pyarrow import csv as arrow_csv
from pyarrow import feather

JAVASCRIPT = Path(__file__).parent / "independent" / "canonical.mjs"
MICROSECONDS = 315_537_897_599_999_999  # from year 1 to the end of 9999
FIRST = datetime(1, 1, 1, tzinfo=UTC)
COHORTS = int(os.environ.get("ISUIT_TEST_COHORTS", "2500"))  # that three implementations hash; 10,000 take a minute

# Collisions matter more than variety: prefixes, neighbours in UTF-8 and UTF-16, and ties on every field.
texts = st.sampled_from(["a", "ab", "a b", "a!", "A", "007", "7", "null", "Å", "\uff5e", "\U0001f3c4", "波"]) | (
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
    .map(lambda text: unicodedata.normalize("NFC", text).strip())
    .filter(bool)
)
instants = st.sampled_from(["2024-05-01T12:00:00.000000Z", "2024-05-01T14:00:00.000000+02:00"]) | st.integers(
    0, MICROSECONDS
).map(lambda micros: (FIRST + timedelta(microseconds=micros)).isoformat(timespec="microseconds"))
metrics = st.sampled_from(["0.0", "-0.0", "5e-324", "1", "-1", "0.1"]) | st.floats(
    allow_nan=False, allow_infinity=False
).map(repr)
outcomes = st.tuples(texts, st.none() | texts, st.none() | instants, metrics, st.sampled_from([0, 1])).map(list)
cohorts = st.lists(outcomes, min_size=1, max_size=6)
pools = st.tuples(
    *(st.lists(values, min_size=1, max_size=4) for values in (texts, st.none() | texts, st.none() | instants, metrics))
)


def drawn_from(pool: tuple[list, ...], random: random.Random) -> list[list[Any]]:
    """A cohort of values from a pool: as many ties as can be, and far cheaper to draw than value by value."""
    return [[*map(random.choice, pool), random.randint(0, 1)] for _ in range(random.randint(1, 12))]


@contextmanager
def javascript() -> Iterator[Callable[[list], list[str]] | None]:
    """One Node process that hashes lists of cohorts; None where there is no Node."""
    if shutil.which("node") is None:
        yield None
        return
    with subprocess.Popen(["node", JAVASCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:

        def ask(cohorts: list) -> list[str]:
            assert node.stdin
            assert node.stdout
            node.stdin.writelines(json.dumps(cohort) + "\n" for cohort in cohorts)
            node.stdin.flush()
            return [node.stdout.readline().strip() for _ in cohorts]

        yield ask


@pytest.mark.long
def test_cohorts_hash_alike_in_three_implementations() -> None:
    seen = 0
    with javascript() as ask:

        @settings(max_examples=COHORTS // 25, deadline=None, database=None)
        @given(pools, st.integers(0, 2**32))
        def agree(pool: tuple[list, ...], seed: int) -> None:
            nonlocal seen
            draw = random.Random(seed)
            drawn = [drawn_from(pool, draw) for _ in range(25)]
            seen += len(drawn)
            ours = [hash_of(table(cohort)) for cohort in drawn]
            assert ours == [standard_library.cohort_hash(cohort) for cohort in drawn]
            assert ask is None or ours == ask(drawn)

        agree()
    assert seen >= COHORTS


@settings(max_examples=50, deadline=None)
@given(cohorts, st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_storage(cohort: list[list[Any]], random: random.Random) -> None:
    plain = table(cohort)
    expected = standard_library.cohort_hash(cohort)

    shuffled = list(cohort)
    random.shuffle(shuffled)
    assert hash_of(table(shuffled)) == expected, "row order"
    assert hash_of(plain.select(random.sample(NAMES, 5))) == expected, "column order"
    assert hash_of(plain.append_column("extra", pa.array(range(len(cohort))))) == expected, "extra column"
    assert hash_of(plain.rename_columns(["pseudonym", *NAMES[1:]])) == expected, "rider called pseudonym"
    assert hash_of(pa.concat_tables([plain.slice(0, 1), plain.slice(1)])) == expected, "chunks"
    assert hash_of(pa.table({name: plain[name].dictionary_encode() for name in NAMES})) == expected, "dictionaries"
    for kind in (pa.large_string(), pa.string_view()):
        cast = plain.set_column(0, "rider", plain["rider"].cast(kind))
        assert hash_of(cast) == expected, str(kind)
    ends = pa.array(range(1, len(cohort) + 1), pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, plain["metric"].combine_chunks())
    assert hash_of(plain.set_column(3, "metric", runs)) == expected, "run ends"
    elsewhere = plain["observed_at"].cast(pa.timestamp("us", tz="Asia/Kathmandu"))
    assert hash_of(plain.set_column(2, "observed_at", elsewhere)) == expected, "time zone"
    for kind in (pa.bool_(), pa.float64(), pa.uint64()):
        assert hash_of(plain.set_column(4, "outcome", plain["outcome"].cast(kind))) == expected, "type of outcome"
    assert hash_of(plain, in_memory_rows=2) == expected, "sorted on disk"


@settings(max_examples=60, deadline=None)
@given(cohort=cohorts)
def test_the_hash_does_not_depend_on_the_file_format(tmp_path_factory: pytest.TempPathFactory, cohort: list) -> None:
    folder = tmp_path_factory.mktemp("cohort")
    plain, expected = table(cohort), standard_library.cohort_hash(cohort)
    pq.write_table(plain, folder / "c.parquet", row_group_size=2, compression="zstd")
    feather.write_feather(plain, folder / "c.feather")
    with pa.ipc.new_stream(folder / "c.arrow", plain.schema) as stream:
        stream.write_table(plain, max_chunksize=1)
    (folder / "c.csv").write_text(csv_text(cohort), encoding="utf-8")
    arrow_csv.write_csv(plain, folder / "arrow.csv")
    with pa.CompressedOutputStream(folder / "c.tsv.gz", "gzip") as file:
        arrow_csv.write_csv(plain, file, arrow_csv.WriteOptions(delimiter="\t"))
    for path in folder.iterdir():
        assert hash_of(path) == expected, path.name


@settings(max_examples=100, deadline=None)
@given(cohorts, st.data())
def test_any_changed_value_changes_the_hash(cohort: list[list[Any]], data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(cohort) - 1))
    field = data.draw(st.integers(0, 4))
    value = data.draw((texts, st.none() | texts, st.none() | instants, metrics, st.sampled_from([0, 1]))[field])
    changed = [list(outcome) for outcome in cohort]
    changed[row][field] = value
    same = standard_library.line(changed[row]) == standard_library.line(cohort[row])
    assert (hash_of(table(changed)) == hash_of(table(cohort))) == same
    assert hash_of(table([*cohort, cohort[row]])) != hash_of(table(cohort)), "one more copy of a row"


def large(rows: int = 20_000) -> pa.Table:
    random = np.random.default_rng(5)
    micros = 1_700_000_000_000_000 + random.integers(0, 10**13, rows)
    return pa.table(
        {
            "rider": pc.binary_join_element_wise("r", pa.array(random.integers(0, 900, rows)).cast(pa.string()), ""),
            "site": pa.array(random.choice(["x", "y", "z"], rows)),
            "observed_at": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
            "metric": pa.array(random.integers(0, 300, rows) / 8),
            "outcome": pa.array(random.integers(0, 2, rows).astype(np.int8)),
        }
    )


@pytest.mark.parametrize("column", NAMES)
def test_a_value_in_row_15001_changes_the_hash(column: str, tmp_path: Path) -> None:
    plain = large()
    others = {
        "rider": "someone",
        "site": None,
        "observed_at": plain["observed_at"][15_000].as_py() + timedelta(microseconds=1),
        "metric": np.nextafter(plain["metric"][15_000].as_py(), np.inf),
        "outcome": 1 - plain["outcome"][15_000].as_py(),
    }
    values = plain[column].to_pylist()
    values[15_000] = others[column]
    place = plain.schema.get_field_index(column)
    changed = plain.set_column(place, column, pa.array(values, plain.schema.field(column).type))
    for name, cohort in (("a.parquet", plain), ("b.parquet", changed)):
        pq.write_table(cohort, tmp_path / name, row_group_size=6_000)
    assert hash_of(tmp_path / "a.parquet") == hash_of(plain)
    assert hash_of(tmp_path / "b.parquet") != hash_of(plain)


def test_many_ranges_of_riders_sort_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = large()
    expected = hash_of(plain)
    monkeypatch.setattr("isuit.ingest.sorting.RANGE_ROWS", 100)
    assert hash_of(plain) == expected
    assert hash_of(plain.to_reader(max_chunksize=777)) == expected


def test_float32_of_the_same_value() -> None:
    plain = large(500)  # eighths: every one is a float32, and a float16
    for kind in (pa.float32(), pa.float16()):
        assert hash_of(plain.set_column(3, "metric", plain["metric"].cast(kind))) == hash_of(plain)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=10))
def test_local_times_of_a_declared_zone(times: list[datetime]) -> None:
    """Those that exist once hash like their instants; `zoneinfo`, asked time by time, is the reference."""
    zone = ZoneInfo("Europe/Rome")

    def once(time: datetime) -> bool:
        folds = {time.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)}
        return len(folds) == 1

    times = [time for time in times if once(time)] or [datetime(2024, 1, 1)]
    columns = {"rider": ["r"] * len(times), "metric": [1.0] * len(times), "outcome": [1] * len(times)}
    naive = pa.table(columns | {"observed_at": pa.array(times, pa.timestamp("us"))})
    aware = [time.replace(tzinfo=zone).astimezone(UTC) for time in times]
    instants = pa.table(columns | {"observed_at": pa.array(aware, pa.timestamp("us", tz="UTC"))})
    assert hash_of(naive, timezone="Europe/Rome") == hash_of(instants)
