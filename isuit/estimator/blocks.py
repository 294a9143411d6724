"""Predictions for many rows, some at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isuit.domain import FloatArray

_BLOCK = 100_000  # rows predicted at a time


def in_blocks(predict: Callable[..., FloatArray], *columns: NDArray[Any]) -> FloatArray:
    """Predictions for a bounded number of rows at a time."""
    size = columns[0].size
    blocks = [predict(*(column[k : k + _BLOCK] for column in columns)) for k in range(0, size, _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0)
