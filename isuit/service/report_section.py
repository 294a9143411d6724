"""One section of a report, as `pages/fit.js` draws it."""

from __future__ import annotations

from typing import Any

Section = dict[str, Any]


def section(name: str, title: str, sentence: str, ok: bool | None = None, **parts: Any) -> Section:
    """Id, title, sentence and verdict (good, bad, or None where there is nothing to judge), and then a chart, a note,
    facts, a table, as far as there are any."""
    verdict = None if ok is None else "good" if ok else "bad"
    return {"id": name, "title": title, "sentence": sentence, "verdict": verdict} | parts
