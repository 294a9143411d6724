"""What is said of a cohort that was read: hash, canonicalise, add, pseudonymise; of one that was refused; of series."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from isuit.published.base import HASH, HEAD, Published


class CohortRead(Published):
    """`isuit hash`."""

    cohort_hash: str = Field(pattern=HASH)
    rows: int = Field(description="As in the files.")
    outcomes: int = Field(description="Without the rows that were left out.")
    riders: int
    sites: int
    observed_from: str | None = Field(description="In UTC; null where no outcome has a time.")
    observed_until: str | None
    duplicates: int = Field(description="Outcomes that repeat another one in every field; they count.")
    excluded_rows: int
    missing_rows: int = Field(description="Left out by --drop-missing.")
    notes: list[str] = Field(description="How a file was read where it is not in the standard form.")


class Canonicalised(CohortRead):
    """`isuit canonicalise`."""

    out: str


class Defect(Published):
    """One reason why a cohort was refused; it holds no value of the cohort."""

    column: str | None
    defect: str
    count: int = Field(description="Rows that have it; 0 for a whole column or file.")
    rows: list[str] = Field(description="The first of these rows, counted from 1 in each file.")


class CohortRefused(Published):
    """`isuit hash` and `isuit canonicalise` of a cohort that cannot be read as it is (exit 2)."""

    error: str
    refused: list[Defect]


class Added(Published):
    """`isuit add --series NAME FILE`."""

    series: str
    cohort_hash: str = Field(pattern=HASH, description="Of what was added.")
    added: bool = Field(description="False when the series had it already.")
    outcomes: int = Field(description="Of what was added.")
    known_outcomes: int = Field(description="Of the file, which the series had already or the file repeats.")
    parts: int = Field(description="Cohorts of the series.")
    outcomes_of_all: int = Field(description="Of all parts, as they were added.")
    suppressed_rows: int = Field(description="Rows left out because their rider opted out.")
    notes: list[str]
    log_head: str = Field(pattern=HEAD)


class SeriesEntry(Published):
    """A series and what it holds now."""

    series: str
    parts: int = Field(description="Cohorts that were added.")
    outcomes: int = Field(description="Of all parts, without those of riders who were erased.")
    riders: int
    metrics: list[str]
    observed_from: datetime | None = Field(description="Null where no outcome has a time.")
    observed_until: datetime | None
    extended_at: datetime = Field(description="When something was added last.")


class SeriesList(Published):
    """`isuit series`."""

    series: list[SeriesEntry]


class Pseudonymised(Published):
    """`isuit pseudonymise`."""

    cohort_hash: str = Field(pattern=HASH, description="Of the file written.")
    outcomes: int
    riders: int
    new_tokens: int
    suppressed_rows: int = Field(description="Rows left out because their rider opted out.")
    notes: list[str]
    log_head: str = Field(pattern=HEAD)
