"""Whether a value has the form that a JSON Schema describes: the words of it that `schemas/` uses, and no others.

What is published as a schema is then what a file is held against, by us as by anybody else, and whoever checks a file
need not wait until models are built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

Schema = Mapping[str, Any]
TYPES: dict[str, type] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
SAYS_NOTHING = {"$schema", "$id", "$defs", "title", "description", "default"}


def violations(schema: Schema, value: Any) -> list[str]:
    """The names in an object that break its schema, missing and unknown ones among them; `""` for what is no object."""
    if not isinstance(value, dict):
        return [""]
    known = schema["properties"]
    wrong = {name for name in schema["required"] if name not in value}
    wrong |= {name for name, part in value.items() if name not in known or not follows(known[name], part, schema)}
    return sorted(wrong)


def follows(schema: Schema, value: Any, root: Schema) -> bool:
    """Whether a value follows a schema; `root` has the definitions that are referred to."""
    if "$ref" in schema:
        return follows(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    if "anyOf" in schema:
        return any(follows(option, value, root) for option in schema["anyOf"])
    if not _is(schema["type"], value):
        return False
    rules = {word: given for word, given in schema.items() if word not in SAYS_NOTHING and word not in STRUCTURE}
    if not all(RULES[word](given, value) for word, given in rules.items()):
        return False
    if isinstance(value, list):
        return all(follows(schema["items"], item, root) for item in value)
    return not isinstance(value, dict) or _object(schema, value, root)


def _object(schema: Schema, value: dict[str, Any], root: Schema) -> bool:
    known, other = schema.get("properties", {}), schema["additionalProperties"]
    return set(schema.get("required", ())) <= value.keys() and all(
        follows(known[name], part, root) if name in known else bool(other) and follows(other, part, root)
        for name, part in value.items()
    )


def _is(kind: str, value: Any) -> bool:
    """A truth value is no number; 9.0 is an integer, as JSON has it."""
    if kind not in ("number", "integer"):
        return isinstance(value, TYPES[kind])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return kind == "number" or value == int(value)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _matches(pattern: str, text: str) -> bool:
    # Of Python's `$` a line feed may follow, and its `\d` has digits of every script.
    return re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None


STRUCTURE = {"type", "properties", "required", "additionalProperties", "items"}
RULES: dict[str, Callable[[Any, Any], bool]] = {
    "const": lambda given, value: bool(given == value),
    "enum": lambda given, value: value in given,
    "pattern": _matches,
    "minimum": lambda given, value: bool(value >= given),
    "maximum": lambda given, value: bool(value <= given),
    "maxItems": lambda given, value: len(value) <= given,
    "format": lambda given, value: given == "date" and _is_day(value),
}
