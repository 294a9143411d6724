"""What reading refused: every defect with its column, its count and its first rows, and never with a value.

Values stay out of it because any of them may be a rider's ID, also in the wrong column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isuit.errors import CohortRefused
from isuit.ingest.times import NOT_A_TIME
from isuit.ingest.values import MISSING, NOT_A_NUMBER, NOT_AN_OUTCOME

FIRST_ROWS = 5  # row numbers that a sentence lists per defect
ADVICE = (
    (MISSING, "--drop-missing leaves incomplete rows out"),
    (NOT_A_NUMBER, "a number has no unit beside it, and --drop-missing takes NA for missing"),
    (
        NOT_AN_OUTCOME,
        "a CSV's words are declared, as in --csv outcomes=ja/nein, or x/ where an empty cell is a failure",
    ),
    (NOT_A_TIME, "another form of a CSV is declared, as in --csv dates=dd/mm/yyyy"),
)


@dataclass(frozen=True)
class Refusal:
    """One defect. Rows count from 1 in each file, without a CSV's header; `count` is 0 for a whole column or file."""

    column: str | None
    defect: str
    count: int = 0
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"column {self.column}: {self.defect}" if self.column else self.defect
        if not self.count:
            return where
        if self.count == 1:
            return f"{where} in 1 row (row {self.rows[0]})"
        more = ", ..." if self.count > len(self.rows) else ""
        return f"{where} in {self.count} rows (rows {', '.join(self.rows)}{more})"


@dataclass(frozen=True)
class Place:
    """Where a batch comes from: its file (None where there is only one), the number of its first row, and the rows of
    the file that were passed over because they have no columns to speak of."""

    file: str | None
    first_row: int = 1
    passed_over: Sequence[int] = ()
    kept: NDArray[np.intp] | None = None  # places of the batch's rows that are left, where some were left out

    def number(self, position: int) -> int:
        """The number, in the file, of a row of the batch."""
        number = self.first_row + int(position if self.kept is None else self.kept[position])
        for passed in self.passed_over:
            number += passed <= number
        return number


class Refusals:
    """Collects defects while a cohort is read, so that the caller learns of all of them at once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, str], tuple[int, list[str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, column: str | None, defect: str) -> None:
        """A defect of a whole column or file."""
        self._found.setdefault((column, defect), (0, []))

    def add_rows(self, column: str | None, defect: str, bad: NDArray[np.bool_], place: Place) -> None:
        """A defect of the rows where `bad` is true."""
        if count := int(np.count_nonzero(bad)):
            first = np.flatnonzero(bad)[:FIRST_ROWS].tolist()
            self.add_numbers(column, defect, [place.number(position) for position in first], place, count)

    def add_numbers(
        self, column: str | None, defect: str, numbers: list[int], place: Place, count: int | None = None
    ) -> None:
        """The same, by the numbers of the first rows, or of all of them where `count` is not given."""
        if not numbers:
            return
        total, rows = self._found.get((column, defect), (0, []))
        for number in numbers[: FIRST_ROWS - len(rows)]:
            rows.append(f"{number} of {place.file}" if place.file else str(number))
        self._found[column, defect] = (total + (len(numbers) if count is None else count), rows)

    def listed(self) -> tuple[Refusal, ...]:
        return tuple(
            Refusal(column, defect, count, tuple(rows)) for (column, defect), (count, rows) in self._found.items()
        )

    def error(self) -> RefusedCohort:
        return RefusedCohort(self.listed())


class RefusedCohort(CohortRefused):
    """A cohort that cannot be read as it is; `refusals` lists every defect."""

    def __init__(self, refusals: tuple[Refusal, ...]) -> None:
        self.refusals = refusals
        listed = "; ".join(str(refusal) for refusal in refusals)
        found = {refusal.defect for refusal in refusals}
        # Where outcomes are words, an empty one may be a failure: to leave it out would leave the failures out.
        found -= {MISSING} if NOT_AN_OUTCOME in found else set()
        told = [advice for defect, advice in ADVICE if defect in found]
        advice = f" ({'; '.join(told)})" if told else ""
        super().__init__(f"the cohort was refused: {listed}; nothing was written, correct it{advice} and try again")
