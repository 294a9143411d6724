"""Frozen values as JSON."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any


def described(sentence: str) -> dict[str, str]:
    """What a field means, for the published schema: `field(metadata=described("..."))`."""
    return {"description": sentence}


def as_json(value: Any) -> Any:
    """The value as JSON knows it: dataclasses become objects, tuples arrays.

    A field that has a default of None and is None is left out: it is one that only some fits have, or that an older
    version did not write. A field without a default is always written, as null if it is None.
    """
    if is_dataclass(value) and not isinstance(value, type):
        named = ((field, getattr(value, field.name)) for field in fields(value))
        return {
            field.name: as_json(part)
            for field, part in named
            if part is not None or field.default is MISSING or field.default is not None
        }
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    return value
