"""A private release: entries of persons, sums with noise, and rows from the sums.

`measure` is the only function that sees outcomes, and all it returns are sums with noise. `draft` makes the rows from
these sums and from what the policy declares; it is given nothing else, so nothing else can reach a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np

from isuit.domain import IntArray
from isuit.errors import PolicyRefusal
from isuit.published import ReleaseRow
from isuit.release.bins import OUTSIDE
from isuit.release.cells import cell_of, centre
from isuit.release.dates import cut_off
from isuit.release.eligibility import NOWHERE, Outcomes, Topic, folded, refuse_doubles
from isuit.release.format import Declared
from isuit.release.making import Draft, Source, in_order
from isuit.release.policy import Policy, band
from isuit.release.private import discrete_gaussian
from isuit.release.private.accounting import budget, variance
from isuit.release.private.contributions import GRID, Entries, Parameters, between_bins, score_sum, survey_sum
from isuit.release.private.declaration import GLOBAL, Private, PrivateTopic
from isuit.release.private.solving import LEVEL_SD, Posterior, Survey, read_round, read_survey, solve, start
from isuit.release.rounding import to_step
from isuit.release.screening import Reasons, capped

ROUNDS = 3  # of scores
SURVEY_PART = 0.2  # of a topic's cost; the rounds share the rest
STEP = 0.01  # of what is published: digits protect nobody here, the noise does
Sums = list[list[int]]  # the survey, then the scores of each round, all with noise


@dataclass(frozen=True)
class Costs:
    """What a release may cost, in units (`accounting`), and how a topic's part is divided."""

    budget: int  # of the series
    release: int
    survey: int  # of each topic
    scores: int  # of each topic and round

    @classmethod
    def of(cls, private: Private) -> Costs:
        whole = budget(private.epsilon, private.delta)
        release = whole // private.releases
        topic = release // len(private.topics)
        survey = int(topic * SURVEY_PART)
        scores = (topic - survey) // ROUNDS
        if scores < 1 or survey < 1:
            raise PolicyRefusal(
                "the policy's epsilon is too small for so many releases and topics; make a store with a larger one, or "
                "with fewer releases."
            )
        return cls(whole, release, survey, scores)


def measure(source: Source, day: date, policy: Policy) -> tuple[list[Sums], list[str]]:
    """Of every declared topic the sums with fresh noise, and notes for the operator's eyes."""
    assert policy.private is not None
    notes: list[str] = []
    costs = Costs.of(policy.private)
    found = []
    for topic in policy.private.topics:
        entries = _entries_in_store(source, cut_off(day, policy.lag_days), topic, policy, notes)
        found.append(drawn(entries, topic, costs))
    return found, notes


def drawn(entries: Entries, topic: PrivateTopic, costs: Costs) -> Sums:
    """Survey and scores of these persons, with noise: all that leaves them."""
    found: Sums = []

    def ask(at: Parameters | None) -> list[int]:
        found.append(noised(entries, at, topic, costs))
        return found[-1]

    curves(topic, costs, ask)
    return found


def noised(entries: Entries, at: Parameters | None, topic: PrivateTopic, costs: Costs) -> list[int]:
    """The survey's sum, or that of the scores at these parameters, with noise for a person's largest part in it."""
    if at is None:
        return with_noise(survey_sum(entries, len(topic.cells), topic.bins), costs.survey)
    return with_noise(score_sum(entries, at), costs.scores)


def with_noise(total: IntArray, units: int) -> list[int]:
    spread = variance(GRID, units)
    return [value + discrete_gaussian.draw(spread) for value in total.tolist()]


def curves(topic: PrivateTopic, costs: Costs, ask: Callable[[Parameters | None], list[int]]) -> Posterior:
    """Survey and rounds, each taken where the ones before point to; `ask` gives the sum, drawn now or on record."""
    spread = math.sqrt(variance(GRID, costs.survey))
    survey: Survey = read_survey(np.array(ask(None), np.float64), spread, topic.bins)
    spread = math.sqrt(variance(GRID, costs.scores))
    at, level_error, rounds = start(survey), LEVEL_SD, []
    for _ in range(ROUNDS):
        rounds.append(read_round(np.array(ask(at), np.float64), spread, at, survey, level_error))
        found = solve(rounds, survey)
        at, level_error = found.parameters, found.level_error
    return found


def _on_record(sums: Sums) -> Callable[[Parameters | None], list[int]]:
    """The sums one after the other, as they were asked for when they were drawn."""
    answers = iter(sums)
    return lambda at: next(answers)


