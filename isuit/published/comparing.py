"""What is said of fits beside each other: rank, compare, alias."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from isuit.published.base import FIT, HEAD, Published


class RankedSite(Published):
    """A site in a ranking: how hard it is, and how sure it is that it is harder than the next."""

    place: int = Field(description="1 is the hardest.")
    site: str
    metric: float = Field(description="The condition: the one asked for, or the site's easiest.")
    difficulty: float | None = Field(description="In skill sds; null for a single curve.")
    suitability: float | None = Field(description="Of a single curve; null for a latent fit, whose skill is declared.")
    lower: float = Field(description="Lower end of the 95 % band of whichever is given.")
    upper: float
    harder_than_next: float | None = Field(
        description="Probability that this site is harder than the next; null for the last."
    )


class Ranking(Published):
    """`isuit rank FIT`: sites from the hardest to the easiest."""

    fit_id: str = Field(pattern=FIT)
    kind: Literal["latent", "single-curve"]
    metric: float | None = Field(description="The condition asked for; null where each site is at its easiest.")
    sites: list[RankedSite]
    without_difficulty: list[str] = Field(description="Sites that no rider links to the others.")
    notes: list[str]


class ComparedFit(Published):
    """One side of a comparison."""

    fit_id: str = Field(pattern=FIT)
    cohort_hash: str
    recorded_at: datetime
    kind: Literal["latent", "single-curve"]


class Changed(Published):
    """A value that the two fits do not share, or one of their diagnostics."""

    name: str
    first: Any
    second: Any


class ComparedPoint(Published):
    """Both curves at one metric and site; a null site is the curve that all sites share."""

    site: str | None
    metric: float
    first: float
    second: float
    difference: float = Field(description="Second minus first.")
    lower: float | None = Field(description="Lower end of the difference's 95 % band; null where one fit has none.")
    upper: float | None


class Comparison(Published):
    """`isuit compare FIT FIT`: two fits of one activity and dimension."""

    first: ComparedFit
    second: ComparedFit
    compares: Literal["difficulty", "suitability"]
    linked: bool = Field(description="Whether the second is carried to the scale of the first by the riders of both.")
    same_cohort: bool
    shared_riders: int = Field(description="Riders with a skill in both fits.")
    configuration: list[Changed] = Field(description="What was asked for otherwise, and other versions.")
    diagnostics: list[Changed]
    differing: int = Field(description="Points whose band of the difference leaves zero out.")
    largest_difference: float | None
    only_first: list[str] = Field(description="Sites that only the first fit has.")
    only_second: list[str]
    points: list[ComparedPoint]
    notes: list[str]


class Alias(Published):
    """A name of the operator's for a fit."""

    alias: str
    fit_id: str = Field(pattern=FIT)
    set_at: datetime


class Aliases(Published):
    """`isuit alias`: every alias, by name."""

    aliases: list[Alias]
    log_head: str = Field(pattern=HEAD)
