"""One series: the same outings are released once. Each attack is shown to succeed without the rule that answers it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar, cast

import duckdb
import numpy as np
import pytest
from release_lab import FIRST, SECOND, Answer, Lab, Mutant, draw

from isuit.release.eligibility import NOWHERE, Outcomes, Topic
from isuit.release.one_series import (
    Lines,
    are_the_same,
    by_cell,
    in_one_form,
    left_out,
    lines_of,
    shared_days,
    shared_persons,
)
from isuit.release.persons import Persons
from isuit.store.fits import StoredFit

SERIES = "isuit.release.one_series"
WIND, RENAMED, WAVE = ("kitesurfing", "wind_speed_kn"), ("kitesurfing", "wind"), ("kitesurfing", "wave_m")
SPOTS = {"pier": (45.5, 9.1), "bay": (38.0, 12.4)}


def test_the_last_microsecond_before_1970_is_a_moment() -> None:
    """Outings without a time have none; every number of microseconds is one that somebody may have been out at."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE all_outcomes AS SELECT 'c' AS cohort_hash, 'a' AS rider, moment::TIMESTAMP AS observed_at, "
            "1.0::DOUBLE AS metric, 1::TINYINT AS outcome FROM "
            "(VALUES (NULL), ('1969-12-31 23:59:59.999999')) AS t(moment)"
        )
        fit = cast(StoredFit, SimpleNamespace(cohort_hash="c"))
        persons = cast(Persons, SimpleNamespace(of=lambda name: name))
        [found] = lines_of(connection, {Topic(*WIND): [fit]}, persons).values()
    assert sorted(found.moment != 0) == [False, True]
    assert len(set(found.outing.tolist())) == 2


def topics(answer: Answer) -> set[tuple[str, str]]:
    assert answer.rows, answer.err
    return {(row["activity"], row["dimension"]) for row in answer.rows}


@pytest.mark.long
class TestSpellingsOfATopic:
    """`Kitesurfing` beside `kitesurfing` would be the same people twice in one file."""

    def released(self, lab: Lab) -> set[tuple[str, str]]:
        store = lab.store(draw(seed=1))
        lab.fit(store, draw(seed=2), topic=("Kitesurfing", "Wind_Speed_KN"))
        return topics(lab.export(store))

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.released(lab) == {WIND}

    def test_it_succeeds_when_names_are_taken_as_they_are(self, lab: Lab, mutant: Mutant) -> None:
        mutant("isuit.release.eligibility.folded", lambda topic: topic)
        assert len(self.released(lab)) == 2


@pytest.mark.long
class TestRenamedDimension:
    """Rows with the person who left beside rows without, under another name."""

    def released(self, lab: Lab) -> set[tuple[str, str]]:
        rows = draw(seed=1)
        store = lab.store(rows)
        assert topics(lab.export(store)) == {WIND}
        lab.opt_out(store, "rider-003")
        lab.fit(store, rows, topic=RENAMED)
        answer = lab.export(store, SECOND, "--explain")
        self.said = answer.err
        return topics(answer)

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.released(lab) == {WIND}
        assert "23 riders have the same outings in kitesurfing, wind_speed_kn" in self.said

    def test_it_succeeds_when_topics_are_not_compared(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SERIES}.are_the_same", lambda shared, mine, theirs: False)
        assert self.released(lab) == {WIND, RENAMED}


@pytest.mark.long
class TestAnotherMetricAfterADeparture:
    """The waves of the same outings, first released after somebody left the rows about wind."""

    def released(self, lab: Lab, depart: bool = True) -> set[tuple[str, str]]:
        rows = draw(seed=1)
        store = lab.store(rows)
        assert topics(lab.export(store)) == {WIND}
        if depart:
            lab.opt_out(store, "rider-003")
        lab.fit(store, [replace(row, metric=row.metric / 10 + 0.017) for row in rows], topic=WAVE)
        return topics(lab.export(store, SECOND))

    def test_the_attack_fails(self, lab: Lab) -> None:
        assert self.released(lab) == {WIND}

    def test_it_succeeds_when_days_are_not_compared(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SERIES}.shared_days", lambda mine, theirs: 0)
        assert self.released(lab) == {WIND, WAVE}

    def test_another_metric_begins_while_nobody_left(self, lab: Lab) -> None:
        assert self.released(lab, depart=False) == {WIND, WAVE}


@pytest.mark.long
class TestATotalBesideItsParts:
    """The same cohort with and without sites: `global` minus the cells is the cell that is withheld."""

    def cells(self, lab: Lab) -> set[str]:
        skills: dict[str, float] = {}
        sited = [row for number, site in enumerate(SPOTS) for row in draw(seed=number, site=site, skills=skills)]
        store = lab.store(sited, sites=SPOTS)
        lab.fit(store, [replace(row, site=None) for row in sited])
        return lab.export(store).cells

    def test_the_attack_fails(self, lab: Lab) -> None:
        cells = self.cells(lab)
        assert len(cells) == 2
        assert "global" not in cells

    def test_it_succeeds_when_both_forms_are_released(self, lab: Lab, mutant: Mutant) -> None:
        mutant(f"{SERIES}.in_one_form", lambda outcomes, cells: outcomes)
        assert "global" in self.cells(lab)


