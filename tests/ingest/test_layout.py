"""What a column holds, by its Arrow type: the terms in which the files of a cohort must agree."""

from __future__ import annotations

import pyarrow as pa
import pytest

from isuit.canonical import COLUMNS
from isuit.ingest.layout import EXPECTED, READABLE, kind_of

TEXT = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
NUMBERS = (
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.dictionary(pa.int8(), pa.int64()),
)


@pytest.mark.parametrize(
    ("column", "types", "kind"),
    [
        ("rider", TEXT, "text"),
        ("rider", (pa.int32(), pa.run_end_encoded(pa.int32(), pa.int64())), "integers"),
        ("rider", (pa.float64(), pa.bool_(), pa.binary(), pa.timestamp("s")), None),
        ("site", TEXT, "text"),
        ("site", (pa.uint8(),), "integers"),
        ("site", (pa.float32(), pa.date32()), None),
        ("observed_at", (pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Oslo")), "times with a zone"),
        ("observed_at", (pa.timestamp("us"), pa.timestamp("ns")), "times without a zone"),
        ("observed_at", TEXT, "text"),
        ("observed_at", (pa.date32(), pa.date64()), "days"),
        ("observed_at", (pa.int64(), pa.time64("us")), None),
        ("metric", NUMBERS, "numbers"),
        ("metric", (*TEXT, pa.bool_()), None),
        ("outcome", (*NUMBERS, pa.bool_()), "numbers"),
        ("outcome", (*TEXT, pa.timestamp("s")), None),
    ],
)
def test_what_a_column_holds(column: str, types: tuple[pa.DataType, ...], kind: str | None) -> None:
    assert {kind_of(column, type_) for type_ in types} == {kind}


def test_every_column_may_be_all_null_and_says_what_it_expects() -> None:
    assert set(READABLE) == set(EXPECTED) == set(COLUMNS)
    assert {kind_of(column, pa.null()) for column in COLUMNS} == {"nulls"}
