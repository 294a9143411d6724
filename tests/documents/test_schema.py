"""Files are held against the published schemas, as the models that made these would hold them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isuit.schemas import published_schema
from pydantic import ValidationError

from isuit.documents.schema import RULES, SAYS_NOTHING, STRUCTURE, violations
from isuit.published import ReleaseMetadata, ReleaseRow

ROW: dict[str, Any] = {
    "release": "2025-01-01", "activity": "kitesurfing", "dimension": "wind_kn", "h3": "87386d2eaffffff",
    "h3_resolution": 7, "latitude": 37.9, "longitude": 12.4, "metric": 14.0, "metric_lower": 12.0,
    "metric_upper": 16.0, "units": "knot", "difficulty": -0.5, "difficulty_se": 0.2, "expert_difficulty": None,
    "contributors": "20-49", "status": "estimated",
}  # fmt: skip
PROOF = {
    "format": "isuit-proof/1", "checkpoint": "note", "key": "name+id+key", "rotations": [], "consistency": None,
    "inclusion": {"index": 0, "entry": "{}", "path": ["00"]},
}  # fmt: skip
METADATA: dict[str, Any] = {
    "metadata": True, "format": "isuit-atlas/1", "release": "2025-01-01", "rows": 1, "cells": 1, "digest": "0" * 64,
    "observed_before": "2024-10-03", "policy": {"k": 10, "noise": 0.1}, "weaker_than_default": ["noise"],
    "identification": "one", "difficulty_units": "two", "join": "three", "licence": None, "citation": "four",
    "estimator_version": "4", "tool_version": "0.1.0", "proof": PROOF,
    "metrics": [{
        "activity": "kitesurfing", "dimension": "wind_kn", "lower": 4.0, "upper": 34.0, "bins": 15, "width": 2.0,
        "units": None, "standard_name": None, "discrimination": 1.8,
    }],
}  # fmt: skip
CASES = [("release-row", ReleaseRow, ROW), ("release-metadata", ReleaseMetadata, METADATA)]


def words(schema: Any) -> set[str]:
    """The words that a schema uses; names of fields are none."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for word, part in schema.items():
        parts = list(part.values()) if word in ("properties", "$defs") else part
        found |= words(parts) if word not in ("default", "const", "enum") else set()
    return found


@pytest.mark.parametrize("name", ["release-row", "release-metadata"])
def test_every_word_of_the_schemas_is_known(name: str) -> None:
    assert words(published_schema(name)) <= {"$ref", "anyOf"} | SAYS_NOTHING | STRUCTURE | set(RULES)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a document, at every depth."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in parts for place in [(*path, key), *places(part, (*path, key))]]


ODD = [
    None,
    True,
    "",
    "x",
    "2024-13-01",
    "20240101",
    "2025-01-01\n",
    "٢٠٢٥-01-01",
    0,
    -1,
    16,
    200,
    9.0,
    9.5,
    [],
    {},
    ["a"] * 70,
]


@pytest.mark.parametrize(("name", "model", "document"), CASES, ids=["row", "metadata"])
def test_it_is_as_strict_as_the_model(name: str, model: Any, document: dict[str, Any]) -> None:
    """Every place of the document with every odd value, or without it, or with a name more."""
    schema = published_schema(name)
    assert violations(schema, document) == []
    assert model.model_validate(document)
    stricter = 0
    for place in places(document):
        for odd in [*ODD, KeyError]:
            changed = copy.deepcopy(document)
            holder: Any = changed
            for key in place[:-1]:
                holder = holder[key]
            if odd is KeyError:
                del holder[place[-1]]
            else:
                holder[place[-1]] = odd
            try:
                model.model_validate(changed)
                taken = True
            except ValidationError:
                taken = False
            found = violations(schema, changed)
            assert set(found) <= {place[0]}
            assert taken or found, (place, odd)
            stricter += taken and bool(found)
    # The model takes "9" for 9 and 1 for true; a published schema does not.
    assert stricter < len(places(document)) * len(ODD) / 10
    assert violations(schema, document | {"rider": "jane"}) == ["rider"]
    assert violations(schema, [document]) == [""]


@given(st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.floats() | st.text(max_size=3), max_size=4))
def test_whatever_it_is_given_it_answers(value: dict[str, Any]) -> None:
    assert set(violations(published_schema("release-row"), value)) >= set(ROW) - set(value)
    json.dumps(violations(published_schema("release-metadata"), value))
