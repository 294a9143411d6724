"""Many numbers in little text: what a page of thousands of places carries.

An array is the base64 of its little-endian bytes. Rows of a table become columns of distinct values and codes, which
loses nothing: `rows_of(packed_rows(rows)) == rows`, to the type and the digit.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_TYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "i2": np.int16, "i4": np.int32, "f4": np.float32}
MOST_ROWS = 50_000_000  # what a page that claims more would make us allocate


def packed(values: ArrayLike, kind: str) -> dict[str, str]:
    """The array as a page's script unpacks it; a value that the type cannot hold is an error of the caller."""
    array = np.asarray(values)
    found = array.astype(np.dtype(_TYPES[kind]).newbyteorder("<"))
    assert kind == "f4" or np.array_equal(found, array), f"not all values are {kind}"
    return {"type": kind, "values": base64.b64encode(found.tobytes()).decode()}


def unpacked(document: dict[str, str]) -> np.ndarray[Any, Any]:
    """The array; ValueError or KeyError where it is none."""
    found = base64.b64decode(document["values"], validate=True)
    return np.frombuffer(found, np.dtype(_TYPES[document["type"]]).newbyteorder("<"))


def packed_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows with the same keys, column by column: each has its distinct values once, and a code for every row."""
    columns = {}
    for name in rows[0] if rows else []:
        # JSON tells 6 from 6.0 from true, which are one key of a dict.
        codes: dict[str, int] = {}
        values: list[Any] = []
        numbers = []
        for row in rows:
            key = json.dumps(row[name])
            if key not in codes:
                codes[key] = len(values)
                values.append(row[name])
            numbers.append(codes[key])
        kind = "u1" if len(values) < 2**8 else "u2" if len(values) < 2**16 else "u4"
        columns[name] = {"distinct": values, "codes": packed(numbers, kind)}
    return {"number": len(rows), "names": list(rows[0]) if rows else [], "columns": columns}


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows again; ValueError where columns do not fit one another."""
    number, names = document["number"], document["names"]
    if not isinstance(number, int) or not 0 <= number <= MOST_ROWS or set(names) != document["columns"].keys():
        raise ValueError("not a packed table")
    rows: list[dict[str, Any]] = [{} for _ in range(number)]
    for name in names:
        column = document["columns"][name]
        codes, values = unpacked(column["codes"]), column["distinct"]
        if codes.size != number or (number and int(codes.max()) >= len(values)):
            raise ValueError("a packed column does not fit its table")
        for row, code in zip(rows, codes.tolist(), strict=True):
            row[name] = values[code]
    return rows
