"""One release, in the order of docs/contract.md, section 8: eligible, space, withhold, fit, influence, round, carry.

`make_release` reads the store and writes nothing. What it returns is all that a release consists of: the rows, who
stands behind each, and, for the operator alone, why cells are missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime

import duckdb
import numpy as np

from isuit.audit.rederivation import recorded_config
from isuit.estimator.weighted_fit import Unfit
from isuit.published import ReleaseRow
from isuit.release import carrying, one_series, screening
from isuit.release.bins import Bins
from isuit.release.carrying import Fate, Key, Released, fingerprints
from isuit.release.cell_curves import CellCurves, comparable, fit_cells
from isuit.release.cells import cell_of
from isuit.release.dates import cut_off
from isuit.release.eligibility import NOWHERE, Eligible, Topic, eligible, refuse_doubles, topics
from isuit.release.format import Declared
from isuit.release.forms import forms_of, in_forms, without_support
from isuit.release.grid import Grid
from isuit.release.influence import refused_bins
from isuit.release.persons import Persons
from isuit.release.policy import Policy
from isuit.release.rounding import RowMaker
from isuit.release.screening import Placed, Reasons
from isuit.store.fits import StoredFit
from isuit.store.query import rows
from isuit.store.releases import BinRecord, ReleaseRecord, release_bins, release_lines, release_members
from isuit.store.sites import Coordinates, known_sites

Progress = Callable[[str, float], None]
FAR_FUTURE = datetime(9999, 1, 1)


@dataclass(frozen=True)
class Series:
    """What the first release fixed, and every release so far."""

    policy: Policy
    bins: Mapping[Topic, Bins | Grid]
    discrimination: Mapping[Topic, float]
    releases: tuple[ReleaseRecord, ...]  # oldest first, those before the one in the making
    declared: Mapping[str, Declared] = field(default_factory=dict)  # by dimension


@dataclass
class Draft:
    """A release in the making."""

    rows: list[ReleaseRow] = field(default_factory=list)
    bins: dict[Topic, Bins | Grid] = field(default_factory=dict)
    discrimination: dict[Topic, float] = field(default_factory=dict)
    held: dict[tuple[str, int], int] = field(default_factory=dict)  # rows repeated after someone left: how often
    records: list[BinRecord] = field(default_factory=list)
    members: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    reasons: dict[Topic, Reasons] = field(default_factory=dict)
    carried: int = 0
    withdrawn: int = 0

    @property
    def cells(self) -> int:
        return len({row.h3 for row in self.rows})


@dataclass(frozen=True)
class Source:
    """Where outcomes come from: a store at one moment, without those who opted out."""

    connection: duckdb.DuckDBPyConnection
    opted_out: Callable[[str], bool]
    sites: Mapping[str, Coordinates]
    persons: Persons
    secret: bytes  # of the store: noise is drawn from it
    as_of: datetime | None = None  # fits recorded later are not there yet; for deriving a release again

    @classmethod
    def of(
        cls,
        connection: duckdb.DuckDBPyConnection,
        opted_out: Callable[[str], bool],
        secret: bytes,
        as_of: datetime | None = None,
    ) -> Source:
        persons = Persons(rows(connection, "SELECT rider, token FROM personal.pseudonyms"))
        return cls(connection, opted_out, known_sites(connection), persons, secret, as_of)

    def topics(self) -> dict[Topic, list[StoredFit]]:
        return topics(self.connection, self.as_of)

    def eligible(self, fits: list[StoredFit], before: datetime) -> Eligible:
        return eligible(self.connection, fits, before, self.opted_out, self.persons)


def make_release(source: Source, day: date, series: Series, progress: Progress | None = None) -> Draft:
    """Everything that a release of this date consists of; the store is not written."""
    tell = progress or (lambda stage, share: None)
    draft = Draft(bins=dict(series.bins), discrimination=dict(series.discrimination))
    before = _released_before(source, series)
    found = source.topics()
    for topic, why in _left_out(source, found, before).items():
        draft.reasons.setdefault(topic, Reasons()).notes.append(why)
        del found[topic]
    for topic, fits in found.items():
        if source.as_of is None:  # a release that was made before this rule can still be derived again
            refuse_doubles(source.connection, fits, source.persons)
        tell(f"{topic.activity}, {topic.dimension}", 0.0)
        _release_topic(source, day, series, topic, fits, before.pop(topic, {}), draft)
        tell(f"{topic.activity}, {topic.dimension}", 1.0)
    draft.rows = in_order(draft.rows)
    draft.withdrawn = len(_newest_keys(source, series) - {row.key for row in draft.rows})
    return draft


def _left_out(
    source: Source, found: Mapping[Topic, list[StoredFit]], before: Mapping[Topic, Mapping[Key, Released]]
) -> dict[Topic, str]:
    """Topics that hold the outings of another, with the reason (`one_series`)."""
    if len(found) < 2:
        return {}
    lines = one_series.lines_of(source.connection, found, source.persons)
    departed = {
        topic
        for topic, released in before.items()
        if any(each.record.riders > len(each.persons) for each in released.values())
    }
    first = {topic: (fits[0].recorded_at, fits[0].fit_id) for topic, fits in found.items()}
    return one_series.left_out(lines, first, before, departed)


def _newest_keys(source: Source, series: Series) -> set[tuple[str, str, str, float]]:
    if not series.releases:
        return set()
    lines = release_lines(source.connection, series.releases[-1].release_id)
    return {ReleaseRow.model_validate_json(line).key for line in lines}


def in_order(rows: list[ReleaseRow]) -> list[ReleaseRow]:
    """By what rows are about: the order in which they came about tells which were carried forward."""
    return sorted(rows, key=lambda row: row.key)


def _release_topic(
    source: Source,
    day: date,
    series: Series,
    topic: Topic,
    fits: list[StoredFit],
    before: Mapping[Key, Released],
    draft: Draft,
) -> None:
    policy, reasons = series.policy, draft.reasons.setdefault(topic, Reasons())
    everything = source.eligible(fits, cut_off(day, policy.lag_days))
    cells = one_series.by_cell(everything.outcomes, (cell for cell, _ in before))
    found = replace(everything, outcomes=one_series.in_one_form(everything.outcomes, cells))
    aside = everything.outcomes.rider.size - found.outcomes.rider.size
    if aside:
        reasons.notes.append(f"{aside} lines have no site: one curve of all, beside cells, would tell of withheld ones")
    placed = screening.place(found.outcomes, source.sites, policy, series.bins.get(topic), reasons, topic.metrics)
    if placed is not None and isinstance(placed.bins, Grid):
        placed = in_forms(placed, placed.bins, forms_of(placed.bins, before), policy)
    _explain(source, fits, found, policy, reasons, topic)
    now = _riders_and_outcomes(found, source, series, topic, before) if before else {}
    fate = carrying.decide(before, now, _then(source, topic, before, series, cells), policy)
    for key, held in sorted(fate.carried.items()):
        _carry(topic, key, before[key], held, day, draft)
    for cell in sorted({cell for cell, _ in fate.withdrawn}):
        reasons.add(cell, "rows are withdrawn: too few riders are left, or someone left and too few changed since")
    if placed is None:
        return
    left = screen(placed, policy, reasons)
    if left is None:
        return
    bands = {key: released.row.contributors for key, released in before.items()}
    discrimination = series.discrimination.get(topic)
    maker = RowMaker(day.isoformat(), topic, placed.bins, policy, source.secret, bands, discrimination, series.declared)
    for key, row, riders in _fresh(left, maker, found, fate, reasons):
        draft.bins[topic] = placed.bins
        draft.rows.append(row)
        _stand_behind(topic, key, day, riders, source.persons, draft)
    if maker.discrimination is not None:
        draft.discrimination[topic] = maker.discrimination


def screen(placed: Placed, policy: Policy, reasons: Reasons) -> Placed | None:
    """Withhold what is thin, then refuse what is dominated."""
    left = screening.withhold_thin(placed, policy, reasons)
    return None if left is None else screening.refuse_dominated(left, policy, reasons)


def _fresh(
    left: Placed, maker: RowMaker, found: Eligible, fate: Fate, reasons: Reasons
) -> list[tuple[Key, ReleaseRow, list[str]]]:
    """The rows that are computed in this release, each with the stored spellings of its riders."""
    made: list[tuple[Key, ReleaseRow, list[str]]] = []
    settled = fate.carried.keys() | fate.withdrawn
    linked = comparable(left)
    apart = left.of_rows(~linked[left.cell])
    alone = screening.members(apart)
    for cell, _ in alone:
        reasons.add(cell, "too few riders link it to the other cells for a common origin: it gets no difficulty")
    unsettled = {key: len(riders) for key, riders in alone.items() if key not in settled}
    for key, row in maker.incomparable(apart, unsettled).items():
        made.append((key, row, _spelled(apart, alone[key])))
    joined = left.of_rows(linked[left.cell])
    if not screening.members(joined).keys() - settled:
        return made
    curves = fit_until_nothing_is_refused(joined, maker.policy, found.fit, reasons)
    if curves is None:
        return made
    behind = screening.members(curves.placed)
    if isinstance(curves.placed.bins, Grid):
        for cell, place in sorted(without_support(curves.placed, curves.placed.bins, maker.policy)):
            reasons.add(cell, "some bins of a metric had too few riders while the others were near where they are held")
            behind.pop((cell, place), None)
    fresh = {key: len(riders) for key, riders in behind.items() if key not in settled}
    for key, row in maker.rows(curves, fresh).items():
        made.append((key, row, _spelled(curves.placed, behind[key])))
    return made


def fit_until_nothing_is_refused(placed: Placed, policy: Policy, fit: StoredFit, reasons: Reasons) -> CellCurves | None:
    """Fit what is left; points that one rider moves too far leave with their outcomes, and the rest is fitted again."""
    config = recorded_config(fit)
    left: Placed | None = placed
    while left is not None:
        try:
            curves = fit_cells(left, policy, config)
        except Unfit as unfit:
            for reason in unfit.reasons:
                reasons.notes.append(f"no latent fit: {reason}; more outcomes of more riders help")
            return None
        released = np.zeros((len(left.cells), left.bins.number), dtype=bool)
        released[left.cell, left.bin] = True
        refused = refused_bins(curves, released, policy)
        if not refused.any():
            return curves
        for cell in np.flatnonzero(refused.any(axis=1)).tolist():
            what = "it" if refused[cell].sum() == released[cell].sum() else "some of its bins"
            reasons.add(left.cells[cell], f"leaving out one rider would move {what} too far: more riders are needed")
        thinner = screening.without(left, refused)
        left = None if thinner is None else screen(thinner, policy, reasons)
    return None


def _spelled(placed: Placed, riders: list[int]) -> list[str]:
    return [spelling for rider in riders for spelling in placed.outcomes.spellings[rider]]


def curve_name(topic: Topic, cell: str) -> str:
    """What a curve is called in-house: activity, dimension and cell."""
    return json.dumps([topic.activity, topic.dimension, cell], ensure_ascii=False, separators=(",", ":"))


def _stand_behind(topic: Topic, key: Key, day: date, riders: list[str], persons: Persons, draft: Draft) -> None:
    name = curve_name(topic, key[0])
    number = len({persons.of(rider) for rider in riders})
    draft.records.append(BinRecord(name, key[1], number, day.isoformat()))
    draft.members[name, key[1]] = riders


def _carry(topic: Topic, key: Key, released: Released, held: int, day: date, draft: Draft) -> None:
    draft.rows.append(released.row.model_copy(update={"release": day.isoformat()}))
    draft.records.append(released.record)
    draft.members[curve_name(topic, key[0]), key[1]] = sorted(released.members)
    if held:
        draft.held[curve_name(topic, key[0]), key[1]] = held
    draft.carried += 1


def _released_before(source: Source, series: Series) -> dict[Topic, dict[Key, Released]]:
    """Every row that was ever released, as it was last, by topic, cell and bin.

    Not only those of the newest release: a row that was withdrawn and comes back with one rider more would otherwise be
    computed again, and stand beside its last version like two releases around one person.
    """
    found: dict[Topic, dict[Key, Released]] = {}
    for release in reversed(series.releases):
        name = release.release_id
        records = {(record.curve, record.bin): record for record in release_bins(source.connection, name)}
        members = release_members(source.connection, name)
        held = {(curve, bin_): times for curve, bin_, times in json.loads(release.policy).get("held", [])}
        for line in release_lines(source.connection, name):
            row = ReleaseRow.model_validate_json(line)
            topic, bin_ = _about(row, series.bins, records)
            curve = (curve_name(topic, row.h3), bin_)
            persons = frozenset(map(source.persons.of, members.get(curve, set())))
            released = Released(row, records[curve], frozenset(members.get(curve, set())), persons, held.get(curve, 0))
            found.setdefault(topic, {}).setdefault((row.h3, bin_), released)
    return found


def _about(
    row: ReleaseRow, bins: Mapping[Topic, Bins | Grid], records: Mapping[tuple[str, int], BinRecord]
) -> tuple[Topic, int]:
    """The topic of a released row and its bin. A place of a surface is the one of its form, which is on record."""
    topic = Topic(row.activity, row.dimension)
    own = bins.get(topic)
    if isinstance(own, Bins):
        return topic, int(own.of(np.array([row.metric]))[0])
    for topic, grid in bins.items():
        if topic.activity == row.activity and isinstance(grid, Grid):
            for number in grid.places_of(row.dimension, row.metric):
                if (curve_name(topic, row.h3), number) in records:
                    return topic, number
    raise AssertionError("a released row is of a topic of its series")


def _then(
    source: Source, topic: Topic, before: Mapping[Key, Released], series: Series, cells: bool
) -> dict[str, carrying.Fingerprints]:
    """The outcomes of today's riders as they were in each release that computed one of these rows."""
    found: dict[str, carrying.Fingerprints] = {}
    by_id = {release.release_id: release for release in series.releases}
    for name in {released.record.computed_in for released in before.values()}:
        release = by_id[name]
        earlier = replace(source, as_of=release.made_at)
        fits = earlier.topics().get(topic, [])
        if not fits:
            found[name] = {}
            continue
        then = earlier.eligible(fits, cut_off(release.release_date, series.policy.lag_days))
        then = replace(then, outcomes=one_series.in_one_form(then.outcomes, cells))
        found[name] = _riders_and_outcomes(then, source, series, topic, before)
    return found


