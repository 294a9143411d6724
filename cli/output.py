"""How results reach the terminal: JSON on stdout, or rich text where a person looks."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(value: Any) -> None:
    """One JSON object on stdout; NaN is refused because JSON has none."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def note(sentence: str) -> None:
    """A sentence for the person at the terminal; never on stdout, which may be piped."""
    print(sentence, file=sys.stderr)