def draft(measured: list[Sums], day: date, policy: Policy, declared: dict[str, Declared]) -> Draft:
    """The release that follows from sums with noise and from the policy, and from nothing else."""
    assert policy.private is not None
    made, costs = Draft(), Costs.of(policy.private)
    for topic, sums in zip(policy.private.topics, measured, strict=True):
        found = curves(topic, costs, _on_record(sums))
        about = Topic(topic.activity, topic.dimension)
        made.bins[about] = topic.bins_of_metric
        made.discrimination[about] = max(to_step(math.exp(found.parameters.log_discrimination), STEP), STEP)
        units = declared.get(topic.dimension, Declared()).units
        reasons = made.reasons.setdefault(about, Reasons())
        made.rows.extend(_rows(found, topic, day, policy, units, reasons))
    made.rows = in_order(made.rows)
    return made


def _rows(
    found: Posterior, topic: PrivateTopic, day: date, policy: Policy, units: str | None, reasons: Reasons
) -> list[ReleaseRow]:
    bins = topic.bins_of_metric
    difficulty, errors = found.parameters.difficulty(), found.errors()
    made = []
    for code, cell in enumerate(topic.cells):
        riders = round(float(found.riders[code]))
        if riders < policy.k:
            reasons.add(cell, f"fewer than {policy.k} riders by the count with noise, which is what decides")
            continue
        latitude, longitude = centre(cell)
        for bin_ in range(topic.bins):
            # Where nearly everybody succeeds there is a value too, with its error: noise protects it, and to show the
            # values below a limit alone would show those that noise made low.
            made.append(
                ReleaseRow(
                    release=day.isoformat(),
                    activity=topic.activity,
                    dimension=topic.dimension,
                    h3=cell,
                    h3_resolution=None if cell == GLOBAL else policy.resolution,
                    latitude=latitude,
                    longitude=longitude,
                    metric=bins.centre(bin_),
                    metric_lower=bins.edge(bin_),
                    metric_upper=bins.edge(bin_ + 1),
                    units=units,
                    difficulty=to_step(float(difficulty[code, bin_]), STEP),
                    difficulty_se=float(f"{errors[code, bin_]:.2g}"),
                    expert_difficulty=None,
                    contributors=band(riders),  # type: ignore[arg-type]  # one of the names that the row allows
                    status="estimated",
                )
            )
    return made


def _entries_in_store(
    source: Source, before: datetime, topic: PrivateTopic, policy: Policy, notes: list[str]
) -> Entries:
    wanted = folded(Topic(topic.activity, topic.dimension))
    fits = [fit for name, found in source.topics().items() if folded(name) == wanted for fit in found]
    if not fits:
        # The release is made all the same: that there is nobody must not show.
        notes.append(f"{topic.activity}, {topic.dimension}: the store has no fit of it, so its sums are noise alone")
        nothing = np.zeros(0, np.int64)
        return Entries(np.zeros(1, np.int64), nothing, nothing, nothing, np.zeros((0, 4)), np.zeros(0), np.zeros(0))
    try:
        refuse_doubles(source.connection, fits, source.persons)
    except PolicyRefusal as refusal:
        # To refuse would itself tell. A person under two IDs is two persons to the guarantee: epsilon counts twice.
        notes.append(f"{topic.activity}, {topic.dimension}: for whom this is true the guarantee is weaker: {refusal}")
    outcomes = source.eligible(fits, before).outcomes
    if topic.cells == (GLOBAL,):
        cell = np.zeros(outcomes.place.size, np.int64)
    else:
        code_of = {name: code for code, name in enumerate(topic.cells)}
        named = [cell_of(site, source.sites, policy.resolution) for site in outcomes.places]
        lookup = np.array([code_of.get(name or "", NOWHERE) for name in named] + [NOWHERE], dtype=np.int64)
        cell = lookup[outcomes.place]  # NOWHERE, which is -1, picks the last one
    return entries_of(outcomes, cell, topic, policy)


def entries_of(outcomes: Outcomes, cell: IntArray, topic: PrivateTopic, policy: Policy) -> Entries:
    """The outcomes in declared cells (NOWHERE: in none) and bins, person by person. Copies of a line count once."""
    bins = topic.bins_of_metric
    bin_ = bins.of(outcomes.metric)
    inside = np.flatnonzero((cell != NOWHERE) & (bin_ != OUTSIDE))
    # An order that follows from a person's own lines.
    order = inside[np.lexsort([column[inside] for column in (outcomes.outcome, outcomes.metric, cell, outcomes.rider)])]
    person, cell, bin_ = outcomes.rider[order], cell[order], bin_[order]
    _, group, lines = np.unique(
        (person * len(topic.cells) + cell) * bins.number + bin_, return_inverse=True, return_counts=True
    )
    weight = (capped(lines.astype(np.float64), policy) / lines)[group]
    knot, weights = between_bins((outcomes.metric[order] - bins.centre(0)) / bins.width, bins.number)
    return Entries(
        starts(person, len(outcomes.riders)), cell, bin_, knot, weights, weight, weight * outcomes.outcome[order]
    )


def starts(person: IntArray, persons: int) -> IntArray:
    """Where each person's entries begin: everything of a person is one vector."""
    return np.concatenate([[0], np.cumsum(np.bincount(person, minlength=persons))]).astype(np.int64)
