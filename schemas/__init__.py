"""The published JSON Schemas of everything that leaves a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def published_schema(name: str) -> dict[str, Any]:
    """A schema by its name, such as `release-row`."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name(f"{name}.schema.json").read_text("utf-8"))
    return found