def _riders_and_outcomes(
    found: Eligible, source: Source, series: Series, topic: Topic, before: Mapping[Key, Released]
) -> carrying.Fingerprints:
    """Of all cells, thin ones too: what counts is who is there with which outcomes, not whether they are enough."""
    everyone = series.policy.model_copy(update={"k": 1})
    placed = screening.place(found.outcomes, source.sites, everyone, series.bins[topic], Reasons())
    if placed is not None and isinstance(placed.bins, Grid):
        placed = in_forms(placed, placed.bins, forms_of(placed.bins, before), everyone)
    return fingerprints(placed, series.policy)


def _explain(
    source: Source, fits: list[StoredFit], found: Eligible, policy: Policy, reasons: Reasons, topic: Topic
) -> None:
    """For the operator: what kept outcomes out, and which cells only lack time."""
    if found.untimed:
        reasons.notes.append(
            f"{found.untimed} lines have no observed_at: fit their cohort with `isuit fit --observed-until DATE`"
        )
    if found.placeholders:
        reasons.notes.append(
            f"{found.placeholders} lines have a placeholder as rider: give each rider an ID of their own"
        )
    if not found.too_recent:
        return
    reasons.notes.append(
        f"{found.too_recent} lines are younger than {policy.lag_days} days at the release date: release them later"
    )
    everything = source.eligible(fits, FAR_FUTURE)
    whole = Reasons()
    later = screening.place(everything.outcomes, source.sites, policy, None, whole, topic.metrics)
    enough = set(later.cells) if later is not None else set()
    seen = set(reasons.cells)
    for cell in sorted(enough & seen | (enough - _cells(source, found, policy))):
        reasons.cells[cell] = ["too recent: enough riders, but their outcomes are younger than the lag"]


def _cells(source: Source, found: Eligible, policy: Policy) -> set[str]:
    """The cells in which any eligible outcome lies."""
    used = {found.outcomes.places[place] for place in np.unique(found.outcomes.place).tolist() if place != NOWHERE}
    names = {cell_of(site, source.sites, policy.resolution) for site in used}
    return {name for name in names if name is not None}
