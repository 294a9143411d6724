"""Hostile versions of good files: damaged bytes, and documents with a value that nobody expects."""

from __future__ import annotations

import json
import random
from typing import Any

TOKENS = [
    *(b"[" * 3000, b'{"a":' * 2000, b"- " * 2000, b"9" * 5000, b"9007199254740993", b"x" * 200_000),
    *(b"1e999", b"-1e999", b"NaN", b"Infinity", b".inf", b"-0.0", b"1e-400", b"0x" + b"f" * 300, b"1" + b":59" * 300),
    *(b"\\ud800", b"\xff\xfe", b"\x00", b"\xe2\x80\xa8", b"\xf0\x9f\x8f\x84", b"2001-99-99"),
    *(b'"', b"'", b"\t", b"\n", b"\r", b",", b"{}", b"[]", b"null", b"true"),
    *(b"&a [*a]", b"*a", b"<<: *a", b"!!python/object:os.system x"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 10**15, 2**53, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "mallory-4711", "x" * 200_000, "\u2028", "\x00", "9" * 400, "NaN", "global", "isuit-c1:" + "0" * 64),
    *([], {}, [[]], [1, 2], [None], {"": 1}, {"a": {"b": []}}, "2025-01-01", "2025-01-01T00:00:00.000000Z"),
]


def damaged(chance: random.Random, content: bytes) -> bytes:
    """A few bytes changed, cut, doubled or put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        start = chance.randrange(len(content) + 1)
        end = min(len(content), start + chance.choice((0, 1, 2, 8, 100, 5000)))
        kind = chance.randrange(6)
        if kind == 0:
            content = content[:start]
        elif kind == 1:
            content = content[:start] + chance.choice(TOKENS) + content[end:]
        elif kind == 2:
            content = content[:start] + bytes(chance.randrange(256) for _ in range(end - start)) + content[end:]
        elif kind == 3:
            content = content[:end] + content[start:]
        elif kind == 4 and content:
            place = chance.randrange(len(content))
            content = content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
        else:
            content = content[:start] + content[end:]
    return content


def other_json(chance: random.Random, value: Any) -> Any:
    """The same document with one to three of its parts replaced, removed, renamed or doubled."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.choice((1, 1, 2, 3))):
        holder, key = _place(chance, value)
        if holder is None:
            return chance.choice(VALUES)
        kind = chance.randrange(4)
        if kind == 0 and isinstance(holder, dict):
            holder[chance.choice(("x", "", "mallory-4711", *holder))] = holder.pop(key)
        elif kind == 1:
            del holder[key]
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, holder[key])
        else:
            holder[key] = chance.choice(VALUES)
    return value


def _place(chance: random.Random, value: Any) -> tuple[Any, Any]:
    """A random part of a document, by what holds it and under which key; None where there is none to choose."""
    holder, key = None, None
    while isinstance(value, (dict, list)) and value:
        holder, key = value, chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        if chance.random() < 0.35:
            break
        value = holder[key]
    return holder, key
