"""What a private release declares in advance."""

from typing import Any

import pytest
from pydantic import ValidationError

from isuit.release.private.declaration import MOST_BINS, Private, PrivateTopic

CELL, OTHER = "83754efffffffff", "83390cfffffffff"


def topic(**changed: Any) -> PrivateTopic:
    return PrivateTopic(**({"activity": "kite", "dimension": "wind", "lower": 4.0, "width": 2.0, "bins": 8} | changed))


def test_one_letter_is_a_name_and_bins_begin_at_a_multiple() -> None:
    found = topic(activity="k", dimension="w", lower=6.0, width=3.0, bins=MOST_BINS)
    assert found.cells == ("global",)
    assert (found.bins_of_metric.first, found.bins_of_metric.width) == (2, 3.0)
    assert topic(lower=0.3, width=0.1).bins_of_metric.first == 3


def test_cells_are_sorted() -> None:
    assert topic(cells=[CELL, OTHER]).cells == tuple(sorted([CELL, OTHER]))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"activity": ""}, "activity"),
        ({"dimension": ""}, "dimension"),
        ({"lower": 5.0, "width": 2.0}, "whole multiple"),
        ({"width": 0.0}, "width"),
        ({"bins": 3}, "bins"),
        ({"bins": MOST_BINS + 1}, "bins"),
        ({"cells": []}, "cells"),
        ({"cells": [CELL, CELL]}, "twice"),
        ({"cells": ["global", CELL]}, "stands alone"),
        ({"cells": [CELL.upper()]}, "lower-case"),
        ({"cells": ["8375"]}, "H3"),
        ({"lower": float("nan")}, "finite"),
    ],
)
def test_what_cannot_be_declared(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        topic(**changed)


def test_a_topic_is_declared_once_however_it_is_spelled() -> None:
    with pytest.raises(ValidationError, match="declared twice"):
        Private(epsilon=2.0, delta=1e-6, releases=4, topics=(topic(), topic(activity="KITE")))
    both = Private(epsilon=2.0, delta=1e-6, releases=4, topics=(topic(), topic(dimension="wave")))
    assert len(both.topics) == 2
