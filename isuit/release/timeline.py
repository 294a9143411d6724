"""What changed from release to release, by what the releases themselves say: rows that are new, changed or withdrawn.

Everything here can be computed by anybody who kept the files; it is told so that nobody has to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[str, str, str, float]


@dataclass(frozen=True)
class Published:
    """The rows of a release and its metadata, as they were published."""

    rows: list[dict[str, Any]]
    metadata: dict[str, Any]

    @classmethod
    def of(cls, lines: Sequence[str], metadata: str) -> Published:
        return cls([json.loads(line) for line in lines], json.loads(metadata))


def timeline(releases: Sequence[Published]) -> list[dict[str, Any]]:
    """One entry for each release, oldest first, beside the one before it."""
    found = []
    before: dict[Key, dict[str, Any]] = {}
    for release in releases:
        now = {(row["activity"], row["dimension"], row["h3"], row["metric"]): row for row in release.rows}
        both = now.keys() & before.keys()
        changed = [key for key in both if _told(now[key]) != _told(before[key])]
        moves = [
            abs(now[key]["difficulty"] - before[key]["difficulty"])
            for key in changed
            if now[key]["difficulty"] is not None and before[key]["difficulty"] is not None
        ]
        cells, cells_before = {key[2] for key in now}, {key[2] for key in before}
        found.append(
            {
                "release": release.metadata["release"],
                "digest": release.metadata["digest"],
                "rows": len(now),
                "cells": len(cells),
                "added": len(now.keys() - before.keys()),
                "changed": len(changed),
                "largest_change": round(max(moves), 6) if moves else None,
                "withdrawn": len(before.keys() - now.keys()),
                "withdrawn_cells": sorted(cells_before - cells),
            }
        )
        before = now
    return found


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row says of its condition; a row that is carried forward says the same under a later date."""
    return row["difficulty"], row["difficulty_se"], row["status"]
