"""Outcomes as the independent implementations take them (lists with text), turned into what isuit reads."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from isuit import canonical
from isuit.ingest import read_cohort

NAMES = list(canonical.COLUMNS)
TIME = pa.timestamp("us", tz="UTC")


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def text_type(values: Sequence[Any]) -> pa.DataType:
    return pa.int64() if any(isinstance(value, int) for value in values) else pa.string()


def table(outcomes: list[list[Any]]) -> pa.Table:
    rider, site, observed_at, metric, outcome = zip(*outcomes, strict=True)
    names = metrics_of(outcomes)
    several = {name: pa.array([float(texts[name]) for texts in metric], pa.float64()) for name in names}
    return pa.table(
        {
            "rider": pa.array(rider, text_type(rider)),
            "site": pa.array(site, text_type(site)),
            "observed_at": pa.array([instant(text) for text in observed_at], TIME),
            **(several or {"metric": pa.array([float(text) for text in metric], pa.float64())}),
            "outcome": pa.array([int(value) for value in outcome], pa.int8()),
        }
    )


def metrics_of(outcomes: list[list[Any]]) -> list[str]:
    """The names of the metrics, in the order in which they were written down; empty where there is one without."""
    return list(outcomes[0][3]) if isinstance(outcomes[0][3], dict) else []


def csv_text(outcomes: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = metrics_of(outcomes)
    writer.writerow([*NAMES[:3], *(names or NAMES[3:4]), NAMES[4]])
    for *before, metric, outcome in outcomes:
        writer.writerow([*before, *([metric[name] for name in names] or [metric]), outcome])
    return text.getvalue()


def hash_of(source: Any, **options: Any) -> str:
    with read_cohort(source, **options) as cohort:
        return cohort.cohort_hash
