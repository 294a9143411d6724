"""How results reach the terminal: JSON on stdout, or rich text where a person looks."""

from __future__ import annotations

import json
import sys
import time
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
    """A table where a person looks; where the output is piped, the plain lines, which `grep` and `cut` can read.

    A terminal too narrow for the table gets its rows one below the other: half an id is no id.
    """
    if not sys.stdout.isatty():
        print("\n".join(plain))
        return
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False)  # names are text, whatever brackets they hold
    widest = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    if sum(widest) + 3 * len(widest) + 1 > console.width:
        print("\n".join(line for row in rows for line in _flowing(columns, row, console.width)))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _flowing(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    """A row's cells as words of a paragraph that hangs by two spaces; a cell wider than the terminal stays whole.

    Cells of a table of two columns are a name and a value, which need no other name.
    """
    from rich.cells import cell_len

    named = len(columns) > 2
    line = ""
    for name, cell in zip(columns, row, strict=True):
        part = f"{name} {cell}" if named else cell
        if line and cell_len(line) + 2 + cell_len(part) > width:
            yield line
            line = ""
            part = f"  {part}"
        line = f"{line}  {part}" if line else part
    yield line


class Verbose:
    """Whether stages are told on stderr with the time they begin; set by `isuit --verbose`."""

    since: float | None = None


def tell(what: str) -> None:
    """A line of `--verbose`: seconds since the start, and words of the program. No value of anybody's is ever told."""
    if Verbose.since is not None:
        note(f"[{time.monotonic() - Verbose.since:8.3f} s] {what}")


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A bar per stage on a terminal, nothing elsewhere; gives the function that long work reports to.

    A report is a step of the work, an iteration of the solver for one. A stage ends where the next one begins.
    """
    if Verbose.since is not None:
        told: set[str] = set()

        def begin(stage: str, share: float) -> None:
            if stage not in told:
                told.add(stage)
                tell(stage)

        yield begin
        return
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
