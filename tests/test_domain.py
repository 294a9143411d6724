"""Many names take little room, and are a sequence like any other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from isuit import domain
from isuit.domain import Names, names_at

TEXTS = ("a", "änne", "b", "c-3", "zoë")


def test_names_are_a_sequence_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "NAMES_AT_ONCE", 2)
    names = Names(pa.array(TEXTS))
    assert len(names) == 5
    assert (names[1], names[-1]) == ("änne", "zoë")
    assert names[1:3] == ("änne", "b")
    assert tuple(names) == TEXTS
    assert names == TEXTS
    assert names != TEXTS[:-1]
    assert "b" in names
    with pytest.raises(IndexError):
        names[5]


def test_some_names_are_those_at_their_places() -> None:
    names, places = Names(pa.array(TEXTS)), np.array([3, 0, 0])
    assert names_at(names, places) == names_at(TEXTS, places) == ("c-3", "a", "a")


def test_arrow_gets_its_own_array_back() -> None:
    strings = pa.array(TEXTS)
    assert pa.array(Names(strings), pa.string()) is strings


def test_nobody_is_named_where_names_are_shown() -> None:
    assert repr(Names(pa.array(TEXTS))) == "<5 names>"
