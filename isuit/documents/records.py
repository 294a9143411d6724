"""A dataclass from a JSON object of elsewhere: the declared fields, each with its declared type."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def record_of(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """The record; ValueError where a field is missing, unknown or of another type. Types are plain ones, literals and
    unions of them; an integer is a number too, a truth value is not."""
    types = get_type_hints(kind)
    if types.keys() != values.keys() or not all(_is(values[name], type_) for name, type_ in types.items()):
        raise ValueError("these are not the fields of the record")
    return kind(**values)


def _is(value: Any, type_: Any) -> bool:
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        return any(_is(value, part) for part in get_args(type_))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(type_)
    if isinstance(value, bool) or type_ is bool:
        return type_ is bool and isinstance(value, bool)
    return isinstance(value, (int, float) if type_ is float else type_)
