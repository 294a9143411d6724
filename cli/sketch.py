"""A curve in a few lines of text, for the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 60, 8
EDGE = 9  # columns that the labels of the axis take


def sketch(x: Sequence[float], y: Sequence[float], label: str, unit: str) -> str:
    """Columns of blocks from the lowest to the highest value; x must ascend."""
    # A line that the terminal breaks is no picture any more.
    width = min(WIDTH, max(20, shutil.get_terminal_size().columns - EDGE)) if sys.stdout.isatty() else WIDTH
    low, high = min(y), max(y)
    span = high - low or 1.0
    lines = []
    columns = [_at(x, y, x[0] + (x[-1] - x[0]) * step / (width - 1)) for step in range(width)]
    eighths = [round((value - low) / span * (HEIGHT * 8 - 1)) + 1 for value in columns]
    for row in reversed(range(HEIGHT)):
        cells = "".join(BLOCKS[min(8, max(0, level - row * 8))] for level in eighths)
        edge = f"{high:8.2f}" if row == HEIGHT - 1 else f"{low:8.2f}" if row == 0 else " " * 8
        lines.append(f"{edge} {cells}")
    ends = f"{x[0]:<{width // 2}.4g}{x[-1]:>{width - width // 2}.4g}"
    return "\n".join([f"{label} ({unit})", *lines, f"{'':8} {ends}"])


def _at(x: Sequence[float], y: Sequence[float], where: float) -> float:
    """Linear between the points."""
    for index in range(1, len(x)):
        if where <= x[index] or index == len(x) - 1:
            width = x[index] - x[index - 1]
            share = (where - x[index - 1]) / width if width else 0.0
            return y[index - 1] + (y[index] - y[index - 1]) * min(1.0, max(0.0, share))
    return y[0]
