"""What changed from release to release."""

from typing import Any

from isuit.release.timeline import Published, timeline


def row(cell: str, metric: float, difficulty: float | None, se: float = 0.2, activity: str = "kite") -> dict[str, Any]:
    return {
        "activity": activity,
        "dimension": "wind",
        "h3": cell,
        "metric": metric,
        "difficulty": difficulty,
        "difficulty_se": se,
        "status": "estimated" if difficulty is not None else "saturated",
        "release": "told elsewhere",
    }


def release(date: str, *rows: dict[str, Any]) -> Published:
    return Published(list(rows), {"release": date, "digest": f"digest of {date}"})


def test_rows_are_new_changed_carried_or_withdrawn() -> None:
    first = release("2026-01-01", row("a", 10, 0.5), row("a", 20, 1.0), row("b", 10, -1.0), row("c", 10, None))
    second = release(
        "2026-04-01",
        row("a", 10, 0.5) | {"release": "another date"},  # carried forward
        row("a", 20, 1.75),
        row("c", 10, 2.0),  # had no value to move from
        row("d", 10, 0.0),
        row("a", 10, 0.5, activity="surf"),
    )
    one, two = timeline([first, second])
    assert one == {
        "release": "2026-01-01",
        "digest": "digest of 2026-01-01",
        "rows": 4,
        "cells": 3,
        "added": 4,
        "changed": 0,
        "largest_change": None,
        "withdrawn": 0,
        "withdrawn_cells": [],
    }
    assert two == {
        "release": "2026-04-01",
        "digest": "digest of 2026-04-01",
        "rows": 5,
        "cells": 3,
        "added": 2,
        "changed": 2,
        "largest_change": 0.75,
        "withdrawn": 1,
        "withdrawn_cells": ["b"],
    }


def test_another_error_is_a_change_too() -> None:
    before, after = release("1", row("a", 10, 0.5)), release("2", row("a", 10, 0.5, se=0.3))
    assert timeline([before, after])[1]["changed"] == 1
    assert timeline([before, after])[1]["largest_change"] == 0.0
