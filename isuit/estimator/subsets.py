"""Parts of a cohort, and predictions for many rows a part at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray, Observations

_BLOCK = 16_384  # rows predicted at a time: their designs stay small


def rows(data: Observations, chosen: NDArray[np.bool_]) -> Observations:
    return replace(
        data,
        rider=data.rider[chosen],
        metric=data.metric[chosen],
        outcome=data.outcome[chosen],
        site=None if data.site is None else data.site[chosen],
        observed_at=None if data.observed_at is None else data.observed_at[chosen],
    )


def in_blocks(predict: Callable[..., FloatArray], *columns: NDArray[Any]) -> FloatArray:
    """Predictions for a bounded number of rows at a time."""
    size = columns[0].size
    blocks = [predict(*(column[k : k + _BLOCK] for column in columns)) for k in range(0, size, _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0)