@pytest.mark.long
class TestASecondStore:
    """The same cohort in another store, with releases of its own."""

    def test_it_is_refused_where_both_are_at_hand(self, lab: Lab) -> None:
        rows = draw(seed=1)
        first, second = lab.store(rows), lab.store(rows, policy={"k": 11})
        assert lab.export(second, FIRST, "--beside", str(first)).rows  # that one has released nothing yet
        answer = lab.export(first, FIRST, "--beside", str(second))
        assert (answer.code, answer.file) == (3, None)
        assert "has 1 of this store's cohorts and has released 1 times" in answer.err
        assert lab.export(first, FIRST, "--beside", str(first)).rows  # a store is not beside itself

    def test_other_cohorts_may_stand_beside(self, lab: Lab) -> None:
        other = lab.store(draw(seed=2))
        assert lab.export(other).rows
        assert lab.export(lab.store(draw(seed=1)), FIRST, "--beside", str(other)).rows


def lines(rows: list[tuple[int, int, int]]) -> Lines:
    """Of person, outing and moment."""
    person, outing, moment = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Lines(person, outing, moment)


class TestSharedOutings:
    MINE = lines([(p, 100 * p + n, 100 * p + n) for p in range(10) for n in range(1, 11)])

    def test_a_subset_is_the_same(self) -> None:
        subset = lines([(p, 100 * p + n, 100 * p + n) for p in range(5) for n in range(1, 6)])
        assert shared_persons(subset, self.MINE) == shared_persons(self.MINE, subset) == 5
        assert are_the_same(5, subset, self.MINE)

    def test_a_few_in_common_are_not(self) -> None:
        other = lines([(p, 100 * p + n, 100 * p + n) for p in range(10) for n in range(6, 20)])
        assert shared_persons(other, self.MINE) == 10  # half of the fewer
        assert shared_persons(lines([(p, 100 * p + n, 1) for p in range(10) for n in range(7, 20)]), self.MINE) == 0
        assert not are_the_same(3, self.MINE, self.MINE)

    def test_outings_without_a_time_have_no_moment(self) -> None:
        untimed = lines([(p, 9000 + n, 0) for p in range(10) for n in range(10)])
        assert shared_days(untimed, untimed) == 0
        assert shared_days(self.MINE, self.MINE) == 10


class TestWhoStays:
    """Of topics with the same outings; the middle one of three shares persons with both others."""

    FIRST, MIDDLE, LAST = (Topic("kite", name) for name in ("first", "middle", "last"))
    LINES: ClassVar = {
        topic: lines([(p, 100 * p + n, 100 * p + n) for p in persons for n in range(1, 11)])
        for topic, persons in ((FIRST, range(10)), (MIDDLE, range(5, 15)), (LAST, range(10, 20)))
    }
    FITTED: ClassVar = {FIRST: 1, MIDDLE: 2, LAST: 3}

    def test_what_is_left_out_leaves_nobody_out(self) -> None:
        found = left_out(self.LINES, self.FITTED, [], set())
        assert found.keys() == {self.MIDDLE}
        assert "5 riders have the same outings in kite, first" in found[self.MIDDLE]

    def test_what_was_released_stays(self) -> None:
        assert left_out(self.LINES, self.FITTED, [self.MIDDLE], set()).keys() == {self.FIRST, self.LAST}

    def test_the_same_days_count_beside_somebody_who_left(self) -> None:
        other = {
            self.FIRST: self.LINES[self.FIRST],
            self.LAST: replace(self.LINES[self.FIRST], outing=self.LINES[self.FIRST].outing + 10**6),
        }
        assert left_out(other, self.FITTED, [self.FIRST], set()) == {}
        assert left_out(other, self.FITTED, [self.FIRST], {self.FIRST}).keys() == {self.LAST}
        assert left_out(other, self.FITTED, [self.FIRST, self.LAST], {self.FIRST}) == {}  # it has begun


class TestForm:
    @staticmethod
    def outcomes(places: tuple[str | None, ...], place: list[int]) -> Outcomes:
        number = len(place)
        zeros = np.zeros(number, np.int64)
        return Outcomes(("a",), (("a",),), zeros, np.array(place), places, zeros.astype(float), zeros, zeros + 1)

    def test_the_first_release_decides(self) -> None:
        mixed = self.outcomes(("pier", None), [0, 1, NOWHERE])
        assert by_cell(mixed, [])
        assert by_cell(mixed, ["872a1072bffffff", "global"])
        assert not by_cell(mixed, ["global"])
        assert not by_cell(self.outcomes((None,), [0]), [])

    def test_cells_leave_out_what_has_no_site(self) -> None:
        kept = in_one_form(self.outcomes(("pier", None), [0, 1, NOWHERE]), True)
        assert kept.place.tolist() == [0, NOWHERE]

    def test_one_curve_takes_everybody(self) -> None:
        kept = in_one_form(self.outcomes(("pier", None), [0, 1, NOWHERE]), False)
        assert (kept.places, kept.place.tolist()) == ((None,), [0, 0, NOWHERE])
