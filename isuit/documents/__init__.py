"""Files from elsewhere, read safely: policies, expert curves, sites, releases, bundles.

Whoever hands over a file may have made it so that it hangs the program, fills its memory or has it print what it should
not. So there is one place that decides what a file may cost:

    files      only regular files are read (no pipe, no device), the size is looked at first, and no more is read
    notation   JSON up to a depth, a number of values and the integers that binary64 holds exactly; no NaN
    yaml       the same for YAML, whose aliases can stand for far more than the file holds
    tables     CSV and Parquet that fit into memory whole
    records    dataclasses from JSON objects, each field of its declared type
    schema     objects held against a published JSON Schema

A refusal is an `UnsafeDocument`: one sentence that says what the file is for, and nothing of its content.
"""

from isuit.documents.files import UnsafeDocument, read_bytes, read_text, require_regular
from isuit.documents.notation import finite, from_json, from_json_lines

__all__ = [
    "UnsafeDocument",
    "finite",
    "from_json",
    "from_json_lines",
    "read_bytes",
    "read_text",
    "require_regular",
]
