"""How results reach the terminal: JSON on stdout, or rich text where a person looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isuit.published import Published


def print_json(report: Published) -> None:
    """One JSON object on stdout, of a model that has a schema; NaN is refused because JSON has none."""
    json.dump(report.as_json(), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def note(sentence: str) -> None:
    """A sentence for the person at the terminal; never on stdout, which may be piped."""
    print(sentence, file=sys.stderr)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], plain: Iterable[str]) -> None:
    """A table where a person looks; where the output is piped, the plain lines, which `grep` and `cut` can read."""
    if not sys.stdout.isatty():
        print("\n".join(plain))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    Console(markup=False).print(table)  # names are text, whatever brackets they hold


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A bar per stage on a terminal, nothing elsewhere; gives the function that long work reports to.

    A report is a step of the work, an iteration of the solver for one. A stage ends where the next one begins.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("step {task.fields[steps]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        stages: dict[str, Any] = {}
        steps: dict[str, int] = {}

        def report(stage: str, share: float) -> None:
            if stage not in stages:
                for earlier in stages.values():
                    bars.update(earlier, completed=1.0)
                stages[stage] = bars.add_task(stage, total=1.0, steps=0)
            steps[stage] = steps.get(stage, 0) + (share > 0)
            bars.update(stages[stage], completed=share, steps=steps[stage])

        yield report
