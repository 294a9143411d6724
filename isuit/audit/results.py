"""A fit's structural result as a digest that the last bits do not reach, and the tolerance between two results.

Another processor, BLAS kernel or SIMD width changes the last bits of a sum. So what enters `result_digest` is rounded
to `QUANTUM`: in skill sds for difficulty, in probability for suitability, in its own unit for the discrimination. A
value that happens to lie on the border between two quanta can still fall to either side; then two results are
`equivalent` (no difference above `TOLERANCE`) and not `identical`. Skills are not in the digest: they are committed
to leaf by leaf, and compared by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import rfc8785

from isuit.audit.digests import tagged
from isuit.store.fits import FIT_FORMAT

RESULT_TAG = "isuit/result/1"
FIT_TAG = "isuit/fit/1"
QUANTUM = 1e-6
TOLERANCE = 1e-4  # far below any standard error a cohort can reach, far above rounding


def quantised(value: float | None) -> int | None:
    """The number of quanta nearest to the value, as an integer: no sign of zero, no digits."""
    return None if value is None else round(value / QUANTUM)


def result_digest(kind: str, discrimination: float | None, discrimination_se: float | None, atlas: pa.Table) -> str:
    """The digest of kind, discrimination and curves; `atlas` as `isuit.store.fits.atlas_rows` gives it."""
    columns = atlas.to_pydict()
    along = columns["dimension"] if len(set(columns["dimension"])) > 1 else None  # of several metrics
    result: dict[str, Any] = {
        "kind": kind,
        "discrimination": quantised(discrimination),
        "discrimination_se": quantised(discrimination_se),
        "site": columns["site"],
        "metric": [f"{value:.9g}" for value in columns["metric"]],
        "difficulty": [quantised(value) for value in columns["difficulty"]],
        "difficulty_se": [quantised(value) for value in columns["difficulty_se"]],
        "suitability": [quantised(value) for value in columns["suitability"]],
    }
    if along is not None:
        result["dimension"] = along
    return tagged(RESULT_TAG, rfc8785.dumps(result))


def largest_difference(before: pa.Table, after: pa.Table, columns: tuple[str, ...]) -> float:
    """The largest absolute difference over the columns; infinite where one has a value and the other none."""
    largest = 0.0
    for column in columns:
        left = before.column(column).to_numpy(zero_copy_only=False).astype(float)
        right = after.column(column).to_numpy(zero_copy_only=False).astype(float)
        if left.shape != right.shape or not np.array_equal(np.isnan(left), np.isnan(right)):
            return float("inf")
        if left.size:
            largest = max(largest, float(np.nanmax(np.abs(left - right), initial=0.0)))
    return largest


def number_difference(before: Any, after: Any) -> float:
    """The largest difference between the numbers of two JSON values; infinite where one has a number more.

    Relative to the larger of the two where that exceeds one, because such values have units of their own. A verdict
    (true or false) counts as a number. Words do not: a sentence rounds the numbers that it tells.
    """
    left, right = dict(_numbers(before)), dict(_numbers(after))
    if left.keys() != right.keys():
        return math.inf
    return max((_relative(left[place], right[place]) for place in left), default=0.0)


def _numbers(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Every number of a JSON value, with the keys and positions that lead to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, (*place, key))
    elif isinstance(value, (list, tuple)):
        for position, part in enumerate(value):
            yield from _numbers(part, (*place, position))
    elif isinstance(value, (bool, int, float)):
        yield place, float(value)


def _relative(before: float, after: float) -> float:
    difference = abs(before - after) / max(1.0, abs(before), abs(after))
    return difference if math.isfinite(difference) else math.inf


def fit_id(cohort_hash: str, configuration: dict[str, Any], estimator_version: str) -> str:
    """A fit is named by what went in: cohort, configuration and estimator."""
    digest = tagged(FIT_TAG, cohort_hash.encode(), rfc8785.dumps(configuration), estimator_version.encode())
    return f"{FIT_FORMAT}:{digest}"
