"""The keywords of reading: listed once, shown by name wherever a cohort is read, and no others taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import isuit
from isuit.ingest import read_cohort
from isuit.reading import Form, Reading
from isuit.service.notebook import StoreHandle
from isuit.service.recorded import RecordedFit

READERS = (isuit.hash, isuit.canonicalise, isuit.fit, StoreHandle.fit, StoreHandle.add, StoreHandle.pseudonymise)
OF_A_COPY = (RecordedFit.rederive, isuit.rederive_bundle)  # a record says which metrics


@pytest.mark.parametrize("function", [read_cohort, *READERS, *OF_A_COPY])
def test_a_signature_names_each_keyword_with_its_default(function: Callable[..., Any]) -> None:
    shown = inspect.signature(function).parameters
    expected = {"columns": None, "timezone": None, "csv": None, "drop_missing": False}
    if function not in OF_A_COPY:
        expected["metrics"] = None
    assert {name: shown[name].default for name in Reading.__annotations__ if name in shown} == expected
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values())
    assert set(Reading.__annotations__) - set(Form.__annotations__) == {"metrics"}


def test_a_keyword_with_a_slip_is_refused_before_anything_is_done() -> None:
    with pytest.raises(TypeError, match="'column'"):
        isuit.hash("no such file", column={"rider": "user"})
    with pytest.raises(TypeError, match="'exclude'"):  # read_cohort has it; who is left out is not for a caller to say
        isuit.hash({"rider": ["a"]}, exclude=lambda riders: [False])
